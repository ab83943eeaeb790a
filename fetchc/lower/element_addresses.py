"""Where an element is whose index is known when the program runs: for eBPF programs.

The index, and the number of elements, are terms of the language's operators
(:mod:`fetchc.ir.term_operators`).
"""

from __future__ import annotations

from fetchc.check.checker import Checker
from fetchc.check.computed_variables import as_operation
from fetchc.check.conversions import number_of
from fetchc.check.typed_tree import Address, Computed, Constant, Indexed, Located, Operation
from fetchc.diag.diagnostic import reject
from fetchc.ir.arithmetic import RULES, TRUTH, Number
from fetchc.ir.fetch import Bits, Char, Deref, ElementAddress, Part, Scalar, Word, fixed_bytes
from fetchc.ir.term_operators import (
    MASK,
    Numeral,
    calculate,
    converted,
    fails_where,
    negated,
    operation,
    sum_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.ir.fetch import Term, Value
    from fetchc.ir.term_operators import Operand
    from fetchc.lower.fetches import Lowered

    Pointer = Callable[[Site, Typed], tuple[Value, int]]
    Scalars = Callable[[Checker, Typed], Lowered]

__all__ = ["element_address", "numeral", "selected"]

_ADDRESS = Number(64, False)


def element_address(
    site: Site, node: Indexed | Located, pointer: Pointer, number: Scalars
) -> ElementAddress:
    """The address that ``node``, or a computed variable, is; CompileError where no program can.

    ``pointer`` and ``number`` are those of :mod:`fetchc.lower.fetches`.
    """
    numbers = _Numbers(Checker(site), number)
    if isinstance(node, Located):
        return ElementAddress(numbers.numeral(node).term)
    start, offset = pointer(site, node.base)
    index = numbers.numeral(node.index).term
    address = _moved(_moved(start, offset & MASK), calculate("mul", index, node.each))
    if node.count is None:
        return ElementAddress(address)
    count = numbers.numeral(node.count).term
    # The count is part of it: where that cannot be read, no index is known to be in range.
    address = _moved(address, calculate("and", count, 0))
    beyond = negated(calculate("lt", index, count))
    return ElementAddress(fails_where(beyond, Numeral(address, _ADDRESS), None).term)


def numeral(checker: Checker, node: Typed, number: Scalars) -> Numeral:
    """The number that ``node`` is; raises CompileError FC0308 where no program computes it."""
    return _Numbers(checker, number).numeral(node)


def _moved(start: Term, by: Term) -> Term:
    return start if by == 0 else calculate("add", start, by)


def selected(site: Site, node: Operation) -> Indexed:
    """Where the element is that a reader selects of an array: for what continues from it."""
    index, first, *others = node.operands
    checker, span = Checker(site), node.span
    each = checker.size(first.type)
    assert each is not None
    start = Address(first, checker.pointer_to(first.type), span)
    count = Constant(1 + len(others), checker.word(signed=True), span)
    return Indexed(start, index, each, count, start.type, span)


class _Numbers:
    """Numbers of the typed tree as terms; ``number`` fetches what is not computed."""

    def __init__(self, checker: Checker, number: Scalars) -> None:
        self._checker = checker
        self._number = number

    def numeral(self, node: Typed) -> Numeral:
        """The number that ``node`` is; raises CompileError FC0308 where no program computes it."""
        found = self._numeral(node, None)
        if found is None:
            raise reject(
                "FC0308",
                "an eBPF program cannot compute this index",
                node.span,
                "not as the index of an element",
                help="fetch it, and the elements, as two values: `p[0:8]`",
            )
        return found

    def _numeral(self, node: Typed, when: Term | None) -> Numeral | None:
        node = as_operation(self._checker, node)
        match node:
            case Constant(value=value):
                number = number_of(self._checker, node)
                return None if number is None else Numeral(value & MASK, number)
            case Operation(operands=operands, number=number, rules=rules):
                # What is assumed of one operand alone, a reader checks.
                result = number_of(self._checker, node)
                if any(node.assumptions) or result is None:
                    return None
                given = [self._operand(one) for one in operands]
                return operation(node.operator, given, number, RULES[rules], result, when)
            case Computed():
                return self._sum(node, when)
            case _:
                return _fetched(self._number(self._checker, node), when)

    def _operand(self, node: Typed) -> Operand:
        return lambda when: self._numeral(node, when)

    def _sum(self, node: Computed, when: Term | None) -> Numeral | None:
        terms = []
        for one in node.terms:
            number = self._numeral(one.number, when)
            less = None if one.subtrahend is None else self._numeral(one.subtrahend, when)
            if number is None or (less is None and one.subtrahend is not None):
                return None
            terms.append((number.term, 0 if less is None else less.term, one.each, one.times))
        return sum_of(terms, node.constant, node.is_zero, when)


def _fetched(one: Lowered, when: Term | None) -> Numeral | None:
    """The number of a fetch; None of what is no integer."""
    value, store, decode = one.fetch.value, one.fetch.store, one.decode
    if decode.kind in ("float", "text") or not isinstance(store, Scalar | Bits | Char | Word):
        return None
    size = fixed_bytes(store)
    term: Term = value
    if isinstance(value, Deref):
        term = Part(value.base, value.offset, size, when)
    bits = 8 * size
    if isinstance(store, Bits):
        bits = store.width
        term = calculate("rsh", term, store.offset) if store.offset else term
    found = converted(term, Number(bits, decode.signed))
    return converted(found.term, TRUTH) if decode.kind == "bool" else found
