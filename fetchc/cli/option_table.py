"""The options of a command line, and its reader.

Not argparse: importing it, and what it imports in turn, costs a sixth of a whole
``compile`` (docs/speed.md).
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.api.library import Program
    from fetchc.cli.instance_ahead import InstanceAhead
    from fetchc.debuginfo.environment import Environment

__all__ = [
    "COMMANDS",
    "OPTIONS",
    "Command",
    "Option",
    "Options",
    "UsageError",
    "read",
    "set_option",
    "split_option",
]

# ------------------------------------------------------------------------------
# What each command takes, as data.
#
# To add a command: a line in ``COMMANDS``, its options in ``OPTIONS`` and their defaults in
# :class:`fetchc.cli.option_table.Options`, a module here with ``run(options, output) -> status``, a
# section in docs/interface.md.


class Option(Record):
    """A flag and its long and short spelling; ``metavar`` is None where it takes no value.

    ``many``: it can be given again, and all values count. ``number``: what its values are.
    ``bare``: the value of an option that is given without one; it takes one only after ``=``.
    """

    attribute: str
    flags: tuple[str, ...]
    metavar: str | None
    help: str
    choices: tuple[str, ...] = ()
    required: bool = False
    many: bool = False
    unless: tuple[str, ...] = ()  # options in whose place it is not required
    number: type[int] | type[float] | None = None
    bare: str = ""
    duration: bool = False  # a number of seconds, or one with its unit: 500ms, 2s, 1.5h


class Command(Record):
    """A command: its module, its one-line help, its operand, its options in ``OPTIONS``.

    ``operand`` is the attribute and name of what is no option; ``least`` and ``most`` count
    them (None: any number). ``starts``: a program with its arguments follows ``--``. ``hidden``:
    no person types it, and the list of commands is without it.
    """

    module: str
    help: str
    operand: tuple[str, str]
    least: int
    most: int | None
    options: tuple[str, ...]
    starts: bool = False
    hidden: bool = False


_BINARY = ("binary", "reference", "debug_file", "debug_dir", "arch")
_RUNNING = ("binary", "process", "no_enable", *_BINARY[1:])
_RETURN = ("return", "unsafe_return")
_READING = ("uncached", "verbose", "full_types", "color")

COMMANDS = {
    "compile": Command(
        "compile", "compile expressions to fetch-args", ("operands", "EXPR"), 0, None,
        (
            *_RUNNING, "function", "at", *_RETURN, "active", "kernel", "compiled", "btf",
            "bpftrace_version", "condition", "expr", "batch", *_READING,
        ),
    ),
    "functions": Command(
        "functions", "list what can be probed", ("operands", "GLOB"), 0, 1,
        (*_RUNNING, "long", "listed", *_READING),
    ),
    "variables": Command(
        "variables", "list every name visible at a probe point", ("operands", "FUNCTION"), 1, 1,
        (*_RUNNING, "at", *_RETURN, "kernel", "listed", *_READING),
    ),
    "types": Command(
        "types", "show the layout of types", ("operands", "GLOB"), 0, 1,
        (*_RUNNING, "drawn", *_READING),
    ),
    "browse": Command(
        "browse", "walk from functions to members and their live values, on the terminal",
        ("operands", ""), 0, 0, (*_RUNNING, *_READING),
    ),
    "offsets": Command(
        "offsets", "compare where members and parameters are, over many binaries",
        ("operands", "TYPE[.FIELD]"), 0, None,
        (
            "binaries", "reference", "debug_dir", "params", "tabled", "fields", "into", "verify",
            "version", *_READING,
        ),
    ),
    "btf": Command(
        "btf", "write BTF of types, for other tools", ("operands", "TYPE"), 0, None,
        (
            *_BINARY, "prototypes", "written", "listed", *_READING,
        ),
    ),
    "check": Command(
        "check", "check definitions against a kernel's rules", ("operands", "DEFINITION"), 0, None,
        ("arch", "kernel", "listed", "expr", "color"),
    ),
    "trace": Command(
        "trace", "show calls and values of running programs", ("operands", "EXPR"), 0, None,
        (
            *_BINARY,
            "functions", "at", *_RETURN, "active", "expr", "watch", "pid", "no_enable", "filter",
            "count", "timeout",
            "latency", "since", "histogram", "linear", "sum", "by", "count_by", "top", "interval",
            "summary", "stack", "stack_bytes", "calls_only", "depth", "value_bytes", "strict",
            "engine", "traced", "results", "time", "pretty",
            *_READING,
        ), True,
    ),
    "add": Command(
        "add", "install a definition that stays", ("operands", "EXPR"), 0, None,
        (
            *_BINARY,
            "function", "at", *_RETURN, "active", "expr", "group", "event", "enable", "listed",
            *_READING,
        ),
    ),
    "list": Command(
        "list", "show the installed definitions", ("operands", "GLOB"), 0, 1, ("listed", "color")
    ),
    "remove": Command(
        "remove", "remove what was added", ("operands", "NAME"), 0, None,
        ("all", "stale", "listed", "color"),
    ),
    "conformance": Command(
        "conformance", "test fetchc with your own compiler", ("operands", "TOOLCHAIN"), 0, 0,
        ("cc", "go", "rust", "mono", "rounds", "seed", "only", "traced_by", "listed", "color"),
    ),
    "cache": Command(
        "cache", "show or clear cached debug information",
        ("operands", "show|clear"), 1, 1, ("listed", "color"),
    ),
    "perfmap": Command(
        "perfmap", "names of .NET code for perf: find lines of maps, merge a process's map",
        ("operands", "find|merge WHAT"), 1, None,
        ("image", "reference", "pid", "listed", "color"),
    ),
    "explain": Command(
        "explain", "explain an expression, a fetch-arg or a diagnostic code",
        ("operands", "EXPR|CODE"), 0, 1,
        (
            "file", *_BINARY[2:], "function", "at", *_RETURN, "kernel", "drawn", "expr",
            *_READING,
        ),
    ),
    "doctor": Command(
        "doctor", "what this machine can do, and how to get what it cannot",
        ("operands", ""), 0, 0, ("listed", "color"),
    ),
    "completion": Command(
        "completion", "print what makes a shell complete: bash, zsh or fish",
        ("operands", "bash|zsh|fish"), 1, 1, ("color",),
    ),
    "complete": Command(
        "complete", "how a command line goes on; the scripts of `completion` call it",
        ("operands", "SHELL WORD"), 1, None, ("uncached",), hidden=True,
    ),
}  # fmt: skip

OPTIONS = {
    "binary": Option(
        "binary", ("-x", "--binary"), "BINARY", "the file to probe: a path, or `libc`", (), True,
        unless=("batch", "processes", "program"),
    ),
    "binaries": Option(
        "binaries", ("-x", "--binary"), "BINARY", "a file with the types; may be repeated", (),
        True, many=True,
    ),
    "reference": Option(
        "references", ("--reference",), "DIR", "a folder of assemblies that it refers to", many=True
    ),
    "debug_file": Option(
        "debug_file", ("--debug-file",), "FILE", "the separate debug file of the binary"
    ),
    "debug_dir": Option(
        "debug_dirs", ("--debug-dir",), "DIR", "look for debug files here first; may be repeated",
        many=True,
    ),
    "arch": Option("arch", ("--arch",), "A", "the machine of BTF or definitions: arm64, s390x"),
    "active": Option(
        "active", ("--maxactive",), "N", "a return probe of the kernel: room for N calls at once",
        number=int,
    ),
    "file": Option("binary", ("-x", "--binary"), "BINARY", "the ELF file of an expression"),
    "image": Option("binary", ("-x", "--binary"), "IMAGE", "the image that the map describes"),
    "function": Option("function", ("-f", "--function"), "FUNCTION", "the function to probe"),
    "at": Option("at", ("--at",), "POINT", "+OFFSET, FILE:LINE, :LINE, `body` or an address"),
    "return": Option("returns", ("--return",), None, "probe where the function returns"),
    "unsafe_return": Option(
        "unsafe_return", ("--unsafe-return",), None, "even where that can end the program"
    ),
    "kernel": Option("kernel", ("--kernel",), "V", "compile for Linux V: 5.10; default: running"),
    "compiled": Option(
        "format", ("--format",), "F",
        "fetcharg (one an expression), probe, perf, bpftrace, tetragon, systemtap, bpf-c or json",
        ("fetcharg", "probe", "perf", "bpftrace", "tetragon", "systemtap", "bpf-c", "json"),
    ),
    "btf": Option("btf", ("--btf",), "FILE", "with --format tetragon: the file of BTF to write"),
    "bpftrace_version": Option(
        "bpftrace_version", ("--bpftrace-version",), "V",
        "with --format bpftrace: for that version; default: the installed one, else the newest",
    ),
    "drawn": Option(
        "format", ("--format",), "F", "text, json, or svg: a picture",
        ("text", "json", "svg"),
    ),
    "listed": Option("format", ("--format",), "F", "text or json", ("text", "json")),
    "tabled": Option(
        "format", ("--format",), "F", "text, json; by version of a module: builds, otel-go, obi",
        ("text", "json", "builds", "otel-go", "obi"),
    ),
    "params": Option(
        "params", ("--params",), None, "operands are functions: where their parameters are"
    ),
    "fields": Option(
        "fields", ("--fields",), "FILE", "the members that a tracker_input.json names"
    ),
    "into": Option("into", ("--into",), "FILE", "add to the table in FILE"),
    "verify": Option("verify", ("--verify",), "FILE", "compare the table in FILE with binaries"),
    "version": Option(
        "version", ("--version",), "V", "the version of modules of which the binary says none"
    ),
    "expr": Option(
        "expr", ("--expr",), "EXPR", "an expression, also one that starts with a dash",
        many=True,
    ),
    "batch": Option("batch", ("--batch",), "FILE", "answer questions: lines of JSON, - for stdin"),
    "functions": Option(
        "functions", ("-f", "--function"), "FUNCTION", "a function, or a glob; may be repeated",
        many=True,
    ),
    "prototypes": Option(
        "functions", ("-f", "--function"), "FUNCTION", "its prototype, too; may be repeated",
        many=True,
    ),
    "written": Option("output", ("-o", "--output"), "FILE", "the file to write", required=True),
    "pid": Option(
        "processes", ("-p", "--pid"), "PID|NAME",
        "only this process with its threads and children; its program, without -x", many=True,
    ),
    "process": Option(
        "processes", ("-p", "--pid"), "PID|NAME", "without -x: the program of this process",
        many=True,
    ),
    "watch": Option(
        "watched", ("--watch",), "EXPR", "who writes this variable; may be repeated, up to four",
        many=True,
    ),
    "no_enable": Option(
        "no_enable", ("--no-enable",), None, "never ask a runtime of .NET to write its perf map"
    ),
    "filter": Option(
        "filters", ("--filter",), "F", "only events with `EXPR op CONST`: 'n > 3 && s ~ \"a*\"'",
        many=True,
    ),
    "condition": Option(
        "filters", ("--filter",), "EXPR", "with --format bpf-c: only hits where it holds: 'n > 3'",
        many=True,
    ),
    "count": Option("count", ("--count",), "N", "end after N events", number=int),
    "timeout": Option(
        "timeout", ("--timeout",), "S", "end after S seconds; 500ms, 2m, 1h",
        duration=True,
    ),
    "latency": Option("latency", ("--latency",), None, "the time from entry to return"),
    "since": Option(
        "since", ("--since",), "FUNCTION", "the time since the same process was in FUNCTION"
    ),
    "histogram": Option(
        "histograms", ("--histogram",), "EXPR", "a table with a histogram; also of $latency",
        many=True,
    ),
    "linear": Option(
        "linear", ("--linear",), "STEP,EXPR", "a histogram with buckets of one width", many=True
    ),
    "sum": Option(
        "sums", ("--sum",), "EXPR", "a table with sum, mean, ends, percentiles", many=True
    ),
    "by": Option("by", ("--by",), "EXPR[,EXPR]", "a row for each value of EXPR, such as $comm"),
    "count_by": Option(
        "count_by", ("--count-by",), "EXPR[,EXPR]", "count hits: a row for each value of EXPR"
    ),
    "top": Option("top", ("--top",), "N", "only the N heaviest rows", number=int),
    "interval": Option(
        "interval", ("--interval",), "S", "show the table every S seconds, as JSON in a pipe",
        duration=True,
    ),
    "summary": Option("summary", ("--summary",), None, "the hits of each function at the end"),
    "stack": Option(
        "stack", ("--stack",), None, "callers; =lines: of the source; =fp: by frame pointers",
        ("names", "lines", "fp"), bare="names",
    ),
    "stack_bytes": Option(
        "stack_bytes", ("--stack-bytes",), "N", "copy N bytes of each stack; default: 16384",
        number=int,
    ),
    "calls_only": Option(
        "calls_only", ("--calls-only",), None, "calls without values; default: $args, named with -f"
    ),
    "depth": Option(
        "depth", ("--depth",), "N", "follow N pointers, one after the other; default: none",
        number=int,
    ),
    "value_bytes": Option(
        "value_bytes", ("--value-bytes",), "N",
        "N bytes of each string and slice, by eBPF; its default: 4096",
        number=int,
    ),
    "strict": Option("strict", ("--strict",), None, "only functions that have all of the EXPRs"),
    "engine": Option(
        "engine", ("--engine",), "E",
        "how hits are recorded: auto, bpf, tracefs; breakpoint: by the processor, at 4 addresses",
        ("auto", "bpf", "tracefs", "breakpoint"),
    ),
    "traced_by": Option(
        "engine", ("--engine",), "E",
        "what traces the drawn programs: auto (all that can), tracefs, bpf, none",
        ("auto", "tracefs", "bpf", "none"),
    ),
    "traced": Option(
        "format", ("--format",), "F", "text, jsonl, perfetto; of --stack: folded, speedscope",
        ("text", "jsonl", "perfetto", "folded", "speedscope"),
    ),
    "pretty": Option("pretty", ("--pretty",), None, "structures over several lines"),
    "results": Option("output", ("-o", "--output"), "FILE", "results to FILE, not to COMMAND's"),
    "time": Option(
        "time", ("--time",), "T", "of each line: wall, relative (to the first) or delta",
        ("relative", "wall", "delta"),
    ),
    "group": Option("group", ("--group",), "GROUP", "the group of the event; default: the file's"),
    "event": Option("event", ("--event",), "EVENT", "its name; default: the function's"),
    "enable": Option("enable", ("--enable",), None, "switch it on"),
    "all": Option("all", ("--all",), None, "everything that was added"),
    "stale": Option("stale", ("--stale",), None, "definitions that killed sessions left"),
    "cc": Option(
        "compilers", ("--cc",), "CC", "a C compiler, or a C++ one (its name has ++)", many=True
    ),
    "go": Option("gos", ("--go",), "GO", "a Go toolchain: its command or GOROOT", many=True),
    "rust": Option("rusts", ("--rust",), "RUSTC", "a Rust compiler", many=True),
    "mono": Option("monos", ("--mono",), "MONO", "Mono, with `mcs` beside it", many=True),
    "rounds": Option("rounds", ("--rounds",), "N", "generate N times as many programs", number=int),
    "seed": Option("seed", ("--seed",), "S", "what is drawn; default: 1"),
    "only": Option(
        "only",
        ("--only",),
        "PART",
        "layouts, signatures, operators, containers or entries",
        ("layouts", "signatures", "operators", "containers", "entries"),
    ),
    "long": Option("long", ("--long",), None, "with address, signature and source line"),
    "uncached": Option("uncached", ("--no-cache",), None, "neither read nor write the cache"),
    "full_types": Option(
        "full_types", ("--full-types",), None, "types of C++ with all arguments of templates"
    ),
    "verbose": Option(
        "verbose", ("-v", "--verbose"), None,
        "say why a cached file or bytecode is not used, and where `trace` sets its probes",
    ),
    "color": Option(
        "color", ("--color",), "WHEN", "auto, always or never; NO_COLOR is honoured",
        ("auto", "always", "never"),
    ),
}  # fmt: skip


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
        self.bpftrace_version = ""
        self.long = False
        self.batch: str | None = None
        self.color = "auto"
        self.uncached = False
        self.environment: Environment | None = None  # of the run; None: the library's default
        self.verbose = False
        self.full_types = False
        # Of `offsets`.
        self.binaries: list[str] = []
        self.params = False
        self.fields = ""
        self.into = ""
        self.verify = ""
        self.version = ""
        self.output = ""  # of `btf` and `trace`
        self.btf = ""  # of `compile`
        # Of `add` and `remove`.
        self.group: str | None = None
        self.event: str | None = None
        self.enable = False
        self.all = False
        self.stale = False
        # Of `trace` alone.
        self.functions: list[str] = []
        self.watched: list[str] = []
        self.processes: list[str] = []  # as typed
        self.no_enable = False
        self.pids: list[int] = []  # of them, by fetchc.cli.short_names
        self.count: int | None = None
        self.timeout: float | None = None
        self.latency = False
        self.since: str | None = None
        self.histograms: list[str] = []
        self.linear: list[str] = []
        self.count_by: str | None = None
        self.top: int | None = None
        self.interval: float | None = None
        self.pretty = False
        self.time = "relative"
        self.sums: list[str] = []
        self.by: str | None = None
        self.summary = False
        self.stack = ""  # or how: names, lines, fp
        self.stack_bytes: int | None = None
        self.calls_only = False
        self.depth = 0
        self.value_bytes: int | None = None
        self.strict = False
        self.engine = "auto"
        self.filters: list[str] = []
        self.program: list[str] = []
        self.ahead: InstanceAhead | None = None  # begun before the command's modules are loaded
        # Of `conformance` alone.
        self.compilers: list[str] = []
        self.gos: list[str] = []
        self.rusts: list[str] = []
        self.monos: list[str] = []
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
        from fetchc.debuginfo.environment import DEFAULT

        binary = self.binary
        if self.pids and binary == f"/proc/{self.pids[0]}:":
            from fetchc.cli.process_code import assembly_of

            binary = assembly_of(self)
        program = Program(
            binary, self.references, self.debug_file, self.debug_dirs, self.unsafe_return,
            self.arch, self.environment or DEFAULT, self.engine == "breakpoint",
        )  # fmt: skip
        if len(self.pids) == 1 and binary == self.binary and ":" not in binary:
            from fetchc.cli.process_code import compiled_with_types

            return compiled_with_types(self, program)
        return program


class UsageError(Exception):
    """A command line that cannot be read; the text says why."""


def read(words: Sequence[str]) -> Options | str:
    """The options of a command line; else what is wrong, empty where help is asked for."""
    name = words[0] if words else ""
    own = words[: words.index("--")] if "--" in words else words
    if name in COMMANDS and "-h" not in own and "--help" not in own:
        try:
            return _read(name, words[1:])
        except UsageError as reason:
            return str(reason)
    return ""


def _read(name: str, words: Sequence[str]) -> Options:
    command = COMMANDS[name]
    options = Options(name)
    by_flag = {flag: OPTIONS[key] for key in command.options for flag in OPTIONS[key].flags}
    given: set[str] = set()
    rest = iter(words)
    for word in rest:
        if word == "--json" and "--format" in by_flag:
            word = "--format=" + next(one for one in by_flag["--format"].choices if "json" in one)
        if word == "--" and command.starts:
            options.program += rest
            if not options.program:
                raise UsageError("no program follows --")
        elif word == "--":
            options.operands += rest
        elif not word.startswith("-") or word == "-":
            options.operands.append(word)
        else:
            option, value = split_option(by_flag, word)
            again = option.attribute in given and not option.many
            given.add(option.attribute)
            if option.metavar is None:
                if option.bare:
                    value = option.bare if value is None else value
                elif value is not None:
                    raise UsageError(f"{option.flags[-1]} takes no value")
                else:
                    setattr(options, option.attribute, True)
                    continue
            elif value is None:
                value = next(rest, None)
                value = None if value == "--" else value
            before = getattr(options, option.attribute)
            set_option(options, option, value)
            if again and getattr(options, option.attribute) != before:
                raise UsageError(f"one {option.flags[-1]} is enough: `{before}` or `{value}`?")
    if options.program:
        given.add("program")
    for key in command.options:
        one = OPTIONS[key]
        if one.required and given.isdisjoint((one.attribute, *one.unless)):
            raise UsageError(f"{one.flags[-1]} {one.metavar} is missing{_instead(command, one)}")
    _count(command, options.operands)
    return options


def split_option(by_flag: dict[str, Option], word: str) -> tuple[Option, str | None]:
    """The option that a word names, and the value in the same word; raises UsageError."""
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        if flag in by_flag:
            return by_flag[flag], value if equals else None
    elif word[:2] in by_flag:
        return by_flag[word[:2]], word[2:] or None
    hint = "" if word.startswith("--") else "; an expression that starts with a dash goes to --expr"
    raise UsageError(f"there is no option `{word.partition('=')[0]}`{hint}")


def set_option(options: Options, option: Option, value: str | None) -> None:
    """Take a value of an option; raises UsageError where it is none."""
    flag = option.flags[-1]
    if value is None:
        raise UsageError(f"{flag} needs a value: {flag} {option.metavar}")
    if option.choices and value not in option.choices:
        raise UsageError(f"{flag} takes {', '.join(option.choices)}, not `{value}`")
    read: str | int | float = value
    if option.number is not None:
        read = _number(option, value)
    elif option.duration:
        read = _seconds(option, value)
    if option.many:
        getattr(options, option.attribute).append(read)
    else:
        setattr(options, option.attribute, read)


_LARGEST = 1 << 31


def _number(option: Option, value: str) -> int | float:
    # Not above what a clock, a counter or the number of a process can hold.
    flag, what = option.flags[-1], "a whole number" if option.number is int else "a number"
    try:
        assert option.number is not None
        number = option.number(value)
    except ValueError:
        raise UsageError(f"{flag} takes {what}, not `{value}`") from None
    if number >= _LARGEST:
        raise UsageError(f"{flag} takes {what} below {_LARGEST:,}, not `{value}`")
    if not number > 0:
        raise UsageError(f"{flag} takes {what} above 0, not `{value}`")
    return number


def _instead(command: Command, missing: Option) -> str:
    # What can be given in place of an option that is required; empty where nothing can.
    others = [OPTIONS[key] for key in command.options]
    ways = [f"{it.flags[0]} {it.metavar}" for it in others if it.attribute in missing.unless]
    if command.starts and "program" in missing.unless:
        ways.append("-- COMMAND")
    return f": give {' or '.join([f'{missing.flags[0]} FILE', *ways])}" if ways else ""


_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def _seconds(option: Option, value: str) -> float:
    digits = value.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = value[len(digits) :]
    try:
        seconds = float(digits) * (_UNITS[unit] if unit else 1.0)
    except (ValueError, KeyError):
        seconds = 0.0
    if not 0 < seconds < 1 << 31:
        raise UsageError(
            f"{option.flags[-1]} takes a time above 0, not `{value}`: seconds, or a number with "
            f"{', '.join(_UNITS)}"
        )
    return seconds


def _count(command: Command, operands: list[str]) -> None:
    what = command.operand[1]
    if len(operands) < command.least:
        raise UsageError(f"{what} is missing")
    if command.most is not None and len(operands) > command.most:
        enough = f"one {what} is enough" if command.most else "no operand is taken"
        raise UsageError(f"{enough}: what is `{operands[command.most]}`?")
