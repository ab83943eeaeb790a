"""The pass over all units, spread over processes.

Each process reads a share of the units, one stretch of the file, and hands back what it found. Put
together in the file's order, that is what one pass finds, number for number. Whatever keeps a
process from its share (it cannot be started, is killed, meets an entry that cannot be read), this
one then reads the share itself, and meets what there is to meet.
"""

from __future__ import annotations

import os
import sys
from marshal import dumps, loads
from mmap import mmap
from select import POLLIN, poll
from signal import SIGKILL
from struct import Struct

from fetchc.ceilings import watch, watched
from fetchc.debuginfo.index.found import Scan
from fetchc.debuginfo.index.scan import read_units, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.index.found import Found

__all__ = ["spread"]

_SHARE = 16 << 20  # bytes of units that are worth a process: half a second
_MOST = 8  # processes: what they found is put together by one
_ROOM = 1 << 28  # bytes of memory that each may need; half of it is usual
_NUMBER = Struct("=Q")
_PIECE = 1 << 20  # bytes taken from a process at a time
_TICK = 100  # milliseconds until progress is told again


def spread(info: DebugInfo, progress: Callable[[int, int], None] | None) -> Scan:
    """What :func:`scan` finds, by as many processes as the machine has processors and room for.

    One where the file is small, or its debug information is in several files.
    """
    total = sum(section.size for section, _ in info.files.sections())
    count = min(_allowed(), total // _SHARE)
    if count < 2 or info.files.in_parts:
        return scan(info, progress)
    for name in (".debug_info", ".debug_types", ".debug_str"):
        section = info.elf.open_section(name)
        if section is not None:
            section.upto()  # inflated once for all
    tell = progress or (lambda done, total: None)
    found, readers = Scan(), list[_Reader]()
    read = mmap(-1, _NUMBER.size * count)  # bytes of units that each has read; all can write to it
    try:
        for number, units in enumerate(_shares(info, total, count)):
            readers.append(_Reader(units, read, number, readers))
        for reader in readers:
            theirs = reader.found(lambda: tell(_sum(read), total))
            if theirs is None:
                read_units(reader.units, found, lambda done: None)
            else:
                found.add(theirs)
    finally:
        for reader in readers:
            reader.end()
    tell(total, total)
    return found


def _allowed() -> int:
    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:
        return 1  # what another thread holds would stay held in a copy of this process
    return min(_MOST, len(os.sched_getaffinity(0)), _free_memory() // _ROOM)


def _free_memory() -> int:
    # Bytes that processes can have without others being put out; 0 where nothing says it.
    # Source: proc_meminfo(5), MemAvailable.
    try:
        with open("/proc/meminfo", "rb") as file:
            fields = dict([line.split(b":") for line in file])
    except OSError:
        return 0
    return 1024 * int(fields.get(b"MemAvailable", b"0 kB").split()[0])


def _shares(info: DebugInfo, total: int, count: int) -> list[list[Unit]]:
    # The units in the file's order, of about equal size.
    shares: list[list[Unit]] = [[] for _ in range(count)]
    for unit in info.units():
        shares[unit.offset * count // total].append(unit)
    return shares


def _sum(read: mmap) -> int:
    return sum(number for (number,) in _NUMBER.iter_unpack(read))


class _Reader:
    """A process that reads ``units``, and says in ``read`` how many bytes of them it has read."""

    __slots__ = ("_pid", "_pipe", "units")

    def __init__(
        self, units: list[Unit], read: mmap, number: int, others: Sequence[_Reader]
    ) -> None:
        self.units = units
        self._pid = 0
        self._pipe, out = os.pipe()
        parent = os.getpid()
        try:
            self._pid = os.fork()
            if not self._pid:
                self._become(out, read, number, parent, others)
        except OSError:
            pass  # no process, and nothing comes out of the pipe
        finally:
            os.close(out)

    def _become(
        self, out: int, read: mmap, number: int, parent: int, others: Sequence[_Reader]
    ) -> NoReturn:
        # In the child, which must never come back from here.
        try:
            for each in (self, *others):
                os.close(each._pipe)

            def tell(done: int) -> None:
                _NUMBER.pack_into(read, _NUMBER.size * number, done - self.units[0].offset)
                if os.getppid() != parent:
                    os._exit(1)  # nobody waits for it any more

            if watched():  # timers are not inherited
                watch("", len(read) // _NUMBER.size, held=True)
            found = Scan()
            read_units(self.units, found, tell)
            data = dumps(found.found())
            with os.fdopen(out, "wb") as pipe:
                pipe.write(_NUMBER.pack(len(data)))
                pipe.write(data)
        finally:
            os._exit(0)

    def found(self, tell: Callable[[], None]) -> Found | None:
        """What the process found; None where something kept it from that.

        ``tell`` is called again and again meanwhile.
        """
        waiting = poll()
        waiting.register(self._pipe, POLLIN)
        parts = []
        while True:
            if waiting.poll(_TICK):
                part = os.read(self._pipe, _PIECE)
                if not part:
                    break
                parts.append(part)
            tell()
        data = memoryview(b"".join(parts))
        if len(data) < _NUMBER.size or _NUMBER.unpack_from(data)[0] != len(data) - _NUMBER.size:
            return None
        found: Found = loads(data[_NUMBER.size :])
        return found

    def end(self) -> None:
        """Take the process away, whatever it does."""
        os.close(self._pipe)
        if self._pid:
            os.kill(self._pid, SIGKILL)
            os.waitpid(self._pid, 0)
