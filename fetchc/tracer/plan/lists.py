"""Texts, arrays, slices and sequences: how many elements a reader gets, and where they are."""

from __future__ import annotations

from fetchc.check import indexing
from fetchc.check.array_ranges import in_full
from fetchc.check.members import part, through
from fetchc.check.typed_tree import Convert, Described, Follow
from fetchc.ir.fetch import ELEMENTS, Deref
from fetchc.lower import aggregates, strings
from fetchc.lower.fetches import Memory, is_character, load_word, pointed, where
from fetchc.program.types import (
    ArrayType,
    ChannelType,
    FunctionType,
    MapType,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
)
from fetchc.tracer.plan.dynamic import Dynamic
from fetchc.tracer.shape import (
    Between,
    Bytes,
    Grid,
    Items,
    Leaf,
    OfType,
    Ranged,
    Reckoned,
    Row,
    Sequence,
    Term,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.fetches import Plain, Where
    from fetchc.program.types import Member, Type, Window
    from fetchc.quantities import TypeId
    from fetchc.tracer.plan.extents import Limits
    from fetchc.tracer.shape import Shape

__all__ = ["Lists"]


class Lists(Dynamic):
    """Shapes of several elements."""

    def _string(self, node: Typed, made: StringType | SliceType, limits: Limits) -> Bytes:
        found = pointed(self._checker.site, indexing.data_pointer(self._checker, node, made))
        return self._counted(node, found, "text", made.members[1], limits)

    def _units(self, node: Typed, made: SequenceType, limits: Limits) -> Bytes:
        unit = indexing.element_at(self._checker, node, 0, node.span, node.span)
        found = where(self._checker.site, unit)
        assert isinstance(found, Memory)
        return self._counted(node, found, "utf-16", made.length, limits)

    def _counted(
        self, node: Typed, found: Memory, encoding: str, count: Member, limits: Limits
    ) -> Bytes:
        # A text whose units begin at ``found`` and are as many as a member of it says.
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, limits.text)
        length = self._length(node, count, limits)
        return Bytes(field, limits.text, encoding, at, length, None, self._fields.guards(start))

    def _length(self, node: Typed, count: Member, limits: Limits) -> Leaf:
        length = self.shape(part(node, count, node.span), None, limits)
        assert isinstance(length, Leaf)
        return length

    def _sequence(self, node: Typed, made: SequenceType, limits: Limits) -> Sequence:
        one = indexing.element_at(self._checker, node, 0, node.span, node.span)
        elements = self._elements(node, one, where(self._checker.site, one), limits)
        return Sequence(self._length(node, made.length, limits), elements)

    def _elements(self, node: Typed, one: Typed, found: Where, limits: Limits) -> Row | Items:
        # Those of ``node`` from the first, ``one`` at ``found``, on: numbers come in one piece.
        simple = self._number_of(one.type)
        text = strings.units(self._checker, one) is not None
        if simple is not None and isinstance(found, Memory) and not text:
            return self._row(found, simple, min(limits.row // simple.size, ELEMENTS), node)
        self._fetch_bytes(one, limits.inner(), limits.items)
        return self._items(node, limits.items, limits.inner())

    def _part_of_text(
        self, node: Typed, made: SequenceType, window: Window, limits: Limits, listed: bool
    ) -> OfType:
        # Units of a text or of an array of them, from an index on; ``listed``: one by one.
        span = node.span
        start = self._leaf(self._word(part(node, window.start, span)))
        length = self._length(node, made.length, limits)
        end = Reckoned((Term(start, None, 1, 1), Term(length, None, 1, 1)), 0, False)
        array = part(node, made.elements, span)
        assert window.or_text is not None
        text = Convert(array, window.or_text, span)
        found = None
        for reference in (array, text):
            kind = self._checker.resolved(reference.type)
            assert isinstance(kind, PointerType)
            holder = Follow(reference, kind.target, span)
            unit = indexing.element_at(self._checker, holder, 0, span, span)
            place, simple = where(self._checker.site, unit), self._plain(unit.type)
            assert isinstance(place, Memory)
            assert simple is not None
            elements: Row | Bytes
            if listed:
                elements = self._row(place, simple, min(limits.text // simple.size, ELEMENTS), node)
            else:
                address = load_word(self._checker.site, place, span)
                assert isinstance(address, Deref)
                field, at = self._fields.block(address, limits.text)
                guards = self._fields.guards(address)
                elements = Bytes(field, limits.text, "utf-16", at, None, None, guards)
            inside = Ranged(elements, 0, start, end, None)
            found = self._of_type(Described(array, kind.target, span), inside, found)
        assert found is not None
        return found

    def _window(
        self, node: Typed, made: SequenceType, limits: Limits, listed: bool = False
    ) -> Sequence | OfType:
        # Some elements of an array, of which there are as many from the first one on.
        window, span = made.window, node.span
        assert window is not None
        if window.or_text is not None:
            return self._part_of_text(node, made, window, limits, listed)
        whole = self._sequence(node, made, limits)
        start = self._leaf(self._word(part(node, window.start, span)))
        array, around = part(node, made.elements, span), None
        kind = self._checker.resolved(array.type)
        assert isinstance(kind, PointerType)
        if window.capacity is not None:
            around = self._leaf(self._word(part(node, window.capacity, span)))
        elif window.around:
            inner = self._checker.resolved(kind.target)
            assert isinstance(inner, SequenceType)
            length = part(Follow(array, kind.target, span), inner.length, span)
            around = self._leaf(self._word(length))
        found = Sequence(whole.length, whole.elements, start, around, window.backwards)
        if window.of_any:
            return self._of_type(Described(array, kind.target, span), found)
        return found

    def _grid(
        self, node: Typed, made: SequenceType, limits: Limits, indices: tuple[int, ...] = ()
    ) -> Grid:
        dimensions = made.dimensions or ((made.length,),)
        ways = [through(self._checker, node, way, node.span) for way in dimensions]
        lengths = tuple([self._leaf(self._word(length)) for length in ways])
        flat: Sequence | OfType
        if made.window is None:
            flat = self._sequence(node, made, limits)
        else:
            flat = self._window(node, made, limits, listed=True)
        return Grid(lengths, flat, indices)

    def _elements_between(self, first: Typed, end: Typed, limits: Limits) -> Sequence:
        # Of a vector: the pointers to its first element and behind its last one.
        one = indexing.element_at(self._checker, first, 0, first.span, first.span)
        each = self._checker.size(one.type)
        assert each
        elements = self._elements(first, one, pointed(self._checker.site, first), limits)
        words = [self._leaf(self._word(word)) for word in (first, end)]
        return Sequence(Between(words[0], words[1], each), elements)

    def _slice(self, node: Typed, made: SliceType, limits: Limits) -> Sequence:
        start = pointed(self._checker.site, indexing.data_pointer(self._checker, node, made))
        one = indexing.element_at(self._checker, node, 0, node.span, node.span)
        elements = self._elements(node, one, start, limits)
        return Sequence(self._length(node, made.members[1], limits), elements)

    def _array(self, node: Typed, made: ArrayType, limits: Limits) -> Shape:
        checker = self._checker
        element = checker.resolved(made.element)
        full = in_full(checker, node) if made.count is None else None
        if full is not None:
            found_range = self.shape(full, None, limits)
            if not (is_character(element) and isinstance(found_range, Ranged)):
                return found_range
            one = found_range
            return Ranged(one.elements, one.start, one.low, one.high, one.bound, to_nul=True)
        if made.count is None or made.count == 0:
            # A text up to its NUL, or a refusal that says why.
            return self._leaf(aggregates.array(checker, node, made, whole=True)[0])
        found = where(checker.site, node)
        if is_character(element):
            return self._characters(node, found, made.count, limits)
        simple = self._number_of(made.element)
        if strings.is_text_pointer(checker, element):
            count = min(made.count, ELEMENTS)
            cut = ArrayType("", made.element, count, None)
            lowered = aggregates.array(checker, node, cut, whole=True)[0]
            leaf = self._leaf(lowered)
            start = lowered.fetch.value
            assert isinstance(start, Deref)
            pointers, at = self._fields.block(start, count * checker.program.word_bytes)
            return Leaf(leaf.field, leaf.decode, at, 0, 0, leaf.guards, made.count, pointers)
        if isinstance(found, Memory) and simple is not None:
            count = min(made.count, max(1, limits.row // simple.size))
            return self._row(found, simple, count, node, made.count)
        self._fetch_bytes(node, limits)
        each = checker.size(made.element) or 1
        rows = simple is not None or isinstance(element, ArrayType)
        most = max(1, limits.row // each) if rows else limits.items
        items = self._items(node, min(made.count, most), limits if rows else limits.inner())
        return Items(items.items, self._guards_of(node), made.count)

    def _characters(self, node: Typed, found: Where, count: int, limits: Limits) -> Shape:
        if not isinstance(found, Memory):
            return Items(self._items(node, count, limits).items, (), count, text=True)
        size = min(count, limits.row)
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, size)
        return Bytes(field, size, "text", at, None, count, self._fields.guards(start))

    def _number_of(self, element: TypeId) -> Plain | None:
        # How elements that are numbers side by side are shown: maps, channels and function values
        # are worth what their pointers lead to.
        made = self._checker.resolved(element)
        if isinstance(made, MapType | ChannelType) or self._is_closure(made):
            return None
        return self._plain(element)

    def _is_closure(self, made: Type) -> bool:
        """Whether a value of the type leads to the address of code, and to what it captured."""
        if not self._checker.site.language.closures or not isinstance(made, PointerType):
            return False
        return isinstance(self._checker.resolved(made.target), FunctionType)

    def _row(self, found: Memory, simple: Plain, count: int, node: Typed, total: int = 0) -> Row:
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, count * simple.size)
        guards = self._fields.guards(start)
        return Row(field, simple.decode, count, simple.size, at, guards, total or count)

    def _items(self, node: Typed, count: int, limits: Limits) -> Items:
        shapes = []
        for index in range(count):
            one = indexing.element_at(self._checker, node, index, node.span, node.span)
            shapes.append(self.shape(one, None, limits))
        return Items(tuple(shapes))
