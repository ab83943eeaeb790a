"""Numbers that are computed from fields, as terms that an eBPF program computes at a hit.

A term has 64 bits: a signed number is extended by its sign, an unsigned one by 0. Where an operator
gives no result (see :mod:`fetchc.ir.arithmetic`), the term loads from where no memory is. So, as
where memory of the program is missing, the program leaves the hit to the reader.
"""

from __future__ import annotations

from fetchc.ir.arithmetic import LAZY, RULES, TRUTH, Number
from fetchc.ir.evaluate_steps import calculated
from fetchc.ir.fetch import (
    Array,
    Bits,
    Calculated,
    Char,
    Chosen,
    Decode,
    Deref,
    Immediate,
    OfEntry,
    Part,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Word,
    element_of,
    fixed_bytes,
)
from fetchc.record import Record
from fetchc.tracer.guards import LOWEST
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    ComputedShape,
    DifferenceShape,
    ElementCountShape,
    Leaf,
    OperationShape,
    SumShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fetchc.ir.arithmetic import Rules
    from fetchc.ir.fetch import Fetch, Term
    from fetchc.tracer.value_shapes import Guard, OperandShape, Shape

    Fetches = Mapping[str, Fetch]

__all__ = [
    "Noted",
    "Numeral",
    "compared",
    "decoded",
    "guards_fail",
    "multiples",
    "noted",
    "numeral",
    "store_of",
    "stored",
    "stored_as",
]

_INTEGERS = ("integer", "duration", "enum", "pointer", "char", "bool")
_MASK = (1 << 64) - 1
_TOP = 1 << 63
_NOWHERE = _MASK  # an address that has no memory
_DEEPEST = 16  # loads of a chain, each of which is left out where the number is not wanted
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_BY_BITS = ("&", "|", "^", "&^", "convert")
_WORD = Number(64, True)
_LARGE = 1 << 31  # bytes of a container; sums of some such products are exact


class Numeral(Record):
    """A term, and which number it is."""

    term: Term
    number: Number


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
            total = _as(_of("add", found.term, addend & _MASK), number)
            return _as(total.term, TRUTH) if decode.kind == "bool" else total
        case DifferenceShape(minuend=minuend, subtrahend=less):
            return _difference(minuend, less, fetches, when)
        case ElementCountShape(start=start, end=end, each=each):
            return _quotient_of(end, start, each, fetches, when)
        case BoundsCheckShape(number=count, least=least, inner=inner):
            many, found = numeral(count, fetches, when), numeral(inner, fetches, when)
            if many is None or found is None:
                return None
            return _unless(compared(many, "<", least), found, when)
        case ComputedShape():
            return _sum(shape, fetches, when)
        case OperationShape():
            return _operation(shape, fetches, when)
        case _:
            return None


class Noted(Record):
    """A number of the entry of a call, as its return has it; ``decode`` says what it means."""

    label: str
    numeral: Numeral
    decode: Decode


def noted(label: str, shape: Shape, fetches: Fetches, number: int) -> tuple[Term, Noted] | None:
    """What the entry notes as that ``number``, and what the return has; None: no such number."""
    found = numeral(shape, fetches)
    if found is None:
        return None
    at_return = Numeral(OfEntry(number), found.number)
    return found.term, Noted(label, at_return, stored_as(found, decoded(shape)))


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
    if isinstance(value, Deref):
        if leaf.offset + size > fixed_bytes(fetch.store):
            return None  # in a field behind it
        return _load(value, leaf.offset, size, when), size
    if isinstance(value, _IN_A_REGISTER) and not isinstance(fetch.store, Array) and not leaf.offset:
        return value, size
    return None


_IN_A_REGISTER = Register | StackPointer | StackEntry | ReturnValue | Immediate


def guards_fail(guards: Iterable[Guard]) -> bool:
    """Whether a load fails wherever a guard says so: what it takes for no address has no memory."""
    return all(0 <= guard.moved < LOWEST and not guard.kernel for guard in guards)


