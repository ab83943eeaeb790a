"""Numbers that an eBPF program computes: terms, and what the operators of languages give for them.

A term has 64 bits: a signed number is extended by its sign, an unsigned one by 0. Where an operator
gives no result (see :mod:`fetchc.ir.arithmetic`), the term loads from where no memory is: it fails
as a load of memory that is missing does.
"""

from __future__ import annotations

from fetchc.ir.arithmetic import LAZY, TRUTH, Number
from fetchc.ir.evaluate_steps import calculated
from fetchc.ir.fetch import Calculated, Chosen, Part
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fetchc.ir.arithmetic import Rules
    from fetchc.ir.fetch import Term

    Operand = Callable[["Term | None"], "Numeral | None"]

__all__ = [
    "COMPARISONS",
    "MASK",
    "NOWHERE",
    "Numeral",
    "added",
    "both",
    "calculate",
    "converted",
    "either",
    "fails_where",
    "negated",
    "operation",
    "ordered",
    "sum_of",
]

MASK = (1 << 64) - 1
_TOP = 1 << 63
NOWHERE = MASK  # an address that has no memory
_LARGE = 1 << 31  # bytes of a container; sums of some such products are exact
_WORD = Number(64, True)
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_BY_BITS = ("&", "|", "^", "&^", "convert")


class Numeral(Record):
    """A term, and which number it is."""

    term: Term
    number: Number


# ------------------------------------------------------------------------------
# Operators, as :func:`fetchc.ir.arithmetic.evaluate` has them.


def operation(
    operator: str,
    operands: Sequence[Operand],
    number: Number,
    rules: Rules,
    result: Number,
    when: Term | None,
) -> Numeral | None:
    """What an operator gives, of :class:`~fetchc.ir.arithmetic.Calculation`; None: not in a term.

    An operand is a function: it loads nothing where its argument, 0 or 1, is 0. ``[]`` has an index
    and all elements.
    """
    of_truth = operator in (*COMPARISONS, "!", "&&", "||")
    fits = max(number.bits, result.bits) <= 64 and not number.floating and not result.floating
    if not fits or not (of_truth or result.bits == 1 or result == number):
        return None
    if number.bits == 1 and not (of_truth or operator in (*LAZY, *_BY_BITS)):
        return None
    match operator:
        case "?:" | "&&" | "||":
            found = _lazy(operator, operands, number, when)
        case "[]":
            found = _element(operands, number, when)
        case _:
            given = [one for one in [operand(when) for operand in operands] if one is not None]
            if len(given) < len(operands):
                return None
            found = _evaluated(operator, given, number, rules, when)
    if found is None:
        return None
    return converted(found, TRUTH) if result.bits == 1 else Numeral(found, result)


def sum_of(
    terms: Iterable[tuple[Term, Term, int, int]], constant: int, is_zero: bool, when: Term | None
) -> Numeral | None:
    """The sum of terms and a constant; with ``is_zero`` whether that is 0.

    A term is ``(number - less) / each * times``; with ``times`` 0 the difference has to be
    ``each``, or 0. It fails where a quotient is not exact, a difference is negative or large.
    """
    total: Term = constant & MASK
    wrong: Term = 0
    for number, less, each, times in terms:
        if each <= 0 or not 0 <= times < _LARGE:
            return None
        difference = calculate("sub", number, less)
        count = calculate("div", difference, each)
        exact = calculate("eq", calculate("mul", count, each), difference)
        if not times:
            exact = both(exact, calculate("lt", count, 2))
        wrong = either(wrong, negated(both(exact, calculate("lt", difference, _LARGE))))
        total = calculate("add", total, calculate("mul", count, times))
    wrong = either(wrong, calculate("rsh", total, 63))
    found = Numeral(calculate("eq", total, 0), TRUTH) if is_zero else Numeral(total, _WORD)
    return fails_where(wrong, found, when)


