"""The outline of a big unit: marks at even distances in all of it, kept.

In which class and namespace an entry is tells a walk from the last mark in front of it. In a unit
of 10 MB (C++ with boost) that is 20 ms where nothing is kept, and nothing behind marks that stand
1 kB apart. The run that walks far in a unit for the second time makes them, in one pass over it.

A kept outline is a header, columns of numbers in this machine's byte order, and nothing else: where
each mark is and which entry is around it, and of these entries where each starts and which is
around it; then the addresses at which functions start, in their order, and where their entries are.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

from fetchc.debuginfo.byte_reader import read_uleb
from fetchc.debuginfo.cache import CachedFile
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.die_search import functions
from fetchc.debuginfo.dwarf.dies import Marks
from fetchc.debuginfo.dwarf.forms import DAMAGED
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Around
    from fetchc.debuginfo.dwarf.units import Unit, UnitSection

    Ranges = tuple[list[tuple[Address, Address, DieOffset]], DieOffset]

__all__ = ["CachedMarks", "cached_ranges", "cached_unit_starts", "encoded", "marks"]

_HEADER = Struct("=4I")  # functions, marks, entries around them, 0
_DISTANCE = 1024  # bytes between marks
_FAR = 20_000  # entries that walks of one run passed: 5 ms
_MOST = 1 << 32  # bytes of a unit whose positions fit the columns
_NONE = 0xFFFFFFFF
_SUFFIX = ".outline"


def marks(unit: Unit) -> Marks:
    """The marks of a unit of the program's own file; kept ones where they are."""
    first = unit.die_offset - unit.offset
    cache = unit.info.elf.environment.cache
    size = unit.end - unit.offset
    if cache is None or size >= _MOST:
        return Marks(first)
    image = unit.info.elf.debug_image
    key = f"outline 2 {sys.byteorder} {unit.section.name} {unit.offset} {image.identity()}"
    file = CachedFile(cache, image.build_id(), key, _SUFFIX)
    data = file.upto(file.have) if file.have else None
    if data is not None:
        return CachedMarks(first, data)
    found = Marks(first)
    cache.save_later(lambda: _save(unit, found, file))
    return found


def _save(unit: Unit, found: Marks, file: CachedFile) -> None:
    if found.steps < _FAR:
        return
    if not file.again:
        file.mark()
        return
    data = encoded(unit)
    if data is not None:
        file.write(data)


class CachedMarks(Marks):
    """Marks of walks, and those of an outline."""

    __slots__ = ("_addresses", "_entries", "_functions", "_kept", "_kept_around", "_outer")

    def __init__(self, first: int, data: memoryview) -> None:
        super().__init__(first)
        functions, *counts, _ = _HEADER.unpack_from(data)
        behind = _HEADER.size + 8 * functions
        self._addresses = data[_HEADER.size : behind].cast("Q")
        numbers, columns = data[behind:].cast("I"), []
        for count in (functions, counts[0], counts[0], counts[1], counts[1]):
            columns.append(numbers[:count])
            numbers = numbers[count:]
        self._functions, self._kept, self._kept_around, self._entries, self._outer = columns

    def before(self, position: int) -> tuple[int, Around]:
        """The last known start in front of ``position`` or at it, else the first of all."""
        known = super().before(position)
        at = bisect_right(self._kept, position) - 1
        if at < 0 or self._kept[at] <= known[0]:
            return known
        return self._kept[at], self._chain(self._kept_around[at])

    def function(self, address: int) -> int:
        """Where the subprogram that starts at ``address`` is; -1 where none does."""
        at = bisect_left(self._addresses, address)
        found = at < len(self._addresses) and self._addresses[at] == address
        return self._functions[at] if found else -1

    def _chain(self, entry: int) -> Around:
        around = []
        while entry != _NONE:
            around.append(self._entries[entry])
            entry = self._outer[entry]
        chain: Around = None
        for start in reversed(around):
            chain = start, chain
        return chain


def encoded(unit: Unit) -> bytes | None:
    """The outline of a unit; None of a damaged one.

    That is also one in which DW_AT_sibling is not where a subtree ends: walks that hop over it
    would find something else than this pass.
    """
    try:
        return _encoded(unit)
    except DebugInfoError:
        return None  # what was asked for is answered: whoever reads the damaged entry is told


