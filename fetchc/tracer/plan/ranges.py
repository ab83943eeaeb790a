"""Ranges whose bounds are known when the program runs: a first part of the elements is fetched."""

from __future__ import annotations

from fetchc.check.typed_tree import Address, Follow, Shift
from fetchc.check.typed_tree import Ranged as RangedNode
from fetchc.ir.fetch import ELEMENTS, Decode, Deref
from fetchc.lower import strings
from fetchc.lower.fetches import Plain, load_word, plain, pointed
from fetchc.lower.lowering import memory_of
from fetchc.quantities import ByteOffset
from fetchc.tracer.plan.lists import Lists
from fetchc.tracer.shape import Between, Bytes, Difference, Guard, Items, Leaf, Ranged, Reckoned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import RangeType
    from fetchc.syntax.tree import Format
    from fetchc.tracer.plan.extents import Limits
    from fetchc.tracer.shape import Row

__all__ = ["Ranges"]


class Ranges(Lists):
    """Shapes of ranges."""

    def _range(
        self, node: Typed, made: RangeType, format: Format | None, limits: Limits
    ) -> Ranged | None:
        """The shape of a range; None where ``format`` is none of its elements."""
        assert isinstance(node, RangedNode)
        simple = plain(self._checker, made.element)
        if format is None or (made.text and format.text in ("string", "ustring")):
            elements = self._part(node, made, limits)
        elif simple is None or (decode := _numbers(format, simple.size)) is None:
            return None
        else:
            each = Plain(simple.store, decode, simple.size)
            found = memory_of(self._checker, node.first, "a range")
            elements = self._row(found, each, self._most(node, simple.size, limits), node)
        bounds = [self._number(one, limits) for one in (node.low, node.high)]
        bound = None if node.bound is None else self._number(node.bound, limits)
        return Ranged(elements, node.start, bounds[0], bounds[1], bound)

    def _wide_text(self, node: Typed, encoding: str, limits: Limits) -> Bytes:
        # Up to the first unit that is 0; NULL is no text.
        start = load_word(self._checker.site, pointed(self._checker.site, node), node.span)
        assert isinstance(start, Deref)
        size = limits.text
        field, at = self._fields.block(start, size)
        guards = self._fields.guards(start, maybe_null=True)
        if guards and not guards[-1].moved:
            *before, last = guards
            empty = Guard(last.field, last.offset, 0, True, last.kernel, last.told)
            guards = (*before, empty)
        return Bytes(field, size, encoding, at, None, None, guards)

    def _number(
        self, node: Typed | int, limits: Limits
    ) -> Leaf | Between | Difference | Reckoned | int:
        if isinstance(node, int):
            return node
        found = self.shape(node, None, limits)
        if isinstance(found, Leaf):
            # A character or an enumerator counts as its number.
            decode = Decode("integer", found.decode.bits, found.decode.signed)
            size, shift = found.size, found.shift
            return Leaf(found.field, decode, found.offset, size, shift, found.guards)
        assert isinstance(found, Between | Difference | Reckoned)
        return found

    def _part(self, node: RangedNode, made: RangeType, limits: Limits) -> Row | Items | Bytes:
        checker = self._checker
        found = memory_of(checker, node.first, "a range")
        simple = self._number_of(made.element)
        if made.text:
            assert simple is not None
            size = simple.size * self._fewer(node, limits.text // simple.size)
            start = load_word(checker.site, found, node.span)
            assert isinstance(start, Deref)
            field, at = self._fields.block(start, size)
            return Bytes(field, size, made.text, at, None, None, self._fields.guards(start))
        are_texts = strings.is_text_pointer(checker, checker.resolved(made.element))
        if simple is not None and not are_texts and strings.units(checker, node.first) is None:
            return self._row(found, simple, self._most(node, simple.size, limits), node)
        inner = limits.inner()
        count = self._fewer(node, 2 * limits.items if are_texts else limits.items)
        self._fetch_bytes(node.first, inner, count)
        each = [self.shape(self._nth(node, made, index), None, inner) for index in range(count)]
        return Items(tuple(each), self._guards_of(node.first))

    def _most(self, node: RangedNode, size: int, limits: Limits) -> int:
        # Of numbers of ``size`` bytes.
        return self._fewer(node, min(limits.row // size, ELEMENTS))

    def _fewer(self, node: RangedNode, count: int) -> int:
        # ``count`` elements, or those that there can be.
        known = [one - node.start for one in (node.high, node.bound) if isinstance(one, int)]
        return min(count, *known, count)

    def _nth(self, node: RangedNode, made: RangeType, index: int) -> Typed:
        pointer = self._checker.pointer_to(made.element)
        stride = self._checker.size(made.element) or 0
        start = Address(node.first, pointer, node.span)
        moved = Shift(start, ByteOffset(stride * index), pointer, node.span)
        return Follow(moved, made.element, node.span)


def _numbers(format: Format, size: int) -> Decode | None:
    # What `:x8` and its kin make of elements of so many bytes.
    kind, digits = format.base[0], format.base[1:]
    if format.base == "hex":
        kind, digits = "x", str(8 * size)
    if format.count is not None or kind not in "usx" or digits != str(8 * size):
        return None
    return Decode("address" if kind == "x" else "integer", 8 * size, kind == "s")
