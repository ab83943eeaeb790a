"""Slices of slices: ``s[1:3][0:4]``, ``cap(s[:2])``, ``s[2:][1]``.

A slice expression of Go has its own length, and a capacity up to the end of its operand's. With
constant bounds it equals one slice of the innermost operand, so that is what is fetched; the
reader checks that the program could evaluate each of them. Source: Go
specification, "Slice expressions", "Length and capacity".
"""

from __future__ import annotations

from fetchc.check import builtins, indexing
from fetchc.check.array_ranges import element_range, end_of_elements, fold_range
from fetchc.check.typed_tree import Computed, Constant, Term
from fetchc.diag.diagnostic import reject
from fetchc.program.types import MapType, SliceType, StringType
from fetchc.record import Record
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.source import Span

__all__ = ["of_slice", "slice_count"]


class _Cut(Record):
    """The elements ``low`` up to, not including, ``high`` of ``base``; None: up to its length.

    ``room`` is where the capacity ends; None: where that of ``base`` does.
    """

    base: Typed
    low: int
    high: int | None
    room: int | None = None


def of_slice(checker: Checker, node: tree.Index | tree.Range) -> Typed | None:
    """What ``node`` is: a part of a slice, or an element of one; None of others."""
    if isinstance(node, tree.Index):
        assert isinstance(node.base, tree.Range)
        cut = _cut(checker, node.base)
        return None if cut is None else _element(checker, cut, node)
    cut = _cut(checker, node, node.room is not None)
    if cut is not None:
        return _elements(checker, cut, node)
    inner = _cut(checker, node.base) if isinstance(node.base, tree.Range) else None
    if inner is None:
        return None
    if inner.room is not None:
        raise _not_full(node)
    low = _slice_bound(checker, node.low, inner.low)
    high = inner.high if node.high is None else _slice_bound(checker, node.high, inner.low)
    if high is None:
        high = end_of_elements(checker, inner.base, node.range_span)
    return element_range(checker, inner.base, low, high, node.span, node.range_span)


def slice_count(checker: Checker, node: tree.Range, what: str, span: Span) -> Typed | None:
    """``len`` or ``cap`` of a slice of constant bounds; None of others."""
    cut = _cut(checker, node)
    if cut is None:
        return None
    if what == "len" and cut.high is not None:
        return Constant(cut.high - cut.low, checker.length_type(), span)
    if what == "cap" and cut.room is not None:
        return Constant(cut.room - cut.low, checker.length_type(), span)
    count = builtins.length if what == "len" else builtins.capacity
    return _slice_moved(count(checker, cut.base, span), -cut.low)


def _cut(checker: Checker, node: tree.Range, variables: bool = True) -> _Cut | None:
    # ``variables``: as of folded_range.
    node = fold_range(checker, node, variables)
    low, high, room = node.low, node.high, node.room
    if not isinstance(low, int) or not isinstance(high, int | None):
        if room is not None:
            raise _not_full(node)
        return None
    if not isinstance(room, int | None):
        raise _not_full(node)
    if isinstance(node.base, tree.Range):
        outer = _cut(checker, node.base)
        if outer is None:
            return None
    else:
        outer = _Cut(checker.check(node.base), 0, None)
    base = outer.base
    if isinstance(checker.resolved(base.type), MapType):
        return None  # its entries
    if low < 0:
        indexing.element_at(checker, base, low, node.span, node.range_span)
    end = outer.high if high is None else outer.low + high
    is_text = isinstance(checker.resolved(base.type), StringType)
    past = is_text and outer.high is not None and end is not None and end > outer.high
    if past or (end is not None and end < outer.low + low):
        raise _outside(node, outer, end if past else None)
    most = outer.room if room is None else outer.low + room
    if most is not None:
        if is_text or end is None or end > most or (outer.room is not None and most > outer.room):
            raise _no_room(node, is_text)
        _take_for_granted(checker, base, 0, most, node.span)
    if last := most or end:  # of an array, whose room is known
        at = indexing.as_byte_pointer(checker, base)
        indexing.element_at(checker, at, last - 1, node.span, node.range_span)
    _take_for_granted(checker, base, outer.low + low, end, node.span)
    return _Cut(base, outer.low + low, end, most)


def _take_for_granted(checker: Checker, base: Typed, low: int, end: int | None, span: Span) -> None:
    # Up to its length where that is the end; else it may be any part of the room that there is.
    if end is None and low:
        indexing.assume_count(checker, base, low, span)
    elif end:
        indexing.assume_count(checker, base, end, span, most=True)


def _elements(checker: Checker, cut: _Cut, node: tree.Range) -> Typed:
    if cut.high is not None:
        return indexing.elements(checker, cut.base, cut.low, cut.high, node.span, node.range_span)
    resolved = checker.resolved(cut.base.type)
    if cut.low == 0 and isinstance(resolved, SliceType | StringType):
        return cut.base
    end = end_of_elements(checker, cut.base, node.range_span)
    return element_range(checker, cut.base, cut.low, end, node.span, node.range_span)


def _element(checker: Checker, cut: _Cut, node: tree.Index) -> Typed:
    index = node.index
    assert isinstance(index, int)
    if cut.high is not None and index >= cut.high - cut.low:
        raise reject(
            "FC0303",
            f"the index {index} is past the last element of the range",
            node.index_span,
            f"it has {cut.high - cut.low}",
            help=f"index the original: `e[{cut.low + index}]`",
        )
    at = cut.low + index if index >= 0 else index
    found = indexing.element_at(checker, cut.base, at, node.span, node.index_span)
    if cut.high is None:
        indexing.assume_count(checker, cut.base, at + 1, node.span)
    return found


def _slice_bound(checker: Checker, bound: tree.Expression | int, by: int) -> Typed | int:
    return bound + by if isinstance(bound, int) else _slice_moved(checker.check(bound), by)


def _slice_moved(number: Typed, by: int) -> Typed:
    # ``number`` and a constant, which a reader adds.
    if isinstance(number, Constant):
        return Constant(number.value + by, number.type, number.span)
    if by == 0:
        return number
    return Computed((Term(number, None, 1, 1),), by, False, number.type, number.span)


def _not_full(node: tree.Range) -> CompileError:
    return reject(
        "FC0303",
        "a slice with a third bound takes constant bounds",
        node.range_span,
        "not a constant",
        help="write `[low:high]`: the elements are the same",
    )


def _no_room(node: tree.Range, is_text: bool) -> CompileError:
    return reject(
        "FC0303",
        "a string has no capacity" if is_text else "the range ends past its capacity",
        node.range_span,
        "no such range",
        help="write `[low:high]`" if is_text else "write `[low:high:max]`, the largest number last",
    )


def _outside(node: tree.Range, outer: _Cut, end: int | None) -> CompileError:
    if end is None:
        return reject(
            "FC0303",
            "the end of the range is before its start",
            node.range_span,
            "no such range",
            help="write `[low:high]` with high above low; high itself is not in the range",
        )
    return reject(
        "FC0303",
        "a part of a string has no capacity after its end",
        node.range_span,
        "after its end",
        help=f"slice it once: `s[{outer.low}:{end}]`",
    )
