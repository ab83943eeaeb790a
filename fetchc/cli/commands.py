"""What each command takes, as data.

To add a command: a line in ``COMMANDS``, its options in ``OPTIONS`` and their defaults in
:class:`fetchc.cli.options.Options`, a module here with ``run(options, output) -> status``, a
section in docs/interface.md.
"""

from __future__ import annotations

from fetchc.record import Record

__all__ = ["COMMANDS", "OPTIONS", "Command", "Option"]


class Option(Record):
    """A flag and its long and short spelling; ``metavar`` is None where it takes no value.

    ``many``: it can be given again, and all values count. ``number``: what its values are.
    """

    attribute: str
    flags: tuple[str, ...]
    metavar: str | None
    help: str
    choices: tuple[str, ...] = ()
    required: bool = False
    many: bool = False
    unless: str = ""  # an option in whose place it is not required
    number: type[int] | type[float] | None = None


class Command(Record):
    """A command: its module, its one-line help, its operand, its options in ``OPTIONS``.

    ``operand`` is the attribute and name of what is no option; ``least`` and ``most`` count
    them (None: any number). ``starts``: behind ``--`` stands a program with its arguments.
    """

    module: str
    help: str
    operand: tuple[str, str]
    least: int
    most: int | None
    options: tuple[str, ...]
    starts: bool = False


_BINARY = ("binary", "reference", "debug_file", "debug_dir", "arch")
_RETURN = ("return", "unsafe_return")

COMMANDS = {
    "compile": Command(
        "compile", "compile expressions to fetch-args", ("operands", "EXPR"), 0, None,
        (
            *_BINARY, "function", "at", *_RETURN, "active", "kernel", "compiled", "expr",
            "batch", "uncached", "verbose", "color",
        ),
    ),
    "functions": Command(
        "functions", "list what can be probed", ("operands", "GLOB"), 0, 1,
        (*_BINARY, "long", "listed", "uncached", "verbose", "color"),
    ),
    "variables": Command(
        "variables", "list every name visible at a probe point", ("operands", "FUNCTION"), 1, 1,
        (*_BINARY, "at", *_RETURN, "kernel", "listed", "uncached", "verbose", "color"),
    ),
    "types": Command(
        "types", "show the layout of types", ("operands", "GLOB"), 0, 1,
        (*_BINARY, "listed", "uncached", "verbose", "color"),
    ),
    "offsets": Command(
        "offsets", "compare where members are, over many binaries",
        ("operands", "TYPE[.FIELD]"), 1, None,
        ("binaries", "reference", "debug_dir", "listed", "uncached", "verbose", "color"),
    ),
    "check": Command(
        "check", "hold definitions against a kernel's rules", ("operands", "DEFINITION"), 0, None,
        ("arch", "kernel", "listed", "expr", "color"),
    ),
    "trace": Command(
        "trace", "show calls and values of running programs", ("operands", "EXPR"), 0, None,
        (
            *_BINARY,
            "functions", "at", *_RETURN, "active", "expr", "pid", "filter", "count", "timeout",
            "latency", "since", "histogram", "sum", "by", "summary", "stack", "strict",
            "traced",
            "uncached", "verbose", "color",
        ), True,
    ),
    "add": Command(
        "add", "install a definition that stays", ("operands", "EXPR"), 0, None,
        (
            *_BINARY,
            "function", "at", *_RETURN, "active", "expr", "group", "event", "enable", "listed",
            "uncached", "verbose", "color",
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
        "conformance", "try fetchc on a compiler of your own", ("operands", "TOOLCHAIN"), 0, 0,
        ("cc", "go", "rounds", "seed", "only", "listed", "color"),
    ),
    "cache": Command(
        "cache", "show or clear what is kept of compressed debug information",
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
            "file", *_BINARY[2:], "function", "at", *_RETURN, "kernel", "listed", "expr",
            "uncached", "verbose", "color",
        ),
    ),
}  # fmt: skip

