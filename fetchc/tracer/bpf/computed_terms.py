"""Numbers that are computed from fields, as terms that an eBPF program computes at a hit.

See :mod:`fetchc.ir.term_operators`. Where a term fails, as where memory of the program is missing,
the program leaves the hit to the reader.
"""

from __future__ import annotations

import math

from fetchc.ir.arithmetic import RULES, TRUTH, Number
from fetchc.ir.fetch import (
    Array,
    Bits,
    Char,
    Contents,
    Decode,
    Deref,
    Immediate,
    KernelValue,
    Part,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Text,
    Word,
    element_of,
    fixed_bytes,
)
from fetchc.ir.term_operators import (
    COMPARISONS,
    MASK,
    Numeral,
    added,
    calculate,
    converted,
    either,
    fails_where,
    negated,
    operation,
    ordered,
    sum_of,
)
from fetchc.record import Record
from fetchc.tracer.bpf.floating_terms import (
    FLOATS,
    MIRRORED,
    compared_floats,
    compared_with,
    nearest,
)
from fetchc.tracer.guards import LOWEST
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    ComputedShape,
    DifferenceShape,
    ElementCountShape,
    Leaf,
    OperationShape,
    SizedStringShape,
    StringShape,
    SumShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fetchc.ir.fetch import Fetch, Term, Value
    from fetchc.ir.term_operators import Operand
    from fetchc.tracer.value_shapes import Guard, OperandShape, Shape

    Fetches = Mapping[str, Fetch]

__all__ = [
    "StoredString",
    "compared",
    "decoded",
    "floating",
    "guards_fail",
    "multiples",
    "numeral",
    "place_in_context",
    "store_of",
    "stored",
    "stored_as",
    "stored_string",
]

_INTEGERS = ("integer", "duration", "enum", "pointer", "char", "bool")
_TOP = 1 << 63
_DEEPEST = 16  # loads of a chain, each of which is left out where the number is not wanted
_WORD = Number(64, True)


def numeral(shape: Shape, fetches: Fetches, when: Term | None = None) -> Numeral | None:
    """The integer that a value is, or stands for as an enumerator does; None: the reader has it.

    ``fetches`` are those of the fields. Nothing is loaded where ``when``, 0 or 1, is 0.
    """
    match shape:
        case Leaf():
            return _leaf(shape, fetches, when)
        case SumShape(word=word, addend=addend, size=size, decode=decode):
            found = Numeral(0, _WORD) if word is None else numeral(word, fetches, when)
            number = _number(decode, 8 * size)
            if found is None or number is None:
                return None
            total = converted(calculate("add", found.term, addend & MASK), number)
            return converted(total.term, TRUTH) if decode.kind == "bool" else total
        case DifferenceShape(minuend=minuend, subtrahend=less):
            return _difference(minuend, less, fetches, when)
        case ElementCountShape(start=start, end=end, each=each):
            return _quotient_of(end, start, each, fetches, when)
        case BoundsCheckShape(number=count, least=least, inner=inner):
            many, found = numeral(count, fetches, when), numeral(inner, fetches, when)
            if many is None or found is None:
                return None
            return fails_where(compared(many, "<", least), found, when)
        case ComputedShape():
            return _sum(shape, fetches, when)
        case OperationShape():
            return _operation(shape, fetches, when)
        case _:
            return None


def stored_as(found: Numeral, decode: Decode) -> Decode:
    """What the number means in a field of its own, of :func:`store_of` the number."""
    if found.number.bits == 1:
        return Decode("bool", 8)
    return decode.replaced(bits=store_of(found).bits, signed=found.number.signed)


def store_of(found: Numeral) -> Scalar:
    """How the number is stored in a field of its own."""
    bits = max(8, 1 << (found.number.bits - 1).bit_length())
    return Scalar("s" if found.number.signed else "u", bits)


def decoded(shape: Shape) -> Decode:
    """What such a number means, whatever its width."""
    match shape:
        case Leaf(decode=decode) | SumShape(decode=decode) | OperationShape(decode=decode):
            return decode
        case DifferenceShape(minuend=minuend):
            return minuend.decode
        case BoundsCheckShape(inner=inner):
            return decoded(inner)
        case _:
            return Decode("integer")


# ------------------------------------------------------------------------------
# What is in a field.


def stored(leaf: Leaf, fetches: Fetches, when: Term | None = None) -> tuple[Term, int] | None:
    """The bytes that a leaf is in, as an unsigned number, and how many they are."""
    fetch = fetches[leaf.field]
    value, element = fetch.value, element_of(fetch.store)
    whole = (leaf.total, leaf.decode.count, leaf.pointers) == (0, None, "")
    if not (
        whole and guards_fail(leaf.guards) and isinstance(element, Scalar | Bits | Char | Word)
    ):
        return None
    size = leaf.size or fixed_bytes(element)
    if leaf.offset + size > fixed_bytes(fetch.store):
        return None  # in a field after it
    if isinstance(value, Deref):
        return _load(value, leaf.offset, size, when), size
    if (place := place_in_context(value)) is not None:
        return Part(place, leaf.offset, size, when), size
    if isinstance(value, _IN_A_REGISTER) and not isinstance(fetch.store, Array) and not leaf.offset:
        return value, size
    return None


