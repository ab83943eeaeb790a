"""``base[i]`` with an index that is known when the program runs.

Of a short array of numbers a reader fetches all, and selects one. Other elements are at an address
that an eBPF program computes.
"""

from __future__ import annotations

from fetchc.check.arithmetic_conversions import operand_of
from fetchc.check.array_dimensions import grid
from fetchc.check.conversions import number_of
from fetchc.check.indexing import (
    element_at,
    element_storage,
    first_element,
    has_keys,
    has_open_end,
    referent,
)
from fetchc.check.typed_tree import Address, Indexed, Operation, Pointee
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.program.types import ArrayType, CharType, PointerType, SequenceType, StructType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.syntax import tree

__all__ = ["element"]

_MOST = 64  # elements of an array that a reader fetches to select one


def element(checker: Checker, node: tree.Index, index: tree.Expression) -> Typed:
    """The element of ``node`` by ``index``.

    Raises CompileError FC0303 for an index that is no integer, FC0304 for what is not indexed so.
    """
    base = checker.check(node.base)
    given = checker.check(index)
    return checker.of_each(base, lambda one: _element(checker, one, given, node))


def _element(checker: Checker, base: Typed, given: Typed, node: tree.Index) -> Typed:
    span = node.span
    if has_keys(checker, referent(checker, base)):
        from fetchc.check.walks import looked_up

        return looked_up(checker, base, given, span, node.index_span)
    _refuse_scattered(checker, base, node)
    index, number = operand_of(checker, given, "[]", node.index_span)
    if number.floating or isinstance(checker.resolved(index.type), PointerType):
        spelled = checker.spell(index.type)
        raise reject("FC0303", f"an index is an integer, and this is a `{spelled}`",
                     node.index_span, "not a whole number")  # fmt: skip
    storage = element_storage(checker, base, span)
    selected = _selected(checker, storage, index, node)
    if selected is not None:
        return selected
    start, type_id, each = first_element(checker, storage, span)
    pointer = checker.pointer_to(type_id)
    if isinstance(checker.resolved(start.type), ArrayType):
        start = Address(start, pointer, start.span)
    checker.index = node.index_span
    count = _count(checker, base, storage)
    return Pointee(Indexed(start, index, each, count, pointer, span), type_id, span)


def _selected(checker: Checker, array: Typed, index: Typed, node: tree.Index) -> Operation | None:
    # One of the numbers of a short array.
    resolved, span = checker.resolved(array.type), node.span
    if not isinstance(resolved, ArrayType) or not 0 < (resolved.count or 0) <= _MOST:
        return None
    if has_open_end(checker, array):
        return None
    assert resolved.count is not None
    each = tuple(
        [element_at(checker, array, one, span, node.index_span) for one in range(resolved.count)]
    )
    first = each[0]
    number, pointed = number_of(checker, first), checker.resolved(first.type)
    text = isinstance(pointed, PointerType) and isinstance(
        checker.resolved(pointed.target), CharType
    )
    if number is None or text:
        return None
    rules = checker.site.language.arithmetic
    return Operation("[]", (index, *each), number, rules, first.type, span)


def _refuse_scattered(checker: Checker, base: Typed, node: tree.Index) -> None:
    # FC0304 of elements that are not side by side.
    base = referent(checker, base)
    resolved = checker.resolved(base.type)
    rules = checker.rules_for(resolved)
    if (
        isinstance(resolved, StructType)
        and any(
            find is not None and find(checker, base, 0, node.span, node.index_span) is not None
            for find in (rules.packed_element, rules.block_element)
        )
    ) or grid(checker, element_storage(checker, base, node.span)) is not None:
        what = f"a `{checker.spell(base.type)}` does not have its elements side by side"
        help = "write a constant: `e[2]`"
        raise reject("FC0304", what, node.index_span, "this varies", help=help)


def _count(checker: Checker, base: Typed, storage: Typed) -> Typed | None:
    """The number of elements that there are; None where nothing says it."""
    from fetchc.check.array_ranges import whole_array
    from fetchc.check.builtins import length

    resolved = checker.resolved(base.type)
    if isinstance(resolved, StructType) and not resolved.counts:
        container_size = checker.rules_for(resolved).container_size
        size = None if container_size is None else container_size(checker, base)
        if size is not None or not isinstance(checker.resolved(storage.type), ArrayType):
            return size
        base = storage
    target = checker.resolved(resolved.target) if isinstance(resolved, PointerType) else None
    of_object = isinstance(target, SequenceType) or checker.site.language.pointer_indexes_array
    if has_open_end(checker, storage) or not (target is None or of_object):
        return None
    try:
        return length(checker, base, base.span)
    except CompileError as refusal:
        if refusal.reason != "no length":
            raise
    whole = whole_array(checker, storage)
    return None if whole is None or isinstance(whole.high, int) else whole.high