OPTIONS = {
    "binary": Option(
        "binary", ("-x", "--binary"), "BINARY", "the file to probe", (), True, unless="batch"
    ),
    "binaries": Option(
        "binaries", ("-x", "--binary"), "BINARY", "a file with the types; may be repeated", (),
        True, many=True,
    ),
    "reference": Option(
        "references", ("--reference",), "DIR", "where assemblies are that it refers to", many=True
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
    "image": Option("binary", ("-x", "--binary"), "IMAGE", "the image that a map is of"),
    "function": Option("function", ("-f", "--function"), "FUNCTION", "the function to probe"),
    "at": Option("at", ("--at",), "POINT", "+OFFSET, FILE:LINE, :LINE, `body` or an address"),
    "return": Option("returns", ("--return",), None, "probe where the function returns"),
    "unsafe_return": Option(
        "unsafe_return", ("--unsafe-return",), None, "even where that can end the program"
    ),
    "kernel": Option("kernel", ("--kernel",), "V", "compile for Linux V: 5.10; default: running"),
    "compiled": Option(
        "format", ("--format",), "F", "fetcharg (one an expression), probe, perf, bpftrace or json",
        ("fetcharg", "probe", "perf", "bpftrace", "json"),
    ),
    "listed": Option("format", ("--format",), "F", "text or json", ("text", "json")),
    "expr": Option(
        "expr", ("--expr",), "EXPR", "an expression, also one that starts with a dash",
        many=True,
    ),
    "batch": Option("batch", ("--batch",), "FILE", "answer questions: lines of JSON, - for stdin"),
    "functions": Option(
        "functions", ("-f", "--function"), "FUNCTION", "a function, or a glob; may be repeated",
        many=True,
    ),
    "pid": Option(
        "pids", ("-p", "--pid"), "PID", "only this process with its threads and children",
        many=True, number=int,
    ),
    "filter": Option(
        "filters", ("--filter",), "F", "only events with `EXPR op CONST`: 'n > 3 && s ~ \"a*\"'",
        many=True,
    ),
    "count": Option("count", ("--count",), "N", "end after N events", number=int),
    "timeout": Option("timeout", ("--timeout",), "S", "end after S seconds", number=float),
    "latency": Option("latency", ("--latency",), None, "the time from entry to return"),
    "since": Option(
        "since", ("--since",), "FUNCTION", "the time since the same process was in FUNCTION"
    ),
    "histogram": Option(
        "histogram", ("--histogram",), "EXPR", "a histogram at the end; also of $latency"
    ),
    "sum": Option(
        "sums", ("--sum",), "EXPR", "count, sum and mean at the end; may be repeated", many=True
    ),
    "by": Option("by", ("--by",), "EXPR", "each of them by the value of EXPR, such as $comm"),
    "summary": Option("summary", ("--summary",), None, "the hits of each function at the end"),
    "stack": Option("stack", ("--stack",), None, "the callers of each hit"),
    "strict": Option("strict", ("--strict",), None, "no function without all of the EXPRs"),
    "traced": Option("format", ("--format",), "F", "text or jsonl", ("text", "jsonl")),
    "group": Option("group", ("--group",), "GROUP", "the group of the event; default: the file's"),
    "event": Option("event", ("--event",), "EVENT", "its name; default: the function's"),
    "enable": Option("enable", ("--enable",), None, "switch it on"),
    "all": Option("all", ("--all",), None, "everything that was added"),
    "stale": Option("stale", ("--stale",), None, "what sessions left that were killed"),
    "cc": Option(
        "compilers", ("--cc",), "CC", "a C compiler, or a C++ one (its name has ++)", many=True
    ),
    "go": Option("gos", ("--go",), "GO", "a Go toolchain: its command or GOROOT", many=True),
    "rounds": Option("rounds", ("--rounds",), "N", "draw N times as much", number=int),
    "seed": Option("seed", ("--seed",), "S", "what is drawn; default: 1"),
    "only": Option(
        "only", ("--only",), "PART", "layouts or signatures", ("layouts", "signatures")
    ),
    "long": Option("long", ("--long",), None, "with address, signature and source line"),
    "uncached": Option("uncached", ("--no-cache",), None, "keep nothing for the next run"),
    "verbose": Option(
        "verbose", ("-v", "--verbose"), None, "say why something that is kept is not used"
    ),
    "color": Option(
        "color", ("--color",), "WHEN", "auto, always or never; NO_COLOR is honoured",
        ("auto", "always", "never"),
    ),
}  # fmt: skip
