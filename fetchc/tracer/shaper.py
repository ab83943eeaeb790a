"""From the plan of a value to its shape: what an event fetches of it, and how it is read.

A definition for people names each member (:mod:`fetchc.lower.arguments`). A decoder takes whole
objects: a structure or an array is fetched as its bytes, in one piece (:class:`.Fields`).
"""

from __future__ import annotations

from fetchc.check.dotnet_rules import object_description
from fetchc.check.typed_tree import (
    Address,
    AssumedClass,
    AssumedCount,
    AssumedDynamicType,
    AssumedVariant,
    Computed,
    Conditional,
    Constant,
    Convert,
    Dispatched,
    FloatConstant,
    Operation,
    Shift,
)
from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import (
    ELEMENTS,
    Array,
    Bits,
    Decode,
    Deref,
    Fetch,
    Scalar,
    Symbol,
    Text,
    fixed_bytes,
    is_address,
)
from fetchc.lower import aggregate_plan as plans
from fetchc.lower.aggregate_arguments import array
from fetchc.lower.argument_formats import format_plan, formatted, in_order
from fetchc.lower.argument_refusals import left_out, refuse_length, refuse_unfetchable, refuse_whole
from fetchc.lower.arguments import lower, pointed_string
from fetchc.lower.assumptions import counted
from fetchc.lower.extents import Limits, extents, merged_ranges
from fetchc.lower.fetches import (
    Lowered,
    Memory,
    Plain,
    load_word,
    memory_of,
    number,
    plain,
    pointed,
    pointer,
    scalar,
    where,
)
from fetchc.lower.interface_plan import (
    description,
    dynamic_type,
    held,
    runtime_types,
    wordings,
)
from fetchc.lower.operation_plan import OperationPlan, as_formatted
from fetchc.lower.printed_values import ClosurePlan, FormPlan, SumPlan
from fetchc.lower.string_plan import CountedStringPlan, StringPlan
from fetchc.lower.value_plan import (
    NumberPlan,
    plan,
)
from fetchc.record import assert_never
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    CastShape,
    ChoiceShape,
    ComputedShape,
    ConditionalShape,
    DifferenceShape,
    ElementCountShape,
    EntryCountShape,
    EnumShape,
    FormattedShape,
    Guard,
    InterfaceShape,
    Leaf,
    ListShape,
    MultiArrayShape,
    NotationShape,
    NumbersShape,
    OperandShape,
    OperationShape,
    OptionalShape,
    RangeShape,
    SequenceShape,
    SizedStringShape,
    StringShape,
    StructShape,
    SumShape,
    Term,
    TypeAssertionShape,
    TypeDescription,
    TypeIdentity,
    TypeNameShape,
    TypeSwitchShape,
    VariantCase,
    VariantCheckShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Assumption, Typed
    from fetchc.ir.fetch import Value
    from fetchc.lower.fetches import Where
    from fetchc.lower.interface_plan import DynamicTypePlan
    from fetchc.lower.printed_values import PartPlan
    from fetchc.lower.value_plan import Plan
    from fetchc.syntax.tree import Format
    from fetchc.tracer.event_fields import Fields
    from fetchc.tracer.value_shapes import Shape

__all__ = ["Shaper", "plain_number"]

_MOST_TOGETHER = 256  # bytes
_SHORTEST = 64  # bytes of a string: with less room an interface shows only its type


