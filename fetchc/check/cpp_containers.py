"""Containers of C++ libraries whose elements are in nodes or blocks: lists, trees, tables, deques.

Their members are data (``walk`` in targets/runtime/cpp).
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.conversions import decayed
from fetchc.check.cpp_library import library_class, member_at, required_member
from fetchc.check.cpp_library_methods import method
from fetchc.check.typed_tree import Address, Computed, Pointee, Term
from fetchc.check.walks import (
    MOST,
    Blocks,
    Linked,
    TextParts,
    Tree,
    Walked,
    cursor,
    pointer_target,
    side_by_side,
    unknown_layout,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.source import Span

__all__ = ["container", "text_parts"]


def container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    """As ``container`` of :class:`~fetchc.check.type_rules.TypeRules`."""
    found = library_class(checker, base.type, span)
    if found is not None and found.through:  # an adaptor: its container
        holder = members.follow_pointer(checker, base, span)
        inner = required_member(checker, holder, found.through["size"].rpartition(".")[0], span)
        return container(checker, inner, span) or side_by_side(checker, inner, span)
    if found is None or not found.walk:
        return None
    walk = found.walk
    holder = members.follow_pointer(checker, base, span)
    if "blocks" in walk:
        return _in_blocks(checker, holder, walk, span)
    of = holder

    def part(node: Typed, path: str) -> Typed:
        found = member_at(checker, node, path, span, checker.resolved(of.type))
        if found is None:
            raise unknown_layout(checker, base, span)
        return found

    of = part(holder, walk["of"]) if "of" in walk else holder
    first = part(holder, walk["first"])
    count = part(holder, walk["count"]) if "count" in walk else None
    here = cursor(checker, pointer_target(checker, first), span)
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


def _in_blocks(
    checker: Checker, holder: Typed, walk: Mapping[str, Any], span: Span
) -> tuple[Typed, Walked]:
    blocks = required_member(checker, holder, walk["blocks"], span)
    block = Pointee(blocks, pointer_target(checker, blocks), span)
    target = pointer_target(checker, block)
    each = checker.size(target)
    if not each:
        raise unknown_layout(checker, holder, span)
    least, room = walk["room"]
    length = max(least, room // each)

    def number(path: str | Sequence[str]) -> Typed:
        # A member, or how many elements two pointers are apart.
        if isinstance(path, str):
            return required_member(checker, holder, path, span)
        one, other = (required_member(checker, holder, each, span) for each in path)
        return Computed((Term(one, other, each, 1),), 0, False, checker.word(), span)

    measured = number(walk["measured"]) if "measured" in walk else None
    count = method(checker, holder, "size", span)
    assert count is not None
    way = Blocks(blocks, number(walk["start"]), count, each, length, measured)
    return Pointee(cursor(checker, target, span), target, span), Walked(way, MOST, span)


def text_parts(checker: Checker, key: Typed) -> TextParts | None:
    """As ``text_parts`` of :class:`~fetchc.check.type_rules.TypeRules`."""
    found = library_class(checker, key.type, key.span)
    if found is None:
        return None

    def parts(data: str, length: str) -> TextParts | None:
        start = decayed(checker, required_member(checker, key, data, key.span))
        if checker.size(pointer_target(checker, start)) != 1:
            return None
        return TextParts(start, 0, required_member(checker, key, length, key.span), 1)

    if len(found.units) == 2:
        return parts(*found.units)
    if found.choice.get("names") != ["short", "long"]:
        return None
    short, long = map(parts, found.choice["cases"], found.choices["size"])
    if short is None or long is None:
        return None
    flag = required_member(checker, key, found.choice["tag"], key.span)
    return short.replaced(long=(flag, long))
