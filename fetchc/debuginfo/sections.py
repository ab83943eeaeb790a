"""One section of a file, inflated as far as it is read.

Inflating is 60 to 90 % of a cold query on a compressed file, and most questions end
inside one unit, so a section gives its first bytes without inflating the rest.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.cursor import Cursor
from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

    from fetchc.debuginfo.inflate import Inflater

    Buffer = bytes | bytearray | memoryview

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
        mapped: mmap,
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

    def bytes_between(self, start: int, end: int) -> bytes:
        """A copy of [start, end); FC0904 where that is outside the section."""
        if not 0 <= start <= end <= self.size:
            raise self.error(f"bytes {start:#x} to {end:#x} are outside the section", start)
        if self._inflater is None:
            return self._map[self._base + start : self._base + end]
        with memoryview(self.upto(end)) as view:  # released before the buffer can grow
            return bytes(view[start:end])

    def find_all(self, needle: bytes) -> Iterator[int]:
        """Offsets of every occurrence of ``needle``, overlapping ones too, in order."""
        if not needle:
            return
        data: mmap | bytes | bytearray
        if self._inflater is None:
            data, base = self._map, self._base
        else:
            data, base = self._inflater.upto(self.size), 0
        end = base + self.size
        at = data.find(needle, base, end)
        while at >= 0:
            yield at - base
            at = data.find(needle, at + 1, end)

    def cstring(self, offset: int) -> bytes:
        """The NUL-terminated string at ``offset``, without its NUL."""
        if not 0 <= offset < self.size:
            raise self.error("string outside the section", offset)
        if self._inflater is None:
            at = self._base + offset
            end = self._map.find(b"\0", at, self._base + self.size)
            if end >= 0:
                return self._map[at:end]
            raise self.error("string without an end", offset)
        guess = _STRING_GUESS
        while True:
            data = self._inflater.upto(min(offset + guess, self.size))
            end = data.find(b"\0", offset)
            if end >= 0:
                return bytes(data[offset:end])
            if len(data) >= self.size:
                raise self.error("string without an end", offset)
            guess *= 4

    def cursor(self, offset: int, end: int | None = None) -> Cursor:
        """A cursor at ``offset`` that inflates as it reads, up to ``end`` or the section's end."""
        stop = self.size if end is None else min(end, self.size)
        return Cursor(self.path, self.name, self.upto(0), offset, stop, self.little, self)

    def error(self, what: str, offset: int | None = None) -> DebugInfoError:
        """A located FC0904 for ``raise``."""
        return DebugInfoError("FC0904", self.path, what, self.name, offset)
