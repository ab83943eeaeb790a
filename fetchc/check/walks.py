"""Elements of containers that no offset leads to: lists, trees, tables.

Such an expression is one element, whose address is in a cursor, and its walk
(:attr:`fetchc.check.checker.Checker.walk`) says which elements there are. What is selected of the
expression is selected of each of them: ``list(head, next).name`` are all names.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.builtins import container_of, offset_of
from fetchc.check.conversions import decayed, type_named
from fetchc.check.typed_tree import Address, Constant, Pointee, Special, Subobject
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CharType,
    EnumType,
    IntType,
    MapType,
    PointerType,
    SequenceType,
    StringType,
    StructType,
    VoidType,
)
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax import tree
from fetchc.syntax.expression_parser import as_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.quantities import TypeId

__all__ = [
    "BTree",
    "BucketMap",
    "HashTable",
    "Linked",
    "Strided",
    "SwissMap",
    "Tree",
    "Walked",
    "begin",
    "cursor",
    "entries",
    "listed",
    "looked_up",
    "offset",
    "text_parts",
]

MOST = 32
"""Elements that are fetched where nobody says how many."""


class Linked(Record):
    """Elements each of which leads to the next one: ``next`` is that pointer, of the cursor.

    They end at NULL, and where the next one is ``stop``, an address (None: the first element).
    ``count`` is their number, where the container has it.
    """

    first: Typed
    next: Typed
    stop: Typed | None
    count: Typed | None


class Tree(Record):
    """The nodes of a binary tree in order, from where ``first`` points on.

    Where ``head`` points is behind the last one, and the parent of the root. ``left``, ``right``
    and ``parent`` are pointers of a node, by the cursor. An element is in a node.
    """

    first: Typed
    head: Typed
    left: Typed
    right: Typed
    parent: Typed
    count: Typed


class Strided(Record):
    """``count`` elements of ``each`` bytes side by side, from where ``first`` points on."""

    first: Typed
    count: Typed
    each: int


class HashTable(Record):
    """A table of Rust's hashbrown: ``control`` points to a byte for each of ``mask`` + 1 slots.

    An element of ``each`` bytes is at the first cursor; the last one ends where the bytes begin.
    """

    control: Typed
    mask: Typed
    count: Typed
    each: int


class BTree(Record):
    """A BTreeMap of Rust: ``root`` points to a node, ``height`` links above the leaves.

    A key is at the first cursor, its value at the second one. ``keys`` and ``values`` are the
    offset of the first of them in a node, and the bytes from one to the next.
    """

    root: Typed
    height: Typed
    count: Typed
    leaf: TypeId
    internal: TypeId
    keys: tuple[int, int]
    values: tuple[int, int]


class SwissMap(Record):
    """A map of Go from 1.24 on: ``map`` is the pointer to its header, of the type ``header``.

    A key is at the first cursor, its value at the second one. Each of ``stores`` is the offset of
    the first of them in a group, and the bytes from one to the next.
    """

    map: Typed
    header: TypeId
    table: TypeId
    groups: TypeId
    group_bytes: int
    stores: tuple[tuple[int, int], tuple[int, int]]


class BucketMap(Record):
    """A map of Go before 1.24, as :class:`SwissMap`; ``overflow`` is an offset in a bucket."""

    map: Typed
    header: TypeId
    bucket_bytes: int
    overflow: int
    stores: tuple[tuple[int, int], tuple[int, int]]


class Walked(Record):
    """A walk; ``most`` of its elements are fetched. ``key`` is that of one, in a map.

    With ``wanted`` the walk is for the one element that has this key.
    """

    way: Linked | Tree | Strided | HashTable | BTree | SwissMap | BucketMap
    most: int
    span: Span
    key: Typed | None = None
    wanted: int | bytes | None = None


def cursor(checker: Checker, target: TypeId, span: Span, number: int = 0) -> Special:
    """The cursor of that number, a pointer to the type ``target``."""
    return Special("cursor", str(number), checker.pointer_to(target), span)


def begin(checker: Checker, walk: Walked) -> None:
    """The expression is an element of ``walk``; raises CompileError where it has another one."""
    if checker.walk not in (None, walk):
        raise reject(
            "FC0314",
            "an expression walks one container",
            walk.span,
            "the second one",
            help="give each of them an argument of its own",
        )
    checker.walk = walk


# ------------------------------------------------------------------------------
# `list(c)`; lists of C: `list(head, next)`, and `list(head, T, member)` as the kernel's
# list_for_each_entry.


def listed(checker: Checker, node: tree.Call) -> Typed:
    """An element of ``list(c)``, ``list(head, next)`` or ``list(head, T, member)``.

    A number as the last operand is how many elements are fetched. Raises CompileError where the
    operands are no container.
    """
    *operands, last = node.arguments
    most = MOST
    if isinstance(last, tree.Integer) and operands:
        most = max(last.value, 1)
    else:
        operands.append(last)
    base = checker.check(operands[0])
    match operands[1:]:
        case []:
            element, walked = _whole(checker, base, node)
        case [path]:
            element, walked = _chained(checker, node, _first(checker, base), path)
        case [wanted, path]:
            element, walked = _embedded(checker, node, _first(checker, base), wanted, path)
        case _:
            what = "`list` takes up to three operands, and a number"
            raise reject("FC0101", what, node.function_span, "too many")
    begin(checker, walked.replaced(most=most))
    return element


def _first(checker: Checker, base: Typed) -> Typed:
    head = decayed(checker, base)
    if isinstance(checker.resolved(head.type), PointerType):
        return head
    return Address(head, checker.pointer_to(head.type), head.span)


def _whole(checker: Checker, base: Typed, node: tree.Call) -> tuple[Typed, Walked]:
    # A container of the program's library, or what has its elements side by side.
    from fetchc.check.builtins import length
    from fetchc.check.indexing import element_at

    span = node.span
    found = _container(checker, base, span)
    if found is not None:
        return found
    count = length(checker, base, base.span)
    first = element_at(checker, base, 0, span, base.span)
    each = checker.size(first.type) or 0
    counted = isinstance(count, Subobject) and checker.resolved(count.base.type)
    apart = isinstance(counted, SequenceType) and bool(counted.window or counted.dimensions)
    apart |= isinstance(first, Subobject) and first.bits is not None
    if apart or not each or not isinstance(first, Pointee | Subobject):
        what = f"the elements of a `{checker.spell(base.type)}` are not side by side"
        raise reject("FC0304", what, base.span, "not supported")
    address = Address(first, checker.pointer_to(first.type), span)
    element = Pointee(cursor(checker, first.type, span), first.type, span)
    return element, Walked(Strided(address, count, each), MOST, span)


def _chained(
    checker: Checker, node: tree.Call, head: Typed, path: tree.Expression
) -> tuple[Typed, Walked]:
    target = _target(checker, head)
    if not isinstance(checker.resolved(target), StructType) or checker.size(target) is None:
        raise reject(
            "FC0305",
            f"`{checker.spell(head.type)}` is not a pointer to a structure",
            node.arguments[0].span,
            "the first element",
            help="write the pointer to the first element, then the member that leads to the next",
        )
    element = Pointee(cursor(checker, target, node.span), target, node.span)
    following = _member(checker, element, path)
    leads_to = _target(checker, following, path.span)
    same = checker.bare(leads_to) == checker.bare(target)
    if not same and not isinstance(checker.resolved(leads_to), VoidType):
        raise reject(
            "FC0305",
            f"`{checker.spell(following.type)}` does not lead to a `{checker.spell(target)}`",
            path.span,
            "not the next element",
            help="for links inside of elements: `list(head, T, member)`, T being their type",
        )
    return element, Walked(Linked(head, following, None, None), MOST, node.span)


def _embedded(
    checker: Checker,
    node: tree.Call,
    head: Typed,
    wanted: tree.Expression,
    path: tree.Expression,
) -> tuple[Typed, Walked]:
    # The head and the links of a list_head are alike; an hlist's head has the first link alone.
    span = node.span
    named = as_type(wanted)
    if named is None:
        raise reject("FC0204", "this is not a type", wanted.span, "the type of the elements")
    holder = type_named(checker, named)
    link = _member(checker, Pointee(cursor(checker, holder, span), holder, span), path)
    following = members.named_member(
        checker, Pointee(cursor(checker, link.type, span), link.type, span), "next", path.span
    )
    of_head = Pointee(head, _target(checker, head), head.span)
    stop: Typed | None = head
    try:
        first = members.named_member(checker, of_head, "next", head.span)
    except CompileError:
        first = members.named_member(checker, of_head, "first", head.span)
        stop = None
    steps = tuple([tree.FieldStep(name, path.span) for name in _names(path)])
    start = cursor(checker, link.type, span)
    whole = container_of(checker, start, holder, tree.Path(steps, path.span), span)
    element = Pointee(whole, holder, span)
    return element, Walked(Linked(first, following, stop, None), MOST, span)


# ------------------------------------------------------------------------------
# Containers that the debug information describes: `m[:]`, `m[:20]`.


def entries(checker: Checker, base: Typed, node: tree.Range) -> Typed | None:
    """An element of ``base[:high]``, or of ``base[:]``; of a map a value.

    None where ``base`` is no container that has to be walked. Raises CompileError where the range
    does not begin with the first element, or its bounds are no constants.
    """
    found = _container(checker, base, node.span)
    if found is None:
        return None
    value, walked = found
    begin(checker, walked.replaced(most=_most(checker, base, node)))
    return value


def looked_up(checker: Checker, base: Typed, key: int | bytes, span: Span, key_span: Span) -> Typed:
    """The value of ``base[key]``, a map; raises CompileError of others, and of another key."""
    found = _container(checker, base, span)
    if found is None or found[1].key is None:
        spelled = checker.spell(base.type)
        help = "a map whose entries can be walked: of Go, Rust or libstdc++"
        raise reject("FC0304", f"`{spelled}` has no keys", key_span, "a key", help=help)
    value, walked = found
    assert walked.key is not None
    numbers = IntType | CharType | EnumType | BoolType
    takes = bytes if text_parts(checker, walked.key) else int
    if not isinstance(key, takes) or (
        takes is int and not isinstance(checker.resolved(walked.key.type), numbers)
    ):
        spelled = checker.spell(walked.key.type)
        raise reject("FC0304", f"the keys are of the type `{spelled}`", key_span, "another key")
    begin(checker, walked.replaced(most=1, wanted=key))
    return value


def text_parts(checker: Checker, key: Typed) -> tuple[Typed, Typed] | None:
    """The pointer to the bytes of a string, and their number; None of what is no string."""
    resolved = checker.resolved(key.type)
    if isinstance(resolved, StringType):
        words = [members.subobject(key, one, key.span) for one in resolved.members[:2]]
        return words[0], words[1]
    if not isinstance(resolved, StructType) or not resolved.is_library:
        return None
    from fetchc.check.cpp_library import library_class, required_member

    found = library_class(checker, key.type, key.span)
    if found is None or len(found.units) != 2:
        return None
    first, length = (required_member(checker, key, path, key.span) for path in found.units)
    wide = _target(checker, first)
    return (first, length) if checker.size(wide) == 1 else None


def _container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    # An element, or of a map a value, and its walk; None where nothing has to be walked.
    if checker.site.language.dereferences and checker.rules.referent is not None:
        base = checker.rules.referent(checker, base)
    resolved = checker.resolved(base.type)
    if isinstance(resolved, MapType):
        return _go_map(checker, base, resolved, span)
    if isinstance(resolved, StructType) and resolved.value is not None:
        return _rust_table(checker, base, span)
    if not isinstance(resolved, StructType) or not resolved.is_library:
        return None
    from fetchc.check.cpp_library import library_class

    found = library_class(checker, base.type, span)
    if found is None or not found.walk:
        return None
    return _library(checker, base, found.walk, span)


def _most(checker: Checker, base: Typed, node: tree.Range) -> int:
    if node.low == 0 and node.high is None:
        return MOST
    if node.low == 0 and isinstance(node.high, int) and node.high > 0:
        return node.high
    raise reject(
        "FC0303",
        f"a range of a `{checker.spell(base.type)}` begins with its first element",
        node.range_span,
        "not from the first one on",
        help="`m[:]` are the first elements, `m[:20]` the first 20",
    )


def _library(
    checker: Checker, base: Typed, walk: Mapping[str, Any], span: Span
) -> tuple[Typed, Walked]:
    from fetchc.check.cpp_library import member_at

    holder = members.follow_pointer(checker, base, span)
    of = holder

    def part(node: Typed, path: str) -> Typed:
        found = member_at(checker, node, path, span, checker.resolved(of.type))
        if found is None:
            raise _unknown(checker, base, span)
        return found

    of = part(holder, walk["of"]) if "of" in walk else holder
    first = part(holder, walk["first"])
    count = part(holder, walk["count"]) if "count" in walk else None
    here = cursor(checker, _target(checker, first), span)
    links = [part(here, path) for path in walk["links"]]
    head: Typed | None = None
    if "head" in walk:
        node = part(holder, walk["head"])
        head = Address(node, checker.pointer_to(node.type), span)
    element = part(here, walk["element"])
    way: Linked | Tree
    if len(links) == 1:
        way = Linked(first, links[0], head, count)
    else:
        assert head is not None
        assert count is not None
        way = Tree(first, head, links[0], links[1], links[2], count)
    if "pairs" not in walk:
        return element, Walked(way, MOST, span)
    pairs = [member_at(checker, element, path, span) for path in walk["pairs"] if path]
    pair = next((one for one in pairs if one is not None), element)
    key, value = part(pair, "first"), part(pair, "second")
    return value, Walked(way, MOST, span, key)


# Source: hashbrown, src/raw/mod.rs (RawTableInner, Bucket): the highest bit of a control byte is
# set where its slot is empty or deleted; the elements are in front of those, the first one last.
_RUST_TABLE = "hashbrown::raw::RawTable<"


def _rust_table(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    node = base
    for name in ("base", "map", "base", "table"):
        resolved = checker.resolved(node.type)
        if isinstance(resolved, StructType) and resolved.name.startswith(_RUST_TREE):
            return _rust_tree(checker, node, resolved, span)
        found = [one for one in getattr(resolved, "members", ()) if one.name == name]
        node = members.subobject(node, found[0], span) if found else node
    resolved = checker.resolved(node.type)
    if not isinstance(resolved, StructType) or not resolved.name.startswith(_RUST_TABLE):
        return None
    item = _named(checker, _arguments(resolved.name)[0], span)
    control = _at(checker, node, ("table", "ctrl", "pointer"), span)
    mask, count = (_at(checker, node, ("table", one), span) for one in ("bucket_mask", "items"))
    way = HashTable(control, mask, count, checker.size(item) or 0)
    element = Pointee(cursor(checker, item, span), item, span)
    key, value = (members.named_member(checker, element, one, span) for one in ("__0", "__1"))
    if not checker.size(value.type):  # a set is a map of `()`
        return key, Walked(way, MOST, span)
    return value, Walked(way, MOST, span, key)


def _named(checker: Checker, name: str, span: Span) -> TypeId:
    return type_named(checker, tree.NamedType(None, name, (), "", span))


def _arguments(name: str) -> list[str]:
    # Those of a generic type, by its name.
    found, depth = [""], 0
    for character in name.partition("<")[2].removesuffix(">"):
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found]


# Source: library/alloc/src/collections/btree/node.rs: LeafNode, InternalNode, NodeRef.
_RUST_TREE = "alloc::collections::btree::map::BTreeMap<"
_RUST_NODE = "alloc::collections::btree::node::"


def _rust_tree(
    checker: Checker, node: Typed, resolved: StructType, span: Span
) -> tuple[Typed, Walked] | None:
    parts = {one.name: members.subobject(node, one, span) for one in resolved.members}
    option = checker.resolved(parts["root"].type)
    if not isinstance(option, StructType):
        return None
    some = [one.member for one in option.variants if one.member.name == "Some"]
    inside = None if not some else checker.resolved(some[0].type)
    if not isinstance(inside, StructType) or not inside.members:
        return None
    holder = members.subobject(parts["root"], some[0], span)
    reference = members.subobject(holder, inside.members[0], span)
    arguments = _arguments(resolved.name)
    key_type, value_type = (_named(checker, one, span) for one in arguments[:2])
    leaf, internal = (
        _named(checker, f"{_RUST_NODE}{one}<{arguments[0]}, {arguments[1]}>", span)
        for one in ("LeafNode", "InternalNode")
    )
    keys, values = (
        (offset(checker, leaf, (name,), span), checker.size(one) or 0)
        for name, one in (("keys", key_type), ("vals", value_type))
    )
    root, height = (
        _at(checker, reference, path, span) for path in (("node", "pointer"), ("height",))
    )
    way = BTree(root, height, parts["length"], leaf, internal, keys, values)
    key, value = (
        Pointee(cursor(checker, one, span, number), one, span)
        for number, one in enumerate((key_type, value_type))
    )
    if not values[1]:  # a set
        return key, Walked(way, MOST, span)
    return value, Walked(way, MOST, span, key)


def _go_map(checker: Checker, base: Typed, resolved: MapType, span: Span) -> tuple[Typed, Walked]:
    header = resolved.header
    swiss = _type_at(checker, header, ("dirPtr",))
    way: SwissMap | BucketMap
    if swiss is not None:
        table = _pointed(checker, _pointed(checker, swiss))
        groups = _type_at(checker, table, ("groups",))
        data = None if groups is None else _type_at(checker, groups, ("data",))
        if groups is None or data is None:
            raise _unknown(checker, base, span)
        group = _pointed(checker, data)
        stores = _stores(checker, base, group, span)
        way = SwissMap(base, header, table, groups, checker.size(group) or 0, stores)
    else:
        buckets = _type_at(checker, header, ("buckets",))
        if buckets is None:
            raise _unknown(checker, base, span)
        bucket = _pointed(checker, buckets)
        overflow = offset(checker, bucket, ("overflow",), span)
        stores = _stores(checker, base, bucket, span)
        way = BucketMap(base, header, checker.size(bucket) or 0, overflow, stores)
    key, value = (
        Pointee(cursor(checker, one, span, number), one, span)
        for number, one in enumerate((resolved.key, resolved.element))
    )
    return value, Walked(way, MOST, span, key)


def _stores(
    checker: Checker, base: Typed, holder: TypeId, span: Span
) -> tuple[tuple[int, int], tuple[int, int]]:
    # Keys and values, each in an array, or both in one of pairs.
    resolved = checker.resolved(base.type)
    assert isinstance(resolved, MapType)
    found: list[tuple[int, int]] = []
    for names, wanted in ((("keys", "key"), resolved.key), (("values", "elem"), resolved.element)):
        plural, single = names
        path: tuple[str | int, ...] = (plural, 0)
        array = _type_at(checker, holder, (plural,))
        if array is None and plural == "values":
            path, array = ("elems", 0), _type_at(checker, holder, ("elems",))
        if array is None:
            path, array = ("slots", 0, single), _type_at(checker, holder, ("slots",))
        rows = None if array is None else checker.resolved(array)
        stored = _type_at(checker, holder, path)
        if not isinstance(rows, ArrayType) or rows.count != _SLOTS or stored is None:
            raise _unknown(checker, base, span)
        if checker.bare(stored) != checker.bare(wanted):
            raise _unknown(checker, base, span)  # larger ones are behind a pointer
        stride = checker.size(rows.element) or 0
        found.append((offset(checker, holder, path, span), stride))
    return found[0], found[1]


_SLOTS = 8  # of a group, of a bucket


def _type_at(checker: Checker, holder: TypeId, path: tuple[str | int, ...]) -> TypeId | None:
    node: Typed = Pointee(Constant(0, checker.pointer_to(holder), _NOWHERE), holder, _NOWHERE)
    try:
        return _at(checker, node, path, _NOWHERE).type
    except CompileError:
        return None


_NOWHERE = Span(0, 0)


def offset(checker: Checker, holder: TypeId, path: tuple[str | int, ...], span: Span) -> int:
    """The offset of what ``path`` leads to in an object of the type ``holder``, in bytes."""
    steps = [
        tree.IndexStep(one, span) if isinstance(one, int) else tree.FieldStep(one, span)
        for one in path
    ]
    return offset_of(checker, holder, tree.Path(tuple(steps), span), span).value


def _at(checker: Checker, node: Typed, path: tuple[str | int, ...], span: Span) -> Typed:
    from fetchc.check.indexing import element_at

    for one in path:
        if isinstance(one, int):
            node = element_at(checker, node, one, span, span)
        else:
            node = members.named_member(checker, node, one, span)
    return node


def _pointed(checker: Checker, pointer: TypeId) -> TypeId:
    resolved = checker.resolved(pointer)
    return resolved.target if isinstance(resolved, PointerType) else pointer


def _unknown(checker: Checker, base: Typed, span: Span) -> CompileError:
    return reject(
        "FC0314",
        f"where the entries of a `{checker.spell(base.type)}` are is not known",
        span,
        "cannot be walked",
        help="their number can be fetched: `len(m)`, `m.size()`",
    )


def _target(checker: Checker, pointer: Typed, span: Span | None = None) -> TypeId:
    resolved = checker.resolved(pointer.type)
    if not isinstance(resolved, PointerType):
        what = f"`{checker.spell(pointer.type)}` is not a pointer"
        raise reject("FC0305", what, span or pointer.span, "not a pointer")
    return resolved.target


def _member(checker: Checker, element: Typed, path: tree.Expression) -> Typed:
    for name in _names(path):
        element = members.named_member(checker, element, name, path.span)
    return element


def _names(path: tree.Expression) -> list[str]:
    match path:
        case tree.Name(text=text, line=None):
            return [text]
        case tree.Member(base=base, name=name, arrow=False):
            return [*_names(base), name]
        case _:
            raise reject(
                "FC0302", "this is not the name of a member", path.span, "`next`, or `link.next`"
            )
