"""The options of a command line, and its reader.

Not argparse: importing it, and what it imports in turn, costs a sixth of a whole
``compile`` (docs/speed.md).
"""

from __future__ import annotations

from fetchc.cli.commands import COMMANDS, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.api.library import Program
    from fetchc.cli.commands import Command, Option

__all__ = ["Options", "parse"]


class Options:
    """A command line as read; an attribute that no option set has its default."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.operands: list[str] = []
        self.expr: list[str] = []
        self.binary = ""
        self.references: list[str] = []
        self.debug_file: str | None = None
        self.debug_dirs: list[str] = []
        self.function: str | None = None
        self.at: str | None = None
        self.returns = False
        self.unsafe_return = False
        self.arch: str | None = None
        self.active: int | None = None
        self.kernel = "running"
        self.format = "text"
        self.long = False
        self.batch: str | None = None
        self.color = "auto"
        self.uncached = False
        self.verbose = False
        self.binaries: list[str] = []  # of `offsets`
        # Of `add` and `remove`.
        self.group: str | None = None
        self.event: str | None = None
        self.enable = False
        self.all = False
        self.stale = False
        # Of `trace` alone.
        self.functions: list[str] = []
        self.pids: list[int] = []
        self.count: int | None = None
        self.timeout: float | None = None
        self.latency = False
        self.since: str | None = None
        self.histogram: str | None = None
        self.sums: list[str] = []
        self.by: str | None = None
        self.summary = False
        self.stack = False
        self.strict = False
        self.filters: list[str] = []
        self.program: list[str] = []
        # Of `conformance` alone.
        self.compilers: list[str] = []
        self.gos: list[str] = []
        self.rounds = 1
        self.seed = "1"
        self.only: str | None = None

    @property
    def path(self) -> str:
        """The file that the question is about; what it says itself where it names none."""
        named = [self.binary, *self.binaries, *self.operands, self.batch or ""]
        return next((each for each in named if each), self.command)

    def opened(self) -> Program:
        """The program that the command is about, with its debug files."""
        from fetchc.api.library import Program

        return Program(
            self.binary, self.references, self.debug_file, self.debug_dirs, self.unsafe_return,
            self.arch,
        )  # fmt: skip


class _Usage(Exception):
    pass


def parse(words: Sequence[str]) -> Options | int:
    """The options of a command line; an exit status where there is nothing to run."""
    name = words[0] if words else ""
    own = words[: words.index("--")] if "--" in words else words
    wrong = ""
    if name in COMMANDS and "-h" not in own and "--help" not in own:
        try:
            return _read(name, words[1:])
        except _Usage as reason:
            wrong = str(reason)
    from fetchc.cli.usage import explained

    return explained(name, words, wrong)


def _read(name: str, words: Sequence[str]) -> Options:
    command = COMMANDS[name]
    options = Options(name)
    known = {flag: OPTIONS[key] for key in command.options for flag in OPTIONS[key].flags}
    given: set[str] = set()
    rest = iter(words)
    for word in rest:
        if word == "--" and command.starts:
            options.program += rest
            if not options.program:
                raise _Usage("no program stands behind --")
        elif word == "--":
            options.operands += rest
        elif not word.startswith("-") or word == "-":
            options.operands.append(word)
        else:
            option, value = _option(known, word)
            again = option.attribute in given and not option.many
            given.add(option.attribute)
            if option.metavar is None:
                if value is not None:
                    raise _Usage(f"{option.flags[-1]} takes no value")
                setattr(options, option.attribute, True)
                continue
            if value is None:
                value = next(rest, None)
            before = getattr(options, option.attribute)
            _set(options, option, value)
            if again and getattr(options, option.attribute) != before:
                raise _Usage(f"one {option.flags[-1]} is enough: `{before}` or `{value}`?")
    for key in command.options:
        if OPTIONS[key].required and not given & {OPTIONS[key].attribute, OPTIONS[key].unless}:
            raise _Usage(f"{OPTIONS[key].flags[-1]} {OPTIONS[key].metavar} is missing")
    _count(command, options.operands)
    return options


def _option(known: dict[str, Option], word: str) -> tuple[Option, str | None]:
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        if flag in known:
            return known[flag], value if equals else None
    elif word[:2] in known:
        return known[word[:2]], word[2:] or None
    hint = "" if word.startswith("--") else "; an expression that starts with a dash goes to --expr"
    raise _Usage(f"there is no option `{word.partition('=')[0]}`{hint}")


def _set(options: Options, option: Option, value: str | None) -> None:
    flag = option.flags[-1]
    if value is None:
        raise _Usage(f"{flag} needs a value: {flag} {option.metavar}")
    if option.choices and value not in option.choices:
        raise _Usage(f"{flag} takes {', '.join(option.choices)}, not `{value}`")
    read = value if option.number is None else _number(option, value)
    if option.many:
        getattr(options, option.attribute).append(read)
    else:
        setattr(options, option.attribute, read)


def _number(option: Option, value: str) -> int | float:
    # Not above what a clock, a counter or the number of a process can hold.
    flag, what = option.flags[-1], "a whole number" if option.number is int else "a number"
    try:
        assert option.number is not None
        number = option.number(value)
    except ValueError:
        raise _Usage(f"{flag} takes {what}, not `{value}`") from None
    if not 0 < number < 1 << 31:
        raise _Usage(f"{flag} takes {what} above 0, not `{value}`")
    return number


def _count(command: Command, operands: list[str]) -> None:
    what = command.operand[1]
    if len(operands) < command.least:
        raise _Usage(f"{what} is missing")
    if command.most is not None and len(operands) > command.most:
        enough = f"one {what} is enough" if command.most else "no operand is taken"
        raise _Usage(f"{enough}: what is `{operands[command.most]}`?")
