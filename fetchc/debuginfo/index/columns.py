"""Columns of numbers, and texts in order: as bytes, and read where they are mapped.

Numbers have this machine's byte order; what follows a column starts at a multiple of eight.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal, Protocol

    Code = Literal["Q", "I", "i", "H", "B"]

    class Source(Protocol):
        """Bytes that are read where they are needed."""

        def part(self, start: int, end: int) -> memoryview:
            """The bytes from ``start`` to ``end``."""


__all__ = ["Column", "InMemory", "Texts", "column", "texts"]


class InMemory:
    """A source that is kept nowhere."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def part(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end``."""
        return self._data[start:end]


class Column:
    """``count`` numbers of one size from ``at`` on; ``end`` is where the next thing starts."""

    __slots__ = ("_at", "_code", "_source", "_width", "count", "end")

    def __init__(self, source: Source, at: int, code: Code, count: int) -> None:
        self._source = source
        self._at = at
        self._code: Code = code
        self._width = array(code).itemsize
        self.count = count
        self.end: int = at + _padded(self._width * count)

    def between(self, first: int, end: int) -> memoryview[int]:
        """The numbers from ``first`` to ``end``."""
        start = self._at
        return self._source.part(start + self._width * first, start + self._width * end).cast(
            self._code
        )

    def all(self) -> memoryview[int]:
        """All of them."""
        return self.between(0, self.count)


class Texts:
    """``count`` texts one behind the other, in front of them where each starts."""

    __slots__ = ("_at", "_source", "_starts", "count", "end")

    def __init__(self, source: Source, at: int, count: int) -> None:
        self._source = source
        self._starts = Column(source, at, "I", count + 1)
        self._at: int = self._starts.end
        self.count = count
        self.end: int = self._at + _padded(self._starts.between(count, count + 1)[0])

    def text(self, number: int) -> bytes:
        """One of them."""
        start, end = self._starts.between(number, number + 2)
        return bytes(self._source.part(self._at + start, self._at + end))

    def all(self) -> list[bytes]:
        """All of them."""
        starts = self._starts.all().tolist()
        pool = bytes(self._source.part(self._at, self._at + starts[-1]))
        return [pool[start:end] for start, end in pairwise(starts)]

    def find(self, text: bytes) -> int:
        """The number of ``text``, -1 where it is missing, of texts that are sorted."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.text(middle) < text:
                low = middle + 1
            else:
                high = middle
        return low if low < self.count and self.text(low) == text else -1


def column(code: Code, numbers: Iterable[int]) -> bytes:
    """The bytes of a :class:`Column`."""
    raw = array(code, numbers).tobytes()
    return raw.ljust(_padded(len(raw)), b"\0")


def texts(listed: Sequence[bytes]) -> bytes:
    """The bytes of :class:`Texts`."""
    pool = b"".join(listed)
    return column("I", accumulate(map(len, listed), initial=0)) + pool.ljust(
        _padded(len(pool)), b"\0"
    )


def _padded(size: int) -> int:
    return (size + 7) & -8