def _load(value: Deref, offset: int, size: int, when: Term | None) -> Part:
    base: Term = value.base
    loads, inner = [], value.base
    while isinstance(inner, Deref):
        loads.append(inner.offset)
        inner = inner.base
    if when is not None and len(loads) < _DEEPEST:
        base = inner
        for one in reversed(loads):
            base = Part(base, one, 8, when)
    return Part(base, value.offset + offset, size, when)


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
        term = _of("rsh", term, shift)
    if of_truth:
        return _as(_as(term, number.replaced(bits=max(number.bits, 2))).term, TRUTH)
    loaded = isinstance(term, Part) and not number.signed and number.bits == 8 * size
    return Numeral(term, number) if loaded else _as(term, number)


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
        return _as(_of("sub", first.term, second.term), first.number)
    if kind != "integer" or not all(one.number.signed for one in (first, second)):
        return None
    return Numeral(_added("-", first.term, second.term, _WORD, RULES["rust"], when), _WORD)


def _constant_or(value: Leaf | int, fetches: Fetches, when: Term | None) -> Numeral | None:
    if isinstance(value, int):
        return Numeral(value & _MASK, _WORD)
    return numeral(value, fetches, when)


def _quotient_of(
    end: Leaf, start: Leaf, each: int, fetches: Fetches, when: Term | None
) -> Numeral | None:
    ends = [numeral(one, fetches, when) for one in (end, start)]
    if ends[0] is None or ends[1] is None or each <= 0:
        return None
    bytes = _of("sub", ends[0].term, ends[1].term)
    count = _of("div", bytes, each)
    wrong = _either(
        _of("lt", ends[0].term, ends[1].term), _not(_of("eq", _of("mul", count, each), bytes))
    )
    return _unless(wrong, Numeral(count, _WORD), when)


def _sum(shape: ComputedShape, fetches: Fetches, when: Term | None) -> Numeral | None:
    total: Term = shape.constant & _MASK
    wrong: Term = 0
    for one in shape.terms:
        number = numeral(one.number, fetches, when)
        less = _constant_or(0 if one.less is None else one.less, fetches, when)
        if number is None or less is None or one.each <= 0 or not 0 <= one.times < _LARGE:
            return None
        difference = _of("sub", number.term, less.term)
        count = _of("div", difference, one.each)
        exact = _of("eq", _of("mul", count, one.each), difference)
        if not one.times:
            exact = _both(exact, _of("lt", count, 2))
        # One that is negative, or large, is left to the reader, too.
        wrong = _either(wrong, _not(_both(exact, _of("lt", difference, _LARGE))))
        total = _of("add", total, _of("mul", count, one.times))
    wrong = _either(wrong, _of("rsh", total, 63))
    found = Numeral(_of("eq", total, 0), TRUTH) if shape.is_none else Numeral(total, _WORD)
    return _unless(wrong, found, when)


# ------------------------------------------------------------------------------
# Operators, as :func:`fetchc.ir.arithmetic.evaluate` has them.


def _operation(shape: OperationShape, fetches: Fetches, when: Term | None) -> Numeral | None:
    number, result, decode = shape.number, shape.result, shape.decode
    of_truth = shape.operator in (*_COMPARISONS, "!", "&&", "||")
    fits = max(number.bits, result.bits) <= 64 and not number.floating and not result.floating
    if not fits or not (of_truth or result.bits == 1 or result == number):
        return None
    if number.bits == 1 and not (of_truth or shape.operator in (*LAZY, *_BY_BITS)):
        return None
    if result.bits > 1 and (decode.kind not in _INTEGERS or decode.bits not in (None, result.bits)):
        return None
    match shape.operator:
        case "?:" | "&&" | "||":
            found = _lazy(shape, fetches, when)
        case "[]":
            found = _element(shape, fetches, when)
        case _:
            operands = [_operand(one, fetches, when) for one in shape.operands]
            given = [one for one in operands if one is not None]
            if len(given) < len(operands):
                return None
            found = _evaluated(shape, given, when)
    if found is None:
        return None
    return _as(found, TRUTH) if result.bits == 1 else Numeral(found, result)


def _operand(operand: OperandShape, fetches: Fetches, when: Term | None) -> Numeral | None:
    value = operand.value
    if isinstance(value, float) or operand.number.floating:
        return None
    if isinstance(value, int):
        return Numeral(value & _MASK, operand.number) if -_TOP <= value <= _MASK else None
    found = numeral(value, fetches, when)
    if found is None or isinstance(value, OperationShape):
        return found
    return _as(found.term, operand.number) if operand.number.bits <= 64 else None


