"""One section of a file, inflated as far as it is read.

Inflating is 60 to 90 % of a cold query on a compressed file, and most questions end
inside one unit, so a section gives its first bytes without inflating the rest.
"""

from __future__ import annotations

import mmap
from mmap import MADV_DONTNEED, PAGESIZE

from fetchc.debuginfo.dwarf.entries.cursor import Cursor
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.elf.inflate import Inflater

    Buffer = bytes | memoryview

__all__ = ["Section"]

_STRING_GUESS = 256  # bytes looked at first for a string's end


class Section:
    """Content of a section; ``size`` is of the decompressed bytes.

    A plain section is a window on the mapped file and copies only what is asked for. A
    compressed one has an ``inflater``, which keeps what it has inflated so far.
    """

    __slots__ = ("_available", "_base", "_inflater", "_map", "little", "name", "path", "size")

    def __init__(
        self,
        path: str,
        name: str,
        little: bool,
        mapped: mmap.mmap,
        base: int,
        size: int,
        inflater: Inflater | None = None,
    ) -> None:
        self.path = path
        self.name = name
        self.little = little
        self.size = size
        self._map = mapped
        self._base = base
        self._inflater = inflater
        self._available: Buffer = b""

    def upto(self, limit: int | None = None) -> Buffer:
        """At least the first ``limit`` bytes (all if None), or fewer where the section ends."""
        wanted = self.size if limit is None or limit > self.size else limit
        have = len(self._available)
        if have >= wanted:
            return self._available
        if self._inflater is None:
            self._available = memoryview(self._map)[self._base : self._base + self.size]
        else:
            self._available = self._inflater.upto(wanted)
        return self._available

    def reaching(self, start: int, end: int) -> Buffer:
        """At least the first ``end`` bytes, for one who reads from ``start`` on alone."""
        return self.upto(end) if self._inflater is None else self._inflater.reaching(start, end)

    def bytes_between(self, start: int, end: int) -> bytes:
        """A copy of [start, end); FC0904 where that is outside the section."""
        if not 0 <= start <= end <= self.size:
            raise self.error(f"bytes {start:#x} to {end:#x} are outside the section", start)
        if self._inflater is None:
            return self._map[self._base + start : self._base + end]
        return bytes(self._inflater.part(start, end))

    def find_all(self, needle: bytes) -> Iterator[int]:
        """Offsets of every occurrence of ``needle``, overlapping ones too, in order."""
        if not needle:
            return
        at = -1
        while True:
            at = self._find(needle, at + 1, self.size)
            if at < 0:
                return
            yield at

    def _find(self, needle: bytes, start: int, end: int) -> int:
        if self._inflater is not None:
            return self._inflater.find(needle, start, end)
        at = self._map.find(needle, self._base + start, self._base + end)
        return at - self._base if at >= 0 else at

    def part(self, offset: int, size: int) -> Section:
        """``size`` bytes from ``offset`` as a section of their own; FC0904 where outside."""
        if offset + size > self.size:
            raise self.error(f"a part of {size} bytes runs past the end", offset)
        inner = None if self._inflater is None else _Part(self._inflater, offset)
        start = self._base + offset
        return Section(self.path, self.name, self.little, self._map, start, size, inner)

    def cstring(self, offset: int) -> bytes:
        """The NUL-terminated string at ``offset``, without its NUL."""
        if not 0 <= offset < self.size:
            raise self.error("string outside the section", offset)
        # How far to inflate cannot be known; a plain section is searched at once.
        guess = self.size if self._inflater is None else _STRING_GUESS
        stop = offset
        while True:
            start, stop = stop, min(offset + guess, self.size)
            end = self._find(b"\0", start, stop)
            if end >= 0:
                return self.bytes_between(offset, end)
            if stop == self.size:
                raise self.error("string without an end", offset)
            guess *= 4

    def release(self) -> None:
        """Give back the memory of a plain section's pages; they are read again when needed."""
        if self._inflater is None:
            start = self._base & -PAGESIZE
            self._map.madvise(MADV_DONTNEED, start, self._base + self.size - start)

    def cursor(self, offset: int, end: int | None = None) -> Cursor:
        """A cursor at ``offset`` that inflates as it reads, up to ``end`` or the section's end."""
        stop = self.size if end is None else min(end, self.size)
        return Cursor(self.path, self.name, self._available, offset, stop, self.little, self)

    def error(self, what: str, offset: int | None = None) -> DebugInfoError:
        """A located FC0904 for ``raise``."""
        return DebugInfoError("FC0904", self.path, what, self.name, offset)


class _Part:
    """An inflater of what another one gives from ``offset`` on."""

    __slots__ = ("_offset", "_whole")

    def __init__(self, whole: Inflater, offset: int) -> None:
        self._whole = whole
        self._offset = offset

    def upto(self, size: int) -> memoryview:
        """At least the first ``size`` bytes."""
        return self._whole.upto(self._offset + size)[self._offset :]

    def part(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end``."""
        return self._whole.part(self._offset + start, self._offset + end)

    def reaching(self, start: int, end: int) -> memoryview:
        """At least the first ``end`` bytes, for one who reads from ``start`` on alone."""
        return self._whole.reaching(self._offset + start, self._offset + end)[self._offset :]

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Where ``needle`` is between ``start`` and ``end``; -1 if nowhere."""
        found = self._whole.find(needle, self._offset + start, self._offset + end)
        return found - self._offset if found >= 0 else found
