"""From a typed tree to the shape of its value: what to fetch, and how to read it.

A definition for people names each member (``lower``). A reader takes whole objects: a structure or
an array is fetched as its bytes, in one piece, and decoded later.
"""

from __future__ import annotations

from fetchc.check import typed_tree
from fetchc.check.conversions import wide
from fetchc.check.cpp_reader_values import ends, text_length
from fetchc.check.members import part, through
from fetchc.check.number_halves import halves
from fetchc.check.typed_tree import (
    Address,
    Computed,
    Convert,
    Dispatched,
    Either,
    Follow,
    Part,
    Special,
)
from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import Array, Decode, Deref, Fetch, Scalar, Text, fixed_bytes, is_address
from fetchc.lower import aggregates, strings
from fetchc.lower.fetches import Lowered, Memory, load_word, plain, pointer, where
from fetchc.lower.lowering import (
    bit_field_of,
    entries,
    left_out,
    lower,
    named_members,
    scalar,
    special,
)
from fetchc.lower.value_formats import in_order, is_byte
from fetchc.program.types import (
    ArrayType,
    CellType,
    ChannelType,
    ChoiceType,
    ComplexType,
    DifferenceType,
    InterfaceType,
    IntType,
    MapType,
    PointerType,
    RangeType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.tracer.dynamic_plan import CallerShapes, DynamicTypeShapes, variable_on_entry
from fetchc.tracer.event_fields import LeafShapes, plain_number
from fetchc.tracer.list_plan import FormattedShapes, RangeShapes
from fetchc.tracer.value_shapes import (
    ChoiceShape,
    ComputedShape,
    ConditionalShape,
    DifferenceShape,
    ElementCountShape,
    EnumShape,
    Leaf,
    ListShape,
    NotationShape,
    NumbersShape,
    OptionalShape,
    SizedStringShape,
    StructShape,
    Term,
    VariantCase,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.check.typed_tree import Typed
    from fetchc.ir.fetch import Value
    from fetchc.program.types import Member, Type, Variant
    from fetchc.syntax.tree import Format
    from fetchc.tracer.event_fields import Limits
    from fetchc.tracer.value_shapes import Shape

__all__ = ["ComputedShapes", "EnumShapes", "Shaper", "is_tuple"]

# ------------------------------------------------------------------------------
# Enums with fields, and tuples (Rust): the record has the tag that selects the variant.


def is_tuple(members: tuple[Member, ...]) -> bool:
    """Whether the members are numbered, as those of Rust's tuples are: ``__0``, ``__1``."""
    return bool(members) and all(
        member.name == f"__{number}" for number, member in enumerate(members)
    )


class EnumShapes(LeafShapes):
    """The shapes of enums with fields."""

    def _variants(self, node: Typed, made: StructType, limits: Limits) -> EnumShape:
        if limits.depth <= 0 or (not made.members and len(made.variants) != 1):
            raise aggregates.refuse_whole(self._checker, node, made)
        self._fetch_bytes(node, limits)
        tag = None
        if made.members:
            word = self._word(part(node, made.members[0], node.span))
            tag = plain_number(self._leaf(word))
        left: list[str] = []
        cases = tuple([self._case(node, one, limits, left) for one in made.variants])
        if left:
            self._checker.warnings.append(left_out(self._checker, node, left))
        return EnumShape(tag, cases)

    def _case(self, node: Typed, variant: Variant, limits: Limits, left: list[str]) -> VariantCase:
        member = variant.member
        fields = self._checker.resolved(member.type)
        filled = self._filled(fields) if isinstance(fields, StructType) else []
        if not filled:
            return VariantCase(variant.value, member.name, None)
        mark = self._fields.mark()
        try:
            with self._fields.assuming():
                inner = self.shape(part(node, member, node.span), None, limits)
        except CompileError:
            self._fields.forget(mark)
            left.append(member.name)
            return VariantCase(variant.value, member.name, None, left=len(filled))
        # What one field is in is not shown: `Some(3)`.
        if isinstance(inner, ListShape) and inner.is_tuple and len(inner.items) == 1:
            return VariantCase(variant.value, member.name, inner.items[0], single=True)
        return VariantCase(variant.value, member.name, inner)

    def _filled(self, made: StructType) -> list[Member]:
        # Without what takes no room: markers, `()`.
        return [one for one in made.members if self._checker.size(one.type) != 0]

    def _structure(self, node: Typed, made: StructType, limits: Limits) -> StructShape | ListShape:
        raise NotImplementedError


# ------------------------------------------------------------------------------
# Numbers that the reader computes, and objects that it selects by such a number.

_MOST_TOGETHER = 256  # bytes


class ComputedShapes(DynamicTypeShapes):
    """Shapes of computed values."""

    def _made(
        self, node: typed_tree.Computed | typed_tree.Either, limits: Limits
    ) -> ComputedShape | ConditionalShape:
        if isinstance(node, typed_tree.Either):
            if node.side_by_side:
                self._fetch_together(node)
            both = [
                self.within(self.shape(one, None, limits), limits, reversed(given))
                for one, given in zip((node.at_none, node.other), node.given, strict=True)
            ]
            return ConditionalShape(self._reckoned(node.number), both[0], both[1])
        return self._reckoned(node)

    def _fetch_together(self, node: typed_tree.Either) -> None:
        # Adjacent objects are fetched in as few pieces as possible.
        spans: dict[Value, tuple[Memory, int, int]] = {}
        for one in _objects(node):
            try:
                found = where(self._checker.site, one)
            except CompileError:
                return
            if isinstance(found, Memory):
                low, high = found.offset, found.offset + (self._checker.size(one.type) or 0)
                _, least, most = spans.get(found.base, (found, low, high))
                spans[found.base] = found, min(low, least), max(high, most)
        for found, low, high in spans.values():
            if 8 < high - low <= _MOST_TOGETHER:
                place = Memory(found.base, low, found.user)
                start = load_word(self._checker.site, place, node.span)
                assert isinstance(start, Deref)
                self._fields.block(start, high - low)

    def _reckoned(self, node: typed_tree.Computed) -> ComputedShape:
        terms = []
        for one in node.terms:
            less = None if one.less is None else self._leaf(self._word(one.less))
            terms.append(Term(self._leaf(self._word(one.number)), less, one.each, one.times))
        return ComputedShape(tuple(terms), node.constant, node.is_none)


def _objects(node: typed_tree.Typed) -> Iterator[typed_tree.Typed]:
    if isinstance(node, typed_tree.Either):
        yield from _objects(node.at_none)
        yield from _objects(node.other)
    else:
        yield node


class Shaper(RangeShapes, EnumShapes, CallerShapes, ComputedShapes, FormattedShapes):
    """Makes the shapes of one argument, and has :class:`Fields` fetch what they need."""

    def value(self, node: Typed, format: Format | None, limits: Limits) -> Shape:
        """The shape of what an argument asks for; raises CompileError as :meth:`shape` does."""
        if isinstance(self._checker.resolved(node.type), ArrayType):
            limits = limits.of_array()
        held = variable_on_entry(node)
        if held is not None:
            with self._fields.assuming():
                return self._by_caller(node, held, format, limits)
        return self.within(
            self.shape(node, format, limits), limits, reversed(self._checker.assertions)
        )

    def shape(self, node: Typed, format: Format | None, limits: Limits) -> Shape:
        """The shape of ``node``; raises CompileError where it cannot be fetched."""
        checker = self._checker
        made = checker.resolved(node.type)
        if isinstance(node, Computed | Either) and format is None:
            return self._made(node, limits)
        if isinstance(node, Dispatched) and format is None:
            return self._dispatched(node, limits)
        if isinstance(made, RangeType) and (found := self._range(node, made, format, limits)):
            return found
        if isinstance(made, SliceType) and self._are_text(made, format):
            return self._string(node, made, limits)
        if format is not None and not _natural(made, format):
            fetched = in_order(checker, node, format)
            (lowered,) = lower(checker, node, fetched, whole=False)
            shape = self._formatted(lowered)
            if fetched is format or not isinstance(shape, Leaf):
                return shape
            decode = Decode("turned", lowered.decode.bits)
            return Leaf(shape.field, decode, shape.offset, shape.size, shape.shift, shape.guards)
        if isinstance(node, Special) and (given := special(checker, node)) is not None:
            return self._leaf(given)
        length = None
        if isinstance(made, StructType) and made.is_library:
            between = ends(checker, node)
            if between is not None:
                return self._elements_between(*between, limits)
            length = text_length(checker, node)
        if isinstance(made, StructType):
            reader_value = checker.rules_for(made).reader_value
            if reader_value is not None:
                node = reader_value(checker, node)
                made = checker.resolved(node.type)
            if length is not None:
                return SizedStringShape(
                    self.shape(node, None, limits), self.shape(length, None, limits)
                )
            if isinstance(node, Computed | Either) or isinstance(made, RangeType):
                return self.shape(node, None, limits)
        if format is None and (computed := self._computed(node)) is not None:
            return computed
        if format is None and (spelled := self._spelled(node, made, limits)) is not None:
            return spelled
        if self._is_closure(made) and bit_field_of(node) is None:
            return self._leaf(self._word(self._code_of(node)), empty=True)
        simple = self._plain(node.type)
        pointing = isinstance(made, PointerType | MapType | ChannelType)
        if simple is not None and (not pointing or bit_field_of(node) is not None):
            return self._leaf(scalar(checker, node, simple), self._counts(node))
        match made:
            case MapType() | ChannelType():
                return self._leaf(entries(checker, node), empty=True)
            case StringType():
                return self._string(node, made, limits)
            case ArrayType():
                return self._array(node, made, limits)
            case SliceType():
                return self._slice(node, made, limits)
            case PointerType() | SequenceType() if text := strings.units(checker, node):
                return self._referred(node, made, self._units(*text, limits))
            case PointerType() if isinstance(checker.resolved(made.target), SequenceType):
                inner = self.shape(Follow(node, made.target, node.span), None, limits)
                return self._referred(node, made, inner)
            case SequenceType(dimensions=(), window=None):
                return self._sequence(node, made, limits)
            case SequenceType(dimensions=()):
                return self._window(node, made, limits)
            case SequenceType():
                return self._grid(node, made, limits)
            case CellType(array=array, indices=wanted):
                assert isinstance(node, Part)
                return self._grid(node.base, array, limits.of_array(), wanted)
            case DifferenceType(minuend=first, subtrahend=second, each=each):
                assert isinstance(node, Part | Convert)
                words = [self._word(part(node.base, one, node.span)) for one in (first, second)]
                both = [self._leaf(word) for word in words]
                return (
                    ElementCountShape(both[1], both[0], each)
                    if each
                    else DifferenceShape(both[0], both[1])
                )
            case ChoiceType():
                return self._choice(node, made, limits)
            case InterfaceType():
                return self._interface(node, made, limits)
            case StructType(notation="nullable", members=(present, value)):
                self._fetch_bytes(node, limits)
                inner = self.shape(part(node, value, node.span), None, limits)
                return OptionalShape(self._leaf(self._word(part(node, present, node.span))), inner)
            case StructType(variants=(_, *_)):
                return self._variants(node, made, limits)
            case StructType() if made.notation:
                self._fetch_bytes(node, limits)
                return NotationShape(
                    made.notation, self._numbers(node, made), self._guards_of(node)
                )
            case StructType() if limits.depth > 0:
                return self._structure(node, made, limits)
            case PointerType(target=target) if encoding := wide(checker, target):
                return self._wide_text(node, encoding, limits)
            case PointerType() if moved := self._moved(node, made):
                return moved
            case ComplexType() | IntType() if two := halves(checker, made):
                if two.notation:
                    return NotationShape(
                        two.notation, self._numbers(node, two), self._guards_of(node)
                    )
                parts = [
                    (one.name, self.shape(part(node, one, node.span), None, limits))
                    for one in two.members
                ]
                return StructShape(tuple(parts), self._guards_of(node))
            case _:
                # A string by its pointer, a pointer, or a refusal.
                (lowered,) = lower(checker, node, None, whole=False)
                return self._leaf(lowered)

    def _code_of(self, node: Typed) -> Typed:
        # A function value points to an object that begins with the address of the code.
        return Follow(
            Convert(node, self._checker.pointer_to(node.type), node.span), node.type, node.span
        )

    def _moved(self, node: Typed, made: PointerType) -> DifferenceShape | None:
        # The kernel cannot add: it gives the address that the offset is added to here.
        while isinstance(node, Convert):
            node = node.base
        if not isinstance(node, Address):
            return None
        value, offset = pointer(self._checker.site, node)
        if offset == 0 or is_address(value) or strings.is_text_pointer(self._checker, made):
            return None
        bits = 8 * made.size
        fetch = Fetch(value, Scalar("x", bits))
        return DifferenceShape(
            self._leaf(Lowered("", fetch, Decode("pointer", bits), node.type)), -offset
        )

    def _counts(self, node: Typed) -> bool:
        # len(m), cap(c): a field of the runtime's map or channel header; the pointer may be nil.
        if not (isinstance(node, Part) and isinstance(node.base, Follow)):
            return False
        held = self._checker.resolved(node.base.base.type)
        return isinstance(held, MapType | ChannelType)

    def _formatted(self, lowered: Lowered) -> Leaf | NumbersShape:
        store, decode, value = lowered.fetch.store, lowered.decode, lowered.fetch.value
        if isinstance(store, Array) and not isinstance(store.element, Text):
            each = store.element
            if isinstance(each, Scalar) and each.kind == "x":
                decode = Decode("address", each.bits)
            field = self._fields.add(lowered.fetch)
            guards = self._fields.guards(value)
            return NumbersShape(field, decode, store.count, fixed_bytes(each), 0, guards)
        leaf = self._leaf(lowered)
        if isinstance(store, Scalar) and store.kind == "x" and decode.kind == "integer":
            decode = Decode("address", decode.bits)
            return Leaf(leaf.field, decode, leaf.offset, leaf.size, leaf.shift, leaf.guards)
        return leaf

    def _referred(self, node: Typed, made: Type, inner: Shape) -> Shape:
        # What a reference points to: None where it is null.
        simple = plain(self._checker, node.type)
        if not isinstance(made, PointerType) or simple is None:
            return inner
        return OptionalShape(self._leaf(scalar(self._checker, node, simple)), inner)

    def _choice(self, node: Typed, made: ChoiceType, limits: Limits) -> ChoiceShape:
        tag = self._leaf(self._word(part(node, made.tag, node.span)))
        found: list[tuple[int, Shape]] = []
        left: list[str] = []
        for value, member in made.cases:
            mark = self._fields.mark()
            try:
                with self._fields.assuming():
                    inner = self.shape(part(node, member, node.span), None, limits.deeper())
                found.append((value, inner))
            except CompileError:
                self._fields.forget(mark)
                left.append(member.name)
        if left:
            self._checker.warnings.append(left_out(self._checker, node, left))
        return ChoiceShape(tag, tuple(found))

    def _structure(self, node: Typed, made: StructType, limits: Limits) -> StructShape | ListShape:
        checker = self._checker
        self._fetch_bytes(node, limits)
        found: list[tuple[str, Shape]] = []
        left: list[str] = []
        refused: CompileError | None = None
        numbered = is_tuple(made.members)
        for path, member in named_members(checker, made, ()):
            if checker.size(member.type) == 0 and not numbered:
                continue  # a marker: it has no value
            mark = self._fields.mark()
            try:
                inner = through(checker, node, (*path, member), node.span)
                found.append((member.name, self.shape(inner, None, limits.deeper())))
            except CompileError as why:
                self._fields.forget(mark)
                left.append(member.name)
                refused = refused or why
        if not found and refused and not made.is_library:
            raise refused
        if not found:
            raise aggregates.refuse_whole(checker, node, made)
        if left:
            checker.warnings.append(left_out(checker, node, left))
        if numbered and not left:
            parts = tuple([inner for _, inner in found])
            return ListShape(parts, self._guards_of(node), is_tuple=True)
        return StructShape(tuple(found), self._guards_of(node), tuple(left))

    def _are_text(self, made: SliceType, format: Format | None) -> bool:
        # A byte slice shown as a string ends at its length, not at a NUL.
        if format is None or not _is_text(format):
            return False
        return is_byte(self._checker.resolved(made.element))


def _natural(made: object, format: Format) -> bool:
    # A reader shows these as strings without `:string` too.
    return _is_text(format) and isinstance(made, StringType | ArrayType)


def _is_text(format: Format) -> bool:
    return format.base in ("string", "ustring") and format.count is None
