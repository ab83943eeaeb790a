"""Numbers: as C, Go and C# write them, and constant arithmetic on them."""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.syntax.limits import DEPTH, shown, too_deep
from fetchc.syntax.tree import Binary, Expression, Integer, Negate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.source import Span

__all__ = ["apply", "constant", "number"]

_WORD_BITS = 64  # of the widest register that a fetch-arg knows

# Suffixes say a type, which a number here does not have.
_FORM = r"(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>[0-9]+))"
_SUFFIX = r"(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])"
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}


def number(text: str, span: Span) -> int:
    """The value of a number as written; raises CompileError FC0101."""
    if len(text) < 16 and text.isascii() and text.isdecimal() and (text[0] != "0" or text == "0"):
        return int(text)
    import re

    found = re.fullmatch(_FORM + _SUFFIX, text)
    if found is None or (found.lastgroup == "d" and len(found["d"]) > 1 and text[0] == "0"):
        raise reject(
            "FC0101",
            f"`{shown(text)}` is not a number",
            span,
            "not a number",
            help="write it as `10`, `0x1f`, `0b101` or `017` (octal)",
        )
    form = found.lastgroup or "d"
    value = int(found[form], _BASES[form])
    if value >= 1 << _WORD_BITS:
        raise reject("FC0101", f"`{shown(text)}` needs more than 64 bits", span, "too big")
    return value


def constant(expression: Expression, depth: int = 0) -> int | None:
    """The value of an expression of numbers alone, None for any other or a division by zero.

    Raises CompileError FC0102 where it is too deep to look. Division truncates towards
    zero, as in every language fetchc reads.
    """
    if depth > DEPTH:
        raise too_deep(expression.span)
    match expression:
        case Integer(value=value):
            return value
        case Negate(operand=operand):
            inner = constant(operand, depth + 1)
            return None if inner is None else -inner
        case Binary(operator=operator, left=left, right=right):
            a, b = constant(left, depth + 1), constant(right, depth + 1)
            if a is None or b is None:
                return None
            return apply(operator, a, b)
        case _:
            return None


def apply(operator: str, a: int, b: int) -> int | None:
    """Arithmetic of two constants; None of a division by zero."""
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
