"""Tables, trees and lists of Rust's standard library: ``HashMap``, ``BTreeMap``, ``LinkedList``.

Sets are maps of ``()``.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.conversions import type_named
from fetchc.check.typed_tree import Pointee
from fetchc.check.walks import (
    MOST,
    BTree,
    HashTable,
    Linked,
    Walked,
    at_path,
    cursor,
    offset,
    pointer_target,
)
from fetchc.program.cpp_names import arguments
from fetchc.program.types import StructType
from fetchc.syntax.tree import NamedType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["container"]

# Source: hashbrown, src/raw/mod.rs (RawTableInner, Bucket): the highest bit of a control byte is
# set where its slot is empty or deleted; the elements are before those, the first one last.
# src/lib.rs: `raw::inner` where the crate has its feature `raw` (0.9 to 0.13; Debian's builds).
_RUST_TABLES = ("hashbrown::raw::RawTable<", "hashbrown::raw::inner::RawTable<")


def container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    """As ``container`` of :class:`~fetchc.check.type_rules.TypeRules`."""
    node = base
    for name in ("base", "map", "base", "table"):
        resolved = checker.resolved(node.type)
        if isinstance(resolved, StructType) and resolved.name.startswith(_RUST_TREE):
            return _rust_tree(checker, node, resolved, span)
        if isinstance(resolved, StructType) and resolved.name.startswith(_RUST_LIST):
            return _rust_list(checker, node, span)
        node = _own(checker, node, name, span)
    resolved = checker.resolved(node.type)
    if not isinstance(resolved, StructType) or not resolved.name.startswith(_RUST_TABLES):
        return None
    item = _named(checker, _arguments(resolved)[0], span)
    control = at_path(checker, node, ("table", "ctrl", "pointer"), span)
    mask, count = (at_path(checker, node, ("table", one), span) for one in ("bucket_mask", "items"))
    way = HashTable(control, mask, count, checker.size(item) or 0)
    element = Pointee(cursor(checker, item, span), item, span)
    key, value = (members.named_member(checker, element, one, span) for one in ("__0", "__1"))
    if not checker.size(value.type):  # a set is a map of `()`
        return key, Walked(way, MOST, span)
    return value, Walked(way, MOST, span, key)


def _arguments(resolved: StructType) -> list[str]:
    return arguments(resolved.name.partition("<")[2].removesuffix(">"))


def _named(checker: Checker, name: str, span: Span) -> TypeId:
    return type_named(checker, NamedType(None, name, (), "", span))


def _some(checker: Checker, option: Typed, span: Span) -> Typed | None:
    # What is in an Option that has something.
    resolved = checker.resolved(option.type)
    variants = resolved.variants if isinstance(resolved, StructType) else ()
    for one in variants:
        inside = checker.resolved(one.member.type)
        if one.member.name == "Some" and isinstance(inside, StructType) and inside.members:
            holder = members.subobject(option, one.member, span)
            return members.subobject(holder, inside.members[0], span)
    return None


# Source: library/alloc/src/collections/linked_list.rs: a link is an Option<NonNull<Node<T>>>, which
# is NULL at the end.
_RUST_LIST = "alloc::collections::linked_list::LinkedList<"


def _rust_list(checker: Checker, node: Typed, span: Span) -> tuple[Typed, Walked] | None:
    def link(holder: Typed, name: str) -> Typed | None:
        found = _some(checker, at_path(checker, holder, (name,), span), span)
        return None if found is None else at_path(checker, found, ("pointer",), span)

    first = link(node, "head")
    if first is None:
        return None
    target = pointer_target(checker, first)
    here = Pointee(cursor(checker, target, span), target, span)
    following = link(here, "next")
    if following is None:
        return None
    element, count = (
        at_path(checker, here, ("element",), span),
        at_path(checker, node, ("len",), span),
    )
    return element, Walked(Linked(first, following, None, count), MOST, span)


# Source: library/alloc/src/collections/btree/node.rs: LeafNode, InternalNode, NodeRef.
_RUST_TREE = "alloc::collections::btree::map::BTreeMap<"
_RUST_NODE = "alloc::collections::btree::node::"


# Source: library/core/src/mem: MaybeUninit, a union with a ManuallyDrop, which has the value or, in
# newer versions, a MaybeDangling of it.
_DANGLING = "core::mem::maybe_dangling::MaybeDangling<"


def _stored(checker: Checker, leaf: TypeId, name: str, span: Span) -> TypeId:
    # The type of a leaf's keys or values. References and boxes are not found by their names.
    node: Typed = Pointee(cursor(checker, leaf, span), leaf, span)
    node = _own(checker, at_path(checker, node, (name, 0), span), "value", span)
    node = _own(checker, node, "value", span)
    resolved = checker.resolved(node.type)
    if isinstance(resolved, StructType) and resolved.name.startswith(_DANGLING):
        node = _own(checker, node, "__0", span)
    return node.type


def _own(checker: Checker, node: Typed, name: str, span: Span) -> Typed:
    # The structure's own member if there is one, not one of what it dereferences to.
    resolved = checker.resolved(node.type)
    found = [one for one in getattr(resolved, "members", ()) if one.name == name]
    return members.subobject(node, found[0], span) if found else node


def _rust_tree(
    checker: Checker, node: Typed, resolved: StructType, span: Span
) -> tuple[Typed, Walked] | None:
    parts = {one.name: members.subobject(node, one, span) for one in resolved.members}
    reference = _some(checker, parts["root"], span)
    if reference is None:
        return None
    key_name, value_name, *_ = _arguments(resolved)
    leaf, internal = (
        _named(checker, f"{_RUST_NODE}{one}<{key_name}, {value_name}>", span)
        for one in ("LeafNode", "InternalNode")
    )
    key_type, value_type = (_stored(checker, leaf, name, span) for name in ("keys", "vals"))
    keys, values = (
        (offset(checker, leaf, (name,), span), checker.size(one) or 0)
        for name, one in (("keys", key_type), ("vals", value_type))
    )
    root, height = (
        at_path(checker, reference, path, span) for path in (("node", "pointer"), ("height",))
    )
    way = BTree(root, height, parts["length"], leaf, internal, keys, values)
    key, value = (
        Pointee(cursor(checker, one, span, number), one, span)
        for number, one in enumerate((key_type, value_type))
    )
    if not values[1]:  # a set
        return key, Walked(way, MOST, span)
    return value, Walked(way, MOST, span, key)
