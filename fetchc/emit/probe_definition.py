"""The format ``probe``: whole definitions, held against the kernel's rules.

A definition is split at blanks only: there is no quoting, and ``#`` cuts the rest of the
line off (kernel/trace/trace.c, ``trace_parse_run_command``).
"""

from __future__ import annotations

import os
import re

from fetchc.diag.diagnostic import Diagnostic
from fetchc.ir.fetch import body, fixed_bytes
from fetchc.quantities import FileOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from fetchc.ir.fetch import Fetch
    from fetchc.target.kernel_versions import Kernel

__all__ = [
    "Probed",
    "argument_name",
    "argument_problem",
    "definition",
    "event_name",
    "event_problem",
    "group_name",
    "group_problem",
    "is_identifier",
    "kind_problem",
    "line_problem",
    "number_problem",
    "size_problem",
    "verify_event",
]

# ------------------------------------------------------------------------------
# Names of arguments, events and groups, made from what the user wrote.
#
# All three must be C identifiers for the kernel (kernel/trace/trace_probe.c, ``is_good_name``);
# none may be one that the kernel, a filter or ``perf`` takes for something else.

# One byte less than a kernel takes, for readers that keep the NUL in the same buffer.
_ARGUMENT_BYTES = 31
_EVENT_BYTES = 63  # MAX_EVENT_NAME_LEN less its NUL; the same in every version
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORD = re.compile(r"[A-Za-z0-9_]+")
_BRACKETS = {"(": ")", "[": "]", "<": ">", "{": "}"}
# Parts that say nothing alone: Go numbers what has no name (main.main.func1, main.init.0), and
# both it and gcc mark what they made of a function (main.(*T).Get-fm, do_work.constprop.0).
_SUFFIX = re.compile(r"((func|gowrap|deferwrap)?[0-9]+|fm|constprop|part|isra|cold|lto_priv)\Z")
# Files in the folder of a group, where each event is a folder: one of that name hides the file
# (fs/tracefs, system_callback of kernel/trace/trace_events.c).
_FILES = ("enable", "filter")
_OPERATOR = re.compile(r"\boperator\b.*")


def is_identifier(text: str) -> bool:
    """Whether ``text`` is an identifier of C, which has no letters beyond ASCII here."""
    return _IDENTIFIER.match(text) is not None


def argument_name(expression: str, kernel: Kernel, taken: Container[str] = ()) -> str:
    """A C identifier that reads like ``expression``.

    ``r->Question[0].Name`` is ``r_Question_0_Name``. At most 31 bytes, the front being cut
    at a word; none of ``taken``, of the names that the kernel reserves or that mislead
    filters, nor ``argN``, which the kernel gives to arguments without a name.
    """
    words = _WORD.findall(expression)
    while len(words) > 1 and len("_".join(words)) > _ARGUMENT_BYTES:
        del words[0]
    name = _identifier("_".join(words), "value")[:_ARGUMENT_BYTES]
    refused = kernel.reserved_names + kernel.confusing_names
    if name in refused or re.match(r"arg[0-9]+\Z", name):
        name = name[: _ARGUMENT_BYTES - 1] + "_"
    return _unique(name, taken, _ARGUMENT_BYTES)


def event_name(function: str, taken: Container[str] = ()) -> str:
    """A C identifier for probes of ``function``.

    ``main.(*server).handleRequest`` is ``handleRequest``: the last part of the qualified
    name, without parameters and type arguments, and with the part before it where the last
    one is only a number or a compiler's mark. Never ``r`` and hexadecimal digits, which
    perf takes for a raw event (``rec``), nor what the kernel has in the folder of a group.
    """
    parts = _parts(function)
    first = len(parts) - 1
    while first > 0 and _SUFFIX.match(parts[first]):
        first -= 1
    name = _identifier("_".join(parts[first:]), "probe")
    if name in _FILES or re.match(r"r[0-9a-f]+\Z", name):
        name += "_"
    return _unique(name[:_EVENT_BYTES], taken, _EVENT_BYTES)