def _lazy(
    operator: str, operands: Sequence[Operand], number: Number, when: Term | None
) -> Term | None:
    first = operands[0](when)
    if first is None or not (operator == "?:" or number.bits == 1):
        return None
    truth = converted(first.term, TRUTH).term
    ways = {"?:": (truth, negated(truth)), "&&": (truth,), "||": (negated(truth),)}[operator]
    others = []
    for one, taken in zip(operands[1:], ways, strict=True):
        found = one(both(when, taken))
        if found is None:
            return None
        others.append(converted(found.term, number).term)
    if operator == "?:":
        return _chosen(truth, others[0], others[1])
    return both(truth, others[0]) if operator == "&&" else either(truth, others[0])


def _element(operands: Sequence[Operand], number: Number, when: Term | None) -> Term | None:
    index = operands[0](when)
    if index is None:
        return None
    found: Term = 0
    for position, one in enumerate(operands[1:]):
        here = calculate("eq", index.term, position)
        element = one(both(when, here))
        if element is None:
            return None
        found = _chosen(here, converted(element.term, number).term, found)
    beyond = negated(calculate("lt", index.term, len(operands) - 1))
    return fails_where(beyond, Numeral(found, number), when).term


def _evaluated(
    operator: str, given: list[Numeral], number: Number, rules: Rules, when: Term | None
) -> Term | None:
    if operator in ("<<", ">>"):
        return _shifted(operator, converted(given[0].term, number), given[1], rules, when)
    terms = [converted(one.term, number).term for one in given]
    if operator in COMPARISONS:
        return ordered(operator, terms[0], terms[1], number)
    if len(terms) == 1:
        return _of_one(operator, terms[0], number, rules, when)
    left, right = terms
    match operator:
        case "min":
            return _chosen(ordered("<", right, left, number), right, left)
        case "max":
            return _chosen(ordered("<", left, right, number), right, left)
        case "+" | "-":
            return added(operator, left, right, number, rules, when)
        case "*":
            return _product(left, right, number, rules, when)
        case "/" | "%":
            return _divided(operator, left, right, number, rules, when)
        case "&":
            return calculate("and", left, right)
        case "|":
            return calculate("or", left, right)
        case "^":
            return calculate("xor", left, right)
        case "&^":
            return calculate("and", left, calculate("xor", right, MASK))
        case _:
            return None


def _of_one(
    operator: str, operand: Term, number: Number, rules: Rules, when: Term | None
) -> Term | None:
    match operator:
        case "!":
            return calculate("eq", operand, 0)
        case "~":
            return converted(calculate("xor", operand, MASK), number).term
        case "-":
            return added("-", 0, operand, number, rules, when)
        case _:
            return operand


def added(
    operator: str, left: Term, right: Term, number: Number, rules: Rules, when: Term | None
) -> Term:
    """The sum, or for ``-`` the difference, as the language has it."""
    total = calculate("add" if operator == "+" else "sub", left, right)
    found = converted(total, number)
    if rules.overflow != "fault":
        return found.term
    if number.bits < 64:
        over = negated(calculate("eq", total, found.term))
    elif not number.signed:
        over = calculate("lt", total, left) if operator == "+" else calculate("lt", left, right)
    else:  # both have the sign that the result has not, the second one turned for a difference
        other = right if operator == "+" else calculate("xor", right, MASK)
        turned = calculate("and", calculate("xor", total, left), calculate("xor", total, other))
        over = calculate("rsh", turned, 63)
    return fails_where(over, found, when).term


def _product(
    left: Term, right: Term, number: Number, rules: Rules, when: Term | None
) -> Term | None:
    total = calculate("mul", left, right)
    found = converted(total, number)
    if rules.overflow != "fault":
        return found.term
    if number.bits <= 32:
        over = negated(calculate("eq", total, found.term))
    elif not number.signed:
        over = both(
            converted(left, TRUTH).term,
            negated(calculate("eq", calculate("div", total, left), right)),
        )
    else:
        return None
    return fails_where(over, found, when).term


