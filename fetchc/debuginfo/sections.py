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

    Buffer = bytes | memoryview

__all__ = ["Section"]


class Section:
    """Content of a section; ``size`` is of the decompressed bytes."""

    __slots__ = ("little", "name", "path", "size")

    path: str
    name: str
    size: int
    little: bool

    def upto(self, limit: int | None = None) -> Buffer:
        """At least the first ``limit`` bytes (all if None), or fewer where the section ends."""
        raise NotImplementedError

    def bytes_between(self, start: int, end: int) -> bytes:
        """A copy of [start, end); FC0904 where that is outside the section."""
        raise NotImplementedError

    def find_all(self, needle: bytes) -> Iterator[int]:
        """Offsets of every occurrence of ``needle``, overlapping ones too."""
        raise NotImplementedError

    def cstring(self, offset: int) -> bytes:
        """The NUL-terminated string at ``offset``, without its NUL."""
        raise NotImplementedError

    def cursor(self, offset: int, end: int | None = None) -> Cursor:
        """A cursor at ``offset`` that inflates as it reads."""
        raise NotImplementedError

    def error(self, what: str, offset: int | None = None) -> DebugInfoError:
        """A located FC0904 for ``raise``."""
        return DebugInfoError("FC0904", self.path, what, self.name, offset)