def group_name(path: str) -> str:
    """The group of probes of the file ``path``: ``fetchc_dns_forward`` for ``dns-forward``."""
    return ("fetchc_" + "_".join(_WORD.findall(os.path.basename(path))))[:_EVENT_BYTES]


def _identifier(text: str, otherwise: str) -> str:
    if not text.strip("_"):
        return otherwise
    return "_" + text if text[0].isdigit() else text


def _unique(name: str, taken: Container[str], limit: int) -> str:
    # The first number that is free, found by halves: a line of a batch may ask for one name
    # a hundred thousand times.
    if name not in taken:
        return name
    last, free = 1, 2
    while _numbered(name, free, limit) in taken:
        last, free = free, 2 * free
    while free - last > 1:
        middle = (last + free) // 2
        if _numbered(name, middle, limit) in taken:
            last = middle
        else:
            free = middle
    return _numbered(name, free, limit)


def _numbered(name: str, number: int, limit: int) -> str:
    suffix = f"_{number}"
    return name[: limit - len(suffix)] + suffix


def _parts(function: str) -> list[str]:
    # The words of the qualified name that stand outside of brackets; where there is none,
    # as in (anonymous namespace), those inside.
    outside, depth = [], 0
    for character in function:
        if character in _BRACKETS:
            depth += 1
            outside.append(" ")
        elif depth and character in _BRACKETS.values():
            depth -= 1
        elif not depth:
            outside.append(character)
    return _qualified("".join(outside)) or _qualified(function)


def _qualified(text: str) -> list[str]:
    # C++ writes the return type of a template before its name, and that of a conversion
    # after "operator".
    joined = re.sub(r"\s*(::|\.|/)\s*", ".", text.strip())
    operator = _OPERATOR.search(joined)
    if operator:
        return ["_".join(_WORD.findall(operator[0]))]
    return _WORD.findall(joined.split()[-1]) if joined.split() else []


_LETTERS = {
    "uprobe": "p", "uretprobe": "r", "kprobe": "p", "kprobe_inside": "p", "kretprobe": "r",
    "fprobe": "f", "fexit": "f", "tprobe": "t", "eprobe": "e",
}  # fmt: skip
_OF_PROGRAMS = ("uprobe", "uretprobe")
_HYPHENATED = re.compile(r"[A-Za-z_-][A-Za-z0-9_-]*\Z")
# Blanks of the C locale split words, the kernel ends at a NUL, and # starts a comment.
_UNWRITABLE = re.compile(r"[\t\n\v\f\r \0#]")
# Common fields and the probe's addresses, by kind; an event probe has none.
_HEADER_BYTES = {
    **dict.fromkeys(["uprobe", "kprobe", "kprobe_inside", "fprobe", "tprobe"], 16),
    **dict.fromkeys(["uretprobe", "kretprobe", "fexit"], 24),
    "eprobe": 8,
}


class Probed(Record):
    """What a definition probes; ``kind`` is one of ``targets/kernel``.

    ``offset`` counts from the start of the file ``path``, or of the function that is in its
    place where the kernel is probed: there it may be a tracepoint or ``GROUP.EVENT``, too. A path
    that is not UTF-8 keeps its bytes as surrogates (:func:`os.fsdecode`). ``reference`` is where in
    the file the counter is that the kernel raises while the probe is on; ``active`` is for how many
    calls a return probe of the kernel has room.
    """

    kind: str
    path: str
    offset: FileOffset
    reference: FileOffset | None = None
    active: int | None = None


