"""``p + 2``, ``p - 1``, and arithmetic of constants; a fetch-arg can add nothing else."""

from __future__ import annotations

from fetchc.check.conversions import decayed
from fetchc.check.typed import Constant, Shift
from fetchc.diag.diagnostic import reject
from fetchc.program.types import FunctionType, PointerType, VoidType
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.source import Span

__all__ = ["binary", "negate"]


def negate(checker: Checker, operand: Typed, span: Span) -> Typed:
    """``-N`` of a constant."""
    if isinstance(operand, Constant):
        return Constant(-operand.value, checker.word(signed=True), span)
    raise reject(
        "FC0308",
        "a fetch-arg cannot negate what it loads",
        span,
        "only constants can be negated",
        help="fetch the value as it is and negate it where it is read",
    )


def binary(checker: Checker, operator: str, left: Typed, right: Typed, span: Span) -> Typed:
    """Two operands; one of them is a constant, or it is refused."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(_computed(operator, left, right), checker.word(signed=True), span)
    if operator == "+" and isinstance(left, Constant):
        left, right = right, left
    left = decayed(checker, left)
    made = checker.resolved(left.type)
    if operator in "+-" and isinstance(made, PointerType) and isinstance(right, Constant):
        steps = right.value if operator == "+" else -right.value
        return Shift(left, ByteOffset(steps * _stride(checker, left, made)), left.type, span)
    raise reject(
        "FC0308",
        f"a fetch-arg cannot compute `{operator}` of what it loads",
        span,
        "computed at run time",
        notes=("the kernel adds constants to pointers and does no other arithmetic",),
        help="fetch both values and compute where they are read",
    )


def _stride(checker: Checker, pointer: Typed, made: PointerType) -> int:
    target = checker.resolved(made.target)
    if isinstance(target, VoidType | FunctionType):
        return 1  # as GNU C counts
    size = checker.size(made.target)
    if size is None:
        raise reject(
            "FC0311",
            f"`{checker.spell(made.target)}` has no size, a pointer to it cannot be moved",
            pointer.span,
            f"this is `{checker.spell(pointer.type)}`",
            help="cast it to `(char *)` to count in bytes",
        )
    return size


def _computed(operator: str, left: Constant, right: Constant) -> int:
    match operator:
        case "+":
            return left.value + right.value
        case "-":
            return left.value - right.value
        case "*":
            return left.value * right.value
        case _:
            if right.value == 0:
                raise reject("FC0308", "division by zero", right.span, "this is zero")
            quotient = abs(left.value) // abs(right.value)
            return quotient if (left.value < 0) == (right.value < 0) else -quotient
