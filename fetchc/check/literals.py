"""Numbers that are written, and the types that a language has for numbers.

In C, C++ and C# a written number has a type by its value and suffix. In Go and Rust it is untyped
without a suffix or a conversion: it takes the type of what it is computed with.
"""

from __future__ import annotations

from fetchc.check.typed_tree import Constant, FloatConstant, Operation
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.ir.arithmetic import Number
from fetchc.program.types import BoolType, FloatType, IntType
from fetchc.quantities import ByteSize
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.quantities import TypeId

__all__ = [
    "INT",
    "INTEGERS",
    "NAMES",
    "SHIFTS",
    "STRICT",
    "UINT",
    "float_literal",
    "is_untyped",
    "literal",
    "number_type",
    "out_of_range",
    "taking",
    "truth_type",
    "untyped",
]

SHIFTS = frozenset(("<<", ">>"))
STRICT = frozenset(("go", "rust"))
"""Languages that convert no operand by themselves."""
INT, UINT, _LONG, _ULONG = (Number(bits, sign) for bits in (32, 64) for sign in (True, False))
INTEGERS = (INT, UINT, _LONG, _ULONG)
"""The numbers that C and C# compute with, and write without a type: the first one that holds it."""


# ------------------------------------------------------------------------------
# Types for numbers that have none of their own.

NAMES = {
    "c": {INT: "int", UINT: "unsigned int", _LONG: "long", _ULONG: "unsigned long"},
    "dotnet": {
        Number(8, True): "sbyte", Number(8, False): "byte", Number(16, True): "short",
        Number(16, False): "ushort", INT: "int", UINT: "uint", _LONG: "long", _ULONG: "ulong",
    },
}  # fmt: skip
_PREFIXES = {"go": ("int", "uint", "float"), "rust": ("i", "u", "f")}


def number_type(checker: Checker, number: Number) -> TypeId:
    """The type of the language that has these numbers."""
    if number.bits == 1:
        return truth_type(checker)
    size, rules = ByteSize(number.bits // 8), checker.site.language.arithmetic
    if rules in STRICT:
        prefix = _PREFIXES[rules][2 if number.floating else int(not number.signed)]
        name = f"{prefix}{number.bits}"
    else:
        name = {32: "float", 64: "double"}[number.bits] if number.floating else NAMES[rules][number]
        if rules == "c" and checker.program.word_bytes == 4:
            name = name.replace("long", "long long")
    if number.floating:
        return checker.program.intern(FloatType(name, size))
    return checker.program.intern(IntType(name, size, number.signed))


def truth_type(checker: Checker) -> TypeId:
    """The type of a comparison."""
    if checker.site.language.truth == "int":
        return number_type(checker, INT)
    return checker.program.intern(BoolType("bool", ByteSize(1)))


# ------------------------------------------------------------------------------
# Numbers that are written.

_DEFAULTS = {"go": "int", "rust": "i32"}
"""The types of untyped integers that nothing gives a type. Of the others it has 64 bits."""
_SUFFIXES = {
    "c": "u?l?l?|ll?u",
    "dotnet": "u?l?|lu",
    "go": "",
    "rust": "([iu](8|16|32|64|size))?",
}


def literal(checker: Checker, node: tree.Integer) -> Constant:
    """The number with its type. Raises CompileError FC0101 for a suffix of another language.

    Sources: C17 6.4.4.1; ECMA-334, "Integer literals"; Go specification, "Constants"; The Rust
    Reference, "Integer literal expressions".
    """
    import re

    rules, suffix, word = checker.site.language.arithmetic, node.suffix, checker.program.word_bytes
    if not re.fullmatch(_SUFFIXES[rules], suffix):
        what = f"{checker.site.language.name} has no number suffix `{suffix}`"
        help = f"write `{node.value}`, or a cast of it"
        raise reject("FC0101", what, node.span, "unknown suffix", help=help)
    if rules not in STRICT:
        type = number_type(checker, _of_literal(node, rules, word))
    elif suffix:
        bits = 8 * word if suffix.endswith("size") else int(suffix[1:])
        type = checker.program.intern(IntType(suffix, ByteSize(bits // 8), suffix[0] == "i"))
    else:
        type = untyped(checker)
    return Constant(node.value, type, node.span)


def _of_literal(node: tree.Integer, rules: str, word: int) -> Number:
    # The first type that holds the number. Only C's decimals are signed where no `u` is written.
    unsigned = "u" in node.suffix
    of_both_signs = not unsigned and not (rules == "c" and node.is_decimal)
    long = node.suffix.replace("u", "") in (("l", "ll") if word == 8 or rules != "c" else ("ll",))
    for number in INTEGERS:
        fits = number.holds(node.value) and not (long and number.bits < 64)
        if fits and (of_both_signs or number.signed != unsigned):
            return number
    return _ULONG


def float_literal(checker: Checker, node: tree.FloatNumber) -> FloatConstant:
    """The number with its type: ``0.1f`` of C and C#, ``0.1f32`` of Rust."""
    from fetchc.ir.arithmetic import RULES, converted

    rules = checker.site.language.arithmetic
    suffix = {"": "", "f": "32", "f32": "32", "f64": "64"}[node.suffix]
    if rules == "go" or (rules == "rust" and not suffix):
        return FloatConstant(node.value, untyped(checker, floating=True), node.span)
    number = Number(int(suffix or 64), True, True)
    value = converted(node.value, number, RULES[rules])
    assert value is not None
    return FloatConstant(value, number_type(checker, number), node.span)


def untyped(checker: Checker, floating: bool = False) -> TypeId:
    """The type of numbers that have none yet. That of integers has the name of the default type."""
    if floating:
        return checker.program.intern(FloatType("untyped float", ByteSize(8)))
    rules = checker.site.language.arithmetic
    size = ByteSize(checker.program.word_bytes if rules == "go" else 4)
    return checker.program.intern(IntType(_DEFAULTS[rules], size, True, "untyped"))


def is_untyped(checker: Checker, node: Typed) -> bool:
    """Whether the number has no type yet: it takes the other operand's, in Go and in Rust."""
    if checker.site.language.arithmetic not in STRICT:
        return False
    return node.type in (untyped(checker), untyped(checker, floating=True))


def out_of_range(checker: Checker, node: Constant | FloatConstant, wanted: TypeId) -> CompileError:
    """FC0308: the type does not have the number."""
    name = checker.spell(wanted)
    what = f"{node.value} is not in the range of `{name}`"
    if node.value % 1 != 0:
        what = f"{node.value} is not a whole number, and `{name}` has no others"
    return reject("FC0308", what, node.span, "a constant")


def taking(checker: Checker, node: Typed, wanted: TypeId, number: Number) -> Typed:
    """The untyped ``node`` with the type ``wanted``, whose numbers are ``number``.

    Raises CompileError FC0308 where the type does not hold it.
    """
    match node:
        case Constant(value=value) | FloatConstant(value=value):
            if number.floating:
                return FloatConstant(float(value), wanted, node.span)
            if number.bits == 1 or value % 1 != 0 or not number.holds(int(value)):
                raise out_of_range(checker, node, wanted)
            return Constant(int(value), wanted, node.span)
        case Operation(operator=operator, operands=operands):
            if number.bits == 1 or (number.floating and operator in (*SHIFTS, "~")):
                what = f"`{operator}` does not apply to `{checker.spell(wanted)}`"
                raise reject("FC0308", what, node.span, "needs integers")
            changed = [
                taking(checker, one, wanted, number) if is_untyped(checker, one) else one
                for one in operands
            ]
            return node.replaced(operands=tuple(changed), number=number, type=wanted)
        case _:
            return node