def definition(probed: Probed, group: str, event: str, arguments: Sequence[tuple[str, str]]) -> str:
    """One line of ``uprobe_events``: ``p:GROUP/EVENT PATH:0xOFFSET NAME=BODY ...``.

    With a counter ``PATH:0xOFFSET(0xREFERENCE)``; of ``kprobe_events`` and ``dynamic_events``
    ``p:GROUP/EVENT FUNCTION+0xOFFSET NAME=BODY ...``. ``arguments`` are names and bodies.
    """
    kind, path, offset = probed.kind, probed.path, probed.offset
    point = f"{path}:{offset:#x}" if kind in _OF_PROGRAMS else f"{path}+{offset:#x}"
    counter = "" if probed.reference is None else f"({probed.reference:#x})"
    leaves = "%return" if kind == "fexit" else ""
    letter = _LETTERS[kind] + ("" if probed.active is None else str(probed.active))
    words = [f"{letter}:{group}/{event}", point.removesuffix("+0x0") + leaves + counter]
    words += [f"{name}={text}" for name, text in arguments]
    return " ".join(words)


def verify_event(
    probed: Probed,
    group: str,
    event: str,
    arguments: Sequence[tuple[str, Fetch]],
    kernel: Kernel,
) -> tuple[Diagnostic, ...]:
    """Problems of a whole definition beyond those of its fetches, which are sound; none is ()."""
    kind = probed.kind
    named = (event_problem(event, kernel), group_problem(group, kernel))
    problems = [problem for problem in named if problem is not None]
    problems += _path(probed.path, kernel) if kind in _OF_PROGRAMS else []
    problems += [] if probed.reference is None else _reference(kernel)
    problems += kind_problem(kind, kernel)
    problems += [] if probed.active is None else _active(probed.active, kind, kernel)
    problems += _arguments([name for name, _ in arguments], kernel)
    problems += size_problem([fetch for _, fetch in arguments], kernel, kind)
    if not problems:
        bodies = [(name, body(fetch)) for name, fetch in arguments]
        line = definition(probed, group, event, bodies)
        problems += line_problem(len(os.fsencode(line)), kernel)
    return tuple(problems)


def event_problem(event: str, kernel: Kernel) -> Diagnostic | None:
    """What is wrong with an event's name."""
    if not is_identifier(event):
        return Diagnostic("FC0503", f"`{event}` is not a C identifier: no event name")
    return _too_long(event, kernel)


def group_problem(group: str, kernel: Kernel) -> Diagnostic | None:
    """What is wrong with a group's name."""
    if not is_identifier(group):
        if not _HYPHENATED.match(group):
            what = f"`{group}` is not a group name: letters, digits, `_` and `-` only"
            return Diagnostic("FC0503", what)
        if not kernel.has("hyphen_in_group"):
            note = f"Linux {kernel.first('hyphen_in_group')} was the first to take `-`"
            what = f"`{group}` is not a valid group name for Linux {kernel.name}"
            return Diagnostic("FC0503", what, notes=(note,))
    return _too_long(group, kernel)


def _too_long(name: str, kernel: Kernel) -> Diagnostic | None:
    if len(name) <= kernel.event_name_bytes:
        return None
    note = f"Linux takes {kernel.event_name_bytes} bytes, this has {len(name)}"
    return Diagnostic("FC0503", f"`{name}` is too long", notes=(note,))


def _path(path: str, kernel: Kernel) -> list[Diagnostic]:
    # A relative path is the kernel's too, but from whatever directory the line is written in.
    if not path.startswith("/"):
        what = f"`{path}` is not an absolute path"
    elif unwritable := _UNWRITABLE.search(path):
        what = f"the path `{path}` holds {unwritable[0]!r}, which a definition cannot"
    elif ":" in path and not kernel.has("colon_in_path"):
        what = f"the path `{path}` holds `:`, which Linux {kernel.name} may split"
    else:
        return []
    return [Diagnostic("FC0510", what, help="make a link with a plain name and give that")]


def _reference(kernel: Kernel) -> list[Diagnostic]:
    if kernel.has("semaphore"):
        return []
    note = f"Linux {kernel.first('semaphore')} was the first to raise such counters"
    what = f"Linux {kernel.name} does not increment the semaphore of the probe"
    return [Diagnostic("FC0506", what, notes=(note, "without it the program skips the probe"))]


_FEATURES = {
    "fprobe": "function_probe", "fexit": "function_probe", "tprobe": "function_probe",
    "eprobe": "event_probe",
}  # fmt: skip