def place_in_context(value: Value) -> KernelValue | None:
    """The address of a value that is in what the kernel gives a program; None of all others."""
    if isinstance(value, KernelValue) and value.rule in _IN_CONTEXT:
        return value.replaced(rule="event_array")  # whose value is its address
    return None


_IN_CONTEXT = ("event_field", "event_text_pointer", "argument")
_IN_A_REGISTER = Register | StackPointer | StackEntry | ReturnValue | Immediate


class StoredString(Record):
    """Where the bytes of a string of UTF-8 are, and the number of ``length`` bytes.

    Without that number it ends at a NUL, or at the end of an array of ``limit`` bytes.
    """

    start: Deref
    length: Numeral | None
    limit: int | None = None


def stored_string(shape: Shape, fetches: Fetches) -> StoredString | None:
    """The string that a value is; None: it is none, or its memory can be there where it is not."""
    length: Shape | None = None
    text, limit = shape, None
    if isinstance(shape, SizedStringShape):
        text, length = shape.inner, shape.length
    elif isinstance(shape, StringShape):
        length = shape.length
        limit = shape.limit if length is None else None
        if length is None and limit != shape.size:
            return None  # of an array there are not all bytes
    if not isinstance(text, Leaf | StringShape) or not guards_fail(text.guards) or text.offset:
        return None
    fetch = fetches[text.field]
    value = fetch.value.start if isinstance(fetch.value, Contents) else fetch.value
    decode = text.decode if isinstance(text, Leaf) else Decode(text.kind)
    if not isinstance(value, Deref) or decode != Decode("text"):
        return None
    if isinstance(fetch.store, Text) and fetch.store.user:
        value = value.replaced(user=True)
    bytes = None if length is None else numeral(length, fetches)
    if length is not None and (bytes is None or bytes.number.bits != 64):
        return None
    return StoredString(value, bytes, limit)


def guards_fail(guards: Iterable[Guard]) -> bool:
    """Whether a load fails wherever a guard says so: what it takes for no address has no memory."""
    return all(0 <= guard.moved < LOWEST for guard in guards)


def _load(value: Deref, offset: int, size: int, when: Term | None) -> Part:
    base: Term = value.base
    loads, inner = list[Deref](), value.base
    while isinstance(inner, Deref):
        loads.append(inner)
        inner = inner.base
    if when is not None and len(loads) < _DEEPEST:
        base = inner
        for one in reversed(loads):
            base = Part(base, one.offset, 8, when, one.user)
    return Part(base, value.offset + offset, size, when, value.user)


def _leaf(leaf: Leaf, fetches: Fetches, when: Term | None) -> Numeral | None:
    found = stored(leaf, fetches, when)
    if found is None:
        return None
    term, size = found
    element, number = element_of(fetches[leaf.field].store), _number(leaf.decode, 8 * size)
    shift = leaf.shift
    of_truth = leaf.decode.kind == "bool"
    if isinstance(element, Bits) and not leaf.size:
        if number is None or not (of_truth or number.bits == element.width):
            return None
        shift, number = element.offset, number.replaced(bits=element.width)
    if number is None:
        return None
    if shift:
        term = calculate("rsh", term, shift)
    if of_truth:
        return converted(converted(term, number.replaced(bits=max(number.bits, 2))).term, TRUTH)
    loaded = isinstance(term, Part) and not number.signed and number.bits == 8 * size
    return Numeral(term, number) if loaded else converted(term, number)


def _number(decode: Decode, bits: int) -> Number | None:
    found = Number(decode.bits or bits, decode.signed)
    return found if decode.kind in _INTEGERS and found.bits <= 64 else None


# ------------------------------------------------------------------------------
# Differences, and numbers of elements: below 0 these are none.


def _difference(
    minuend: Leaf, subtrahend: Leaf | int, fetches: Fetches, when: Term | None
) -> Numeral | None:
    first = numeral(minuend, fetches, when)
    second = _constant_or(subtrahend, fetches, when)
    if first is None or second is None:
        return None
    kind = minuend.decode.kind
    if kind == "pointer" and minuend.decode.bits is not None:
        return converted(calculate("sub", first.term, second.term), first.number)
    if kind != "integer" or not all(one.number.signed for one in (first, second)):
        return None
    return Numeral(added("-", first.term, second.term, _WORD, RULES["rust"], when), _WORD)


def _constant_or(value: Leaf | int, fetches: Fetches, when: Term | None) -> Numeral | None:
    if isinstance(value, int):
        return Numeral(value & MASK, _WORD)
    return numeral(value, fetches, when)


def _quotient_of(
    end: Leaf, start: Leaf, each: int, fetches: Fetches, when: Term | None
) -> Numeral | None:
    ends = [numeral(one, fetches, when) for one in (end, start)]
    if ends[0] is None or ends[1] is None or each <= 0:
        return None
    bytes = calculate("sub", ends[0].term, ends[1].term)
    count = calculate("div", bytes, each)
    wrong = either(
        calculate("lt", ends[0].term, ends[1].term),
        negated(calculate("eq", calculate("mul", count, each), bytes)),
    )
    return fails_where(wrong, Numeral(count, _WORD), when)


