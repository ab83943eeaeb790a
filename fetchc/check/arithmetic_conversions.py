"""Which number an operand is, and to which type an operator converts both operands.

C and C++ promote operands and have their usual arithmetic conversions (C17 6.3.1.1, 6.3.1.8), C#
its numeric promotions (ECMA-334, "Numeric promotions"). Go and Rust convert nothing: a number that
is written without a type is untyped, and takes the type of the other operand.
"""

from __future__ import annotations

from fetchc.check.conversions import decayed, number_of, wrapped
from fetchc.check.literals import (
    INT,
    INTEGERS,
    NAMES,
    STRICT,
    UINT,
    is_untyped,
    number_type,
    out_of_range,
    taking,
    untyped,
)
from fetchc.check.typed_tree import Constant, Subobject
from fetchc.diag.diagnostic import CompileError, Label, reject
from fetchc.ir.arithmetic import DOUBLE, TRUTH, Number
from fetchc.program.types import (
    ChannelType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    MapType,
    PointerType,
    StructType,
)
from fetchc.quantities import ByteSize
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.entities import Variable
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "ADDRESSES",
    "COMPARISONS",
    "both",
    "check_bit_field",
    "named_constant",
    "open_sign",
    "operand_of",
    "promoted",
    "result_type",
    "typed_label",
    "unfit",
]

COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
ADDRESSES = (PointerType, MapType, ChannelType, FunctionType)


# ------------------------------------------------------------------------------
# Operands.


def operand_of(checker: Checker, node: Typed, operator: str, at: Span) -> tuple[Typed, Number]:
    """The operand as a number. Raises CompileError FC0308 where it is none."""
    node = decayed(checker, node)
    resolved = checker.resolved(node.type)
    if isinstance(resolved, StructType):
        if resolved.is_library and "::chrono::" in resolved.name:
            help = "take the number, of its own unit: `e.count()`"
            raise unfit(checker, operator, at, node, "not for units of time", help)
        reader_value = checker.rules_for(resolved).reader_value
        if reader_value is not None:
            node = reader_value(checker, node)
    number = number_of(checker, node)
    if number is None:
        help = "take a number of it: a member, an element, `len(e)`"
        if operator in COMPARISONS:
            help = 'to compare a string, use `fetchc trace --filter`: `EXPR == "abc"`'
        raise unfit(checker, operator, at, node, "needs numbers", help)
    return node, number


def unfit(
    checker: Checker, operator: str, at: Span, operand: Typed, label: str, help: str | None = None
) -> CompileError:
    """FC0308: the operator does not apply to the operand."""
    what = f"`{operator}` does not apply to `{checker.spell(operand.type)}`"
    return reject("FC0308", what, at, label, secondary=(typed_label(checker, operand),), help=help)


def typed_label(checker: Checker, operand: Typed) -> Label:
    """A label that says the operand's type."""
    return Label(operand.span, f"this is `{checker.spell(operand.type)}`")


def named_constant(checker: Checker, variable: Variable, value: int, span: Span) -> Constant | None:
    """An integer constant of Go. An `int` may be untyped: the debug information is the same."""
    resolved, type = checker.resolved(variable.type), variable.type
    if variable.kind != "global" or not isinstance(resolved, IntType):
        return None
    if checker.spell(type) == "int":
        type = untyped(checker)
    return Constant(wrapped(value, resolved), type, span)


def promoted(checker: Checker, node: Typed, number: Number) -> Number:
    """The number as an operand: an `int` where it is narrower, by the width of a bit field.

    Sources: C17 6.3.1.1, 6.7.2.2; C++17 [conv.prom]; ECMA-334, "Unary numeric promotions".
    """
    if number.floating:
        return number
    width, enumerations = number.bits, checker.site.language.enumerations
    if width == 1 and checker.site.language.arithmetic == "dotnet":
        return number  # a truth value is no number in C#
    if isinstance(checker.resolved(node.type), EnumType):
        if enumerations == "own":
            return number
        if enumerations == "underlying" and isinstance(node, Constant) and INT.holds(node.value):
            return INT
    elif isinstance(node, Subobject) and node.bits is not None:
        width = node.bits.width
    if width > 32:
        return number
    return UINT if width == 32 and not number.signed else INT


# ------------------------------------------------------------------------------
# Operands whose type the debug information does not say, or compilers do not agree on.

_EITHER = {32: "int or unsigned int", 64: "long or unsigned long"}


