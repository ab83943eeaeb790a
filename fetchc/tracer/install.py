"""Installs definitions in ``uprobe_events``, ``kprobe_events``, ``dynamic_events``; removes them.

One read cannot return all definitions: the kernel returns about a page for each read, and
continues by the number of lines. If somebody removes a line in between, the next line moves into
its place and no read returns it (kernel/trace/trace_uprobe.c, seq_read_iter). So a missing line
proves nothing: fetchc writes each definition by itself, which shows which ones the kernel accepts,
and removes each name that it installed, listed or not. An enabled event cannot be removed.
Measured on Linux 6.18: 1,000 definitions are installed in 0.05 s and removed in 0.03 s.

The kernel resolves the path of a definition when it reads it: a container that replaces its file by
a link at that moment would have a probe set in a file of the host. See :class:`ProbedFiles`.
"""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import suppress

from fetchc.debuginfo.safe_open import file_identity, open_regular
from fetchc.diag.diagnostic import Diagnostic, TracerError
from fetchc.record import Record
from fetchc.tracer.events import PLAN_INDEX, Plan
from fetchc.tracer.kallsyms import refuse_ambiguous
from fetchc.tracer.trace_instance import refused_definition, remove_instance
from fetchc.tracer.tracefs import alive, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from fetchc.target.kernel_versions import Kernel
    from fetchc.tracer.tracefs import Tracefs

    Left = TypeVar("Left")
    Signature = tuple[tuple[str, str], ...]

__all__ = [
    "PROBED",
    "KernelEvent",
    "ProbedFiles",
    "ProbedPlace",
    "file_of",
    "group_and_event",
    "hits",
    "install",
    "kernel_events",
    "leftover_warnings",
    "leftovers",
    "listed",
    "listed_in",
    "missed",
    "own_names",
    "probed_place",
    "remove_leftovers",
    "uninstall",
]

PROBED = ("uprobe_events", "kprobe_events", "dynamic_events")
"""The files of definitions: of probes in programs, in the kernel itself, and of all other kinds."""

_OTHER = "fte"  # letters of what only the last of them takes, and lists beside all others

_READINGS = 16  # of a list that changes meanwhile; one in a hundred misses a line that was there
_TRIES = 40  # of a removal that finds an event in use: two seconds
_PAUSE = 0.05
_MOMENT = 1.0  # seconds in which an instance may be about to go, though its process has ended


class ProbedPlace(Record):
    """Where the definition of a program's probe is: the file, the offset in it, the offset of a
    semaphore or 0. ``returning``: at returns of the function there.
    """

    path: str
    offset: int
    reference: int
    returning: bool


def probed_place(line: str) -> ProbedPlace:
    """The place of a definition: ``p:GROUP/EVENT PATH:0xOFFSET(0xREFERENCE) ...``."""
    words = line.split(" ", 2)
    path, _, place = words[1].rpartition(":")
    offset, _, reference = place.rstrip(")").partition("(")
    return ProbedPlace(path, int(offset, 16), int(reference or "0", 16), line.startswith("r"))


def group_and_event(line: str) -> tuple[str, str]:
    """Group and event of a definition, as the first word of ``line`` names them."""
    group, _, event = line.split(maxsplit=1)[0].partition(":")[2].partition("/")
    return group, event


def file_of(line: str) -> str:
    """The file that a definition goes into: probes of programs name a path, others a function."""
    if line[0] in _OTHER:
        return PROBED[2]
    return PROBED[0] if line.split(maxsplit=2)[1].startswith("/") else PROBED[1]


def listed(tracefs: Tracefs) -> list[str]:
    """The definitions that the kernel has, of everybody, as it writes them; programs' first."""
    return [line for file in PROBED for line in listed_in(tracefs, file)]


def listed_in(tracefs: Tracefs, file: str) -> list[str]:
    """Those of one of the files, each in one; nothing where the kernel has no such probes.

    Read until two readings agree. While others add and remove without a pause, what any of some
    readings has: a line that is gone may be among them, one that stays is.
    """
    seen: dict[str, None] = {}
    last: list[str] | None = None
    for _ in range(_READINGS):
        try:
            lines = tracefs.read(file).splitlines()
        except FileNotFoundError:
            return []
        if lines == last:
            seen = dict.fromkeys(lines)
            break
        last = lines
        seen |= dict.fromkeys(lines)
    return [line for line in seen if file != PROBED[2] or line[0] in _OTHER]


