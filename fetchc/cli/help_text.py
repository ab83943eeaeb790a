"""What is printed where no command is run: usage, help, the version."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import textwrap

from fetchc.cli.option_table import COMMANDS, OPTIONS
from fetchc.cli.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.cli.option_table import Option

__all__ = ["EXAMPLES", "GROUPS", "explained", "grouped_options", "option_help", "synopsis"]

_WIDTH = 80  # columns, of a terminal that has as many
_NARROWEST = 40
_INDENT = 28  # where the help of an option begins

# ------------------------------------------------------------------------------
# What the help of a command and its page of the manual are made of, beside the table of options.

GROUPS = (
    ("The program", "-x ./server --debug-dir /srv/debug", (
        "binary", "binaries", "file", "image", "process", "reference", "debug_file", "debug_dir",
        "arch",
    )),
    ("Where to probe", "-f 'main.(*server).handle' --return", (
        "function", "functions", "prototypes", "at", "return", "unsafe_return", "active", "kernel",
        "watch",
    )),
    ("What to fetch", "--expr '-r.Count'", (
        "expr", "calls_only", "depth", "value_bytes", "batch", "long", "full_types", "params",
        "fields",
    )),
    ("Which events", "-p nginx --filter 'n > 3' --timeout 10s", (
        "pid", "no_enable", "filter", "condition", "count", "timeout", "strict",
    )),
    ("Times, tables, callers", "--latency --histogram '$latency' --by '$comm'", (
        "latency", "since", "histogram", "linear", "sum", "by", "count_by", "top", "interval",
        "summary", "stack", "stack_bytes",
    )),
    ("The definition", "--group shop --event order --enable", (
        "group", "event", "enable", "all", "stale",
    )),
    ("The toolchain", "--cc clang-19 --rounds 3", (
        "cc", "go", "rust", "mono", "rounds", "seed", "only", "traced_by",
    )),
    ("Output", "--color never", (
        "compiled", "drawn", "listed", "tabled", "traced", "btf", "bpftrace_version", "written",
        "results", "into",
        "verify", "version", "time", "pretty", "engine", "uncached", "verbose", "color",
    )),
)  # fmt: skip
"""Titles, an example, and the options of each group, by their keys; each option is in one."""

EXAMPLES = {
    "compile": "fetchc compile 'r->Question[0].Name' -x ./server -f 'main.(*server).handle'",
    "functions": "fetchc functions 'main.*' -x ./server",
    "variables": "fetchc variables 'main.(*server).handle' -x ./server",
    "types": "fetchc types 'struct request' -x ./server",
    "browse": "fetchc browse -x ./server",
    "offsets": "fetchc offsets 'struct file.f_path' -x vmlinux-6.1 -x vmlinux-6.12",
    "btf": "fetchc btf 'struct request' -x ./server -o request.btf",
    "check": "fetchc check '+0(+8(%di)):string' --kernel 6.1",
    "trace": "fetchc trace 'r.Question[0].Name' -p server -f 'main.(*server).handle'",
    "add": "fetchc add 'buf[0:count]' -x kernel -f ksys_write --enable",
    "list": "fetchc list 'fetchc_*/*'",
    "remove": "fetchc remove --all",
    "conformance": "fetchc conformance --cc clang-19",
    "cache": "fetchc cache show",
    "perfmap": "fetchc perfmap merge 4711",
    "explain": "fetchc explain 'r->Question[0].Qtype' -x ./server -f 'main.(*server).handle'",
    "doctor": "fetchc doctor",
    "completion": "fetchc completion bash",
    "complete": "fetchc complete words -- compile --form",
}
"""A command line of each command."""

# What other tools call commands and options, and what they are called here.
_COMMANDS = {
    "probe": "add", "record": "trace", "script": "trace",
    "stat": "trace --summary", "watch": "trace --watch", "print": "trace", "del": "remove",
    "rm": "remove", "delete": "remove", "ls": "list", "funcs": "functions", "vars": "variables",
    "ptype": "types", "pahole": "types", "struct": "types", "layout": "types",
}  # fmt: skip
_OPTIONS = {
    "--duration": "--timeout", "--seconds": "--timeout", "-t": "--timeout",
    "--limit": "--count", "--max": "--count", "-n": "--count", "-c": "-- COMMAND ARG...",
    "--output": "> FILE", "-o": "> FILE", "--exec": "--binary", "--exe": "--binary",
    "--file": "--binary", "-e": "--expr", "--where": "--filter", "--jsonl": "--format jsonl",
    "--stacks": "--stack", "--hist": "--histogram",
    "--ret": "--return", "-r": "--return", "--retval": "--return", "--func": "--function",
    "-g": "--stack", "-w": "--watch", "--watchpoint": "--watch",
}  # fmt: skip


def explained(words: Sequence[str], wrong: str) -> int:
    """Print the help that ``words`` ask for, or what is ``wrong`` with them; the exit status."""
    name = words[0] if words else ""
    output = Output("never")
    if name not in COMMANDS:
        status = _no_command(words, output)
    elif wrong:
        output.say(f"error: {wrong}", *_hints(name, words, wrong), _usage(name))
        status = 2
    else:
        output.document(_usage(name, details=True))
        status = 0
    output.flush()
    return status


def synopsis(name: str) -> str:
    """How a command is called: its operand, the options that it needs, `[OPTION...]`."""
    command = COMMANDS[name]
    what = command.operand[1]
    shown = what if command.least else f"[{what}{'' if command.most else '...'}]"
    if command.most == 0:
        shown = ""
    needed = [OPTIONS[key] for key in command.options if OPTIONS[key].required]
    words = [f"fetchc {name} {shown}".rstrip()]
    words += [f"{option.flags[0]} {option.metavar}" for option in needed]
    words += ["[OPTION...]"] + ["[-- COMMAND ARG...]"] * command.starts
    return " ".join(words)


def grouped_options(name: str) -> list[tuple[str, str, list[Option]]]:
    """Titles of the groups that a command has options of, the options, and an example of them.

    The example is empty where the command does not have all of its options.
    """
    own = COMMANDS[name].options
    flags = {flag for key in own for flag in OPTIONS[key].flags}
    found = []
    for title, example, keys in GROUPS:
        options = [OPTIONS[key] for key in own if key in keys]
        if options:
            asked = {
                word for word in shlex.split(example) if re.fullmatch("-[a-z]|--[a-z-]+", word)
            }
            found.append((title, example if asked <= flags else "", options))
    return found


def option_help(option: Option) -> tuple[str, str]:
    """The spellings of an option, and its help."""
    flags = ", ".join(option.flags) + (f" {option.metavar}" if option.metavar else "")
    json = [f"; --json: {one}" for one in option.choices if "json" in one]
    return flags, f"{option.help}{''.join(json)}"


def _columns() -> int:
    return max(_NARROWEST, min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns))


def _wrap(text: str, width: int, begin: str = "", then: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=begin, subsequent_indent=then,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def _filled(words: Sequence[str], width: int, begin: str = "", then: str = "  ") -> list[str]:
    lines = [begin + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(then + word)
    return lines


def _shell_words(text: str) -> list[str]:
    # What is in quotes is of one word, and keeps them.
    return re.findall(r"(?:'[^']*'|[^\s'])+", text)


def _usage(name: str, details: bool = False) -> str:
    width = _columns()
    lines = _wrap(f"usage: {synopsis(name)}", width, then="  ")
    if not details:
        return "\n".join(lines)
    lines += ["", *_wrap(COMMANDS[name].help, width)]
    for title, example, options in grouped_options(name):
        head = f"{title}, such as" if example else title
        lines += ["", *_filled([*head.split(), *_shell_words(example)], width)]
        for option in options:
            flags, help = option_help(option)
            if width < _WIDTH:
                lines += [f"  {flags}", *_wrap(help, width, "      ", "      ")]
            else:
                lines += _wrap(help, width, f"  {flags:<{_INDENT - 3}} ", " " * _INDENT)
    # A command on several lines, as a shell takes it.
    example = " \\\n".join(_filled(_shell_words(EXAMPLES[name]), width - 2, "  ", "    "))
    return "\n".join([*lines, "", "Example", example])


def _command_meant(words: Sequence[str]) -> str | None:
    from fetchc.check.suggestions import nearest

    name = words[0] if words else "-"
    if name.startswith("-"):
        return None
    close = nearest(name, COMMANDS)
    found = _COMMANDS.get(name, close[0] if close else None)
    return None if found is None else f"fetchc {found}"


def _hints(name: str, words: Sequence[str], wrong: str) -> list[str]:
    """What to write instead, of an option that there is not and of a file at a wrong place."""
    from fetchc.check.suggestions import nearest

    command = COMMANDS[name]
    own = words[: words.index("--")] if "--" in words else words
    by_flag = {flag: OPTIONS[key] for key in command.options for flag in OPTIONS[key].flags}
    unknown = re.match(r"there is no option `([^`]*)`", wrong)
    if unknown is not None:
        meant = _OPTIONS.get(unknown[1])
        if meant is None or meant.split()[0] not in (*by_flag, ">", "--"):
            close = nearest(unknown[1], by_flag) if unknown[1].startswith("--") else ()
            meant = close[0] if close else None
        return [] if meant is None else [f"did you mean `{meant}`?"]
    if wrong.startswith("--binary"):
        files = [word for word in own[1:] if os.path.isfile(word)]
        start = f"; to start it, too, end with `-- {files[0]}`" if files and command.starts else ""
        return [f"name the file to probe with `-x`: `-x {files[0]}`{start}"] if files else []
    return []


def _no_command(words: Sequence[str], output: Output) -> int:
    if words[:1] == ["help"]:
        asked = [word for word in words[1:] if word not in ("-h", "--help")]
        if len(asked) == 1:
            return explained([asked[0], "--help"], "")
        words = asked or ["--help"]
    if words[:1] == ["version"] or not {"--version", "-V"}.isdisjoint(words):
        from fetchc import __version__

        output.line(f"fetchc {__version__}")
        return 0
    meant = _command_meant(words)
    if meant is not None:
        output.say(f"error: there is no command `{words[0]}`: did you mean `{meant}`?")
        return 2
    lines = ["usage: fetchc COMMAND ...", "", "commands:"]
    for name, command in COMMANDS.items():
        if not command.hidden:
            lines += _wrap(command.help, _columns(), f"  {name:<13}", " " * 15)
    last = "`fetchc help COMMAND` shows what a command takes, with an example"
    lines += ["", *_wrap(last, _columns())]
    if "-h" in words or "--help" in words:
        output.document("\n".join(lines))
        return 0
    what = f"there is no command `{words[0]}`" if words else "no command is given"
    output.say(f"error: {what}", *lines)
    return 2
