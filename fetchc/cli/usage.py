"""What is printed where no command is run: usage, help, the version."""

from __future__ import annotations

from fetchc.cli.options import COMMANDS, OPTIONS
from fetchc.cli.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["explained"]


def explained(name: str, words: Sequence[str], wrong: str) -> int:
    """Print the help that ``words`` ask for, or what is ``wrong`` with them; the exit status."""
    output = Output("never")
    if name not in COMMANDS:
        status = _no_command(words, output)
    elif wrong:
        output.say(f"error: {wrong}\n{_usage(name)}")
        status = 2
    else:
        output.line(_usage(name, details=True))
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
            lines.append(f"  {flags:<26} {option.help}")
    return "\n".join(lines)


def _no_command(words: Sequence[str], output: Output) -> int:
    if "--version" in words:
        from fetchc import __version__

        output.line(f"fetchc {__version__}")
        return 0
    lines = ["usage: fetchc COMMAND ...", "", "commands:"]
    lines += [f"  {name:<10} {known.help}" for name, known in COMMANDS.items()]
    lines += ["", "`fetchc COMMAND --help` shows what a command takes"]
    if "-h" in words or "--help" in words:
        output.line("\n".join(lines))
        return 0
    what = f"there is no command `{words[0]}`" if words else "no command is given"
    output.say("\n".join([f"error: {what}", *lines]))
    return 2
