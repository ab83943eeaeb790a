"""Maps of Go: where the keys and values of their groups, or buckets, are."""

from __future__ import annotations

from fetchc.check.typed_tree import Constant, Pointee
from fetchc.check.walks import (
    MOST,
    SLOTS,
    BucketMap,
    Store,
    SwissMap,
    Walked,
    at_path,
    cursor,
    offset,
    unknown_layout,
)
from fetchc.diag.diagnostic import CompileError
from fetchc.program.types import ArrayType, MapType, PointerType
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.quantities import TypeId

__all__ = ["container"]


def container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    """As ``container`` of :class:`~fetchc.check.type_rules.TypeRules`."""
    resolved = checker.resolved(base.type)
    if not isinstance(resolved, MapType):
        return None
    header = resolved.header
    swiss = _type_at(checker, header, ("dirPtr",))
    way: SwissMap | BucketMap
    if swiss is not None:
        table = _pointed(checker, _pointed(checker, swiss))
        groups = _type_at(checker, table, ("groups",))
        data = None if groups is None else _type_at(checker, groups, ("data",))
        if groups is None or data is None:
            raise unknown_layout(checker, base, span)
        group = _pointed(checker, data)
        stores = _stores(checker, base, resolved, group, span)
        way = SwissMap(base, header, table, groups, checker.size(group) or 0, stores)
    else:
        buckets = _type_at(checker, header, ("buckets",))
        if buckets is None:
            raise unknown_layout(checker, base, span)
        bucket = _pointed(checker, buckets)
        overflow = offset(checker, bucket, ("overflow",), span)
        stores = _stores(checker, base, resolved, bucket, span)
        way = BucketMap(base, header, checker.size(bucket) or 0, overflow, stores)
    key, value = (
        Pointee(cursor(checker, one, span, number), one, span)
        for number, one in enumerate((resolved.key, resolved.element))
    )
    if not checker.size(value.type):  # a set is a map to `struct{}`
        return key, Walked(way, MOST, span)
    return value, Walked(way, MOST, span, key)


# Source: cmd/link/internal/ld/dwarf.go (synthesizemaptypes), internal/runtime/maps/group.go,
# internal/abi/map_noswiss.go: a key or a value of more than 128 bytes is allocated by itself, and
# a pointer to it is stored.
def _stores(
    checker: Checker, base: Typed, map: MapType, holder: TypeId, span: Span
) -> tuple[Store, Store]:
    # Keys and values, each in an array, or both in one of pairs.
    found: list[Store] = []
    for names, wanted in ((("keys", "key"), map.key), (("values", "elem"), map.element)):
        plural, single = names
        path: tuple[str | int, ...] = (plural, 0)
        array = _type_at(checker, holder, (plural,))
        if array is None and plural == "values":
            path, array = ("elems", 0), _type_at(checker, holder, ("elems",))
        if array is None:
            path, array = ("slots", 0, single), _type_at(checker, holder, ("slots",))
        rows = None if array is None else checker.resolved(array)
        stored = _type_at(checker, holder, path)
        if not isinstance(rows, ArrayType) or rows.count != SLOTS or stored is None:
            raise unknown_layout(checker, base, span)
        apart = checker.bare(stored) != checker.bare(wanted)
        if apart and checker.bare(_pointed(checker, stored)) != checker.bare(wanted):
            raise unknown_layout(checker, base, span)
        stride = checker.size(rows.element) or 0
        found.append(Store(offset(checker, holder, path, span), stride, apart))
    return found[0], found[1]


def _type_at(checker: Checker, holder: TypeId, path: tuple[str | int, ...]) -> TypeId | None:
    node: Typed = Pointee(Constant(0, checker.pointer_to(holder), _NOWHERE), holder, _NOWHERE)
    try:
        return at_path(checker, node, path, _NOWHERE).type
    except CompileError:
        return None


_NOWHERE = Span(0, 0)


def _pointed(checker: Checker, pointer: TypeId) -> TypeId:
    resolved = checker.resolved(pointer)
    return resolved.target if isinstance(resolved, PointerType) else pointer
