"""Shapes of numbers, strings and lists: what has no members.

The base of :class:`fetchc.tracer.shaper.Shaper`, which makes the shapes of all values.
"""

from __future__ import annotations

from fetchc.check.dotnet_rules import object_description
from fetchc.check.typed_tree import AssumedClass, Pointee
from fetchc.ir.fetch import ELEMENTS, Array, Bits, Decode, Deref, Fetch, Symbol, Text, fixed_bytes
from fetchc.lower import aggregate_plan as plans
from fetchc.lower.aggregate_arguments import array
from fetchc.lower.argument_refusals import refuse_length
from fetchc.lower.arguments import lower
from fetchc.lower.extents import FULL, Limits, extents, merged_ranges
from fetchc.lower.fetches import (
    Lowered,
    Memory,
    Plain,
    load_word,
    memory_of,
    number,
    pointed,
    scalar,
    where,
)
from fetchc.lower.string_plan import CountedStringPlan, StringPlan
from fetchc.lower.value_plan import NumberPlan, plan
from fetchc.tracer.event_fields import NotCopied
from fetchc.tracer.string_values import WIDTHS
from fetchc.tracer.value_shapes import (
    CastShape,
    ChoiceShape,
    ComputedShape,
    DifferenceShape,
    ElementCountShape,
    ElementsShape,
    Guard,
    Leaf,
    ListShape,
    MultiArrayShape,
    NumbersShape,
    OperationShape,
    RangeShape,
    SequenceShape,
    SizedStringShape,
    StringShape,
    Term,
    TypeIdentity,
    WalkShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.fetches import Where
    from fetchc.syntax.tree import Format
    from fetchc.tracer.event_fields import Fields
    from fetchc.tracer.value_shapes import Shape

    Bound = Leaf | ElementCountShape | DifferenceShape | ComputedShape | OperationShape | int
    Count = Callable[[], Bound | None]

__all__ = ["ElementShaper", "plain_number"]

_APART = 64  # bytes of all that is copied that an element takes at least: 64 of 4,096


class ElementShaper:
    """Makes the shapes of what an argument has side by side in memory, and of single numbers."""

    def __init__(self, checker: Checker, fields: Fields) -> None:
        self.checker = checker
        self.fields = fields

    def shape(self, node: Typed, format: Format | None, limits: Limits) -> Shape:
        """The shape of ``node``; raises CompileError where it cannot be fetched."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------
    # Leaves: numbers and strings that are fetched each by itself.

    def word(self, node: Typed, empty: bool = False) -> Leaf:
        """The leaf of a number. ``empty``: NULL on the way to it is no fault."""
        return self._leaf(number(self.checker, node), empty)

    def _number(self, node: Typed, described: Plain) -> Leaf:
        return self._leaf(scalar(self.checker, node, described))

    def _leaf(self, lowered: Lowered, empty: bool = False) -> Leaf:
        fetch = lowered.fetch
        spot = self.fields.spot(fetch)
        field, offset, size = spot or (self.fields.text(fetch), 0, 0)
        shift = fetch.store.offset if spot and isinstance(fetch.store, Bits) else 0
        dynamic = isinstance(fetch.store, Text | Array | Symbol)
        size_alone = 0 if dynamic else fixed_bytes(fetch.store)
        text = lowered.decode.kind == "text"
        guards = self.fields.guards(fetch.value, size_alone, empty or text)
        # A NULL string pointer is no string; a string in a structure at NULL is a fault.
        no_text = text and bool(guards) and not guards[-1].moved
        if (empty and guards) or no_text:
            guards = _or_empty(guards)
        return Leaf(field, lowered.decode, offset, size, shift, guards)

    # ------------------------------------------------------------------------------
    # Strings.

    def _counted_string(self, planned: CountedStringPlan, limits: Limits) -> StringShape:
        site = self.checker.site
        if planned.encoding == "text":
            found = pointed(site, planned.first)
        else:
            found = memory_of(self.checker, planned.first, "a string")
        start = load_word(site, found, planned.node.span)
        assert isinstance(start, Deref)
        each = WIDTHS.get(planned.encoding, 1)
        field, at, size = self.fields.contents(
            start, limits.text, lambda: self._length(planned.length, limits), each
        )
        length = self._length(planned.length, limits)
        guards = self.fields.guards(start)
        return StringShape(field, size, planned.encoding, at, length, None, guards)

    def _sized_string(self, string: Typed, size: Typed, limits: Limits) -> Shape:
        # A string of a C++ library, which can be in one of several places. A program copies it by
        # its length; a definition fetches it up to its NUL.
        site = self.checker.site
        if self.fields.copies:
            match plan(self.checker, string, reader=True), plan(self.checker, size, reader=True):
                case plans.ChoicePlan(tag=tag, cases=texts), plans.ChoicePlan(cases=sizes):
                    length_of = {value: one for value, _, one in sizes}
                    with self.fields.assuming():
                        each = [
                            (value, self._sized_string(one, length_of[value], limits))
                            for value, _, one in texts
                        ]
                    return ChoiceShape(self.word(tag), tuple(each))
                case (StringPlan(node=node), NumberPlan()):
                    return self._copied_string(pointed(site, node), string, size, limits)
                case (plans.ArrayPlan(node=node), NumberPlan()):
                    return self._copied_string(where(site, node), string, size, limits)
                case _:
                    pass
        return SizedStringShape(self.shape(string, None, limits), self.shape(size, None, limits))

    def _copied_string(self, found: Where, string: Typed, size: Typed, limits: Limits) -> Shape:
        if isinstance(found, Memory):
            start = load_word(self.checker.site, found, string.span)
            assert isinstance(start, Deref)
            copied = self.fields.copied(start, lambda: self._length(size, limits), 1)
            if copied is not None:
                length, guards = self._length(size, limits), self.fields.guards(start)
                return StringShape(copied[0], copied[1], "text", 0, length, None, guards)
        return SizedStringShape(self.shape(string, None, limits), self.shape(size, None, limits))

    def _wide_string(self, node: Typed, encoding: str, limits: Limits) -> StringShape:
        # Up to the first unit that is 0; NULL is no string.
        start = load_word(self.checker.site, pointed(self.checker.site, node), node.span)
        assert isinstance(start, Deref)
        size = limits.text
        field, at = self.fields.block(start, size)
        guards = self.fields.guards(start, maybe_null=True)
        if guards and not guards[-1].moved:
            guards = _or_empty(guards)
        return StringShape(field, size, encoding, at, None, None, guards)

    def _characters(self, node: Typed, found: Where, count: int, limits: Limits) -> Shape:
        if not isinstance(found, Memory):
            return ListShape(self._items(node, count, limits).items, (), count, text=True)
        size = min(count, limits.row)
        start = load_word(self.checker.site, found, node.span)
        assert isinstance(start, Deref)
        if limits.copied and size < count:
            text = self.fields.text(Fetch(start, Text(found.user)), count)
            return Leaf(text, Decode("text", limit=count), guards=self.fields.guards(start))
        field, at = self.fields.block(start, size)
        return StringShape(field, size, "text", at, None, count, self.fields.guards(start))

    def _text(
        self, planned: plans.ArrayPlan, found: Memory, count: int, each: int, limits: Limits
    ) -> RangeShape:
        size = min(count * each, limits.row)
        start = load_word(self.checker.site, found, planned.node.span)
        assert isinstance(start, Deref)
        if limits.copied:
            field, at, size = self.fields.contents(start, size, lambda: count, each)
        else:
            field, at = self.fields.block(start, size)
        guards = self.fields.guards(start)
        units = StringShape(field, size, planned.text, at, None, None, guards)
        return RangeShape(units, 0, 0, count, None, planned.to_nul)

    def _length(self, node: Typed, limits: Limits) -> Leaf:
        length = self.shape(node, None, limits)
        assert isinstance(length, Leaf)
        return length

    # ------------------------------------------------------------------------------
    # Lists: arrays, and what has a number of elements.

    def _array(self, planned: plans.ArrayPlan, limits: Limits) -> Shape:
        checker, node, total = self.checker, planned.node, planned.count
        inner = plans.elements(checker, planned.element, reader=True)
        full = plans.in_full(checker, planned)
        if full is not None:
            found_range = self.shape(full, None, limits)
            if not (inner.are_characters and isinstance(found_range, RangeShape)):
                return found_range
            return found_range.replaced(to_nul=True)
        if not total:
            if inner.are_characters and plans.has_variable_length(node):
                raise refuse_length(checker, node)
            # A string up to its NUL, or a refusal that says why.
            return self._leaf(array(checker, planned, True, lower)[0])
        found = where(checker.site, node)
        if inner.are_characters:
            return self._characters(node, found, total, limits)
        if planned.text and isinstance(found, Memory) and inner.scalar is not None:
            return self._text(planned, found, total, inner.scalar.size, limits)
        if inner.are_string_pointers:
            count = min(total, ELEMENTS)
            element = planned.element
            cut = plans.ArrayPlan(node, element, count, element, count)
            lowered = array(checker, cut, True, lower)[0]
            leaf = self._leaf(lowered)
            start = lowered.fetch.value
            assert isinstance(start, Deref)
            pointers, at = self.fields.block(start, count * checker.program.word_bytes)
            return Leaf(leaf.field, leaf.decode, at, 0, 0, leaf.guards, total, pointers)
        row = inner.row
        if isinstance(found, Memory) and row is not None:
            some = min(total, max(1, limits.row // row.size))
            whole = (lambda: total) if limits.copied else None
            return self._row(found, row, some, node, total, whole)
        one = plans.element(checker, node, 0)
        copied = self._copied(node, one, found, limits, lambda: total)
        if copied is not None:
            return copied.replaced(total=total)
        self._fetch_bytes(node, limits.replaced(copied=False))
        rows = row is not None or inner.are_arrays
        most = max(1, limits.row // (inner.size or 1)) if rows else limits.items
        items = self._items(node, min(total, most), limits if rows else limits.inner())
        return ListShape(items.items, self._guards_of(node), total)

    def _sequence(self, planned: plans.SequencePlan, limits: Limits) -> SequenceShape | CastShape:
        checker, node = self.checker, planned.node
        window = plans.window(checker, planned)
        if window is not None and window.units:
            return self._part_of_string(node, window, limits)
        whole = self._whole_sequence(planned, limits)
        if window is None:
            return whole
        start = self.word(window.start)
        around = None if window.around is None else self.word(window.around)
        found = SequenceShape(whole.length, whole.elements, start, around, window.backwards)
        return found if window.check is None else self._of_type(window.check, found)

    def _whole_sequence(self, planned: plans.SequencePlan, limits: Limits) -> SequenceShape:
        one = plans.element(self.checker, planned.node, 0)
        found = where(self.checker.site, one)
        count: Count | None = None
        if plans.window(self.checker, planned) is None:
            count = lambda: self._length(planned.length, limits)  # noqa: E731
        elements = self._elements(planned.node, one, found, limits, count)
        return SequenceShape(self._length(planned.length, limits), elements)

    def _part_of_string(
        self, node: Typed, window: plans.WindowPlan, limits: Limits, listed: bool = False
    ) -> CastShape:
        # Units of a string or of an array of them, from an index on; ``listed``: one by one.
        checker, span = self.checker, node.span
        start = self.word(window.start)
        length = self._length(window.length, limits)
        end = ComputedShape((Term(start, None, 1, 1), Term(length, None, 1, 1)), 0, False)
        found = None
        for one, unit in window.units:
            place = memory_of(checker, unit, "a string")
            simple = plans.elements(checker, unit.type, reader=True).scalar
            assert simple is not None
            elements: NumbersShape | StringShape
            if listed:
                elements = self._row(place, simple, min(limits.text // simple.size, ELEMENTS), node)
            else:
                address = load_word(checker.site, place, span)
                assert isinstance(address, Deref)
                field, at = self.fields.block(address, limits.text)
                guards = self.fields.guards(address)
                elements = StringShape(field, limits.text, "utf-16", at, None, None, guards)
            inside = RangeShape(elements, 0, start, end, None)
            found = self._of_type(one, inside, found)
        assert found is not None
        return found

    def _grid(self, grid: plans.GridPlan, limits: Limits) -> MultiArrayShape:
        lengths = tuple([self.word(length) for length in grid.lengths])
        window = plans.window(self.checker, grid.flat)
        flat: SequenceShape | CastShape
        if window is not None and window.units:
            flat = self._part_of_string(grid.flat.node, window, limits, listed=True)
        else:
            flat = self._sequence(grid.flat, limits)
        return MultiArrayShape(lengths, flat, grid.indices)

    def _elements(
        self, node: Typed, one: Typed, found: Where, limits: Limits, count: Count | None
    ) -> NumbersShape | ElementsShape | WalkShape | ListShape:
        # Those of ``node`` from the first, ``one`` at ``found``, on: numbers come in one piece.
        inner = plans.elements(self.checker, one.type, reader=True)
        if (row := inner.row) is not None and isinstance(found, Memory):
            some = min(limits.row // row.size, ELEMENTS)
            return self._row(found, row, some, node, count=count)
        listed = None if count is None else self._by_program(node, one, found, limits, count)
        if listed is not None:
            return listed
        self._fetch_bytes(one, limits.inner(), limits.items)
        inside = limits.inner()
        return self._at_most(
            limits.items,
            lambda index: self.shape(plans.element(self.checker, node, index), None, inside),
        )

    def _by_program(
        self, node: Typed, one: Typed, found: Where, limits: Limits, count: Count
    ) -> ElementsShape | WalkShape | None:
        # Those of ``node``, ``one`` and its like, of which a program records as many as there are.
        copied = self._copied(node, one, found, limits, count)
        if copied is not None:
            return copied
        from fetchc.check.walks import cursor

        checker, size = self.checker, self.checker.size(one.type)
        if not (limits.copied and size and isinstance(found, Memory)):
            return None
        start = load_word(checker.site, found, node.span)
        assert isinstance(start, Deref)
        of_each = self.fields.of_each(start, count, size)
        if of_each is None:
            return None
        each = Pointee(cursor(checker, one.type, node.span), one.type, node.span)
        inner = type(self)(checker, of_each).shape(each, None, limits.inner())
        walk = self.fields.shortened(of_each.walk_of_these())
        if walk is None:
            return None
        guards = self.fields.guards(start)
        return WalkShape(self.fields.walk(walk), inner, True, guards=guards)

    def _copied(
        self, node: Typed, one: Typed, found: Where, limits: Limits, count: Count
    ) -> ElementsShape | None:
        # Those of ``node``, ``one`` and its like, where a program copies their bytes, and has to
        # read nothing else of them.
        from fetchc.check.walks import cursor

        checker, site, size = self.checker, self.checker.site, self.checker.size(one.type)
        if not (limits.copied and size and isinstance(found, Memory)):
            return None
        start = load_word(site, found, node.span)
        assert isinstance(start, Deref)
        few = size * min(limits.items, FULL.items)
        stem, mark, warned = self.fields.stem, self.fields.mark(), len(checker.warnings)
        copied = self.fields.copied(start, count, size, few, _APART)
        if copied is None:
            return None
        each = Pointee(cursor(checker, one.type, node.span), one.type, node.span)
        of_each = self.fields.of_copied(size, memory_of(checker, each, "an element").user)
        inside = Limits(limits.text, size, ELEMENTS, limits.depth)
        try:
            inner = type(self)(checker, of_each).shape(each, None, inside)
        except NotCopied:
            self.fields.forget(mark)
            self.fields.stem = stem
            del checker.warnings[warned:]
            return None
        field, most = copied
        return ElementsShape(field, inner, most // size, size, self.fields.guards(start))

    def _between(self, first: Typed, end: Typed, each: int) -> ElementCountShape:
        return ElementCountShape(self.word(first), self.word(end), each)

    def _at_most(self, count: int, make: Callable[[int], Shape]) -> ListShape:
        # Of ``count`` elements there may be fewer: what is after the last one is something else.
        shapes = [make(index) for index in range(min(count, 1))]
        with self.fields.assuming():
            shapes += [make(index) for index in range(1, count)]
        return ListShape(tuple(shapes))

    def _row(
        self,
        found: Memory,
        simple: Plain,
        some: int,
        node: Typed,
        total: int = 0,
        count: Count | None = None,
    ) -> NumbersShape:
        # ``some`` numbers, or as many as the ``count`` says where a program can copy those.
        start = load_word(self.checker.site, found, node.span)
        assert isinstance(start, Deref)
        size = some * simple.size
        if count is None or simple.decode.kind == "symbol":
            field, at = self.fields.block(start, size)
        else:
            field, at, size = self.fields.contents(start, size, count, simple.size)
        guards, most = self.fields.guards(start), size // simple.size
        return NumbersShape(field, simple.decode, most, simple.size, at, guards, total or most)

    def _items(self, node: Typed, count: int, limits: Limits) -> ListShape:
        shapes = []
        for index in range(count):
            shapes.append(self.shape(plans.element(self.checker, node, index), None, limits))
        return ListShape(tuple(shapes))

    def _range(self, planned: plans.RangePlan, limits: Limits) -> RangeShape:
        # The bounds are read at run time, so the first elements are fetched.
        node = planned.node
        elements = self._first_elements(planned, limits)
        low, high = self._bound(node.low, limits), self._bound(node.high, limits)
        bound = None if node.bound is None else self._bound(node.bound, limits)
        return RangeShape(elements, node.start, low, high, bound)

    def _bound(self, node: Typed | int, limits: Limits) -> Bound:
        if isinstance(node, int):
            return node
        found = self.shape(node, None, limits)
        if isinstance(found, Leaf):
            # A character or an enumerator counts as its number.
            decode = Decode("integer", found.decode.bits, found.decode.signed)
            size, shift = found.size, found.shift
            return Leaf(found.field, decode, found.offset, size, shift, found.guards)
        assert isinstance(
            found, ElementCountShape | DifferenceShape | ComputedShape | OperationShape
        )
        return found

    def _first_elements(
        self, planned: plans.RangePlan, limits: Limits
    ) -> NumbersShape | ElementsShape | WalkShape | ListShape | StringShape:
        checker, node = self.checker, planned.node
        found = memory_of(checker, node.first, "a range")
        end = lambda: _counted_from(self._bound(node.high, limits), node.start)  # noqa: E731
        if planned.scalar is not None:  # as a format says
            some = _most(planned, planned.scalar, limits)
            return self._row(found, planned.scalar, some, node, count=end)
        inner = plans.elements(checker, planned.element, reader=True)
        row = inner.row
        if planned.text:
            assert row is not None
            size = row.size * _fewer(planned, limits.text // row.size)
            start = load_word(checker.site, found, node.span)
            assert isinstance(start, Deref)
            field, at, size = self.fields.contents(start, size, end, row.size)
            guards = self.fields.guards(start)
            return StringShape(field, size, planned.text, at, None, None, guards)
        if row is not None:
            return self._row(found, row, _most(planned, row, limits), node, count=end)
        one = plans.range_element(checker, planned, 0)
        listed = self._by_program(node, one, found, limits, end)
        if listed is not None:
            return listed
        few = limits.inner()
        count = _fewer(planned, (2 if inner.are_string_pointers else 1) * limits.items)
        self._fetch_bytes(node.first, few, count)
        each = self._at_most(
            count,
            lambda index: self.shape(plans.range_element(checker, planned, index), None, few),
        )
        return ListShape(each.items, self._guards_of(node.first))

    # ------------------------------------------------------------------------------
    # Objects whose type is in them.

    def _of_type(
        self, one: AssumedClass, inner: Shape, otherwise: CastShape | None = None
    ) -> CastShape:
        dotnet = self.checker.program.dotnet
        types = None if dotnet is None else dotnet.object_types()
        assert types is not None
        parts = object_description(self.checker, one, types)
        reference = self.word(one.reference)
        element = None
        if parts.element_row is not None and parts.element_assembly is not None:
            element = self._identity(parts.element_row, parts.element_assembly)
        own, rank = self._identity(parts.row, parts.assembly), self.word(parts.rank)
        return CastShape(reference, own, element, rank, types, one.wanted, inner, otherwise)

    def _identity(self, row: Typed, assembly: Typed) -> TypeIdentity:
        (name,) = lower(self.checker, assembly, whole=False)
        return TypeIdentity(self.word(row), self._leaf(name))

    # ------------------------------------------------------------------------------
    # The bytes that objects are in, and the pointers to them.

    def _fetch_bytes(self, node: Typed, limits: Limits, count: int = 1) -> None:
        # Fetches an object in memory in as few pieces as possible; its members are found in them.
        found = where(self.checker.site, node)
        if not isinstance(found, Memory):
            return
        stride = self.checker.size(node.type) or 0
        wanted = extents(self.checker, node.type, limits)
        starts = [stride * index for index in range(count)]
        for low, high in merged_ranges(
            [(at + low, at + high) for at in starts for low, high in wanted]
        ):
            place = Memory(found.base, found.offset + low, found.user)
            start = load_word(self.checker.site, place, node.span)
            assert isinstance(start, Deref)
            if high - low > 8:
                self.fields.block(start, high - low)

    def _guards_of(self, node: Typed) -> tuple[Guard, ...]:
        found = where(self.checker.site, node)
        if not isinstance(found, Memory):
            return ()
        return self.fields.guards(load_word(self.checker.site, found, node.span))


def plain_number(leaf: Leaf) -> Leaf:
    """The leaf as a plain number, without the name of an enumerator."""
    plain = Decode("integer", leaf.decode.bits, leaf.decode.signed)
    return Leaf(leaf.field, plain, leaf.offset, leaf.size, leaf.shift, leaf.guards)


def _or_empty(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    # The last pointer may be NULL: the value is an empty one then, and no fault.
    last = guards[-1]
    empty = Guard(last.field, last.offset, last.moved, True, last.kernel, last.read_checks)
    return (*guards[:-1], empty)


def _counted_from(high: Bound, start: int) -> Bound | None:
    # How many elements there are from the index ``start`` on; None where nothing simple says it.
    match high:
        case int():
            return high - start
        case _ if not start:
            return high
        case Leaf():
            return DifferenceShape(high, start)
        case DifferenceShape(minuend=minuend, subtrahend=int() as less):
            return DifferenceShape(minuend, less + start)
        case _:
            return None


def _most(planned: plans.RangePlan, each: Plain, limits: Limits) -> int:
    # Numbers of a range.
    return _fewer(planned, min(limits.row // each.size, ELEMENTS))


def _fewer(planned: plans.RangePlan, count: int) -> int:
    # ``count`` elements, or those that there can be.
    node = planned.node
    limits = [one - node.start for one in (node.high, node.bound) if isinstance(one, int)]
    return min(count, *limits, count)