def _lazy(shape: OperationShape, fetches: Fetches, when: Term | None) -> Term | None:
    first = _operand(shape.operands[0], fetches, when)
    if first is None or not (shape.operator == "?:" or shape.number.bits == 1):
        return None
    truth = _as(first.term, TRUTH).term
    ways = {"?:": (truth, _not(truth)), "&&": (truth,), "||": (_not(truth),)}[shape.operator]
    others = []
    for one, taken in zip(shape.operands[1:], ways, strict=True):
        found = _operand(one, fetches, _both(when, taken))
        if found is None:
            return None
        others.append(_as(found.term, shape.number).term)
    if shape.operator == "?:":
        return _chosen(truth, others[0], others[1])
    return _both(truth, others[0]) if shape.operator == "&&" else _either(truth, others[0])


def _element(shape: OperationShape, fetches: Fetches, when: Term | None) -> Term | None:
    index = _operand(shape.operands[0], fetches, when)
    if index is None:
        return None
    found: Term = 0
    for position, one in enumerate(shape.operands[1:]):
        here = _of("eq", index.term, position)
        element = _operand(one, fetches, _both(when, here))
        if element is None:
            return None
        found = _chosen(here, _as(element.term, shape.number).term, found)
    beyond = _not(_of("lt", index.term, len(shape.operands) - 1))
    checked = _unless(beyond, Numeral(found, shape.number), when)
    return checked.term


def _evaluated(shape: OperationShape, given: list[Numeral], when: Term | None) -> Term | None:
    operator, number, rules = shape.operator, shape.number, RULES[shape.rules]
    if operator in ("<<", ">>"):
        return _shifted(operator, _as(given[0].term, number), given[1], rules, when)
    terms = [_as(one.term, number).term for one in given]
    if operator in _COMPARISONS:
        return _ordered(operator, terms[0], terms[1], number)
    if len(terms) == 1:
        return _of_one(operator, terms[0], number, rules, when)
    left, right = terms
    match operator:
        case "min":
            return _chosen(_ordered("<", right, left, number), right, left)
        case "max":
            return _chosen(_ordered("<", left, right, number), right, left)
        case "+" | "-":
            return _added(operator, left, right, number, rules, when)
        case "*":
            return _product(left, right, number, rules, when)
        case "/" | "%":
            return _divided(operator, left, right, number, rules, when)
        case "&":
            return _of("and", left, right)
        case "|":
            return _of("or", left, right)
        case "^":
            return _of("xor", left, right)
        case "&^":
            return _of("and", left, _of("xor", right, _MASK))
        case _:
            return None


def _of_one(
    operator: str, operand: Term, number: Number, rules: Rules, when: Term | None
) -> Term | None:
    match operator:
        case "!":
            return _of("eq", operand, 0)
        case "~":
            return _as(_of("xor", operand, _MASK), number).term
        case "-":
            return _added("-", 0, operand, number, rules, when)
        case _:
            return operand


def _added(
    operator: str, left: Term, right: Term, number: Number, rules: Rules, when: Term | None
) -> Term:
    total = _of("add" if operator == "+" else "sub", left, right)
    found = _as(total, number)
    if rules.overflow != "fault":
        return found.term
    if number.bits < 64:
        over = _not(_of("eq", total, found.term))
    elif not number.signed:
        over = _of("lt", total, left) if operator == "+" else _of("lt", left, right)
    else:  # both have the sign that the result has not, the second one turned for a difference
        other = right if operator == "+" else _of("xor", right, _MASK)
        turned = _of("and", _of("xor", total, left), _of("xor", total, other))
        over = _of("rsh", turned, 63)
    return _unless(over, found, when).term


def _product(
    left: Term, right: Term, number: Number, rules: Rules, when: Term | None
) -> Term | None:
    total = _of("mul", left, right)
    found = _as(total, number)
    if rules.overflow != "fault":
        return found.term
    if number.bits <= 32:
        over = _not(_of("eq", total, found.term))
    elif not number.signed:
        over = _both(_as(left, TRUTH).term, _not(_of("eq", _of("div", total, left), right)))
    else:
        return None
    return _unless(over, found, when).term


def _divided(
    operator: str, left: Term, right: Term, number: Number, rules: Rules, when: Term | None
) -> Term:
    if number.signed:
        sign = _of("arsh", _of("xor", left, right), 63)
        quotient = _of("div", _magnitude(left), _magnitude(right))
        quotient = _of("sub", _of("xor", quotient, sign), sign)
    else:
        quotient = _of("div", left, right)
    wrong = _of("eq", right, 0)
    if number.signed and rules.least_by_minus_one == "fault":
        least = -(1 << number.bits - 1) & _MASK
        wrong = _either(wrong, _both(_of("eq", left, least), _of("eq", right, _MASK)))
    rest = _of("sub", left, _of("mul", quotient, right))
    return _unless(wrong, _as(quotient if operator == "/" else rest, number), when).term


