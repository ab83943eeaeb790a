"""What each command takes, as data for argparse. Only the chosen command's parser is built.

To add a command: a line in ``COMMANDS``, its options in ``OPTIONS``, a module here
with ``run(options, output) -> status``, a section in docs/commands.md.
"""

from __future__ import annotations

import argparse
import sys

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["COMMANDS", "parse"]


class Command(Record):
    """A command: its module, its one-line help, the names of its options in ``OPTIONS``."""

    module: str
    help: str
    options: tuple[str, ...]


COMMANDS = {
    "compile": Command(
        "compile",
        "compile expressions to fetch-args",
        ("expressions", "expr", "binary", "function", "at", "return", "kernel", "format"),
    ),
    "functions": Command(
        "functions", "list what can be probed", ("glob", "binary", "long", "output")
    ),
    "variables": Command(
        "variables",
        "list every name visible at a probe point",
        ("name", "binary", "at", "return", "kernel", "output"),
    ),
    "types": Command("types", "show the layout of types", ("glob", "binary", "output")),
    "explain": Command("explain", "explain a diagnostic code", ("code",)),
}

OPTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "expressions": (("expressions",), {"nargs": "*", "metavar": "EXPR"}),
    "expr": (
        ("--expr",),
        {
            "action": "append",
            "default": [],
            "metavar": "EXPR",
            "help": "an expression, also one that starts with a dash",
        },
    ),
    "binary": (
        ("-x", "--binary"),
        {"required": True, "metavar": "BINARY", "help": "the ELF file to probe"},
    ),
    "function": (("-f", "--function"), {"metavar": "FUNCTION", "help": "the function to probe"}),
    "at": (
        ("--at",),
        {"metavar": "POINT", "help": "+OFFSET into the function, or an address; default: entry"},
    ),
    "return": (
        ("--return",),
        {"action": "store_true", "dest": "returns", "help": "probe where the function returns"},
    ),
    "kernel": (
        ("--kernel",),
        {
            "metavar": "V",
            "default": "running",
            "help": "the kernel to compile for: 5.10, or running",
        },
    ),
    "format": (
        ("--format",),
        {
            "choices": ("fetcharg", "probe", "json"),
            "default": "fetcharg",
            "help": "fetcharg: one an expression; probe: whole definitions; json",
        },
    ),
    "output": (("--format",), {"choices": ("text", "json"), "default": "text"}),
    "glob": (("glob",), {"nargs": "?", "default": "*", "metavar": "GLOB"}),
    "long": (
        ("--long",),
        {"action": "store_true", "help": "with signature, address and source line"},
    ),
    "name": (("function",), {"metavar": "FUNCTION"}),
    "code": (("code",), {"metavar": "CODE", "help": "such as FC0302"}),
}


def parse(words: list[str]) -> argparse.Namespace | int:
    """The options of a command line; an exit status where there is nothing to run."""
    command = next((word for word in words if not word.startswith("-")), None)
    if command not in COMMANDS:
        return _no_command(words, command)
    parser = argparse.ArgumentParser(
        f"fetchc {command}", description=COMMANDS[command].help, allow_abbrev=False
    )
    for name in COMMANDS[command].options:
        flags, settings = OPTIONS[name]
        parser.add_argument(*flags, **settings)
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour in diagnostics; NO_COLOR is honoured",
    )
    words = list(words)
    words.remove(command)
    try:
        options = parser.parse_intermixed_args(words)
    except SystemExit as ended:  # argparse has said why
        return int(ended.code or 0)
    options.command = command
    return options


def _no_command(words: list[str], command: str | None) -> int:
    if "--version" in words:
        from fetchc import __version__

        print(f"fetchc {__version__}")
        return 0
    lines = ["usage: fetchc COMMAND ...", "", "commands:"]
    lines += [f"  {name:<10} {known.help}" for name, known in COMMANDS.items()]
    lines += ["", "`fetchc COMMAND --help` shows what a command takes"]
    if "-h" in words or "--help" in words or (command is None and not words):
        print("\n".join(lines))
        return 0 if words else 2
    what = f"there is no command `{command}`" if command else f"`{words[0]}` needs a command"
    print("\n".join([f"error: {what}", *lines]), file=sys.stderr)
    return 2
