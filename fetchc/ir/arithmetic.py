"""The operators of expressions on machine numbers, as C, Go, Rust and C# define them.

An engine that computes values (the reader of events, a program in the kernel) follows
:func:`evaluate`. A result of None is a fault: the language has no value there, or the program
would be ended by it.

Sources: C17 6.3.1, 6.5; Go specification, "Arithmetic operators", "Conversions"; The Rust
Reference, "Operator expressions"; ECMA-334, "Arithmetic operators", "Shift operators".
"""

from __future__ import annotations

import math
import struct

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DOUBLE",
    "LAZY",
    "RULES",
    "TRUTH",
    "Calculation",
    "Fetched",
    "Number",
    "Rules",
    "converted",
    "evaluate",
]


class Number(Record):
    """A machine number: ``bits`` wide, two's complement where it is ``signed``, or IEEE 754.

    One bit is a truth value.
    """

    bits: int
    signed: bool
    floating: bool = False

    def holds(self, value: int) -> bool:
        """Whether the integer is one of these numbers."""
        if self.floating:
            return True
        low = -(1 << self.bits - 1) if self.signed else 0
        return low <= value < low + (1 << self.bits)


TRUTH = Number(1, False)
DOUBLE = Number(64, True, True)

LAZY = frozenset(("&&", "||", "?:", "[]"))
"""Operators that do not evaluate all operands: the engine does that. A fault of one that is not
evaluated is none."""


class Calculation(Record):
    """What an operator gives for its operands, for a program that computes it.

    An operand is another calculation, a :class:`Fetched` value or a constant, each with the number
    that it is. ``number``, ``rules`` and the operators are those of :func:`evaluate` and
    :data:`LAZY`; ``[]`` has the index, the first of ``count`` adjacent elements, and no others.
    ``result`` is the number that it gives.
    """

    operator: str
    operands: tuple[tuple[Calculation | Fetched | float, Number], ...]
    number: Number
    rules: str
    result: Number
    count: int = 0


class Fetched(Record):
    """The value of the fetch with that position among those of the calculation."""

    position: int


class Rules(Record):
    """Where languages differ.

    ``shift`` by as many bits as the number has, or more: ``fault``, ``masked`` (the low bits of the
    count count), ``empties`` (all bits are shifted out). ``overflow`` of signed and unsigned sums:
    ``wraps`` or ``fault``. ``least_by_minus_one`` is the same for the quotient of the least number
    and -1. ``to_integer``: a floating-point number that the integer type does not hold is a
    ``fault``, or ``saturates``. ``extremes``: ``min`` and ``max`` are ``ordered`` (NaN comes out,
    and -0.0 is less than 0.0), or the first operand unless the second one is less or greater.
    """

    shift: str
    overflow: str
    least_by_minus_one: str
    to_integer: str
    extremes: str = "compared"


RULES = {
    "c": Rules("fault", "wraps", "fault", "fault"),
    "go": Rules("empties", "wraps", "wraps", "fault", "ordered"),
    "rust": Rules("fault", "fault", "fault", "saturates"),
    "dotnet": Rules("masked", "wraps", "fault", "fault"),
}
"""By :attr:`fetchc.lang.base.Language.arithmetic`. C's signed overflow has no defined value; it
wraps, as the machine's instructions do."""


def converted(value: float, number: Number, rules: Rules) -> float | None:
    """``value``, an int or a float, as ``number``; None where the language has no value."""
    if number.floating:
        return _rounded(value, number.bits)
    if number.bits == 1:
        return int(value != 0)
    if isinstance(value, float):
        if not math.isfinite(value) or not number.holds(int(value)):
            return _saturated(value, number) if rules.to_integer == "saturates" else None
        value = int(value)
    return _wrapped(value, number)


def _saturated(value: float, number: Number) -> int:
    low = -(1 << number.bits - 1) if number.signed else 0
    if value != value:
        return 0
    return low if value < 0 else low + (1 << number.bits) - 1


def _wrapped(value: int, number: Number) -> int:
    value &= (1 << number.bits) - 1
    return value - (1 << number.bits) if number.signed and value >> number.bits - 1 else value


def _rounded(value: float, bits: int) -> float:
    if bits == 32:
        try:
            rounded: float = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
        return rounded
    return float(value)


def evaluate(
    operator: str, number: Number, values: Sequence[float], rules: Rules
) -> float | bool | None:
    """What ``operator`` gives for ``values``; both are taken as ``number`` first.

    The operators are ``+ - * / % & | ^ &^``, ``<< >>`` (of which the second operand is as it is),
    ``== != < <= > >=``, ``min max``, and with one operand ``-``, ``~``, ``!`` and ``convert``. The
    result is of type ``number``, that of a comparison and of ``!`` a bool.
    """
    if operator in ("<<", ">>"):
        first = converted(values[0], number, rules)
        assert isinstance(first, int)
        return _shifted(operator, first, int(values[1]), number, rules)
    given = [converted(one, number, rules) for one in values]
    if any(one is None for one in given):
        return None
    operands = [one for one in given if one is not None]
    if len(operands) == 1:
        return _of_one(operator, operands[0], number, rules)
    left, right = operands
    match operator:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "min" | "max":
            return _extreme(operator, left, right, number.floating and rules.extremes == "ordered")
        case _ if number.floating:
            return _of_floats(operator, left, right, number)
        case _:
            return _of_integers(operator, int(left), int(right), number, rules)


def _of_one(operator: str, operand: float, number: Number, rules: Rules) -> float | bool | None:
    match operator:
        case "!":
            return operand == 0
        case "~":
            return _wrapped(~int(operand), number)
        case "-" if number.floating:
            return -operand
        case "-":
            return _sum(-int(operand), number, rules)
        case _:
            return operand


def _extreme(operator: str, left: float, right: float, ordered: bool) -> float:
    if ordered and (left != left or right != right):
        return math.nan
    if ordered and left == right == 0:
        signs = [math.copysign(1, one) for one in (left, right)]
        return math.copysign(0, min(signs) if operator == "min" else max(signs))
    better = right < left if operator == "min" else right > left
    return right if better else left


def _of_floats(operator: str, left: float, right: float, number: Number) -> float:
    # The sum, product and quotient of two numbers of 32 bits are right when they are rounded
    # from 64 bits: these have more than twice the digits, and two.
    match operator:
        case "+":
            result = left + right
        case "-":
            result = left - right
        case "*":
            result = left * right
        case _ if right == 0:
            if left == 0 or left != left:
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1, right)
        case _:
            result = left / right
    return _rounded(result, number.bits)


def _of_integers(operator: str, left: int, right: int, number: Number, rules: Rules) -> int | None:
    match operator:
        case "+":
            return _sum(left + right, number, rules)
        case "-":
            return _sum(left - right, number, rules)
        case "*":
            return _sum(left * right, number, rules)
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right
        case "&^":
            return left & ~right
        case _ if right == 0:
            return None
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    if not number.holds(quotient) and rules.least_by_minus_one == "fault":
        return None
    return _wrapped(quotient if operator == "/" else left - quotient * right, number)


def _sum(value: int, number: Number, rules: Rules) -> int | None:
    if rules.overflow == "fault" and not number.holds(value):
        return None
    return _wrapped(value, number)


def _shifted(operator: str, value: int, count: int, number: Number, rules: Rules) -> int | None:
    if rules.shift == "masked":
        count &= number.bits - 1
    if count < 0:
        return None
    if count >= number.bits:
        if rules.shift == "fault":
            return None
        return 0 if operator == "<<" or value >= 0 else -1
    return _wrapped(value << count if operator == "<<" else value >> count, number)
