"""The parents of entries in a big unit, cached: marks at even distances, with what is around each.

A walk from the last mark before an entry finds in which class and namespace it is. In a unit of
10 MB (C++ with boost) that takes 20 ms without a cache; with marks 1 kB apart it takes none. The
run that walks far in a unit for the second time makes them, in one pass over it.

A cached file is a header and columns of numbers in this machine's byte order: where each mark is
and which entry is around it; of these entries where each starts and which one is around it; the
addresses at which functions start, in order, and where their entries are.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

from fetchc.debuginfo.byte_reader import read_uleb
from fetchc.debuginfo.cache import CachedFile
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.address_ranges import functions
from fetchc.debuginfo.dwarf.dies import Marks
from fetchc.debuginfo.dwarf.forms import DAMAGED
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.dies import Around
    from fetchc.debuginfo.dwarf.units import Unit

    Ranges = tuple[list[tuple[Address, Address, DieOffset]], DieOffset]

__all__ = ["CachedMarks", "encoded", "marks"]

_HEADER = Struct("=4I")  # functions, marks, entries around them, 0
_DISTANCE = 1024  # bytes between marks
_FAR = 20_000  # entries that walks of one run passed: 5 ms
_MOST = 1 << 32  # bytes of a unit whose positions fit the columns
_NONE = 0xFFFFFFFF
_SUFFIX = ".outline"


def marks(unit: Unit) -> Marks:
    """The marks of a unit of the program's own file; cached ones where they are."""
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

    __slots__ = (
        "_addresses",
        "_entries",
        "_functions",
        "_outer",
        "_outline_around",
        "_outline_starts",
    )

    def __init__(self, first: int, data: memoryview) -> None:
        super().__init__(first)
        functions, *counts, _ = _HEADER.unpack_from(data)
        behind = _HEADER.size + 8 * functions
        self._addresses = data[_HEADER.size : behind].cast("Q")
        numbers, columns = data[behind:].cast("I"), []
        for count in (functions, counts[0], counts[0], counts[1], counts[1]):
            columns.append(numbers[:count])
            numbers = numbers[count:]
        self._functions, self._outline_starts, self._outline_around, self._entries, self._outer = (
            columns
        )

    def before(self, position: int) -> tuple[int, Around]:
        """The last marked entry before ``position`` or at it, else the first of all."""
        start = super().before(position)
        at = bisect_right(self._outline_starts, position) - 1
        if at < 0 or self._outline_starts[at] <= start[0]:
            return start
        return self._outline_starts[at], self._chain(self._outline_around[at])

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
        return None  # the question has its answer; a reader of the damaged entry gets the error


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
