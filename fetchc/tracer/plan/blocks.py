"""Objects that are fetched as their bytes, and the arrays that hold these."""

from __future__ import annotations

from fetchc.ir.fetch import ELEMENTS, Absolute, Array, Deref, Image, Scalar
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.fetch import Value

__all__ = ["Block", "chunks", "moved_by", "place"]


class Block(Record):
    """``size`` bytes of memory, from ``offset`` on ``base``, that ``field`` begins with.

    ``user``: of the program that a probe of the kernel finds running. ``told`` is that of a Guard.
    """

    base: Value
    offset: int
    size: int
    field: str
    user: bool
    told: tuple[tuple[str, int], ...] = ()

    def has(self, offset: int, size: int) -> bool:
        """Whether ``size`` bytes from ``offset`` on are all in it."""
        return self.offset <= offset and offset + size <= self.offset + self.size


def place(value: Deref) -> tuple[Value, int]:
    """The base of a load, and how far behind it the load is."""
    # An address of the file has its constant inside.
    match value.base:
        case Image(offset=start):
            return Image(0), start + value.offset
        case Absolute(address=start):
            return Absolute(0), start + value.offset
        case base:
            return base, value.offset


def moved_by(value: Deref, by: int) -> Deref:
    """The load ``by`` bytes behind ``value``."""
    match value.base:
        case Image(offset=start):
            return Deref(Image(start + by), value.offset)
        case Absolute(address=start):
            return Deref(Absolute(start + by), value.offset)
        case base:
            return Deref(base, value.offset + by, value.user)


def chunks(size: int) -> list[tuple[int, Array]]:
    """The arrays that hold ``size`` bytes: words, then single bytes; each with its first byte."""
    chunks = []
    low = 0
    while size - low >= 8:
        words = min((size - low) // 8, ELEMENTS)
        chunks.append((low, Array(Scalar("x", 64), words)))
        low += 8 * words
    if size > low:
        chunks.append((low, Array(Scalar("x", 8), size - low)))
    return chunks
