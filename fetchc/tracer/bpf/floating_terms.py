"""Comparisons of floating-point numbers, which eBPF does not have, as terms of their bits.

IEEE 754 has a sign, and magnitudes in the order of their bits: with the sign applied they are
integers in the same order. A number that is none (NaN) has a magnitude above that of infinity.
"""

from __future__ import annotations

import math
import operator as operators
import struct

from fetchc.ir.arithmetic import Number
from fetchc.ir.term_operators import Numeral, both, calculate, either, negated, ordered
from fetchc.tracer.number_values import shortest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.fetch import Term

__all__ = ["FLOATS", "MIRRORED", "compared_floats", "compared_with", "nearest"]

FLOATS = {32: struct.Struct("<f"), 64: struct.Struct("<d")}
"""By their bits, how the numbers are stored."""

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison of the same operands in the other order."""

_WORD = Number(64, True)
_OPERATORS = {
    "==": operators.eq, "!=": operators.ne, "<": operators.lt, "<=": operators.le,
    ">": operators.gt, ">=": operators.ge,
}  # fmt: skip


def compared_floats(operator: str, first: Numeral, second: Numeral) -> Term:
    """1 where two numbers of one width compare so, else 0."""
    same = ordered(operator, _ordinal(first), _ordinal(second), _WORD)
    is_none = either(_is_none(first), _is_none(second))
    return either(same, is_none) if operator == "!=" else both(negated(is_none), same)


def compared_with(value: Numeral, operator: str, constant: float, shown: bool) -> Term:
    """1 where the number compares so with a constant, else 0; ``shown``: as it is shown."""
    # The constant is next to one of the numbers; all others are on the same side of both.
    bits = value.number.bits
    next_to = nearest(constant, bits)
    number = shortest(next_to) if shown and bits == 32 and math.isfinite(next_to) else next_to
    passes = _OPERATORS[operator](number, constant)
    if operator in ("==", "!=") and number != constant:
        return either(calculate("and", value.term, 0), int(passes))  # where it could be read
    if operator not in ("==", "!="):
        operator = operator[0] + "=" * passes
    ordinal = _ordinal(Numeral(_bits_of(next_to, bits), value.number))
    same = ordered(operator, _ordinal(value), ordinal, _WORD)
    return same if operator in ("==", "!=") else both(negated(_is_none(value)), same)


def nearest(constant: float, bits: int) -> float:
    """The number of so many bits that is next to the constant."""
    try:
        return float(FLOATS[bits].unpack(FLOATS[bits].pack(constant))[0])
    except OverflowError:
        return math.inf if constant > 0 else -math.inf


def _bits_of(number: float, bits: int) -> int:
    return int.from_bytes(FLOATS[bits].pack(number), "little")


def _ordinal(value: Numeral) -> Term:
    # Both zeros have 0.
    negative = calculate("sub", 0, calculate("rsh", value.term, value.number.bits - 1))
    return calculate("sub", calculate("xor", _magnitude(value), negative), negative)


def _is_none(value: Numeral) -> Term:
    return calculate("lt", _bits_of(math.inf, value.number.bits), _magnitude(value))


def _magnitude(value: Numeral) -> Term:
    return calculate("and", value.term, (1 << value.number.bits - 1) - 1)