def _divided(
    operator: str, left: Term, right: Term, number: Number, rules: Rules, when: Term | None
) -> Term:
    if number.signed:
        sign = calculate("arsh", calculate("xor", left, right), 63)
        quotient = calculate("div", _magnitude(left), _magnitude(right))
        quotient = calculate("sub", calculate("xor", quotient, sign), sign)
    else:
        quotient = calculate("div", left, right)
    wrong = calculate("eq", right, 0)
    if number.signed and rules.least_by_minus_one == "fault":
        least = -(1 << number.bits - 1) & MASK
        wrong = either(wrong, both(calculate("eq", left, least), calculate("eq", right, MASK)))
    rest = calculate("sub", left, calculate("mul", quotient, right))
    return fails_where(wrong, converted(quotient if operator == "/" else rest, number), when).term


def _magnitude(term: Term) -> Term:
    sign = calculate("arsh", term, 63)
    return calculate("sub", calculate("xor", term, sign), sign)


def _shifted(
    operator: str, value: Numeral, count: Numeral, rules: Rules, when: Term | None
) -> Term:
    number, by = value.number, count.term
    if rules.shift == "masked":
        by = calculate("and", by, number.bits - 1)
    right = "arsh" if number.signed else "rsh"
    shifted = converted(calculate("lsh" if operator == "<<" else right, value.term, by), number)
    below = calculate("lt", by, number.bits)
    if rules.shift == "empties":
        emptied = _read(value.term)
        if operator == ">>" and number.signed:
            emptied = calculate("arsh", value.term, 63)
        shifted = Numeral(_chosen(below, shifted.term, emptied), number)
        below = negated(calculate("rsh", by, 63)) if count.number.signed else 1
    return fails_where(negated(below), shifted, when).term


def ordered(operator: str, left: Term, right: Term, number: Number) -> Term:
    """1 where two numbers of that type compare so, else 0."""
    if operator in ("==", "!="):
        same = calculate("eq", left, right)
        return same if operator == "==" else negated(same)
    if number.signed:
        left, right = calculate("xor", left, _TOP), calculate("xor", right, _TOP)
    if operator in (">", "<="):
        left, right = right, left
    less = calculate("lt", left, right)
    return less if operator in ("<", ">") else negated(less)


# ------------------------------------------------------------------------------
# Terms; what is known is computed here.


def calculate(operation: str, left: Term, right: Term) -> Term:
    """One of :data:`~fetchc.ir.steps.OPERATIONS` on two terms."""
    if isinstance(left, int) and isinstance(right, int):
        return calculated(operation, left, right)
    return Calculated(operation, left, right)


def converted(term: Term, number: Number) -> Numeral:
    """The low bits of ``term`` as such a number; as a truth value, whether it is not 0."""
    if number.bits == 1:
        known = isinstance(term, Calculated) and term.operation in ("eq", "lt")
        return Numeral(term if known else negated(calculate("eq", term, 0)), number)
    over = 64 - number.bits
    if over and number.signed:
        term = calculate("arsh", calculate("lsh", term, over), over)
    elif over:
        term = calculate("and", term, (1 << number.bits) - 1)
    return Numeral(term, number)


def fails_where(wrong: Term, found: Numeral, when: Term | None) -> Numeral:
    """``found``, which fails where ``wrong``, 0 or 1, and ``when`` are not 0."""
    if wrong == 0:
        return found
    failed = Part(NOWHERE, 0, 1, both(when, wrong))
    return Numeral(calculate("or", found.term, failed), found.number)


def _chosen(condition: Term, nonzero: Term, zero: Term) -> Term:
    if isinstance(condition, int):
        return nonzero if condition else zero
    return Chosen(condition, nonzero, zero)


def _read(term: Term) -> Term:
    # 0, where all that the term needs could be read.
    return calculate("and", term, 0)


def negated(condition: Term) -> Term:
    """1 where the condition is 0, else 0."""
    return calculate("eq", condition, 0)


def both(one: Term | None, other: Term) -> Term:
    """1 where both conditions, each 0 or 1, hold; None always does."""
    return other if one is None or one == 1 else calculate("and", one, other)


def either(one: Term, other: Term) -> Term:
    """1 where one of the conditions, each 0 or 1, holds."""
    return other if one == 0 else calculate("or", one, other)