def install(tracefs: Tracefs, lines: Sequence[str]) -> None:
    """Append the definitions ``lines``, all of one group; where one is refused, none stays.

    Raises TracerError (FC0705, FC0706) for the first that the kernel does not take, FC0714 where
    it has no such probes, FC0203 where it has several functions of a name.
    """
    refuse_ambiguous([line for line in lines if file_of(line) != PROBED[0]])
    done: list[str] = []
    for file in PROBED:
        own = [line for line in lines if file_of(line) == file]
        if not own:
            continue
        try:
            _install(tracefs, file, own)
        except TracerError:
            _take_back(tracefs, done)
            raise
        done += own


def _install(tracefs: Tracefs, file: str, lines: Sequence[str]) -> None:
    try:
        done, error = tracefs.write_each((f"{line}\n" for line in lines), file)
    except FileNotFoundError as missing:
        raise _no_such_probes(tracefs, file) from missing
    except OSError as closed:
        done, error = 0, closed
    if error is not None:
        refusal = refused_definition(tracefs, lines[done], error)
        _take_back(tracefs, lines[:done])
        raise refusal from error


def _no_such_probes(tracefs: Tracefs, file: str) -> TracerError:
    option = "CONFIG_KPROBE_EVENTS" if file == PROBED[1] else "CONFIG_FPROBE_EVENTS"
    return refused(
        "FC0714",
        "this kernel has no such probes of its own",
        notes=(f"there is no {tracefs.path(file)}",),
        help=f"probe an event, `-f tracepoint:GROUP:NAME`, or boot a kernel with {option}=y",
    )


def _take_back(tracefs: Tracefs, lines: Sequence[str]) -> None:
    # By place: an event of the name can have other probes, which were there before.
    def taken(left: list[str]) -> list[str]:
        return [line for line in left if not _is_removed(tracefs, line)]

    left = _until_none(taken, list(lines))
    if left:
        raise _in_use([group_and_event(line) for line in left])


class ProbedFiles:
    """The files that probes are set in, open, so that no path leads the kernel to other ones.

    A definition that names ``/proc/PID/fd/N`` is of the file that descriptor N has open (kern_path
    in kernel/trace/trace_uprobe.c follows it as proc(5) describes), whatever is at its path by
    then. As long as the files are open, that name leads to them for others, too.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # of descriptors, by path
        self._handles: list[int] = []

    def open(self, path: str, identity: str) -> None:
        """Open the file at ``path``; TracerError FC0719 where it is not the one that was read.

        ``identity`` is what :func:`~fetchc.debuginfo.safe_open.file_identity` has said of it then.
        """
        handle, status = -1, None
        try:
            handle, status = open_regular(path)
            self._handles.append(handle)
        except ValueError:
            pass
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
        if status is None or file_identity(status) != identity:
            raise self._replaced(path)
        self._names.setdefault(path, f"/proc/{os.readlink('/proc/self')}/fd/{handle}")

    def close(self) -> None:
        """Close them: what names their descriptors leads nowhere from now on."""
        for handle in self._handles:
            os.close(handle)
        self._handles.clear()
        self._names.clear()

    def named(self, line: str) -> str:
        """The definition ``line`` with the descriptor's name for its path, if that is open."""
        first, point, *rest = line.split(" ", 2)
        path, _, offset = point.rpartition(":")
        name = self._names.get(path)
        return line if name is None else " ".join([first, f"{name}:{offset}", *rest])

    def check(self, tracefs: Tracefs, lines: Sequence[str]) -> None:
        """Raises TracerError FC0719 where a definition that names a path is of another file.

        For definitions that stay, from Linux 5.4 on. They are installed, and switched off. The
        kernel refuses a second probe of the same event, file, offset and arguments (EEXIST,
        trace_uprobe_has_same_uprobe): it takes that of the open file only where the first is not in
        there. ``lines`` are then taken back.
        """
        for line in lines:
            path = line.split(" ", 2)[1].rpartition(":")[0]
            again = self.named(line)
            if again == line:
                continue
            try:
                tracefs.write(f"{again}\n", PROBED[0])
            except OSError as refused:
                if refused.errno == errno.EEXIST:
                    continue
                _take_back(tracefs, lines)
                raise refused_definition(tracefs, again, refused) from refused
            _take_back(tracefs, [again, *lines])
            raise self._replaced(path)

    def _replaced(self, path: str) -> TracerError:
        return refused(
            "FC0719",
            f"{path} is not the file that fetchc read",
            notes=("somebody replaced or changed it meanwhile; no probe is set",),
            help="run the command again",
        )


