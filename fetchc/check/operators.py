"""Operators on values: ``a + b``, ``fd & 1``, ``!r.ok``, ``x ? 1 : 0``, ``min(a, b)``.

Constants are computed here, and a pointer plus a constant is a pointer that a fetch can follow.
Everything else is an :class:`~fetchc.check.typed_tree.Operation`, which a reader computes, with the
operand types and the result type of the language.
"""

from __future__ import annotations

from fetchc.check.conversions import decayed, number_of, wrapped
from fetchc.check.members import subobject
from fetchc.check.typed_tree import (
    Computed,
    Conditional,
    Constant,
    Dispatched,
    FloatConstant,
    Operation,
    Shift,
    Subobject,
)
from fetchc.diag.diagnostic import CompileError, Label, reject
from fetchc.ir.arithmetic import DOUBLE, TRUTH, Number
from fetchc.program.types import (
    BoolType,
    ChannelType,
    EnumType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    PointerType,
    SliceType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteOffset, ByteSize
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

__all__ = ["extreme", "literal", "operand_of", "operation", "word"]

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_SHIFTS = frozenset(("<<", ">>"))
_OF_INTEGERS = frozenset(("%", "&", "|", "^", "&^"))
_ADDRESSES = (PointerType, MapType, ChannelType, FunctionType)
_STRICT = frozenset(("go", "rust"))
"""Languages that convert no operand by themselves."""


def operation(
    checker: Checker,
    node: tree.FloatNumber | tree.Negate | tree.Unary | tree.Binary | tree.Ternary,
) -> Typed:
    """The meaning of ``node``. Raises CompileError FC0308 where the operator does not apply."""
    match node:
        case tree.FloatNumber(value=value, span=span):
            return FloatConstant(value, _type(checker, DOUBLE), span)
        case tree.Negate(operand=operand, span=span):
            return _negated(checker, checker.check(operand), span)
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
        return Constant(int(text == "true"), _truth_type(checker), span)
    return Constant(0, checker.pointer_to(checker.program.intern(VoidType())), span)


def _is_computed(node: Typed) -> bool:
    # A reader computes the value: no fetch goes on from it.
    return isinstance(node, Operation | Computed | FloatConstant)


def _type(checker: Checker, number: Number) -> TypeId:
    # A type of the language for a number that has none of its own.
    intern = checker.program.intern
    if number.bits == 1:
        return _truth_type(checker)
    size = ByteSize(number.bits // 8)
    strict = checker.site.language.arithmetic in _STRICT
    if number.floating:
        name = f"float{number.bits}" if strict else {32: "float", 64: "double"}[number.bits]
        return intern(FloatType(name, size))
    long = size == checker.program.word_bytes and size == 8
    name = f"int{number.bits}" if strict else {4: "int", 8: "long" if long else "long long"}[size]
    if not number.signed:
        name = f"u{name}" if strict else f"unsigned {name}"
    return intern(IntType(name, size, number.signed))


def _truth_type(checker: Checker) -> TypeId:
    if checker.site.language.truth == "int":
        return _type(checker, Number(32, True))
    return checker.program.intern(BoolType("bool", ByteSize(1)))


# ------------------------------------------------------------------------------
# Operands: what they are as numbers, and to which type both go.


def operand_of(checker: Checker, node: Typed, operator: str, at: Span) -> tuple[Typed, Number]:
    """The operand as a number. Raises CompileError FC0308 where it is none."""
    node = decayed(checker, node)
    resolved = checker.resolved(node.type)
    if isinstance(resolved, StructType):
        if resolved.is_library and "::chrono::" in resolved.name:
            help = "take the number, of its own unit: `e.count()`"
            raise _unfit(checker, operator, at, node, "not for units of time", help)
        reader_value = checker.rules_for(resolved).reader_value
        if reader_value is not None:
            node = reader_value(checker, node)
    number = number_of(checker, node)
    if number is None:
        help = "take a number of it: a member, an element, `len(e)`"
        if operator in _COMPARISONS:
            help = 'to compare a string, use `fetchc trace --filter`: `EXPR == "abc"`'
        raise _unfit(checker, operator, at, node, "an operator of numbers", help)
    return node, number


def _unfit(
    checker: Checker, operator: str, at: Span, operand: Typed, label: str, help: str | None = None
) -> CompileError:
    what = f"`{operator}` does not apply to `{checker.spell(operand.type)}`"
    return reject("FC0308", what, at, label, secondary=(_typed(checker, operand),), help=help)


def _typed(checker: Checker, operand: Typed) -> Label:
    return Label(operand.span, f"this is `{checker.spell(operand.type)}`")


def _untyped(checker: Checker, node: Typed) -> bool:
    # A number that is written: in Go it takes the other operand's type.
    if isinstance(node, FloatConstant):
        return True
    return isinstance(node, Constant) and node.type == checker.word(signed=True)


def _promoted(checker: Checker, node: Typed, number: Number) -> Number:
    """C17 6.3.1.1: what is narrower than an int is an int, a bit field by its width."""
    if number.floating:
        return number
    # An enumerator is an int where that holds it: C17 6.7.2.2; C++17 [conv.prom].
    enumerator = isinstance(checker.resolved(node.type), EnumType)
    if isinstance(node, Constant) and (enumerator or _untyped(checker, node)):
        for bits in (32, 64):
            if Number(bits, True).holds(node.value):
                return Number(bits, True)
        return Number(64, False)
    bits = number.bits
    if isinstance(node, Subobject) and node.bits is not None:
        bits = node.bits.width
        if bits == 32 and not number.signed:
            return number
    return Number(32, True) if bits < 32 or (bits == 32 and number.signed) else number


def _common(checker: Checker, numbers: Sequence[Number], node: tree.Expression) -> Number:
    """C17 6.3.1.8, and C#'s binary numeric promotions."""
    first, second = numbers
    if first.floating or second.floating:
        return Number(max(one.bits for one in numbers if one.floating), True, True)
    if first.signed == second.signed:
        return first if first.bits >= second.bits else second
    unsigned, signed = (second, first) if first.signed else (first, second)
    if checker.site.language.arithmetic == "dotnet":
        if unsigned.bits < 64:
            return Number(64, True)
        raise reject("FC0308", "C# has no operator for `ulong` and a signed number", node.span,
                     "of two types", help="cast one of them: `(ulong)e`")  # fmt: skip
    return unsigned if unsigned.bits >= signed.bits else signed


def _both(
    checker: Checker, node: tree.Binary | tree.Ternary | tree.Call, left: Typed, right: Typed,
    operator: str,
) -> tuple[Typed, Typed, Number, TypeId]:  # fmt: skip
    """The two operands, the number that both are taken as, and its type."""
    at = node.operator_span if isinstance(node, tree.Binary) else node.span
    left, first = operand_of(checker, left, operator, at)
    right, second = operand_of(checker, right, operator, at)
    if checker.site.language.arithmetic in _STRICT:
        return left, right, *_same(checker, (left, right), (first, second), operator, at)
    pointers = [isinstance(checker.resolved(one.type), PointerType) for one in (left, right)]
    if any(pointers):
        other = right if pointers[0] else left
        if not all(pointers) and not (isinstance(other, Constant) and other.value == 0):
            raise reject(
                "FC0308",
                f"`{operator}` has a pointer and a number",
                at,
                "of two types",
                secondary=(_typed(checker, left), _typed(checker, right)),
                help="cast the pointer: `(unsigned long)p`",
            )
        return left, right, first, (left if pointers[0] else right).type
    numbers = [_promoted(checker, one, number) for one, number in ((left, first), (right, second))]
    number = _common(checker, numbers, node)
    for one, own in ((left, first), (right, second)):
        if own == number and not _untyped(checker, one):
            return left, right, number, one.type
    return left, right, number, _type(checker, number)


def _same(
    checker: Checker,
    operands: tuple[Typed, Typed],
    numbers: tuple[Number, Number],
    operator: str,
    at: Span,
) -> tuple[Number, TypeId]:
    # Go and Rust: both have one type, and a number that is written takes it.
    untyped = [_untyped(checker, one) for one in operands]
    typed = 1 if untyped[0] and not untyped[1] else 0
    number, wanted = numbers[typed], operands[typed].type
    if any(isinstance(one, FloatConstant) for one in operands) and all(untyped):
        return DOUBLE, _type(checker, DOUBLE)
    other, its = operands[1 - typed], operands[1 - typed].type
    if untyped[1 - typed]:
        if isinstance(other, FloatConstant) and not number.floating and other.value % 1 != 0:
            fits = False
        else:
            value = other.value if isinstance(other, Constant | FloatConstant) else 0
            fits = number.bits == 1 or number.holds(int(value))
        if number.bits > 1 and fits:
            return number, wanted
        what = f"the number does not fit `{checker.spell(wanted)}`"
        raise reject("FC0308", what, other.span, "a number")
    if isinstance(other, Constant) and isinstance(checker.resolved(wanted), _ADDRESSES):
        return number, wanted  # nil
    mine = operands[typed]
    if isinstance(mine, Constant) and isinstance(checker.resolved(its), _ADDRESSES):
        return numbers[1 - typed], its
    if checker.bare(wanted) == checker.bare(its) or checker.spell(wanted) == checker.spell(its):
        return number, wanted
    names = [checker.spell(one.type) for one in operands]
    cast = "{0}(e)" if checker.site.language.arithmetic == "go" else "({0})e"
    raise reject(
        "FC0308",
        f"`{operator}` has a `{names[0]}` and a `{names[1]}`",
        at,
        "of two types",
        secondary=tuple([_typed(checker, one) for one in operands]),
        help=f"convert one of them: `{cast.format(names[0])}`",
    )  # fmt: skip


# ------------------------------------------------------------------------------
# The operators.


def _computed(
    checker: Checker, operator: str, operands: tuple[Typed, ...], number: Number, type: TypeId,
    span: Span, assumptions: tuple[tuple[Assumption, ...], ...] = (),
) -> Operation:  # fmt: skip
    rules = checker.site.language.arithmetic
    return Operation(operator, operands, number, rules, type, span, assumptions)


def literal(checker: Checker, node: tree.Integer) -> Constant:
    """A number of C whose suffix gives it a type (C17 6.4.4.1)."""
    bits = 64 if "l" in node.suffix or node.value >> 32 else 32
    if "u" in node.suffix:
        type = _type(checker, Number(bits, False))
    else:  # `long` is what numbers have that are written without a suffix
        type = checker.program.intern(IntType("long int", ByteSize(8), True))
    return Constant(node.value, type, node.span)


def _negated(checker: Checker, operand: Typed, span: Span) -> Typed:
    if isinstance(operand, Constant):
        if checker.site.language.arithmetic != "c" or _untyped(checker, operand):
            return Constant(-operand.value, checker.word(signed=True), span)
        _, number = operand_of(checker, operand, "-", span)
        type = _type(checker, _promoted(checker, operand, number))
        return Constant(wrapped(-operand.value, checker.resolved(type)), type, span)
    if isinstance(operand, FloatConstant):
        return FloatConstant(-operand.value, operand.type, span)
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
        return _computed(checker, "!", (operand,), number, _truth_type(checker), span)
    address = isinstance(checker.resolved(operand.type), _ADDRESSES)
    if address or (operator == "~" and number.floating) or (number.bits == 1 and rules != "c"):
        raise _unfit(checker, operator, at, operand, "an operator of numbers")
    if rules in _STRICT:
        return _computed(checker, operator, (operand,), number, operand.type, span)
    wide = _promoted(checker, operand, number)
    type = operand.type if wide == number else _type(checker, wide)
    return _computed(checker, operator, (operand,), wide, type, span)


def _first(span: Span) -> Span:
    return type(span)(span.start, span.start + 1)


def _not_bool(checker: Checker, operator: str, operand: Typed, at: Span) -> CompileError:
    return reject(
        "FC0308",
        f"`{operator}` takes truth values, and this is `{checker.spell(operand.type)}`",
        at,
        "of truth values",
        secondary=(_typed(checker, operand),),
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
    type = _truth_type(checker)
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
    left, right, number, type = _both(checker, node, left, right, "?:")
    bare = checker.bare(left.type)
    if bare == checker.bare(right.type) and not _untyped(checker, left):
        number = number_of(checker, left) or number
        type = left.type
    operands, given = (condition, left, right), (first, second, third)
    return _computed(checker, "?:", operands, number, type, node.span, given)


def extreme(checker: Checker, name: str, operands: Sequence[Typed], node: tree.Call) -> Typed:
    """``min(a, b, ...)`` and ``max``."""
    found, *others = operands
    for other in others:
        left, right, number, type = _both(checker, node, found, other, name)
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
    if operator in _SHIFTS:
        return _shift(checker, node, left, right)
    if operator in ("==", "!="):
        left, right = _or_nil(checker, left, right), _or_nil(checker, right, left)
    left, right, number, type = _both(checker, node, left, right, operator)
    if operator in _COMPARISONS:
        return _computed(checker, operator, (left, right), number, _truth_type(checker), span)
    wrong = isinstance(checker.resolved(type), _ADDRESSES)
    wrong |= number.floating and operator in _OF_INTEGERS
    if wrong or number.bits == 1:
        raise reject(
            "FC0308",
            f"`{operator}` does not apply to `{checker.spell(type)}`",
            node.operator_span,
            "not for this type",
            secondary=(_typed(checker, left), _typed(checker, right)),
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


def _folded(
    checker: Checker, node: tree.Binary, left: Constant, right: Constant
) -> Constant | None:
    type = _type_of_constants(checker, node, left, right)
    one, other = left.value, right.value
    if type is not None:
        resolved = checker.resolved(type)
        one = wrapped(one, resolved)
        other = other if node.operator in _SHIFTS else wrapped(other, resolved)
    value = tree.apply(node.operator, one, other)
    if value is not None:
        if type is None or node.operator in _COMPARISONS:
            return Constant(value, checker.word(signed=True), node.span)
        return Constant(wrapped(value, checker.resolved(type)), type, node.span)
    if node.operator in ("/", "%"):
        raise reject("FC0308", "division by zero", right.span, "this is zero")
    return None


def _type_of_constants(
    checker: Checker, node: tree.Binary, left: Constant, right: Constant
) -> TypeId | None:
    """In C the common type of constants, where a cast or ``sizeof`` gives one of them a type."""
    operands = (left, right)
    if checker.site.language.arithmetic != "c" or node.operator in ("&&", "||"):
        return None
    if all(_untyped(checker, one) for one in operands):
        return None
    if not all(isinstance(checker.resolved(one.type), IntType) for one in operands):
        return None
    if node.operator in _SHIFTS:
        return _shift(checker, node, left, right).type
    _, _, _, type = _both(checker, node, left, right, node.operator)
    return type


def _shift(checker: Checker, node: tree.Binary, left: Typed, right: Typed) -> Typed:
    # The count has a type of its own: the result is of the first operand's.
    at = node.operator_span
    left, number = operand_of(checker, left, node.operator, at)
    right, count = operand_of(checker, right, node.operator, at)
    for one, its in ((left, number), (right, count)):
        if its.floating or isinstance(checker.resolved(one.type), PointerType):
            raise _unfit(checker, node.operator, at, one, "an operator of integers")
    strict = checker.site.language.arithmetic in _STRICT
    wide = number if strict else _promoted(checker, left, number)
    type = left.type if wide == number else _type(checker, wide)
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
    if checker.site.language.arithmetic in _STRICT and not isinstance(right, Constant):
        return None
    address = Number(8 * checker.program.word_bytes, False)
    if _is_pointer(checker, right):
        if operator == "+":
            return None
        size = _stride(checker, left, resolved)
        signed = Number(address.bits, True)
        word = _type(checker, signed)
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
    by = _computed(checker, "*", (right, each), signed, _type(checker, signed), right.span)
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
