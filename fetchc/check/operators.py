"""Operators on values: ``a + b``, ``fd & 1``, ``!r.ok``, ``x ? 1 : 0``, ``min(a, b)``.

Constants are computed here, and a pointer plus a constant is a pointer that a fetch can follow.
Everything else is an :class:`~fetchc.check.typed_tree.Operation`, which a reader computes, with the
operand types and the result type of the language.
"""

from __future__ import annotations

from fetchc.check.arithmetic_conversions import (
    ADDRESSES,
    COMPARISONS,
    both,
    check_bit_field,
    open_sign,
    operand_of,
    promoted,
    result_type,
    typed_label,
    unfit,
)
from fetchc.check.conversions import decayed, number_of, wrapped
from fetchc.check.literals import SHIFTS, STRICT, float_literal, is_untyped, number_type, truth_type
from fetchc.check.members import subobject
from fetchc.check.typed_tree import (
    Computed,
    Conditional,
    Constant,
    Dispatched,
    FloatConstant,
    Operation,
    Shift,
)
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.ir.arithmetic import TRUTH, Number
from fetchc.program.types import (
    FunctionType,
    InterfaceType,
    PointerType,
    SliceType,
    VoidType,
)
from fetchc.quantities import ByteOffset
from fetchc.record import assert_never
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Assumption, Typed
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["extreme", "operation", "word"]

_OF_INTEGERS = frozenset(("%", "&", "|", "^", "&^"))
_OF_TRUTH = frozenset(("&", "|", "^"))


def operation(
    checker: Checker,
    node: tree.FloatNumber | tree.Negate | tree.Unary | tree.Binary | tree.Ternary,
) -> Typed:
    """The meaning of ``node``. Raises CompileError FC0308 where the operator does not apply."""
    match node:
        case tree.FloatNumber():
            return float_literal(checker, node)
        case tree.Negate(operand=operand, span=span):
            return _negated(checker, operand, span)
        case tree.Unary(operator=operator, operand=operand, span=span):
            return _of_one(checker, operator, checker.check(operand), span)
        case tree.Binary(operator="&&" | "||" as operator, left=left, right=right, span=span):
            return _truth(checker, operator, (left, right), span)
        case tree.Binary(left=left, right=right):
            return _binary(checker, node, checker.check(left), checker.check(right))
        case tree.Ternary():
            return _ternary(checker, node)
        case _:
            assert_never(node)


def word(checker: Checker, text: str, span: Span) -> Constant:
    """``true``, ``NULL`` and the like, where the program has no such name."""
    if text in ("true", "false"):
        return Constant(int(text == "true"), truth_type(checker), span)
    return Constant(0, checker.pointer_to(checker.program.intern(VoidType())), span)


def _is_computed(node: Typed) -> bool:
    # A reader computes the value: no fetch goes on from it.
    return isinstance(node, Operation | Computed | FloatConstant)


# ------------------------------------------------------------------------------
# The operators.


def _computed(
    checker: Checker, operator: str, operands: tuple[Typed, ...], number: Number, type: TypeId,
    span: Span, assumptions: tuple[tuple[Assumption, ...], ...] = (),
) -> Operation:  # fmt: skip
    rules = checker.site.language.arithmetic
    return Operation(operator, operands, number, rules, type, span, assumptions)


def _negated(checker: Checker, node: tree.Expression, span: Span) -> Typed:
    operand = checker.check(node)
    if isinstance(operand, FloatConstant):
        return FloatConstant(-operand.value, operand.type, span)
    rules = checker.site.language.arithmetic
    if rules == "dotnet" and isinstance(node, tree.Integer) and not node.suffix:
        # ECMA-334, "Integer literals": the least numbers of these types are written so.
        for bits in (32, 64):
            if node.value == 1 << bits - 1:
                return Constant(-node.value, number_type(checker, Number(bits, True)), span)
    return _of_one(checker, "-", operand, span)


def _of_one(checker: Checker, operator: str, operand: Typed, span: Span) -> Typed:
    # `!x` of an integer is its complement in Rust, and no expression of Go.
    at = _first(span)
    operand, number = operand_of(checker, operand, operator, at)
    rules = checker.site.language.arithmetic
    if operator == "!" and rules == "rust" and number.bits > 1:
        operator = "~"
    if operator == "!":
        if rules != "c" and number.bits > 1:
            raise _not_bool(checker, operator, operand, at)
        return _computed(checker, "!", (operand,), number, truth_type(checker), span)
    address = isinstance(checker.resolved(operand.type), ADDRESSES)
    if address or (operator == "~" and number.floating) or (number.bits == 1 and rules != "c"):
        raise unfit(checker, operator, at, operand, "needs numbers")
    wide = number
    if rules not in STRICT:
        check_bit_field(checker, operator, (operand,), at)
        wide = promoted(checker, operand, number)
        open_sign(checker, operator, (operand,), wide, at)
    if rules == "dotnet" and operator == "-" and not wide.signed:
        # ECMA-334, "Unary minus operator": of a `uint` it is a `long`.
        wide = Number(64, True)
        if number.bits == 64:
            raise unfit(checker, operator, at, operand, "not for `ulong`", "cast it: `(long)e`")
    type = result_type(checker, operand, number, wide)
    if isinstance(operand, Constant) and (operator == "-" or not is_untyped(checker, operand)):
        value = -operand.value if operator == "-" else ~operand.value
        return _constant(checker, value, type, wide, span)
    return _computed(checker, operator, (operand,), wide, type, span)


