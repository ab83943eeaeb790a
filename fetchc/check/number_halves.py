"""Numbers that are two: complex ones, and integers wider than a word.

No fetch-arg holds one, so they are taken apart like structures: `real` and `imag` as gdb and
GNU C (`__real__`) call them, `low` and `high` for the words of an `__int128`.
"""

from __future__ import annotations

from fetchc.program.types import ComplexType, FloatType, IntType, Member, StructType
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import SiteTypes
    from fetchc.program.types import Type

__all__ = ["WIDE_INTEGER", "halves"]

WIDE_INTEGER = "wide integer"
"""How a reader puts the two words together: :mod:`fetchc.tracer.display_values`."""

_WORD = ByteSize(8)


def halves(types: SiteTypes, resolved: Type) -> StructType | None:
    """The structure that a number of two halves is like; None for other types."""
    match resolved:
        case ComplexType(name=name, size=size):
            each = ByteSize(size // 2)
            half = name.replace("complex ", "")  # Go says complex64, and what it calls a type
            half = f"float{8 * each}" if half == name else half
            inner = types.program.intern(FloatType(half, each))
            parts = (Member("real", inner, ByteOffset(0)), Member("imag", inner, ByteOffset(each)))
            return StructType(name, "complex", size, parts)
        case IntType(name=name, size=size, signed=signed) if size == 2 * _WORD:
            low = types.program.intern(IntType("uint64_t", _WORD, False))
            high = types.program.intern(IntType("int64_t", _WORD, True)) if signed else low
            first, second = (0, 8) if types.program.little_endian else (8, 0)
            words = (
                Member("low", low, ByteOffset(first)),
                Member("high", high, ByteOffset(second)),
            )
            return StructType(name, "integer", size, words, notation=WIDE_INTEGER)
        case _:
            return None
