"""Definitions go into ``uprobe_events`` and its like, and out of them again.

The kernel takes many lines in one write, up to the first that it refuses; those before it stay.
An enabled event cannot be removed. Measured on Linux 6.18: 1,000 definitions are installed in
0.06 s and removed in 0.02 s.
"""

from __future__ import annotations

import errno
import time

from fetchc.diag.errors import TracerError
from fetchc.tracer.kernel.kernel_symbols import must_be_one
from fetchc.tracer.kernel.refusals import refused_definition
from fetchc.tracer.kernel.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.tracer.kernel.tracefs import Tracefs

__all__ = ["PROBED", "file_of", "head", "install", "listed", "listed_in", "uninstall"]

PROBED = ("uprobe_events", "kprobe_events", "dynamic_events")
"""The files of definitions: of probes in programs, in the kernel itself, and of all other kinds."""

_OTHER = "fte"  # letters of what only the last of them takes, and lists beside all others

_CHUNK = 256  # lines a write
_TRIES = 40  # of a removal that finds an event in use: two seconds
_PAUSE = 0.05


def head(line: str) -> tuple[str, str]:
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
    """Those of one of the files, each in one; nothing where the kernel has no such probes."""
    try:
        lines = tracefs.read(file).splitlines()
    except FileNotFoundError:
        return []
    return [line for line in lines if file != PROBED[2] or line[0] in _OTHER]


def install(tracefs: Tracefs, lines: Sequence[str]) -> None:
    """Append the definitions ``lines``, all of one group; where one is refused, none stays.

    Raises TracerError (FC0705, FC0706) for the first that the kernel does not take, FC0714 where
    it has no such probes, FC0203 where it has several functions of a name.
    """
    must_be_one([line for line in lines if file_of(line) != PROBED[0]])
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
    group = head(lines[0])[0]
    before = _number(tracefs, file, group)
    for start in range(0, len(lines), _CHUNK):
        chunk = lines[start : start + _CHUNK]
        try:
            tracefs.write("\n".join(chunk) + "\n", file)
        except FileNotFoundError as error:
            raise _no_such_probes(tracefs, file) from error
        except OSError as error:
            # The lines in front of the bad one are there: their number tells which it is.
            done = _number(tracefs, file, group) - before
            refusal = refused_definition(tracefs, lines[done], error)
            _take_back(tracefs, lines[:done])
            raise refusal from error


def _no_such_probes(tracefs: Tracefs, file: str) -> TracerError:
    option = "CONFIG_KPROBE_EVENTS" if file == PROBED[1] else "CONFIG_FPROBE_EVENTS"
    return refused(
        "FC0714",
        "this kernel has no such probes of its own",
        notes=(f"there is no {tracefs.path(file)}",),
        help=f"run a kernel that is built with {option}=y",
    )


def _number(tracefs: Tracefs, file: str, group: str) -> int:
    return sum(head(line)[0] == group for line in listed_in(tracefs, file))


def _take_back(tracefs: Tracefs, lines: Sequence[str]) -> None:
    # By place: an event of the name can have other probes, which were there before.
    for line in lines:
        group, event = head(line)
        tracefs.write(f"-:{group}/{event} {_where(line)}\n", file_of(line))


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
    left = list(events)
    if not left:
        return
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)
        left = _removed(tracefs, left)
        if not left:
            return
    names = ", ".join(f"`{group}/{event}`" for group, event in left)
    raise refused(
        "FC0710",
        f"{names} cannot be removed: in use",
        notes=("a definition stays as long as some process records its event",),
        help="end what records it (perf, another tracer), then `fetchc remove --stale`",
    )


def _removed(tracefs: Tracefs, events: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    # Tries all of them; the result are those in use.
    busy: list[tuple[str, str]] = []
    for file in PROBED:
        there = {head(line) for line in listed_in(tracefs, file)}
        own = [event for event in events if event in there]
        if own:
            busy += _removed_from(tracefs, file, own)
    return busy


def _removed_from(
    tracefs: Tracefs, file: str, events: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    text = "\n".join(f"-:{group}/{event}" for group, event in events) + "\n"
    try:
        tracefs.write(text, file)
        return []
    except OSError:
        busy: list[tuple[str, str]] = []
    there = {head(line) for line in listed_in(tracefs, file)}
    for group, event in events:
        if (group, event) not in there:
            continue
        try:
            tracefs.write(f"-:{group}/{event}\n", file)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            busy.append((group, event))
    return busy
