"""From the plan of a value to its shape: what an event fetches of it, and how it is read.

A definition for people names each member (:mod:`fetchc.lower.arguments`). A decoder takes whole
objects: a structure or an array is fetched as its bytes, in one piece (:class:`.Fields`).
"""

from __future__ import annotations

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
from fetchc.ir.fetch import Array, Decode, Deref, Fetch, Scalar, Text, fixed_bytes, is_address
from fetchc.lower import aggregate_plan as plans
from fetchc.lower.argument_formats import format_plan, formatted, in_order
from fetchc.lower.argument_refusals import left_out, refuse_unfetchable, refuse_whole, too_deep
from fetchc.lower.arguments import pointed_string
from fetchc.lower.assumptions import counted
from fetchc.lower.extents import FULL, Limits
from fetchc.lower.fetches import Lowered, Memory, load_word, plain, pointed, pointer, scalar, where
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
from fetchc.lower.value_plan import NumberPlan, plan
from fetchc.record import assert_never
from fetchc.tracer.element_shaper import ElementShaper, plain_number
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    ChoiceShape,
    ComputedShape,
    ConditionalShape,
    DifferenceShape,
    EntryCountShape,
    EnumShape,
    FormattedShape,
    InterfaceShape,
    Leaf,
    ListShape,
    NotationShape,
    NumbersShape,
    OperandShape,
    OperationShape,
    OptionalShape,
    SequenceShape,
    StructShape,
    SumShape,
    Term,
    TypeAssertionShape,
    TypeDescription,
    TypeNameShape,
    TypeSwitchShape,
    VariantCase,
    VariantCheckShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from fetchc.check.typed_tree import Assumption, Typed
    from fetchc.ir.fetch import Value
    from fetchc.lower.interface_plan import DynamicTypePlan
    from fetchc.lower.printed_values import PartPlan
    from fetchc.lower.value_plan import Plan
    from fetchc.syntax.tree import Format
    from fetchc.tracer.value_shapes import Shape

__all__ = ["Shaper"]

_MOST_TOGETHER = 256  # bytes
_SHORTEST = 64  # bytes of a string: with less room an interface shows only its type


class Shaper(ElementShaper):
    """Makes the shapes of one argument, and has :class:`Fields` fetch what they need."""

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
                return self._sized_string(string, size, limits)
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
                start, one = pointed(checker.site, data), plans.element(checker, node, 0)
                elements = self._elements(
                    node, one, start, limits, lambda: self._length(length, limits)
                )
                return SequenceShape(self._length(length, limits), elements)
            case plans.VectorPlan(first=first, end=end, each=each):
                start, one = pointed(checker.site, first), plans.element(checker, first, 0)
                elements = self._elements(
                    first, one, start, limits, lambda: self._between(first, end, each)
                )
                return SequenceShape(self._between(first, end, each), elements)
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
                    raise too_deep(checker, node, FULL.depth)
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
    # Pointers that are followed, values as a format says.

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
        reference = None if part.reference is None else self.word(part.reference, empty=True)
        # Without the forms: the bytes of an address are a list here.
        inner = self._planned(plan(self.checker, part.node), limits)
        return inner if reference is None else OptionalShape(reference, inner)

    # ------------------------------------------------------------------------------
    # Members: structures, and one of several objects.

    def _structure(self, planned: plans.StructPlan, limits: Limits) -> StructShape | ListShape:
        checker, node = self.checker, planned.node
        self._fetch_bytes(node, limits)
        found: list[tuple[str, Shape]] = []
        left: dict[str, str] = {}
        refused: CompileError | None = None
        for member in plans.members(checker, planned.layout):
            if plans.is_empty(checker, member.path[-1].type) and not planned.is_tuple:
                continue  # a marker: it has no value
            mark = self.fields.mark()
            name = member.name.removeprefix("__") if planned.is_tuple else member.name
            try:
                inner = plans.member(checker, node, member)
                found.append((name, self.shape(inner, None, limits.deeper())))
            except CompileError as why:
                self.fields.forget(mark)
                left[name] = why.diagnostics[0].message
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
        if limits.depth <= 0:
            raise too_deep(checker, node, FULL.depth)
        if planned.tag is None and len(planned.layout.variants) != 1:
            raise refuse_whole(checker, node, planned.layout)
        self._fetch_bytes(node, limits)
        tag = None if planned.tag is None else plain_number(self.word(planned.tag))
        left: dict[str, str] = {}
        cases = [self._variant(one, limits, left) for one in plans.variants(checker, planned)]
        if left:
            checker.warnings.append(left_out(checker, node, left))
        return EnumShape(tag, tuple(cases))

    def _variant(
        self, variant: plans.VariantPlan, limits: Limits, left: dict[str, str]
    ) -> VariantCase:
        value, name = variant.value, variant.name
        if not variant.count:
            return VariantCase(value, name, None)
        mark = self.fields.mark()
        try:
            with self.fields.assuming():
                inner = self.shape(variant.fields, None, limits)
        except CompileError as why:
            self.fields.forget(mark)
            left[name] = why.diagnostics[0].message
            return VariantCase(value, name, None, left=variant.count)
        # What one field is in is not shown: `Some(3)`.
        if isinstance(inner, ListShape) and inner.is_tuple and len(inner.items) == 1:
            return VariantCase(value, name, inner.items[0], single=True)
        return VariantCase(value, name, inner)

    def _choice(self, planned: plans.ChoicePlan, limits: Limits) -> ChoiceShape:
        tag = self.word(planned.tag)
        found: list[tuple[int, Shape]] = []
        left: dict[str, str] = {}
        for value, name, one in planned.cases:
            mark = self.fields.mark()
            try:
                with self.fields.assuming():
                    found.append((value, self.shape(one, None, limits.deeper())))
            except CompileError as why:
                self.fields.forget(mark)
                left[name] = why.diagnostics[0].message
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
        if isinstance(inner, Address | Shift):
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


def _objects(node: Typed) -> Iterator[Typed]:
    if isinstance(node, Conditional):
        yield from _objects(node.if_zero)
        yield from _objects(node.if_nonzero)
    else:
        yield node
