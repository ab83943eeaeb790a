"""The name index of a file's types, variables and functions: when it is built, where it is cached.

A listing of types reads all units anyway. A single name is searched for in the bytes of a file
first, which takes less time than building an index. The index is built at the second search of a
big file, in the same process or a later one, and at a search for a name that ends many others
(``x``): each of those would be a hit of the search.
"""

from __future__ import annotations

import os
import sys
from _thread import start_new_thread
from itertools import islice
from marshal import dumps, loads
from mmap import mmap
from select import POLLIN, poll
from struct import Struct

from fetchc.ceilings import charge, watch, watched
from fetchc.debuginfo.cache import CachedFile
from fetchc.debuginfo.dwarf.constants import VARIABLES, DW_TAG_subprogram
from fetchc.debuginfo.dwarf.name_index_format import (
    ALL_FUNCTIONS,
    NO_FUNCTIONS,
    IndexTable,
    InMemory,
    Scan,
    encoded,
)
from fetchc.debuginfo.dwarf.name_index_scan import read_units, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn, TypeVar

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.debug_names import StandardNames
    from fetchc.debuginfo.dwarf.gdb_index import GdbNames
    from fetchc.debuginfo.dwarf.name_index_format import Found
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.quantities import DieOffset

    Answer = TypeVar("Answer")

__all__ = ["NameIndex", "spread"]

_BIG = 16 << 20  # bytes of .debug_info: to search so many for a name takes 0.1 s and more
_LEAST_CACHED = 1 << 20  # bytes of .debug_info: to read so many takes 50 ms
_FEW_PLACES = 4  # of a string, for each of which all of .debug_info is searched
_SUFFIX = ".names"
_FUNCTIONS = frozenset({DW_TAG_subprogram})


class NameIndex:
    """The index of a program whose debug information is in one file, built when that saves time."""

    __slots__ = (
        "_asked",
        "_asked_given",
        "_file",
        "_info",
        "_own",
        "_searched",
        "_table",
    )  # fmt: skip

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._table: IndexTable | None = None
        self._file: CachedFile | None = None
        self._searched = False
        self._asked: set[bytes] = set()  # names, until there is an index
        self._own: StandardNames | GdbNames | None = None
        self._asked_given = False

    def named(self, name: str, tags: frozenset[int]) -> list[DieOffset] | None:
        """Definitions of that plain name; None where there is no index.

        Of equal definitions it may have one only, and none within functions.
        """
        key = _key(name)
        if key is None:
            return None
        if self._cached_table() is None:
            given = self._compiler_index()
            if given is not None and name.isascii():  # other letters have cases of their own
                found = given.named(key, tags)
                return [each for each in found if not self._in_function(each)]
            if not self._saves_time(key):
                return None
        return self._asked_for(lambda table: table.named(key, tags))

    def variables(self, name: str) -> list[DieOffset] | None:
        """Variables of that plain name outside functions; None where there is no index.

        A variable that is declared apart from its definition goes by the declaration; of those
        that are nowhere defined the index has the first of each scope.
        """
        key = _key(name)
        if key is None or (self._cached_table() is None and not self._saves_time(key)):
            return None
        found = self._asked_for(lambda table: table.named(key, VARIABLES))
        return found if self._table is not None and self._table.has_variables else None

    def functions(self, name: str) -> list[tuple[DieOffset, int]] | None:
        """Entries of functions of that plain name that are no mere declarations, and their kinds.

        None where there is no index, or others of that name may be missing. Those that stand within
        functions may be: one outside goes before them.
        """
        key = _key(name)
        if key is None or (self._cached_table() is None and not self._saves_time(key)):
            return None
        found = self._asked_for(lambda table: table.functions(key))
        assert self._table is not None
        coverage = self._table.function_coverage
        return found if coverage == ALL_FUNCTIONS or (found and coverage != NO_FUNCTIONS) else None

    def with_code(self, name: str) -> list[DieOffset]:
        """Functions of that plain or linkage name which a compiler's index leads to: all or none.

        gdb's does not lead to all: a linker that makes it has some units' names alone.
        """
        key, given = _key(name), self._compiler_index()
        if key is None or given is None or not name.isascii():
            return []
        from fetchc.debuginfo.dwarf.debug_names import StandardNames

        return given.named(key, _FUNCTIONS) if isinstance(given, StandardNames) else []

    def _asked_for(self, question: Callable[[IndexTable], list[Answer]]) -> list[Answer]:
        try:
            return question(self._cached_table() or self._build())
        except _Damaged:
            return question(self._build())

    def _saves_time(self, name: bytes) -> bool:
        if self._info.files.section.size < _BIG:
            return False
        # One question may ask for its name several times.
        self._asked.add(name)
        return len(self._asked) > 1 or self._seen_before() or self._is_frequent(name)

    def _is_frequent(self, name: bytes) -> bool:
        strings = self._info.elf.open_section(".debug_str")
        places = iter(()) if strings is None else strings.find_all(name + b"\0")
        return next(islice(places, _FEW_PLACES, None), None) is not None

    def _compiler_index(self) -> StandardNames | GdbNames | None:
        # What a compiler, a linker or gdb left in the file.
        if not self._asked_given:
            self._asked_given = True
            if self._info.elf.open_section(".debug_names") is not None:
                from fetchc.debuginfo.dwarf.debug_names import standard_names

                self._own = standard_names(self._info)
            elif self._info.elf.open_section(".gdb_index") is not None:
                from fetchc.debuginfo.dwarf.gdb_index import gdb_names

                self._own = gdb_names(self._info)
        return self._own

    def _in_function(self, offset: DieOffset) -> bool:
        around = self._info.ancestors(self._info.die(offset))
        return any(die.tag == DW_TAG_subprogram for die in around)

    def names(self) -> list[str]:
        """All names of types outside functions."""
        return self._asked_for(lambda table: list(table.names(self._info.elf.debug_path)))

    def _cached_table(self) -> IndexTable | None:
        if self._searched:
            return self._table
        self._searched = True
        cache = self._info.elf.environment.cache
        if cache is not None and self._info.files.section.size >= _LEAST_CACHED:
            image = self._info.elf.debug_image
            key = f"names 4 {sys.byteorder} {image.identity()}"
            self._file = file = CachedFile(cache, image.build_id(), key, _SUFFIX)
            try:
                self._table = IndexTable(_CachedSource(file)) if file.have else None
            except _Damaged:
                return None
        return self._table

    def _seen_before(self) -> bool:
        if self._file is None:
            return False
        if not self._file.again:
            self._file.mark()
        return self._file.again

    def _build(self) -> IndexTable:
        info = self._info
        environment = info.elf.environment
        if environment.processes:
            found = spread(info, environment.progress)
        else:
            from fetchc.debuginfo.dwarf.name_index_scan import scan

            found = scan(info, environment.progress)
        data = encoded(found, _strings(info))
        if self._file is not None:
            self._file.write(data)
        self._table = IndexTable(InMemory(data))
        return self._table