def _is_removed(tracefs: Tracefs, line: str) -> bool:
    group, event = group_and_event(line)
    try:
        tracefs.write(f"-:{group}/{event} {_where(line)}\n", file_of(line))
    except FileNotFoundError:
        return True  # somebody else has removed it
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def _until_none(step: Callable[[list[Left]], list[Left]], left: list[Left]) -> list[Left]:
    # What is in use now may be let go soon: what ``step`` leaves of it is tried again.
    for attempt in range(_TRIES):
        if not left:
            break
        if attempt:
            time.sleep(_PAUSE)
        left = step(left)
    return left


def _in_use(events: Sequence[tuple[str, str]]) -> TracerError:
    names = ", ".join(f"`{group}/{event}`" for group, event in events)
    return refused(
        "FC0710",
        f"{names} cannot be removed: in use",
        notes=("a definition stays as long as some process records its event",),
        help="stop what records it (perf, another tracer), then `fetchc remove --stale`",
    )


def _where(line: str) -> str:
    # As the kernel lists it, which is what it compares: a function's offset is decimal.
    point = line.split(maxsplit=2)[1]
    if file_of(line) == PROBED[0]:
        path, _, offset = point.rpartition(":")
        return f"{path}:{int(offset.partition('(')[0], 16):#018x}"
    function, _, offset = point.partition("+")
    return f"{function}+{int(offset, 16)}" if offset else function


def uninstall(tracefs: Tracefs, events: Sequence[tuple[str, str]]) -> None:
    """Remove all definitions of the given groups and events; what is gone already is no error.

    Raises TracerError (FC0710) where one stays in use for two seconds; the others are gone then.
    """
    left = _until_none(lambda left: _removed(tracefs, left), list(events))
    if left:
        raise _in_use(left)


