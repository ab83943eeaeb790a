"""The index as bytes: sorted names, the rows of each, and scopes; searched where it is mapped.

Numbers have this machine's byte order. Behind the header come: DieOffsets of the rows; where each
name starts among the texts, and its first row; the scope and tag of each row; the scope around
each scope, and where its name starts; the texts, names of scopes last.
"""

from __future__ import annotations

from array import array
from struct import Struct

from fetchc.debuginfo.dwarf.entries.constants import DW_TAG_member, DW_TAG_variable
from fetchc.debuginfo.dwarf.names.search import KEYWORDS
from fetchc.units import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal, Protocol

    from fetchc.debuginfo.index.reading import Name
    from fetchc.debuginfo.index.scan import Scan

    Code = Literal["Q", "I", "i", "H"]

    class Source(Protocol):
        """Bytes that are read where they are needed."""

        def part(self, start: int, end: int) -> memoryview:
            """The bytes from ``start`` to ``end``."""


__all__ = ["VARIABLES", "InMemory", "TypeNames", "encoded"]

# A static member of a class is a DW_TAG_member up to DWARF 4.
VARIABLES = frozenset({DW_TAG_variable, DW_TAG_member})
_HEADER = Struct("=5Q")  # names, rows, scopes, bytes of texts, whether it has all variables
_OF_C = 0x8000  # no tag has this bit: DW_TAG_hi_user is 0xffff, but compilers use no such for types
_SCOPED = "::"
_CODES: tuple[Code, ...] = ("Q", "I", "I", "i", "H", "i", "I")


class InMemory:
    """An index that is kept nowhere."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def part(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end``."""
        return self._data[start:end]


class TypeNames:
    """Types and variables outside functions by name."""

    def __init__(self, source: Source) -> None:
        self._source = source
        names, rows, scopes, texts, whole = _HEADER.unpack(source.part(0, _HEADER.size))
        self._count: int = names
        self.has_variables = bool(whole)
        self._columns: list[tuple[int, Code, int]] = []  # start, type code, bytes of a number
        at = _HEADER.size
        counts = (rows, names + 1, names + 1, rows, rows, scopes, scopes + 1)
        for code, count in zip(_CODES, counts, strict=True):
            width = array(code).itemsize
            self._columns.append((at, code, width))
            at += _padded(width * count)
        self._counts = counts
        self._texts = at
        self._end: int = at + texts

    def _numbers(self, column: int, first: int, count: int) -> memoryview[int]:
        start, code, width = self._columns[column]
        part = self._source.part(start + width * first, start + width * (first + count))
        return part.cast(code)

    def _name(self, at: int) -> bytes:
        start, end = self._numbers(1, at, 2)
        return bytes(self._source.part(self._texts + start, self._texts + end))

    def named(self, name: bytes, tags: frozenset[int]) -> list[DieOffset]:
        """Where definitions of that name without its scopes are, of those tags."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._name(middle) < name:
                low = middle + 1
            else:
                high = middle
        if low == self._count or self._name(low) != name:
            return []
        first, end = self._numbers(2, low, 2)
        found = zip(
            self._numbers(0, first, end - first), self._numbers(4, first, end - first), strict=True
        )
        return [DieOffset(offset) for offset, tag in found if tag & ~_OF_C in tags]

    def names(self) -> Iterator[str]:
        """All names of types with scopes and keywords, each once, as people write them."""
        starts, firsts = (self._numbers(column, 0, self._count + 1) for column in (1, 2))
        scopes, tags = (self._numbers(column, 0, self._counts[0]) for column in (3, 4))
        around = self._scopes()
        texts = bytes(self._source.part(self._texts, self._end))
        for at in range(self._count):
            name = texts[starts[at] : starts[at + 1]].decode("utf-8", "surrogateescape")
            rows = [
                row
                for row in range(firsts[at], firsts[at + 1])
                if tags[row] & ~_OF_C not in VARIABLES
            ]
            yield from {around[scopes[row]] + _keyword(tags[row]) + name: None for row in rows}

    def _scopes(self) -> dict[int, str]:
        # `a::b::` of each scope; those around another come first.
        count = self._counts[5]
        around, starts = self._numbers(5, 0, count), self._numbers(6, 0, count + 1)
        found = {-1: ""}
        for at in range(count):
            text = self._source.part(self._texts + starts[at], self._texts + starts[at + 1])
            name = bytes(text).decode("utf-8", "surrogateescape")
            found[at] = found[around[at]] + name + _SCOPED
        return found


def encoded(found: Scan, string: Callable[[int], bytes]) -> bytes:
    """The index of what a pass found; ``string`` gives that of an offset in .debug_str."""
    texts: dict[Name, bytes] = {}

    def text(name: Name) -> bytes:
        known = texts.get(name)
        if known is None:
            known = texts[name] = name if isinstance(name, bytes) else string(name)
        return known

    rows = sorted([(text(row[0]), *row[1:]) for row in found.rows])
    offsets, scopes, tags = array("Q"), array("i"), array("H")
    starts, firsts, pool = array("I"), array("I"), bytearray()
    last = None
    for row, (name, offset, tag, scope, of_c) in enumerate(rows):
        if name != last:
            starts.append(len(pool))
            firsts.append(row)
            pool += name
            last = name
        offsets.append(offset)
        scopes.append(scope)
        tags.append(tag | _OF_C * of_c)
    names = len(starts)
    starts.append(len(pool))
    firsts.append(len(rows))
    around, scope_starts = array("i"), array("I")
    for outer, scope_name in found.scopes:
        around.append(outer)
        scope_starts.append(len(pool))
        pool += text(scope_name)
    scope_starts.append(len(pool))
    columns = (offsets, starts, firsts, scopes, tags, around, scope_starts)
    data = bytearray(_HEADER.pack(names, len(rows), len(around), len(pool), found.whole))
    for column in columns:
        raw = column.tobytes()
        data += raw.ljust(_padded(len(raw)), b"\0")
    return bytes(data + pool)


def _keyword(tag: int) -> str:
    return f"{KEYWORDS[tag & ~_OF_C]} " if tag & _OF_C and tag & ~_OF_C in KEYWORDS else ""


def _padded(size: int) -> int:
    return (size + 7) & -8