def _constant(checker: Checker, value: int, type: TypeId, number: Number, span: Span) -> Constant:
    """A constant that is computed of others; raises CompileError FC0308 where its type has no room.

    In C it wraps. Untyped ones have the numbers of all types.
    """
    found = Constant(value, type, span)
    untyped = is_untyped(checker, found)
    if number.holds(value) or (untyped and -(1 << 63) <= value < 1 << 64):
        return found
    if checker.site.language.arithmetic == "c":
        return Constant(wrapped(value, checker.resolved(type)), type, span)
    what, help = f"the result, {value}, needs more than 64 bits", None
    if not untyped:
        what = f"the result, {value}, is not in the range of `{checker.spell(type)}`"
        help = "cast an operand to a wider type"
    raise reject("FC0308", what, span, "out of range", help=help)


def _first(span: Span) -> Span:
    return type(span)(span.start, span.start + 1)


def _not_bool(checker: Checker, operator: str, operand: Typed, at: Span) -> CompileError:
    return reject(
        "FC0308",
        f"`{operator}` needs a `bool`, not `{checker.spell(operand.type)}`",
        at,
        "needs a bool",
        secondary=(typed_label(checker, operand),),
        help="compare it: `e != 0`",
    )


def _truth(
    checker: Checker, operator: str, sides: tuple[tree.Expression, tree.Expression], span: Span
) -> Typed:
    operands, given = [], []
    for side in sides:
        operand, before = _assuming(checker, side)
        operand, number = operand_of(checker, operand, operator, side.span)
        if number.bits > 1 and checker.site.language.arithmetic != "c":
            raise _not_bool(checker, operator, operand, side.span)
        operands.append(operand)
        given.append(before)
    type = truth_type(checker)
    return _computed(checker, operator, tuple(operands), TRUTH, type, span, tuple(given))


def _assuming(checker: Checker, node: tree.Expression) -> tuple[Typed, tuple[Assumption, ...]]:
    # The operand, and what has to hold only where it is evaluated.
    mark = len(checker.assumptions)
    typed = checker.check(node)
    given = tuple(checker.assumptions[mark:])
    del checker.assumptions[mark:]
    return typed, given


def _ternary(checker: Checker, node: tree.Ternary) -> Typed:
    condition, first = _assuming(checker, node.condition)
    condition, truth = operand_of(checker, condition, "?:", node.condition.span)
    if truth.bits > 1 and checker.site.language.arithmetic != "c":
        raise _not_bool(checker, "?:", condition, node.condition.span)
    left, second = _assuming(checker, node.if_true)
    right, third = _assuming(checker, node.if_false)
    left, right, number, type = both(checker, node, left, right, "?:")
    bare = checker.bare(left.type)
    if bare == checker.bare(right.type):
        number = number_of(checker, left) or number
        type = left.type
    operands, given = (condition, left, right), (first, second, third)
    return _computed(checker, "?:", operands, number, type, node.span, given)


def extreme(checker: Checker, name: str, operands: Sequence[Typed], node: tree.Call) -> Typed:
    """``min(a, b, ...)`` and ``max``."""
    found, *others = operands
    for other in others:
        left, right, number, type = both(checker, node, found, other, name)
        found = _computed(checker, name, (left, right), number, type, node.span)
    return found


def _binary(checker: Checker, node: tree.Binary, left: Typed, right: Typed) -> Typed:
    operator, span = node.operator, node.span
    if isinstance(left, Constant) and isinstance(right, Constant):
        folded = _folded(checker, node, left, right)
        if folded is not None:
            return folded
    if operator in "+-":
        moved = _moved(checker, node, left, right)
        if moved is not None:
            return moved
    if operator in SHIFTS:
        return _shift(checker, node, left, right)
    if operator in ("==", "!="):
        left, right = _or_nil(checker, left, right), _or_nil(checker, right, left)
    left, right, number, type = both(checker, node, left, right, operator)
    if operator in COMPARISONS:
        return _computed(checker, operator, (left, right), number, truth_type(checker), span)
    wrong = isinstance(checker.resolved(type), ADDRESSES)
    wrong |= number.floating and operator in _OF_INTEGERS
    of_truth = operator in _OF_TRUTH and checker.site.language.arithmetic in ("rust", "dotnet")
    if wrong or (number.bits == 1 and not of_truth):
        raise reject(
            "FC0308",
            f"`{operator}` does not apply to `{checker.spell(type)}`",
            node.operator_span,
            "not for this type",
            secondary=(typed_label(checker, left), typed_label(checker, right)),
        )
    return _computed(checker, operator, (left, right), number, type, span)