class Shaper:
    """Makes the shapes of one argument, and has :class:`Fields` fetch what they need."""

    def __init__(self, checker: Checker, fields: Fields) -> None:
        self.checker = checker
        self.fields = fields

    def shape(self, node: Typed, format: Format | None, limits: Limits) -> Shape:
        """The shape of ``node``; raises CompileError where it cannot be fetched."""
        if format is None:
            return self._planned(plan(self.checker, node, reader=True), limits)
        if isinstance(node, Operation):
            return self._planned(as_formatted(self.checker, node, format), limits)
        planned = format_plan(self.checker, node, format)
        if planned is not None:
            return self._planned(planned, limits)
        fetched = in_order(self.checker, node, format)
        lowered = formatted(self.checker, node, fetched)
        shape = self._formatted(lowered)
        if fetched is format or not isinstance(shape, Leaf):
            return shape
        decode = Decode("turned", lowered.decode.bits)
        return Leaf(shape.field, decode, shape.offset, shape.size, shape.shift, shape.guards)

    def _planned(self, planned: Plan, limits: Limits) -> Shape:
        checker = self.checker
        match planned:
            case Computed():
                return self._computed(planned)
            case OperationPlan():
                return self._operation(planned, limits)
            case Conditional():
                return self._either(planned, limits)
            case Dispatched(cases=cases):
                with self.fields.assuming():
                    shapes = [
                        (one.wanted.offset, self.shape(value, None, limits)) for one, value in cases
                    ]
                return TypeSwitchShape(self._asserted_type(cases[0][0]), tuple(shapes))
            case Lowered():
                return self._leaf(planned)
            case NumberPlan(node=node, scalar=simple):
                if limits.follow and (inner := self._behind(node, limits)) is not None:
                    return OptionalShape(self._number(node, simple), inner)
                return self._leaf(
                    scalar(checker, node, simple), plans.is_entry_count(checker, node)
                )
            case plans.AddressPlan():
                return self._address(planned)
            case StringPlan(node=node):
                return self._leaf(pointed_string(checker, node))
            case plans.WideStringPlan(node=node, encoding=encoding):
                return self._wide_string(node, encoding, limits)
            case CountedStringPlan():
                string = self._counted_string(planned, limits)
                if planned.reference is None:
                    return string
                return OptionalShape(self._number(*planned.reference), string)
            case plans.SizedStringPlan(string=string, size=size):
                return SizedStringShape(
                    self.shape(string, None, limits), self.shape(size, None, limits)
                )
            case plans.EntryCountPlan(node=node, count=count, room=room):
                entries = self.word(count, empty=True)
                of_channel = None if room is None else self.word(room, empty=True)
                return EntryCountShape(self.word(node), entries, of_channel)
            case plans.ReferencePlan(node=node, scalar=simple, target=target):
                inner = self.shape(target, None, limits)
                return OptionalShape(self._number(node, simple), inner)
            case plans.ArrayPlan():
                return self._array(planned, limits)
            case plans.SlicePlan(node=node, data=data, length=length):
                start = pointed(checker.site, data)
                elements = self._elements(node, plans.element(checker, node, 0), start, limits)
                return SequenceShape(self._length(length, limits), elements)
            case plans.VectorPlan(first=first, end=end, each=each):
                start = pointed(checker.site, first)
                elements = self._elements(first, plans.element(checker, first, 0), start, limits)
                words = [self.word(word) for word in (first, end)]
                return SequenceShape(ElementCountShape(words[0], words[1], each), elements)
            case plans.SequencePlan():
                if (grid := plans.grid(checker, planned)) is not None:
                    return self._grid(grid, limits)
                return self._sequence(planned, limits)
            case plans.CellPlan():
                grid = plans.grid(checker, planned)
                assert grid is not None
                return self._grid(grid, limits.of_array())
            case plans.RangePlan():
                return self._range(planned, limits)
            case plans.ChoicePlan():
                return self._choice(planned, limits)
            case plans.InterfacePlan():
                return self._interface(planned, limits)
            case plans.OptionalPlan(node=node, present=present, value=value):
                self._fetch_bytes(node, limits)
                inner = self.shape(value, None, limits)
                return OptionalShape(self.word(present), inner)
            case plans.EnumPlan():
                return self._enum(planned, limits)
            case plans.NotationPlan(node=node, layout=layout):
                self._fetch_bytes(node, limits)
                return self._notation(node, layout)
            case plans.StructPlan(node=node, layout=layout):
                if limits.depth <= 0:
                    raise refuse_whole(checker, node, layout)
                return self._structure(planned, limits)
            case plans.HalvesPlan(node=node, layout=layout):
                if layout.notation:
                    return self._notation(node, layout)
                halves = [
                    (one.name, self.shape(plans.member(checker, node, one), None, limits))
                    for one in plans.members(checker, layout)
                ]
                return StructShape(tuple(halves), self._guards_of(node))
            case FormPlan():
                return self._form(planned, limits)
            case ClosurePlan(code=code):
                word = self.word(code, empty=True)
                return word.replaced(decode=Decode("symbol", word.decode.bits))
            case SumPlan():
                return self.sum(planned)
            case plans.UnfetchablePlan():
                raise refuse_unfetchable(checker, planned)
            case _:
                assert_never(planned)

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
        field, offset, size = spot or (self.fields.add(fetch), 0, 0)
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

    def _behind(self, node: Typed, limits: Limits) -> Shape | None:
        # What a pointer leads to; None where it stays an address.
        target = plans.behind_pointer(self.checker, node)
        if target is None:
            return None
        mark, warned = self.fields.mark(), len(self.checker.warnings)
        try:
            return self.shape(target, None, limits.behind())
        except CompileError:
            self.fields.forget(mark)
            del self.checker.warnings[warned:]
            return None

    def _address(self, planned: plans.AddressPlan) -> Leaf | DifferenceShape:
        # The kernel cannot add: it gives the address that the offset is added to here.
        node, bits = planned.node, 8 * planned.scalar.size
        inner = node
        while isinstance(inner, Convert):
            inner = inner.base
        assert isinstance(inner, Address | Shift)
        value, offset = pointer(self.checker.site, inner)
        if offset == 0 or is_address(value):
            return self._leaf(scalar(self.checker, node, planned.scalar))
        fetch = Fetch(value, Scalar("x", bits))
        return DifferenceShape(
            self._leaf(Lowered("", fetch, Decode("pointer", bits), node.type)), -offset
        )

    def _formatted(self, lowered: Lowered) -> Leaf | NumbersShape:
        store, decode, value = lowered.fetch.store, lowered.decode, lowered.fetch.value
        if isinstance(store, Array) and not isinstance(store.element, Text):
            each = store.element
            if isinstance(each, Scalar) and each.kind == "x":
                decode = Decode("address", each.bits)
            field = self.fields.add(lowered.fetch)
            guards = self.fields.guards(value)
            return NumbersShape(field, decode, store.count, fixed_bytes(each), 0, guards)
        leaf = self._leaf(lowered)
        if isinstance(store, Scalar) and store.kind == "x" and decode.kind == "integer":
            decode = Decode("address", decode.bits)
            return Leaf(leaf.field, decode, leaf.offset, leaf.size, leaf.shift, leaf.guards)
        return leaf

    def _form(self, planned: FormPlan, limits: Limits) -> FormattedShape:
        parts, beside = [
            tuple([(one.name, self._part_of_form(one, limits)) for one in listed])
            for listed in (planned.parts, planned.beside)
        ]
        return FormattedShape(planned.form, parts, beside)

    def _part_of_form(self, part: PartPlan, limits: Limits) -> Shape:
        if part.most:
            limits = Limits(part.most, part.most, limits.items, limits.depth)
        reference = None if part.reference is None else self.word(part.reference)
        # Without the forms: the bytes of an address are a list here.
        inner = self._planned(plan(self.checker, part.node), limits)
        return inner if reference is None else OptionalShape(reference, inner)

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
        field, at = self.fields.block(start, limits.text)
        length = self._length(planned.length, limits)
        guards = self.fields.guards(start)
        return StringShape(field, limits.text, planned.encoding, at, length, None, guards)

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
        field, at = self.fields.block(start, size)
        return StringShape(field, size, "text", at, None, count, self.fields.guards(start))

    def _text(
        self, planned: plans.ArrayPlan, found: Memory, count: int, each: int, limits: Limits
    ) -> RangeShape:
        size = min(count * each, limits.row)
        start = load_word(self.checker.site, found, planned.node.span)
        assert isinstance(start, Deref)
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
            one = found_range
            return RangeShape(one.elements, one.start, one.low, one.high, one.bound, to_nul=True)
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
        row = None if inner.are_counted_strings else inner.row
        if isinstance(found, Memory) and row is not None:
            count = min(total, max(1, limits.row // row.size))
            return self._row(found, row, count, node, total)
        self._fetch_bytes(node, limits)
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
        elements = self._elements(planned.node, one, where(self.checker.site, one), limits)
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
        self, node: Typed, one: Typed, found: Where, limits: Limits
    ) -> NumbersShape | ListShape:
        # Those of ``node`` from the first, ``one`` at ``found``, on: numbers come in one piece.
        inner = plans.elements(self.checker, one.type, reader=True)
        row = None if inner.are_counted_strings else inner.row
        if row is not None and isinstance(found, Memory):
            return self._row(found, row, min(limits.row // row.size, ELEMENTS), node)
        self._fetch_bytes(one, limits.inner(), limits.items)
        inside = limits.inner()
        return self._at_most(
            limits.items,
            lambda index: self.shape(plans.element(self.checker, node, index), None, inside),
        )

    def _at_most(self, count: int, make: Callable[[int], Shape]) -> ListShape:
        # Of ``count`` elements there may be fewer: what is behind the last one is something else.
        shapes = [make(index) for index in range(min(count, 1))]
        with self.fields.assuming():
            shapes += [make(index) for index in range(1, count)]
        return ListShape(tuple(shapes))

    def _row(
        self, found: Memory, simple: Plain, count: int, node: Typed, total: int = 0
    ) -> NumbersShape:
        start = load_word(self.checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self.fields.block(start, count * simple.size)
        guards = self.fields.guards(start)
        return NumbersShape(field, simple.decode, count, simple.size, at, guards, total or count)

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

    def _bound(
        self, node: Typed | int, limits: Limits
    ) -> Leaf | ElementCountShape | DifferenceShape | ComputedShape | OperationShape | int:
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
    ) -> NumbersShape | ListShape | StringShape:
        checker, node = self.checker, planned.node
        found = memory_of(checker, node.first, "a range")
        if planned.scalar is not None:  # as a format says
            return self._row(found, planned.scalar, _most(planned, planned.scalar, limits), node)
        inner = plans.elements(checker, planned.element, reader=True)
        row = inner.row
        if planned.text:
            assert row is not None
            size = row.size * _fewer(planned, limits.text // row.size)
            start = load_word(checker.site, found, node.span)
            assert isinstance(start, Deref)
            field, at = self.fields.block(start, size)
            guards = self.fields.guards(start)
            return StringShape(field, size, planned.text, at, None, None, guards)
        if row is not None and not (inner.are_string_pointers or inner.are_counted_strings):
            return self._row(found, row, _most(planned, row, limits), node)
        few = limits.inner()
        count = _fewer(planned, (2 if inner.are_string_pointers else 1) * limits.items)
        self._fetch_bytes(node.first, few, count)
        each = self._at_most(
            count,
            lambda index: self.shape(plans.range_element(checker, planned, index), None, few),
        )
        return ListShape(each.items, self._guards_of(node.first))

    # ------------------------------------------------------------------------------
    # Members: structures, and one of several objects.

    def _structure(self, planned: plans.StructPlan, limits: Limits) -> StructShape | ListShape:
        checker, node = self.checker, planned.node
        self._fetch_bytes(node, limits)
        found: list[tuple[str, Shape]] = []
        left: list[str] = []
        refused: CompileError | None = None
        for member in plans.members(checker, planned.layout):
            if plans.is_empty(checker, member) and not planned.is_tuple:
                continue  # a marker: it has no value
            mark = self.fields.mark()
            try:
                inner = plans.member(checker, node, member)
                found.append((member.name, self.shape(inner, None, limits.deeper())))
            except CompileError as why:
                self.fields.forget(mark)
                left.append(member.name)
                refused = refused or why
        if not found and refused and not planned.layout.is_library:
            raise refused
        if not found:
            raise refuse_whole(checker, node, planned.layout)
        if left:
            checker.warnings.append(left_out(checker, node, left))
        if planned.is_tuple and not left:
            parts = tuple([inner for _, inner in found])
            return ListShape(parts, self._guards_of(node), is_tuple=True)
        return StructShape(tuple(found), self._guards_of(node), tuple(left))

    def _notation(self, node: Typed, layout: plans.Layout) -> NotationShape:
        words = [(name, self.word(one)) for name, one in plans.numbers(self.checker, node, layout)]
        return NotationShape(layout.notation, tuple(words), self._guards_of(node))

    def _enum(self, planned: plans.EnumPlan, limits: Limits) -> EnumShape:
        # Enums with fields (Rust): the record has the tag that selects the variant.
        checker, node = self.checker, planned.node
        if limits.depth <= 0 or (planned.tag is None and len(planned.layout.variants) != 1):
            raise refuse_whole(checker, node, planned.layout)
        self._fetch_bytes(node, limits)
        tag = None if planned.tag is None else plain_number(self.word(planned.tag))
        left: list[str] = []
        cases = [self._variant(one, limits, left) for one in plans.variants(checker, planned)]
        if left:
            checker.warnings.append(left_out(checker, node, left))
        return EnumShape(tag, tuple(cases))

    def _variant(self, variant: plans.VariantPlan, limits: Limits, left: list[str]) -> VariantCase:
        value, name = variant.value, variant.name
        if not variant.count:
            return VariantCase(value, name, None)
        mark = self.fields.mark()
        try:
            with self.fields.assuming():
                inner = self.shape(variant.fields, None, limits)
        except CompileError:
            self.fields.forget(mark)
            left.append(name)
            return VariantCase(value, name, None, left=variant.count)
        # What one field is in is not shown: `Some(3)`.
        if isinstance(inner, ListShape) and inner.is_tuple and len(inner.items) == 1:
            return VariantCase(value, name, inner.items[0], single=True)
        return VariantCase(value, name, inner)

    def _choice(self, planned: plans.ChoicePlan, limits: Limits) -> ChoiceShape:
        tag = self.word(planned.tag)
        found: list[tuple[int, Shape]] = []
        left: list[str] = []
        for value, name, one in planned.cases:
            mark = self.fields.mark()
            try:
                with self.fields.assuming():
                    found.append((value, self.shape(one, None, limits.deeper())))
            except CompileError:
                self.fields.forget(mark)
                left.append(name)
        if left:
            self.checker.warnings.append(left_out(self.checker, planned.node, left))
        return ChoiceShape(tag, tuple(found))

    # ------------------------------------------------------------------------------
    # Numbers that the reader computes, and objects that it selects by such a number.

    def sum(self, planned: SumPlan) -> SumShape:
        """The shape of a word and a constant."""
        word = None if planned.word is None else self.word(planned.word)
        return SumShape(word, planned.addend, planned.scalar.size, planned.scalar.decode)

    def _computed(self, node: Computed) -> ComputedShape:
        terms = []
        for one in node.terms:
            less = None if one.subtrahend is None else self.word(one.subtrahend)
            terms.append(Term(self.word(one.number), less, one.each, one.times))
        return ComputedShape(tuple(terms), node.constant, node.is_zero)

    def _operation(self, planned: OperationPlan, limits: Limits) -> OperationShape:
        operands = []
        if planned.operator == "[]":
            self._fetch_bytes(planned.operands[1].node, limits, len(planned.operands) - 1)
        for one in planned.operands:
            given = reversed(one.assumptions)
            value = self._operand(one.node, limits)
            shape = value if isinstance(value, int | float) else self.within(value, limits, given)
            operands.append(OperandShape(shape, one.number))
        number, result = planned.number, planned.result
        return OperationShape(
            planned.operator, tuple(operands), number, planned.rules, result, planned.decode
        )

    def _operand(self, node: Typed, limits: Limits) -> Shape | float:
        match node:
            case Constant(value=value) | FloatConstant(value=value):
                return value
            case Operation() | Computed() | Conditional() | Dispatched():
                return self.shape(node, None, limits)
            case _:
                pass
        described = plain(self.checker, node.type)
        inner: Typed = node
        assert described is not None
        while isinstance(inner, Convert):
            inner = inner.base
        if isinstance(inner, Address):
            return self._address(plans.AddressPlan(node, described))
        leaf = self._leaf(
            scalar(self.checker, node, described), plans.is_entry_count(self.checker, node)
        )
        return leaf if leaf.decode.kind == "float" else plain_number(leaf)

    def _either(self, node: Conditional, limits: Limits) -> ConditionalShape:
        if node.adjacent:
            self._fetch_together(node)
        both = [
            self.within(self.shape(one, None, limits), limits, reversed(given))
            for one, given in zip((node.if_zero, node.if_nonzero), node.assumptions, strict=True)
        ]
        return ConditionalShape(self._computed(node.number), both[0], both[1])

    # ------------------------------------------------------------------------------
    # Values whose type is in the object: interfaces of Go, objects of .NET; what is assumed.

    def within(self, shape: Shape, limits: Limits, given: Iterable[Assumption]) -> Shape:
        """``shape`` with the checks of its assertions and indices around it, the last first."""
        for one in given:
            match one:
                case AssumedCount(least=least):
                    count = self.shape(counted(self.checker, one), None, limits)
                    shape = BoundsCheckShape(count, least, shape)
                case AssumedClass():
                    shape = self._of_type(one, shape)
                case AssumedVariant(variants=variants, wanted=wanted):
                    names = tuple([(each.value, each.member.name) for each in variants])
                    tag = plain_number(self.word(one.tag))
                    shape = VariantCheckShape(tag, names, wanted, shape)
                case AssumedDynamicType(wanted=wanted_type):
                    dynamic = self._asserted_type(one)
                    shape = TypeAssertionShape(dynamic, wanted_type.offset, shape)
        return shape

    def _asserted_type(self, one: AssumedDynamicType) -> TypeNameShape:
        types = runtime_types(self.checker)
        assert types is not None
        # The first word of an interface with methods is NULL where it holds nothing.
        word = self.word(one.word, empty=not one.empty)
        return TypeNameShape(word, self.word(one.start), types)

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

    def _interface(self, planned: plans.InterfacePlan, limits: Limits) -> Shape:
        (first_name, first), (_, data) = planned.words
        self._fetch_bytes(planned.node, limits)
        value = self.shape(data, None, limits)
        dynamic = self._dynamic_type(dynamic_type(self.checker, planned))
        if dynamic is None:
            word = self.shape(first, None, limits)
            members = ((first_name.lstrip("_"), word), ("data", value))
            return StructShape(members, self._guards_of(planned.node))
        members = (("type", dynamic), ("data", value))
        shown = StructShape(members, self._guards_of(planned.node))
        return self._described_interface(planned, shown, limits)

    def _dynamic_type(self, planned: DynamicTypePlan | None) -> TypeNameShape | None:
        if planned is None:
            return None
        word = self.word(planned.word, planned.may_be_null)
        return TypeNameShape(word, self.word(planned.start), planned.types)

    def _described_interface(
        self, planned: plans.InterfacePlan, shown: Shape, limits: Limits, level: int = 0
    ) -> Shape:
        # ``shown``, with descriptions of the values that the interface may hold. What they need is
        # fetched with the interface, whatever it holds; ``level`` counts the errors around it.
        dynamic = self._dynamic_type(dynamic_type(self.checker, planned))
        if dynamic is None or limits.text < _SHORTEST:
            return shown
        found: list[TypeDescription] = []
        for name, words in wordings(self.checker, planned, level).items():
            mark = self.fields.mark()
            try:
                with self.fields.assuming():
                    one = description(self.checker, planned, name, words)
                    if one is not None:
                        parts = [
                            part
                            if isinstance(part, str)
                            else self._described_value(part, limits, level)
                            for part in one.parts
                        ]
                        found.append(TypeDescription(one.wanted, tuple(parts), one.numbered))
            except CompileError:
                self.fields.forget(mark)
        if limits.follow and level == 0:
            found += self._held(planned, limits.alternative(), {one.wanted for one in found})
        return InterfaceShape(dynamic, shown, tuple(found), level > 0) if found else shown

    def _held(
        self, planned: plans.InterfacePlan, limits: Limits, described: Collection[int]
    ) -> list[TypeDescription]:
        # What the interface leads to, for the types that it can hold; a pointer among them is
        # followed once, and one that leads nowhere is the word ``data``, which is shown anyway.
        found = []
        for wanted, value in held(self.checker, planned):
            if wanted in described:
                continue
            followed = plans.behind_pointer(self.checker, value) is not None
            mark = self.fields.mark()
            try:
                with self.fields.assuming():
                    shape = self.shape(value, None, limits if followed else limits.behind())
            except CompileError:
                self.fields.forget(mark)
                continue
            if not (isinstance(shape, Leaf) and shape.decode.kind == "pointer"):
                found.append(TypeDescription(wanted, (shape,), False))
        return found

    def _described_value(self, node: Typed, limits: Limits, level: int) -> Shape:
        planned = plan(self.checker, node, reader=True)
        if not isinstance(planned, plans.InterfacePlan):
            return self._planned(planned, limits)
        dynamic = self._dynamic_type(dynamic_type(self.checker, planned))
        assert dynamic is not None
        return self._described_interface(planned, dynamic, limits, level + 1)

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

    def _fetch_together(self, node: Conditional) -> None:
        # Adjacent objects are fetched in as few pieces as possible.
        spans: dict[Value, tuple[Memory, int, int]] = {}
        for one in _objects(node):
            try:
                found = where(self.checker.site, one)
            except CompileError:
                return
            if isinstance(found, Memory):
                low, high = found.offset, found.offset + (self.checker.size(one.type) or 0)
                _, least, most = spans.get(found.base, (found, low, high))
                spans[found.base] = found, min(low, least), max(high, most)
        for found, low, high in spans.values():
            if 8 < high - low <= _MOST_TOGETHER:
                place = Memory(found.base, low, found.user)
                start = load_word(self.checker.site, place, node.span)
                assert isinstance(start, Deref)
                self.fields.block(start, high - low)


def plain_number(leaf: Leaf) -> Leaf:
    """The leaf as a plain number, without the name of an enumerator."""
    plain = Decode("integer", leaf.decode.bits, leaf.decode.signed)
    return Leaf(leaf.field, plain, leaf.offset, leaf.size, leaf.shift, leaf.guards)


def _or_empty(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    # The last pointer may be NULL: the value is an empty one then, and no fault.
    last = guards[-1]
    empty = Guard(last.field, last.offset, last.moved, True, last.kernel, last.read_checks)
    return (*guards[:-1], empty)


def _most(planned: plans.RangePlan, each: Plain, limits: Limits) -> int:
    # Numbers of a range.
    return _fewer(planned, min(limits.row // each.size, ELEMENTS))


def _fewer(planned: plans.RangePlan, count: int) -> int:
    # ``count`` elements, or those that there can be.
    node = planned.node
    limits = [one - node.start for one in (node.high, node.bound) if isinstance(one, int)]
    return min(count, *limits, count)


def _objects(node: Typed) -> Iterator[Typed]:
    if isinstance(node, Conditional):
        yield from _objects(node.if_zero)
        yield from _objects(node.if_nonzero)
    else:
        yield node