def _key(name: str) -> bytes | None:
    # None of a string that no bytes of a file stand for.
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None


def _strings(info: DebugInfo) -> Callable[[int], bytes]:
    # Of an offset in .debug_str, in a copy of it: 100,000 strings and more are asked for.
    section = info.elf.open_section(".debug_str")
    content = b"" if section is None else section.bytes_between(0, section.size)

    def string(offset: int) -> bytes:
        end = content.find(b"\0", offset)
        if end >= 0:
            return content[offset:end]
        return info.required_section(".debug_str", next(info.units())).cstring(offset)

    return string


class _Damaged(Exception):
    pass


class _CachedSource:
    # What is read of a cached index.
    def __init__(self, file: CachedFile) -> None:
        self._file = file

    def view(self, start: int, end: int) -> memoryview:
        found = self._file.view(start, end)
        if found is None:
            raise _Damaged
        return found


# ------------------------------------------------------------------------------
# The pass over all units, spread over processes.
#
# Each process reads a share of the units, one run of the file, and hands back what it found.
# Put together in the file's order, that is what one pass finds, number for number. Whatever keeps
# a process from its share (it cannot be started, is killed, meets an entry that cannot be read),
# this one then reads the share itself, and meets what there is to meet.

_SHARE = 16 << 20  # bytes of units that justify a process: half a second
_MOST = 8  # processes: what they found is put together by one
_ROOM = 1 << 28  # bytes of memory that each may need; half of it is usual
_NUMBER = Struct("=Q")
_PIECE = 1 << 20  # bytes taken from a process at a time
_TICK = 100  # milliseconds between reports of progress


def spread(info: DebugInfo, progress: Callable[[int, int], None] | None) -> Scan:
    """What :func:`scan` finds, by as many processes as the machine has processors and room for.

    One where the file is small, or its debug information is in several files.
    """
    total = sum(section.size for section, _ in info.files.sections())
    count = min(_allowed(), total // _SHARE)
    if count < 2 or info.files.in_several_files:
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
            reader.end()
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
        return 1  # a lock that another thread has would stay locked in a copy of this process
    return min(_MOST, len(os.sched_getaffinity(0)), _free_memory() // _ROOM)


def _free_memory() -> int:
    # Bytes that processes can have without others being put out; 0 where it is not known.
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
        try:
            self._pid = os.fork()
            if not self._pid:
                self._become(out, read, number, others)
        except OSError:
            pass  # no process, and nothing comes out of the pipe
        finally:
            os.close(out)

    def _become(self, out: int, read: mmap, number: int, others: Sequence[_Reader]) -> NoReturn:
        # In the child, which must never come back from here.
        try:
            for each in (self, *others):
                if each._pipe >= 0:
                    os.close(each._pipe)
            start_new_thread(_end_unread, (out,))

            def tell(done: int) -> None:
                _NUMBER.pack_into(read, _NUMBER.size * number, done - self.units[0].offset)

            if watched():  # timers are not inherited
                watch("", len(read) // _NUMBER.size, incremental=True)
            found = Scan()
            read_units(self.units, found, tell)
            data = dumps(found.found())
            with os.fdopen(out, "wb") as pipe:
                pipe.write(_NUMBER.pack(len(data)))
                pipe.write(data)
        finally:
            os._exit(0)

    def found(self, tell: Callable[[], None]) -> Found | None:
        """What the process found; None where it failed.

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
        """Take the process away, whatever it does; its time is the question's."""
        if self._pipe >= 0:
            os.close(self._pipe)
        pid, self._pipe, self._pid = self._pid, -1, 0
        if pid:
            _, _, used = os.wait4(pid, 0)
            charge(used.ru_utime + used.ru_stime)


def _end_unread(pipe: int) -> None:
    # Ends this process as soon as the reader of the pipe has ended or closed it. No signal
    # is needed for that, which a process without root cannot send (fetchc.privileges).
    unread = poll()
    unread.register(pipe, 0)  # and POLLERR, always. Source: poll(2)
    unread.poll()
    os._exit(1)