def _sign_is_open(checker: Checker, node: Typed) -> bool:
    """Whether the operand is an `int` or an `unsigned int`; its value is at least 0.

    C++ promotes an enumeration to `int` where that holds its enumerators, and one that is declared
    with `: unsigned` to `unsigned int`: the debug information of both is the same.
    """
    resolved = checker.resolved(node.type)
    if isinstance(resolved, IntType):
        return resolved.name in _EITHER.values()
    if checker.site.language.enumerations != "promoted" or not isinstance(resolved, EnumType):
        return False
    low = {4: 0, 8: 1 << 32}.get(resolved.size)  # 8 bytes are chosen for what needs them
    greatest = max((value for _, value in resolved.enumerators), default=0)
    if low is None or resolved.signed:
        return False
    return low <= greatest < 1 << 8 * resolved.size - 1


def open_sign(
    checker: Checker, operator: str, operands: tuple[Typed, ...], number: Number, at: Span
) -> TypeId | None:
    """The type of a result that may be signed or unsigned; None where that is known.

    Raises CompileError FC0308 where the value depends on it.
    """
    doubtful = [one for one in operands if _sign_is_open(checker, one)]
    if not doubtful or number.floating or number_of(checker, doubtful[0]) != number:
        return None
    known = [one for one in operands if one not in doubtful]
    numbers = [number_of(checker, one) for one in known]
    if number in numbers:
        return None  # the other one is unsigned
    negative = any(
        its is not None and its.signed and not _is_natural(one)
        for one, its in zip(known, numbers, strict=True)
    )
    if operator in ("==", "!=") or not (negative or operator in ("-", "~", "<<")):
        return checker.program.intern(
            IntType(_EITHER[number.bits], ByteSize(number.bits // 8), False)
        )
    name = NAMES["c"][number.replaced(signed=True)]
    raise reject(
        "FC0308",
        f"the result of `{operator}` is signed or unsigned: the debug information does not say",
        at,
        f"`{name}` or `unsigned {name}`",
        secondary=tuple([typed_label(checker, one) for one in doubtful]),
        notes=(
            f"C++ takes this enumeration as `{name}`, or as `unsigned {name}` where it is declared "
            f"as `enum E : unsigned {name}`",
        ),
        help=f"cast it: `({name})e`",
    )


def _is_natural(node: Typed) -> bool:
    return isinstance(node, Constant) and node.value >= 0


def check_bit_field(checker: Checker, operator: str, operands: tuple[Typed, ...], at: Span) -> None:
    """FC0308 for a calculation with a bit field of 33 to 63 bits in code of gcc.

    gcc computes in the bits of the field (`m << 1` of 40 bits has 40 bits), clang in 64 bits; g++
    does now one, now the other.
    """
    scope = checker.site.scope
    wide = [
        one
        for one in operands
        if isinstance(one, Subobject) and one.bits is not None and 32 < one.bits.width < 64
    ]
    if not wide or scope is None or not scope.compiler.is_gcc:
        return
    numbers = [number_of(checker, one) for one in operands if not _is_natural(one)]
    signs = {its.signed for its in numbers if its is not None}
    if operator in COMPARISONS and len(signs) == 1:
        return
    field = wide[0]
    assert field.bits is not None
    raise reject(
        "FC0308",
        f"`{operator}` of this bit field has 64 bits or, with gcc, {field.bits.width}",
        at,
        "compilers differ",
        secondary=(typed_label(checker, field),),
        help=f"cast it: `({checker.spell(field.type)})e`",
    )


# ------------------------------------------------------------------------------
# Both operands of an operator.


def both(
    checker: Checker, node: tree.Binary | tree.Ternary | tree.Call, left: Typed, right: Typed,
    operator: str,
) -> tuple[Typed, Typed, Number, TypeId]:  # fmt: skip
    """The two operands, the number that both are taken as, and its type."""
    at = node.operator_span if isinstance(node, tree.Binary) else node.span
    left, first = operand_of(checker, left, operator, at)
    right, second = operand_of(checker, right, operator, at)
    if checker.site.language.arithmetic in STRICT:
        return _of_one_type(checker, (left, right), (first, second), operator, at)
    pointers = [isinstance(checker.resolved(one.type), PointerType) for one in (left, right)]
    if any(pointers):
        other = right if pointers[0] else left
        if not all(pointers) and not (isinstance(other, Constant) and other.value == 0):
            raise reject(
                "FC0308",
                f"`{operator}` does not apply to a pointer and a number",
                at,
                "two types",
                secondary=(typed_label(checker, left), typed_label(checker, right)),
                help="cast the pointer: `(unsigned long)p`",
            )
        return left, right, first, (left if pointers[0] else right).type
    operands = (left, right)
    check_bit_field(checker, operator, operands, at)
    number = _common(checker, operands, (first, second), node)
    type = open_sign(checker, operator, operands, number, at)
    if type is not None:
        return left, right, number, type
    one, its = (left, first) if first == number else (right, second)
    if operator == "-" and all(
        isinstance(checker.resolved(one.type), EnumType) for one in operands
    ):
        return left, right, number, number_type(checker, number)
    return left, right, number, result_type(checker, one, its, number)


def result_type(checker: Checker, operand: Typed, own: Number, number: Number) -> TypeId:
    """The type of a result of these numbers: that of an operand whose ``own`` they are, or another.

    In C# alone the sum of an enumeration and a number is of the enumeration.
    """
    is_enumeration = isinstance(checker.resolved(operand.type), EnumType)
    if own == number and not (is_enumeration and checker.site.language.enumerations != "own"):
        return operand.type
    return number_type(checker, number)


def _common(
    checker: Checker, operands: tuple[Typed, Typed], numbers: tuple[Number, Number],
    node: tree.Expression,
) -> Number:  # fmt: skip
    """C17 6.3.1.8; ECMA-334, "Binary numeric promotions"."""
    first, second = [
        promoted(checker, one, number) for one, number in zip(operands, numbers, strict=True)
    ]
    if first.floating or second.floating:
        return Number(max(one.bits for one in (first, second) if one.floating), True, True)
    if checker.site.language.arithmetic == "dotnet":
        found = _common_of_dotnet(checker, operands, numbers, (first, second))
        if found is not None:
            return found
        spelled = [checker.spell(one.type) for one in operands]
        raise reject(
            "FC0308",
            f"C# has no operator for `{spelled[0]}` and `{spelled[1]}`",
            node.span,
            "two types",
            help=f"cast one of them: `({spelled[0]})e`",
        )
    if first.signed == second.signed:
        return first if first.bits >= second.bits else second
    unsigned, signed = (second, first) if first.signed else (first, second)
    return unsigned if unsigned.bits >= signed.bits else signed


def _common_of_dotnet(
    checker: Checker, operands: tuple[Typed, Typed], numbers: tuple[Number, Number],
    promotions: tuple[Number, Number],
) -> Number | None:  # fmt: skip
    if numbers[0] == numbers[1] and TRUTH in numbers:
        return TRUTH
    # A constant takes the other type if that is unsigned, or an enumeration, and holds it:
    # ECMA-334, "Implicit constant expression conversions".
    for at, one in enumerate(operands):
        wanted, number = promotions[1 - at], promotions[at]
        if isinstance(checker.resolved(operands[1 - at].type), EnumType):
            value = one.value if isinstance(one, Constant) else None
            fits = _holds_all(wanted, numbers[at]) if value is None else wanted.holds(value)
            return wanted if fits else None
        narrower = not wanted.signed and number.bits <= wanted.bits
        if isinstance(one, Constant) and narrower and wanted.holds(one.value):
            return wanted
    for number in INTEGERS:
        if TRUTH not in numbers and all(_holds_all(number, one) for one in numbers):
            return number
    return None


def _holds_all(number: Number, other: Number) -> bool:
    if number.signed == other.signed:
        return number.bits >= other.bits
    return number.signed and number.bits > other.bits


def _of_one_type(
    checker: Checker, operands: tuple[Typed, Typed], numbers: tuple[Number, Number],
    operator: str, at: Span,
) -> tuple[Typed, Typed, Number, TypeId]:  # fmt: skip
    # Go and Rust: both have one type, or one is untyped, or a nil.
    left, right = operands
    untyped = [is_untyped(checker, one) for one in operands]
    if all(untyped):
        floating = [one for one in operands if isinstance(checker.resolved(one.type), FloatType)]
        if not floating:
            for one in operands:
                if isinstance(one, Constant) and not numbers[0].holds(one.value):
                    raise out_of_range(checker, one, left.type)
            return left, right, numbers[0], left.type
        left, right = [taking(checker, one, floating[0].type, DOUBLE) for one in operands]
        return left, right, DOUBLE, floating[0].type
    for position, (one, number) in enumerate(zip(operands, numbers, strict=True)):
        other = operands[1 - position]
        if untyped[1 - position]:
            taken = taking(checker, other, one.type, number)
            return *((taken, one) if position else (one, taken)), number, one.type
        if isinstance(other, Constant) and isinstance(checker.resolved(one.type), ADDRESSES):
            return left, right, number, one.type  # nil
    wanted, its = left.type, right.type
    if checker.bare(wanted) == checker.bare(its) or checker.spell(wanted) == checker.spell(its):
        return left, right, numbers[0], wanted
    names = [checker.spell(one.type) for one in operands]
    cast = "{0}(e)" if checker.site.language.arithmetic == "go" else "({0})e"
    raise reject(
        "FC0308",
        f"`{operator}` does not apply to `{names[0]}` and `{names[1]}`",
        at,
        "two types",
        secondary=tuple([typed_label(checker, one) for one in operands]),
        help=f"convert one of them: `{cast.format(names[0])}`",
    )