def _removed(tracefs: Tracefs, events: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    # Tries all of them, in each file: which one has an event is not asked. Returns those in use.
    left, busy = list(events), list[tuple[str, str]]()
    for file in PROBED:
        absent = []
        for group, event in left:
            try:
                tracefs.write(f"-:{group}/{event}\n", file)
            except FileNotFoundError:
                absent.append((group, event))
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                busy.append((group, event))
        left = absent
    return busy


# ------------------------------------------------------------------------------
# Plans with equal argument lists become probes of one event of the kernel.
#
# Disabling an event waits for all processors: 50 ms each on Linux 6.18, 51 s for 1,000 of them.
# From 5.4 on one event can have any number of probes, when the names and types of their arguments
# are equal (10,000 of one event are disabled in 0.07 s). An argument of its own, a constant, then
# says whose a record is. Probes of other events (``e``) have one each: 7.3 refuses a second.

_TYPE = re.compile(
    r"(?:[usx](?P<plain>\d+)|b\d+@\d+/(?P<container>\d+)|\w*)(?:\[(?P<count>\d+)\])?"
)
_SIZES = {"": 8, "comm": 4, "char": 1, "string": 4, "ustring": 4, "symstr": 4, "symbol": 8}
_WHICH_BYTES = 4
_NAME_BYTES = 32  # of an argument, at most: MAX_ARG_NAME_LEN, kernel/trace/trace_probe.h
_ALONE = "e:"
_DESCRIPTOR = len("/proc/4194304/fd/1048576")  # bytes of the longest name
_MOST = 999_999  # plans: more than the kernel has numbers for events


class KernelEvent(Record):
    """An event of the kernel: its name, its definitions, its plans in the order of their numbers.

    One with a single plan has no argument :data:`WHICH`.
    """

    event: str
    definitions: tuple[str, ...]
    plans: tuple[Plan, ...]


def kernel_events(
    plans: Sequence[Plan], filters: Mapping[str, str], kernel: Kernel
) -> list[KernelEvent]:
    """Distribute ``plans``, each to one event, within the limits of ``kernel``.

    ``filters`` are the kernel filters of plans, by the plan's event: they are those of the
    whole event, so that only plans with the same one share.
    """
    alike: dict[object, list[Plan]] = {}
    for number, plan in enumerate(plans):
        signature = _signature(plan.definitions[0])
        line = plan.definitions[0]
        filter = filters.get(plan.event)
        types: object = signature
        room = _fits(plan, signature, kernel)
        if filter is None and _fits(plan, signature, kernel, _NAME_BYTES * len(signature)):
            types = [type for _, type in signature]
        key = (file_of(line), line[0], str(types), filter)
        alike.setdefault(key if room else number, []).append(plan)
    return [_event(group) for group in alike.values()]


def _event(plans: list[Plan]) -> KernelEvent:
    event = plans[0].event
    if len(plans) == 1:
        return KernelEvent(event, plans[0].definitions, tuple(plans))
    lines = []
    names = [name for name, _ in _signature(plans[0].definitions[0])]
    for number, plan in enumerate(plans):
        for line in plan.definitions:
            point, *arguments = line.split(" ")[1:]
            bodies = [argument.partition("=")[2] for argument in arguments]
            renamed = [f"{name}={body}" for name, body in zip(names, bodies, strict=True)]
            rest = " ".join([point, *renamed])
            letter = line.partition(":")[0]
            lines.append(f"{letter}:{plan.group}/{event} {rest} {_which(number)}")
    return KernelEvent(event, tuple(lines), tuple(plans))


def _signature(line: str) -> Signature:
    # Names and types of the arguments; no fetch-arg that fetchc makes has another colon. Without
    # a type `$comm` is a string, all else a word.
    named = [word.partition("=") for word in line.split()[2:]]
    return tuple(
        (name, "comm" if body.lower() == "$comm" else body.partition(":")[2])
        for name, _, body in named
    )


def _which(number: int) -> str:
    return f"{PLAN_INDEX}=\\{number}:u32"


def own_names(plan: Plan, first: Plan) -> dict[str, str]:
    """The plan's name for each field of an event that has the names of the plan ``first``."""
    both = [[name for name, _ in _signature(one.definitions[0])] for one in (first, plan)]
    return dict(zip(*both, strict=True))


def _fits(plan: Plan, signature: Signature, kernel: Kernel, more: int = 0) -> bool:
    # Whether there is room for the number of a plan, and for ``more`` bytes of names.
    if plan.definitions[0].startswith(_ALONE):
        return False
    if not kernel.has("several_probes_in_event") or len(signature) >= kernel.arguments:
        return False
    longest = max(len(os.fsencode(line)) for line in plan.definitions)
    if plan.identity:  # the path gives way to a descriptor's name
        longest += max(0, _DESCRIPTOR - len(os.fsencode(plan.path)))
    # The event is called as one of the others, which may have a longer name.
    longest += more + kernel.event_name_bytes - len(plan.event)
    if longest + 1 + len(_which(_MOST)) > kernel.line_bytes:
        return False
    if kernel.event_bytes is None:
        return True
    return sum(_bytes(type) for _, type in signature) + _WHICH_BYTES <= kernel.event_bytes


def _bytes(type: str) -> int:
    matched = _TYPE.fullmatch(type)
    if matched is None:
        raise ValueError(f"`{type}` is no type of a fetch-arg")
    bits = matched["plain"] or matched["container"]
    size = int(bits) // 8 if bits else _SIZES[type.partition("[")[0]]
    return size * int(matched["count"] or 1)


# ------------------------------------------------------------------------------
# ``uprobe_profile`` and ``kprobe_profile``: hits, and hits that kernel probes missed.
#
# ``kprobe_profile`` and ``uprobe_profile`` have a line for each definition, in their order: the
# event without its group, its hits; the file before them, or the misses after. A return
# probe has room for so many calls at a time (``maxactive``), and misses the returns of all
# others; a probe that is hit while the kernel handles another one is missed, too. Of function
# probes (``f``) there is no such file. Source: probes_profile_seq_show,
# kernel/trace/trace_kprobe.c and trace_uprobe.c.

_COLUMNS = {PROBED[0]: 2, PROBED[1]: 3}  # at the end of a line: event, hits, misses


def hits(tracefs: Tracefs) -> dict[tuple[str, str], int]:
    """The hits of each event, by group and event."""
    found: dict[tuple[str, str], int] = {}
    for file in _COLUMNS:
        for line, (number, *_) in _rows(tracefs, file):
            found[group_and_event(line)] = found.get(group_and_event(line), 0) + number
    return found


def missed(tracefs: Tracefs, group: str) -> tuple[int, int]:
    """How many entries, and how many returns, the kernel's probes of a group have missed."""
    entries = returns = 0
    for line, (_, number) in _rows(tracefs, PROBED[1]):
        if group_and_event(line)[0] == group:
            if line[0] == "r":
                returns += number
            else:
                entries += number
    return entries, returns


def _rows(tracefs: Tracefs, file: str) -> list[tuple[str, list[int]]]:
    # Where a definition came or went between the two readings, the result is not known.
    lines = listed_in(tracefs, file)
    if not lines:
        return []
    try:
        profile = tracefs.read(file.replace("events", "profile")).splitlines()
    except FileNotFoundError:
        return []
    rows = [row.split() for row in profile]
    columns = [row[-_COLUMNS[file] :] for row in rows]
    if [[group_and_event(line)[1]] for line in lines] != [words[:1] for words in columns]:
        return []
    return [
        (line, [int(number) for number in numbers])
        for line, (_, *numbers) in zip(lines, columns, strict=True)
    ]


# ------------------------------------------------------------------------------
# What killed sessions left in the kernel.


def leftovers(tracefs: Tracefs) -> list[str]:
    """The names of dead sessions that have an instance or definitions."""
    names = {group_and_event(line)[0] for line in listed(tracefs)}
    instances = os.listdir(tracefs.path("instances"))
    names.update([name for name in instances if not _is_fresh(tracefs.path("instances", name))])
    return sorted(name for name in names if alive(name) is False)


def _is_fresh(path: str) -> bool:
    # Another process removes the instance of a trace that was refused, a moment after its end.
    with suppress(FileNotFoundError):
        return abs(time.time() - os.stat(path).st_mtime) < _MOMENT
    return True


def _events(tracefs: Tracefs, group: str) -> list[tuple[str, str]]:
    # By the list and by the folder of the events: the list may lack some (see `install`).
    found = {group_and_event(line) for line in listed(tracefs) if group_and_event(line)[0] == group}
    with suppress(FileNotFoundError):
        for entry in os.scandir(tracefs.path("events", group)):
            if entry.is_dir():
                found.add((group, entry.name))
    return sorted(found)


def leftover_warnings(names: list[str]) -> tuple[Diagnostic, ...]:
    """The warning about ``names``; none where there are none."""
    if not names:
        return ()
    what = "a session that was killed" if len(names) == 1 else f"{len(names)} sessions, killed,"
    notes = tuple(f"`{name}`" for name in names[:3])
    help = "remove them: `fetchc remove --stale`"
    return (Diagnostic("FC0612", f"{what} left definitions in the kernel", notes=notes, help=help),)


def remove_leftovers(tracefs: Tracefs) -> list[str]:
    """Take away what dead sessions left; the names of those that were.

    Raises TracerError (FC0710) where something is still in use. An instance that somebody has
    open is a session's that lives in another PID namespace: it stays as it is.
    """
    removed = []
    for name in leftovers(tracefs):
        if remove_instance(tracefs, name):
            uninstall(tracefs, _events(tracefs, name))
            removed.append(name)
    return removed
