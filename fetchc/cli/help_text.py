"""What is printed where no command is run: usage, help, the version."""

from __future__ import annotations

import os
import re

from fetchc.cli.option_table import COMMANDS, OPTIONS
from fetchc.cli.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["explained"]

# What other tools call commands and options, and what they are called here.
_COMMANDS = {
    "probe": "add", "record": "trace", "script": "trace",
    "stat": "trace --summary", "watch": "trace", "print": "trace", "del": "remove", "rm": "remove",
    "delete": "remove", "ls": "list", "funcs": "functions", "vars": "variables", "ptype": "types",
    "pahole": "types", "struct": "types", "layout": "types",
}  # fmt: skip
_OPTIONS = {
    "--duration": "--timeout", "--seconds": "--timeout", "-t": "--timeout",
    "--limit": "--count", "--max": "--count", "-n": "--count", "-c": "-- COMMAND ARG...",
    "--output": "> FILE", "-o": "> FILE", "--exec": "--binary", "--exe": "--binary",
    "--file": "--binary", "-e": "--expr", "--where": "--filter", "--jsonl": "--format jsonl",
    "--stacks": "--stack", "--hist": "--histogram",
    "--ret": "--return", "-r": "--return", "--retval": "--return", "--func": "--function",
    "-g": "--stack",
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


def _usage(name: str, details: bool = False) -> str:
    command = COMMANDS[name]
    what = command.operand[1]
    shown = what if command.least else f"[{what}{'' if command.most else '...'}]"
    if command.most == 0:
        shown = ""
    needed = [OPTIONS[key] for key in command.options if OPTIONS[key].required]
    words = [f"usage: fetchc {name} {shown}".rstrip()]
    words += [f"{option.flags[0]} {option.metavar}" for option in needed]
    words += ["[OPTION...]"] + ["[-- COMMAND ARG...]"] * command.starts
    lines = [" ".join(words)]
    if details:
        lines += ["", command.help, ""]
        for option in [OPTIONS[key] for key in command.options]:
            flags = ", ".join(option.flags) + (f" {option.metavar}" if option.metavar else "")
            json = [f"; --json: {one}" for one in option.choices if "json" in one]
            lines.append(f"  {flags:<26} {option.help}{''.join(json)}")
    return "\n".join(lines)


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
        return [f"name the file to probe with `-x`: `-x {files[0]}`"] if files else []
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
    lines += [
        f"  {name:<10} {command.help}" for name, command in COMMANDS.items() if not command.hidden
    ]
    lines += ["", "`fetchc COMMAND --help` shows what a command takes"]
    if "-h" in words or "--help" in words:
        output.document("\n".join(lines))
        return 0
    what = f"there is no command `{words[0]}`" if words else "no command is given"
    output.say(f"error: {what}", *lines)
    return 2