def kind_problem(kind: str, kernel: Kernel) -> list[Diagnostic]:
    """What is wrong with the kind of a probe: one problem or none."""
    feature = _FEATURES.get(kind)
    if feature is None or kernel.has(feature):
        return []
    note = f"Linux {kernel.first(feature)} was the first"
    what = f"Linux {kernel.name} has no such probe ({kind})"
    help = "probe a function: `kprobe:NAME`; `fetchc trace` has it by an eBPF program"
    return [Diagnostic("FC0506", what, notes=(note,), help=help, reason="not in definitions")]


def _active(active: int, kind: str, kernel: Kernel) -> list[Diagnostic]:
    most = kernel.returns_at_once
    feature = "maxactive" if kind == "kretprobe" else "function_probe_maxactive"
    if not kernel.has(feature):
        last, first = kernel.last(feature), kernel.first(feature)
        note = f"Linux {first} was the first" if last is None else f"Linux {last} was the last"
        what = f"Linux {kernel.name} takes no number of calls here"
        return [Diagnostic("FC0506", what, notes=(note,), help="leave `--maxactive` out")]
    if not 1 <= active <= most:
        what = f"a return probe has room for 1 to {most} calls at a time, not for {active}"
        return [Diagnostic("FC0511", what)]
    return []


def _arguments(names: Sequence[str], kernel: Kernel) -> list[Diagnostic]:
    problems = number_problem(len(names), kernel)
    seen: set[str] = set()
    for position, name in enumerate(names, 1):
        problem = argument_problem(name, position, seen, kernel)
        problems += [] if problem is None else [problem]
        seen.add(name)
    return problems


def number_problem(count: int, kernel: Kernel) -> list[Diagnostic]:
    """What is wrong with the number of arguments: one problem or none."""
    if count <= kernel.arguments:
        return []
    note = f"Linux takes {kernel.arguments} an event"
    what = f"{count} arguments are too many"
    help = "split the arguments between two events"
    return [Diagnostic("FC0504", what, notes=(note,), help=help, reason="event too large")]


def argument_problem(
    name: str, position: int, seen: Container[str], kernel: Kernel
) -> Diagnostic | None:
    """What is wrong with the name of the argument number ``position`` after those of ``seen``."""
    if not name:
        return Diagnostic("FC0207", "the argument's name is missing")
    if not is_identifier(name):
        return Diagnostic("FC0207", f"`{name}` is not a C identifier")
    if len(name) > kernel.argument_name_bytes:
        note = f"Linux takes {kernel.argument_name_bytes} bytes, this has {len(name)}"
        return Diagnostic("FC0207", f"`{name}` is too long a name", notes=(note,))
    if name in kernel.reserved_names:
        return Diagnostic("FC0207", f"the kernel reserves the name `{name}` for itself")
    if name in seen:
        what = f"two arguments have the name `{name}`, the second is number {position}"
        return Diagnostic("FC0207", what)
    return None


def size_problem(fetches: Sequence[Fetch], kernel: Kernel, kind: str) -> list[Diagnostic]:
    """What is wrong with the bytes that the event takes: one problem or none."""
    total = sum(fixed_bytes(fetch.store) for fetch in fetches)
    room = kernel.record_bytes - _HEADER_BYTES[kind]
    if kernel.event_bytes is not None:
        room = min(room, kernel.event_bytes)
    if total <= room:
        return []
    return [
        Diagnostic(
            "FC0508",
            f"the arguments take {total} bytes of an event",
            notes=(f"Linux {kernel.name} takes {room}; strings count 4 bytes each here",),
            help="split the arguments between two events",
            reason="event too large",
        )
    ]


def line_problem(length: int, kernel: Kernel) -> list[Diagnostic]:
    """What is wrong with the bytes of the line: one problem or none."""
    if length <= kernel.line_bytes:
        return []
    note = f"Linux reads {kernel.line_bytes} bytes of a line"
    help = "split the arguments between two events"
    what = f"the definition is {length} bytes"
    return [Diagnostic("FC0509", what, notes=(note,), help=help, reason="event too large")]