def _magnitude(term: Term) -> Term:
    sign = _of("arsh", term, 63)
    return _of("sub", _of("xor", term, sign), sign)


def _shifted(
    operator: str, value: Numeral, count: Numeral, rules: Rules, when: Term | None
) -> Term:
    number, by = value.number, count.term
    if rules.shift == "masked":
        by = _of("and", by, number.bits - 1)
    right = "arsh" if number.signed else "rsh"
    shifted = _as(_of("lsh" if operator == "<<" else right, value.term, by), number)
    below = _of("lt", by, number.bits)
    if rules.shift == "empties":
        emptied = _read(value.term)
        if operator == ">>" and number.signed:
            emptied = _of("arsh", value.term, 63)
        shifted = Numeral(_chosen(below, shifted.term, emptied), number)
        below = _not(_of("rsh", by, 63)) if count.number.signed else 1
    return _unless(_not(below), shifted, when).term


# ------------------------------------------------------------------------------
# Conditions, and buckets of one width.


def compared(value: Numeral, operator: str, constant: int) -> Term:
    """1 where the number compares so with a constant, else 0; ``&``: where they share a bit."""
    number = value.number
    if operator == "&":
        return _not(_of("eq", _of("and", value.term, constant & _MASK), 0))
    low, high = (-_TOP, _TOP - 1) if number.signed else (0, _MASK)
    if not low <= constant <= high:  # all numbers are on one side of it
        above = constant > high
        passes = operator == "!=" or operator in (("<", "<=") if above else (">", ">="))
        return _either(_read(value.term), int(passes))
    return _ordered(operator, value.term, constant & _MASK, number)


def _ordered(operator: str, left: Term, right: Term, number: Number) -> Term:
    if operator in ("==", "!="):
        same = _of("eq", left, right)
        return same if operator == "==" else _not(same)
    if number.signed:
        left, right = _of("xor", left, _TOP), _of("xor", right, _TOP)
    if operator in (">", "<="):
        left, right = right, left
    less = _of("lt", left, right)
    return less if operator in ("<", ">") else _not(less)


def multiples(value: Numeral, step: int) -> Term:
    """How often ``step`` is in the number, rounded down, as a signed number."""
    if not value.number.signed:
        return _of("div", value.term, step)
    sign = _of("arsh", value.term, 63)
    return _of("xor", _of("div", _of("xor", value.term, sign), step), sign)


# ------------------------------------------------------------------------------
# Terms; what is known is computed here.


def _of(operation: str, left: Term, right: Term) -> Term:
    if isinstance(left, int) and isinstance(right, int):
        return calculated(operation, left, right)
    return Calculated(operation, left, right)


def _as(term: Term, number: Number) -> Numeral:
    if number.bits == 1:
        known = isinstance(term, Calculated) and term.operation in ("eq", "lt")
        return Numeral(term if known else _not(_of("eq", term, 0)), number)
    over = 64 - number.bits
    if over and number.signed:
        term = _of("arsh", _of("lsh", term, over), over)
    elif over:
        term = _of("and", term, (1 << number.bits) - 1)
    return Numeral(term, number)


def _unless(wrong: Term, found: Numeral, when: Term | None) -> Numeral:
    # The hit is left to the reader where that is wrong.
    if wrong == 0:
        return found
    failed = Part(_NOWHERE, 0, 1, _both(when, wrong))
    return Numeral(_of("or", found.term, failed), found.number)


def _chosen(condition: Term, nonzero: Term, zero: Term) -> Term:
    if isinstance(condition, int):
        return nonzero if condition else zero
    return Chosen(condition, nonzero, zero)


def _read(term: Term) -> Term:
    # 0, where all that the term needs could be read.
    return _of("and", term, 0)


def _not(condition: Term) -> Term:
    return _of("eq", condition, 0)


def _both(one: Term | None, other: Term) -> Term:
    return other if one is None or one == 1 else _of("and", one, other)


def _either(one: Term, other: Term) -> Term:
    return other if one == 0 else _of("or", one, other)
