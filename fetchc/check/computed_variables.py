"""Variables that are in no place: what the debug information computes them from.

An :class:`~fetchc.program.entities.Arithmetic` place names operations of DWARF (DWARF 5, section
2.5.1.4). Only a reader or a program can compute; of a fetch-arg the place is refused.
"""

from __future__ import annotations

from fetchc.check.conversions import number_of
from fetchc.check.typed_tree import Constant, Convert, Located, Operation
from fetchc.ir.arithmetic import Number
from fetchc.program.entities import (
    Arithmetic,
    Indirect,
    InMemory,
    InRegister,
    PointerTo,
    is_on_entry,
)
from fetchc.program.entities import Constant as ConstantPlace
from fetchc.program.types import BoolType, CharType, EnumType, IntType, PointerType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.entities import Place, Variable

__all__ = ["as_operation", "is_certain", "refusal"]

_DWARF = "go"
"""The rules of arithmetic: DWARF's words wrap, too, and shifts empty them."""

_OPERATIONS = {
    "and": ("&", False), "div": ("/", True), "minus": ("-", False), "mod": ("%", False),
    "mul": ("*", False), "neg": ("-", True), "not": ("~", False), "or": ("|", False),
    "plus": ("+", False), "shl": ("<<", False), "shr": (">>", False), "shra": (">>", True),
    "xor": ("^", False),
    "eq": ("==", True), "ge": (">=", True), "gt": (">", True), "le": ("<=", True),
    "lt": ("<", True), "ne": ("!=", True),
}  # fmt: skip
"""The operator of each operation, and whether it takes the words as signed numbers."""


def as_operation(checker: Checker, node: Typed) -> Typed:
    """``node``; of a variable in no place, or a cast of it, what computes it."""
    match node:
        case Convert(base=base) if (value := as_operation(checker, base)) is not base:
            pass
        case Located(place=Arithmetic() as place):
            value = _of_place(checker, node, place)
        case Located(place=PointerTo(target=InMemory() | Indirect()) as place) if not is_on_entry(
            place
        ):
            value = _of_place(checker, node, place)
        case _:
            return node
    number = number_of(checker, node)
    assert number is not None
    return Operation("convert", (value,), number, _DWARF, node.type, node.span)


def _of_place(checker: Checker, variable: Located, place: Place) -> Typed:
    # The word ``place`` of what ``variable`` is computed from.
    word, span = checker.word(), variable.span
    match place:
        case Arithmetic("deref_size", (memory, ConstantPlace(value=size))):
            masked = Arithmetic("and", (memory, ConstantPlace((1 << 8 * size) - 1)))
            return _of_place(checker, variable, masked)
        case Arithmetic(operation=operation, operands=operands):
            operator, signed = _OPERATIONS[operation]
            words = tuple([_of_place(checker, variable, one) for one in operands])
            number = Number(8 * checker.program.word_bytes, signed)
            return Operation(operator, words, number, _DWARF, checker.word(signed), span)
        case PointerTo(target=InMemory(register=register, offset=base), offset=offset):
            added: Place = InRegister(register)
        case PointerTo(target=Indirect(pointer=added, offset=base), offset=offset):
            pass
        case ConstantPlace(value=value):
            return Constant(value, word, span)
        case _:
            return Located(place, variable.name, word, span)
    total = Arithmetic("plus", (added, ConstantPlace(base + offset)))
    return _of_place(checker, variable, total)


def refusal(checker: Checker, variable: Variable, place: Arithmetic) -> str:
    """Why nothing computes ``variable`` by its ``place``; empty where a trace can.

    LLVM 22 takes as many bits of each register as the first one has, so that only what it computes
    of one is certain.
    """
    words = f"it is computed at run time (DW_OP_{place.operation})"
    function, size = checker.site.function, checker.size(variable.type)
    by_gcc = function is not None and function.compiler.is_gcc
    resolved = checker.resolved(variable.type)
    numeric = isinstance(resolved, IntType | CharType | EnumType | BoolType | PointerType)
    if not numeric or not size or is_on_entry(place):
        return f"{words} and not stored in memory"
    if size > checker.program.word_bytes:  # a word is all that DWARF computes
        return f"{words} in a word of {checker.program.word_bytes} bytes, and has {size}"
    bits = 8 * size
    one = by_gcc or len(_computed_from(place)) <= 1
    if not (one and is_certain(place, bits, 8 * checker.program.word_bytes)):
        return f"{words}, and compilers describe some of what they compute wrong"
    return ""


def is_certain(place: Place, bits: int, word: int, whole: bool = True) -> bool:
    """Whether the low ``bits`` of the computed ``place`` are those of the variable.

    Compilers describe what is computed of numbers smaller than a ``word`` (in bits) as if they were
    words, and registers have anything above such numbers: of an ``int`` of -1 gcc's DW_OP_div takes
    4294967295. So no bits may come down from there, unless what is wanted is a ``whole`` word. A
    shift to the left and back extends a number; gcc compares numbers that it has shifted.
    """
    match place:
        case Arithmetic("shl", (value, ConstantPlace(count))):
            return is_certain(value, max(bits - count, 0), word, whole)
        case Arithmetic(
            "shr" | "shra", (Arithmetic("shl", (value, ConstantPlace(left))), ConstantPlace(right))
        ) if left == right:
            return is_certain(value, min(bits, word - left), word, whole)
        case Arithmetic("and", (value, ConstantPlace(mask)) | (ConstantPlace(mask), value)) if (
            mask >= 0
        ):
            return is_certain(value, min(bits, mask.bit_length()), word, whole)
        case Arithmetic("deref_size", (value, ConstantPlace(size))):
            return is_certain(value, min(bits, 8 * size), word, whole)
        case Arithmetic("and" | "or" | "xor" | "not" | "neg" | "plus" | "minus" | "mul"):
            return all(is_certain(one, bits, word, whole) for one in place.operands)
        case Arithmetic("shr" | "shra", (value, ConstantPlace(count))) if bits + count <= 8:
            return is_certain(value, bits + count, word, whole)
        case Arithmetic("shr" | "shra" | "div", (value, ConstantPlace())):
            return whole and bits == word and is_certain(value, word, word)
        case Arithmetic("eq" | "ne" | "lt" | "le" | "gt" | "ge", operands):
            shifted = all(_is_shifted(one, word) for one in operands)
            return shifted and all(is_certain(one, word, word, False) for one in operands)
        case Arithmetic():
            return False
        case ConstantPlace():
            return True
        case _:
            return whole or bits < word


def _is_shifted(place: Place, word: int) -> bool:
    match place:
        case Arithmetic("shl", (_, ConstantPlace(count))):
            return 2 * count >= word or isinstance(place.operands[0], ConstantPlace)
        case _:
            return isinstance(place, ConstantPlace)


def _computed_from(place: Place) -> frozenset[Place]:
    """The registers and words in memory that ``place`` is computed from."""
    match place:
        case Arithmetic(_, operands):
            return frozenset().union(*map(_computed_from, operands))
        case ConstantPlace():
            return frozenset()
        case _:
            return frozenset((place,))