def _sum(shape: ComputedShape, fetches: Fetches, when: Term | None) -> Numeral | None:
    terms = []
    for one in shape.terms:
        number = numeral(one.number, fetches, when)
        less = _constant_or(0 if one.less is None else one.less, fetches, when)
        if number is None or less is None:
            return None
        terms.append((number.term, less.term, one.each, one.times))
    return sum_of(terms, shape.constant, shape.is_none, when)


# ------------------------------------------------------------------------------
# Operators.


def _operation(shape: OperationShape, fetches: Fetches, when: Term | None) -> Numeral | None:
    result, decode = shape.result, shape.decode
    if result.bits > 1 and (decode.kind not in _INTEGERS or decode.bits not in (None, result.bits)):
        return None
    if shape.number.floating:
        return _of_floats(shape, fetches, when)
    operands = [_operand(one, fetches) for one in shape.operands]
    return operation(shape.operator, operands, shape.number, RULES[shape.rules], result, when)


def _operand(operand: OperandShape, fetches: Fetches) -> Operand:
    value, number = operand.value, operand.number

    def made(when: Term | None) -> Numeral | None:
        if isinstance(value, float) or number.floating:
            return None
        if isinstance(value, int):
            return Numeral(value & MASK, number) if -_TOP <= value <= MASK else None
        found = numeral(value, fetches, when)
        if found is None or isinstance(value, OperationShape):
            return found
        return converted(found.term, number) if number.bits <= 64 else None

    return made


def floating(shape: Shape, fetches: Fetches, when: Term | None = None) -> Numeral | None:
    """The bits of a floating-point number that is in one field; None of all others."""
    if not isinstance(shape, Leaf) or shape.decode.kind != "float" or shape.shift:
        return None
    found = stored(shape, fetches, when)
    if found is None or isinstance(element_of(fetches[shape.field].store), Bits):
        return None
    term, bits = found[0], 8 * found[1]
    if bits not in FLOATS or shape.decode.bits not in (None, bits):
        return None
    return Numeral(converted(term, Number(bits, False)).term, Number(bits, True, True))


def _of_floats(shape: OperationShape, fetches: Fetches, when: Term | None) -> Numeral | None:
    # No more than two of them, or one and a constant, which are compared.
    if shape.operator not in COMPARISONS or shape.number.bits not in FLOATS:
        return None
    left, right = shape.operands
    operator = shape.operator
    if isinstance(left.value, int | float):
        left, right, operator = right, left, MIRRORED.get(operator, operator)
    first = _float_operand(left, fetches, when)
    if first is None:
        return None
    if isinstance(right.value, int | float):
        constant = nearest(right.value, shape.number.bits)
        found = compared_with(first, operator, constant, shown=False)
    else:
        second = _float_operand(right, fetches, when)
        if second is None or second.number != first.number:
            return None
        found = compared_floats(operator, first, second)
    return converted(found, TRUTH) if shape.result.bits == 1 else Numeral(found, shape.result)


def _float_operand(operand: OperandShape, fetches: Fetches, when: Term | None) -> Numeral | None:
    if isinstance(operand.value, int | float) or not operand.number.floating:
        return None
    found = floating(operand.value, fetches, when)
    return None if found is None or found.number != operand.number else found


# ------------------------------------------------------------------------------
# Conditions, and buckets of one width.


def compared(value: Numeral, operator: str, constant: float) -> Term:
    """1 where the number compares so with a constant, else 0; ``&``: where they share a bit.

    A floating-point number is compared as it is shown.
    """
    number = value.number
    if number.floating:
        return compared_with(value, operator, constant, shown=True)
    operator, constant = _of_integers(operator, constant)
    if operator == "&":
        return negated(calculate("eq", calculate("and", value.term, constant & MASK), 0))
    low, high = (-_TOP, _TOP - 1) if number.signed else (0, MASK)
    if not low <= constant <= high:  # all numbers are on one side of it
        above = constant > high
        passes = operator == "!=" or operator in (("<", "<=") if above else (">", ">="))
        return either(calculate("and", value.term, 0), int(passes))  # where it could be read
    return ordered(operator, value.term, constant & MASK, number)


def _of_integers(operator: str, constant: float) -> tuple[str, int]:
    # What an integer is compared with in place of the constant, and how.
    if math.isinf(constant):
        return operator, 1 << 65 if constant > 0 else -1 << 65
    below = math.floor(constant)
    if below == constant:
        return operator, below
    if operator in ("==", "!="):
        return operator, 1 << 65  # no integer is the constant
    return ("<=" if operator[0] == "<" else ">"), below


def multiples(value: Numeral, step: int) -> Term:
    """How often ``step`` is in the number, rounded down, as a signed number."""
    if not value.number.signed:
        return calculate("div", value.term, step)
    sign = calculate("arsh", value.term, 63)
    return calculate("xor", calculate("div", calculate("xor", value.term, sign), step), sign)
