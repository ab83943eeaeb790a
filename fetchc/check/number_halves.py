"""Numbers that are two: complex ones, and integers and floating-point numbers wider than a word.

No fetch-arg holds one, so they are taken apart like structures: `real` and `imag` as gdb and
GNU C (`__real__`) call them, `low` and `high` for the words of an `__int128`. The words of a
`long double` have no names in the language.
"""

from __future__ import annotations

from fetchc.program.types import ComplexType, FloatType, IntType, Member, StructType
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import SiteTypes
    from fetchc.program.types import Type

__all__ = ["BINARY128", "WIDE_INTEGER", "X87_EXTENDED", "halves"]

WIDE_INTEGER = "wide integer"
"""How a reader puts the two words together: :mod:`fetchc.tracer.display_values`."""

X87_EXTENDED = "x87 extended"
"""A `long double` of x86: 64 bits of mantissa, then sign and exponent."""

BINARY128 = "binary128"
"""A `__float128`: IEEE 754's format of that name."""

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
        case FloatType(name=name, size=16 as size) if form := _wide_float(types, name):
            low = types.program.intern(IntType("uint64_t", _WORD, False))
            upper = _WORD if form == BINARY128 else ByteSize(2)
            high = types.program.intern(IntType(f"uint{8 * upper}_t", upper, False))
            words = (Member("low", low, ByteOffset(0)), Member("high", high, ByteOffset(8)))
            return StructType(name, "float", size, words, notation=form)
        case _:
            return None


def _wide_float(types: SiteTypes, name: str) -> str:
    # The format of a floating-point number of 16 bytes; empty where targets/abi does not name it.
    from fetchc.target.machines import tables_under

    for raw in tables_under("abi").values():
        named = raw.get("types", {})
        if raw.get("architecture") == types.program.architecture and "x87_names" in named:
            if name in named["x87_names"]:
                return X87_EXTENDED
            if name in named["quad_names"]:
                return BINARY128
    return ""