def _or_nil(checker: Checker, node: Typed, other: Typed) -> Typed:
    """What is compared with ``nil``: of an interface or a slice of Go its first word."""
    resolved = checker.resolved(node.type)
    if not isinstance(resolved, InterfaceType | SliceType) or not isinstance(other, Constant):
        return node
    is_nil = isinstance(checker.resolved(other.type), PointerType)
    if not is_nil or checker.site.language.arithmetic != "go":
        return node
    return subobject(node, resolved.members[0], node.span)


def _folded(checker: Checker, node: tree.Binary, left: Constant, right: Constant) -> Typed | None:
    """The constant that two constants give; None where it takes a reader: a comparison."""
    operator, rules = node.operator, checker.site.language.arithmetic
    if operator in (*COMPARISONS, "&&", "||") or any(
        isinstance(checker.resolved(one.type), ADDRESSES) for one in (left, right)
    ):
        return None
    if operator in SHIFTS:
        computed = _shift(checker, node, left, right)
        number, type = computed.number, computed.type
        if rules == "rust" and is_untyped(checker, left):
            return computed  # its width is that of the type that it takes
    elif is_untyped(checker, left) and is_untyped(checker, right):
        number, type = operand_of(checker, left, operator, node.span)[1], left.type
    else:
        one, other, number, type = both(checker, node, left, right, operator)
        if not isinstance(one, Constant) or not isinstance(other, Constant):
            return None
        left, right = one, other
    if number.bits == 1:
        return None
    first, second = left.value, right.value
    if not is_untyped(checker, Constant(0, type, node.span)):
        resolved = checker.resolved(type)
        first = wrapped(first, resolved)
        second = second if operator in SHIFTS else wrapped(second, resolved)
    value = tree.apply(operator, first, second)
    if value is not None:
        return _constant(checker, value, type, number, node.span)
    if operator in ("/", "%"):
        raise reject("FC0308", "division by zero", right.span, "this is zero")
    return None


def _shift(checker: Checker, node: tree.Binary, left: Typed, right: Typed) -> Operation:
    # The count has a type of its own: the result is of the first operand's.
    at = node.operator_span
    left, number = operand_of(checker, left, node.operator, at)
    right, count = operand_of(checker, right, node.operator, at)
    for one, its in ((left, number), (right, count)):
        if its.floating or isinstance(checker.resolved(one.type), PointerType):
            raise unfit(checker, node.operator, at, one, "needs integers")
    if checker.site.language.arithmetic in STRICT:
        return _computed(checker, node.operator, (left, right), number, left.type, node.span)
    check_bit_field(checker, node.operator, (left,), at)
    wide = promoted(checker, left, number)
    type = open_sign(checker, node.operator, (left,), wide, at)
    if type is None:
        type = result_type(checker, left, number, wide)
    return _computed(checker, node.operator, (left, right), wide, type, node.span)


# ------------------------------------------------------------------------------
# Pointers: the kernel adds a constant to one; a reader adds, and subtracts pointers.


def _moved(checker: Checker, node: tree.Binary, left: Typed, right: Typed) -> Typed | None:
    operator = node.operator
    if operator == "+" and not _is_pointer(checker, left):
        left, right = right, left
    if not _is_pointer(checker, left):
        return None
    left = decayed(checker, left)
    resolved = checker.resolved(left.type)
    assert isinstance(resolved, PointerType)
    if checker.site.language.arithmetic in STRICT and not isinstance(right, Constant):
        return None
    address = Number(8 * checker.program.word_bytes, False)
    if _is_pointer(checker, right):
        if operator == "+":
            return None
        size = _stride(checker, left, resolved)
        signed = Number(address.bits, True)
        word = number_type(checker, signed)
        operands = (left, decayed(checker, right))
        bytes = _computed(checker, "-", operands, signed, word, node.span)
        each = Constant(size, checker.word(signed=True), node.span)
        return _computed(checker, "/", (bytes, each), signed, word, node.span)
    stride = _stride(checker, left, resolved)
    if isinstance(right, Constant) and not _is_computed(left):
        steps = right.value if operator == "+" else -right.value
        return Shift(left, ByteOffset(steps * stride), left.type, node.span)
    right, number = operand_of(checker, right, operator, node.operator_span)
    if number.floating:
        return None
    signed = Number(address.bits, True)
    each = Constant(stride, checker.word(signed=True), node.span)
    by = _computed(checker, "*", (right, each), signed, number_type(checker, signed), right.span)
    return _computed(checker, operator, (left, by), address, left.type, node.span)


def _is_pointer(checker: Checker, node: Typed) -> bool:
    if isinstance(node, Conditional | Dispatched):
        return False
    return isinstance(checker.resolved(decayed(checker, node).type), PointerType)


def _stride(checker: Checker, pointer: Typed, resolved: PointerType) -> int:
    target: Type = checker.resolved(resolved.target)
    if isinstance(target, VoidType | FunctionType):
        return 1  # as GNU C counts
    size = checker.size(resolved.target)
    if size is None:
        raise reject(
            "FC0311",
            f"`{checker.spell(resolved.target)}` has no size: a pointer to it cannot move",
            pointer.span,
            f"this is `{checker.spell(pointer.type)}`",
            help="cast it to `(char *)` to count in bytes",
        )
    return size