def _encoded(unit: Unit) -> bytes | None:
    data = unit.data
    decoded = unit.table.decoded
    starts, around = array("I"), array("I")
    entries, outer = array("I"), array("I")
    # Of the entries that are open: start, number in ``entries``, where the subtree shall end.
    opened: list[list[int]] = []
    at = start = unit.die_offset - unit.offset
    wanted = 0  # where the next mark may be
    try:
        while at < len(data):
            start = at
            if start >= wanted:
                starts.append(start)
                around.append(_numbered(opened, entries, outer))
                wanted = start + _DISTANCE
            code = data[at]
            at += 1
            if code == 0:
                if opened and opened.pop()[2] not in (at, 0):
                    return None
                continue
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = decoded.get(code) or dies.declared(unit, code, start)
            if declaration.has_children:
                opened.append([start, _NONE, dies.sibling(unit, declaration, start, at) or 0])
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    if at > len(data) or opened:
        return None
    found = sorted(functions(unit, None).items())
    if found and found[-1][0] >> 64:
        return None  # a range list that leads beyond all addresses
    addresses = array("Q", [address for address, _ in found])
    places = array("I", [place for _, place in found])
    columns = (addresses, places, starts, around, entries, outer)
    header = _HEADER.pack(len(found), len(starts), len(entries), 0)
    return header + b"".join(column.tobytes() for column in columns)


def _numbered(opened: list[list[int]], entries: array[int], outer: array[int]) -> int:
    # The number of the innermost open entry; those around a mark for the first time get theirs.
    last = _NONE
    for entry in opened:
        if entry[1] == _NONE:
            entry[1] = len(entries)
            entries.append(entry[0])
            outer.append(last)
        last = entry[1]
    return last


# ------------------------------------------------------------------------------
# Where the units of a big file start, and the code of each where no .debug_aranges says it, kept.
#
# A header is found by hopping over those before it, and what code a unit has is in its top entry.
# The files have numbers of 64 bits in this machine's byte order: DieOffsets of the headers that
# earlier runs passed, and where the next one would be; start, end and unit of each range of code
# that they read, and the last unit of these.

_FEW = 64  # headers that a run passes in no time
_STARTS_SUFFIX, _RANGES = ".units", ".ranges"


def cached_unit_starts(unit_section: UnitSection) -> tuple[list[int], int]:
    """The headers of a section of the program's own file that are known, and where to go on."""
    elf = unit_section.sections.info.elf
    image, cache = elf.debug_image, elf.environment.cache
    assert cache is not None
    at = f"{unit_section.section.name} {unit_section.base}"
    key = f"units {sys.byteorder} {at} {image.identity()}"
    file = CachedFile(cache, image.build_id(), key, _STARTS_SUFFIX)
    data = file.upto(file.have) if file.have else None
    starts: list[int] = [] if data is None else data.cast("Q").tolist()
    following = starts.pop() if starts else unit_section.base
    known = len(starts)
    cache.save_later(lambda: _save_starts(unit_section, known, file))
    return starts, following


def _save_starts(unit_section: UnitSection, known: int, file: CachedFile) -> None:
    starts, following = unit_section.found()
    if len(starts) < known + _FEW:
        return
    if file.again:
        file.write(array("Q", [*starts, following]).tobytes())
    else:
        file.mark()


def cached_ranges(info: DebugInfo, found: Callable[[], Ranges]) -> Ranges:
    """The code of the units that earlier runs read; ``found`` tells of more when this one ends."""
    image, cache = info.elf.debug_image, info.elf.environment.cache
    assert cache is not None
    key = f"ranges {sys.byteorder} {image.identity()}"
    file = CachedFile(cache, image.build_id(), key, _RANGES)
    data = file.upto(file.have) if file.have else None
    numbers: list[int] = [] if data is None else data.cast("Q").tolist()
    last = DieOffset(numbers.pop() if numbers else -1)
    triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    ranges = [(Address(low), Address(high), DieOffset(unit)) for low, high, unit in triples]
    known = len(ranges)
    cache.save_later(lambda: _save_ranges(found(), known, file))
    return ranges, last


def _save_ranges(found: Ranges, known: int, file: CachedFile) -> None:
    ranges, last = found
    beyond = any(high >> 64 for _, high, _ in ranges)  # of a hostile list
    if len(ranges) < known + _FEW or last < 0 or beyond:
        return
    if file.again:
        file.write(array("Q", [*(each for triple in ranges for each in triple), last]).tobytes())
    else:
        file.mark()
