"""Numbers of a record as values: integers, floats, enumerators, characters, pointers."""

from __future__ import annotations

import struct
import sys

from fetchc.tracer.display_values import (
    Character,
    Enumerator,
    FloatQuantity,
    Hexadecimal,
    Nanoseconds,
    Quantity,
    SymbolName,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from fetchc.ir.fetch import Decode
    from fetchc.tracer.events import Value

    Meaning = Callable[[int], Value]

__all__ = ["CODES", "float_value", "meaning", "shortest"]

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The letters of :mod:`struct` for a number of so many bytes."""


def meaning(
    decode: Decode, size: int, shift: int = 0, pointer: Meaning = Hexadecimal
) -> tuple[str, Meaning | None]:
    """How to read a number of ``size`` bytes: the letter for :mod:`struct`, and what then.

    None: the number is the value. ``decode.bits`` bits count, from bit ``shift`` on. ``pointer``
    makes the value of a pointer.
    """
    bits = decode.bits or 8 * size
    whole = bits == 8 * size and shift == 0
    if decode.kind == "float":
        return CODES[size], _of_unit(decode.unit, _float(bits)) if decode.unit else _float(bits)
    code = CODES[size]
    first: Callable[[int], int] | None = None
    if whole:
        code = code.lower() if decode.signed else code
    else:
        first = _bits(bits, shift, decode.signed)
    then = _kind(decode, pointer)
    if first is None or then is None:
        return code, then or first
    return code, lambda raw: then(first(raw))


def _of_unit(unit: str, number: Meaning) -> Meaning:
    def measured(raw: int) -> Value:
        value = number(raw)
        if isinstance(value, float):
            return FloatQuantity(value, unit)
        return Quantity(value, unit) if isinstance(value, int) else value

    return measured


def _bits(bits: int, shift: int, signed: bool) -> Callable[[int], int]:
    mask, sign = (1 << bits) - 1, 1 << bits - 1
    if signed:
        return lambda raw: ((raw >> shift & mask) ^ sign) - sign
    return lambda raw: raw >> shift & mask


def _kind(decode: Decode, pointer: Meaning) -> Meaning | None:
    match decode.kind:
        case "integer":
            return None
        case "bool":
            return bool
        case "char":
            return _CHARACTERS.__getitem__ if (decode.bits or 8) <= 8 else _code_point
        case "enum":
            return _enum(decode)
        case "reference":
            return lambda raw: pointer(raw) if raw else None
        case "pointer" | "symbol":
            return pointer
        case "address":
            return Hexadecimal
        case "duration":
            return _of_unit(decode.unit, int) if decode.unit else Nanoseconds
        case "turned":
            size = (decode.bits or 8) // 8
            return lambda raw: int.from_bytes(raw.to_bytes(size, sys.byteorder), "big")
        case other:
            raise AssertionError(f"no number is read as {other!r}")


# A byte that is no character of ASCII becomes a surrogate.
_CHARACTERS = {
    code: Character(bytes([code & 0xFF]).decode("ascii", "surrogateescape"), code)
    for code in range(-128, 256)
}


def _code_point(raw: int) -> Value:
    # 4 bytes can hold what is no character: it stays a number.
    return Character(chr(raw), raw) if raw <= sys.maxunicode else raw


def _enum(decode: Decode) -> Meaning:
    names: dict[int, str] = {}
    for name, value in decode.enumerators:
        names.setdefault(value, name)
    if decode.flags:
        return lambda raw: Enumerator(name=_set_of(names, raw, ", "), value=raw)
    if _are_bits(names):
        return lambda raw: Enumerator(name=_set_of(names, raw, "|"), value=raw)
    otherwise = decode.otherwise or None
    return lambda raw: Enumerator(name=names.get(raw, otherwise), value=raw)


def _are_bits(values: Collection[int]) -> bool:
    # Whether an enumeration of C is of single bits, and of masks of them: 1, 2 and 4 at the least,
    # as 1, 2 and 3 are numbers like others.
    bits = [value for value in values if value > 0 and value & value - 1 == 0]
    mask = sum(bits)
    return len(bits) >= _BITS and all(0 <= value == value & mask for value in values)


def _set_of(names: dict[int, str], raw: int, between: str) -> str | None:
    # As Enum.ToString writes it: the greatest first to be taken out, the least first in the text.
    if raw in names:
        return names[raw]
    found, left = [], raw
    for value in sorted(names, key=lambda one: one & _WIDEST, reverse=True):
        if value and left & value == value:
            found.append(names[value])
            left &= ~value
    return between.join(reversed(found)) if found and not left else None


_WIDEST = (1 << 64) - 1
_BITS = 3


def _float(bits: int) -> Meaning:
    size = bits // 8
    mask = (1 << bits) - 1
    pack = struct.Struct("=" + CODES[size]).pack
    unpack = struct.Struct("=" + {4: "f", 8: "d"}[size]).unpack
    short = size == 4
    return lambda raw: float_value(unpack(pack(raw & mask))[0], short)


def float_value(number: float, short: bool) -> Value:
    """A float as JSON can have it; ``short`` is for those of 32 bits.

    JSON has no number for infinities and for what is none: they are the strings ``Infinity``,
    ``-Infinity`` and ``NaN``, as in the JSON form of Protocol Buffers.
    """
    if number != number:
        return SymbolName("NaN")
    if number in (_INFINITY, -_INFINITY):
        return SymbolName("Infinity" if number > 0 else "-Infinity")
    return shortest(number) if short else number


def shortest(number: float) -> float:
    """The number of the fewest digits that tell a finite one of 32 bits from its neighbours.

    It is 2.1 where all digits would be 2.0999999046325684. Numbers below the normal ones have less
    than six.
    """
    wanted = _FLOAT.pack(number)
    for digits in range(6 if abs(number) >= _SMALLEST_NORMAL else 1, 10):
        shorter = float(f"{number:.{digits}g}")
        if _FLOAT.pack(shorter) == wanted:
            return shorter
    raise AssertionError("nine digits tell every number of 32 bits")


_FLOAT = struct.Struct("=f")
_SMALLEST_NORMAL = 2.0**-126


_INFINITY = float("inf")
