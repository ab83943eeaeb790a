"""The shapes of strings, arrays, slices, ranges, and of values that Go prints in its own form."""

from __future__ import annotations

from fetchc.check import indexing, scope
from fetchc.check.array_ranges import has_variable_length, in_full
from fetchc.check.members import find, part, through
from fetchc.check.typed_tree import Address, Convert, Described, Follow, Held, Shift
from fetchc.check.typed_tree import Ranged as RangedNode
from fetchc.diag.diagnostic import reject
from fetchc.ir.fetch import ELEMENTS, Decode, Deref
from fetchc.lower import aggregates, strings
from fetchc.lower.fetches import Memory, Plain, is_character, load_word, plain, pointed, where
from fetchc.lower.lowering import memory_of
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    FunctionType,
    IntType,
    MapType,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.quantities import ByteOffset
from fetchc.target.machines import table
from fetchc.tracer.dynamic_plan import DynamicTypeShapes
from fetchc.tracer.event_fields import Limits
from fetchc.tracer.value_shapes import (
    CastShape,
    ComputedShape,
    DifferenceShape,
    ElementCountShape,
    FormattedShape,
    Guard,
    Leaf,
    ListShape,
    MultiArrayShape,
    NumbersShape,
    OptionalShape,
    RangeShape,
    SequenceShape,
    StringShape,
    Term,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.fetches import Where
    from fetchc.program.types import Member, RangeType, Type, Window
    from fetchc.quantities import TypeId
    from fetchc.syntax.tree import Format
    from fetchc.tracer.value_shapes import Shape

__all__ = ["FormattedShapes", "ListShapes", "RangeShapes"]


class ListShapes(DynamicTypeShapes):
    """Shapes of strings and lists."""

    def _string(self, node: Typed, made: StringType | SliceType, limits: Limits) -> StringShape:
        found = pointed(self._checker.site, indexing.data_pointer(self._checker, node, made))
        return self._counted(node, found, "text", made.members[1], limits)

    def _units(self, node: Typed, made: SequenceType, limits: Limits) -> StringShape:
        unit = indexing.element_at(self._checker, node, 0, node.span, node.span)
        found = where(self._checker.site, unit)
        assert isinstance(found, Memory)
        return self._counted(node, found, "utf-16", made.length, limits)

    def _counted(
        self, node: Typed, found: Memory, encoding: str, count: Member, limits: Limits
    ) -> StringShape:
        # A string whose units begin at ``found``; the member ``count`` of ``node`` is their number.
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, limits.text)
        length = self._length(node, count, limits)
        return StringShape(
            field, limits.text, encoding, at, length, None, self._fields.guards(start)
        )

    def _length(self, node: Typed, count: Member, limits: Limits) -> Leaf:
        length = self.shape(part(node, count, node.span), None, limits)
        assert isinstance(length, Leaf)
        return length

    def _sequence(self, node: Typed, made: SequenceType, limits: Limits) -> SequenceShape:
        one = indexing.element_at(self._checker, node, 0, node.span, node.span)
        elements = self._elements(node, one, where(self._checker.site, one), limits)
        return SequenceShape(self._length(node, made.length, limits), elements)

    def _elements(
        self, node: Typed, one: Typed, found: Where, limits: Limits
    ) -> NumbersShape | ListShape:
        # Those of ``node`` from the first, ``one`` at ``found``, on: numbers come in one piece.
        simple = self._number_of(one.type)
        text = strings.units(self._checker, one) is not None
        if simple is not None and isinstance(found, Memory) and not text:
            return self._row(found, simple, min(limits.row // simple.size, ELEMENTS), node)
        self._fetch_bytes(one, limits.inner(), limits.items)
        return self._items(node, limits.items, limits.inner())

    def _part_of_text(
        self, node: Typed, made: SequenceType, window: Window, limits: Limits, listed: bool
    ) -> CastShape:
        # Units of a text or of an array of them, from an index on; ``listed``: one by one.
        span = node.span
        start = self._leaf(self._word(part(node, window.start, span)))
        length = self._length(node, made.length, limits)
        end = ComputedShape((Term(start, None, 1, 1), Term(length, None, 1, 1)), 0, False)
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
            elements: NumbersShape | StringShape
            if listed:
                elements = self._row(place, simple, min(limits.text // simple.size, ELEMENTS), node)
            else:
                address = load_word(self._checker.site, place, span)
                assert isinstance(address, Deref)
                field, at = self._fields.block(address, limits.text)
                guards = self._fields.guards(address)
                elements = StringShape(field, limits.text, "utf-16", at, None, None, guards)
            inside = RangeShape(elements, 0, start, end, None)
            found = self._of_type(Described(array, kind.target, span), inside, found)
        assert found is not None
        return found

    def _window(
        self, node: Typed, made: SequenceType, limits: Limits, listed: bool = False
    ) -> SequenceShape | CastShape:
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
        found = SequenceShape(whole.length, whole.elements, start, around, window.backwards)
        if window.of_any:
            return self._of_type(Described(array, kind.target, span), found)
        return found

    def _grid(
        self, node: Typed, made: SequenceType, limits: Limits, indices: tuple[int, ...] = ()
    ) -> MultiArrayShape:
        dimensions = made.dimensions or ((made.length,),)
        ways = [through(self._checker, node, way, node.span) for way in dimensions]
        lengths = tuple([self._leaf(self._word(length)) for length in ways])
        flat: SequenceShape | CastShape
        if made.window is None:
            flat = self._sequence(node, made, limits)
        else:
            flat = self._window(node, made, limits, listed=True)
        return MultiArrayShape(lengths, flat, indices)

    def _elements_between(self, first: Typed, end: Typed, limits: Limits) -> SequenceShape:
        # Of a vector: the pointers to its first element and past its last one.
        one = indexing.element_at(self._checker, first, 0, first.span, first.span)
        each = self._checker.size(one.type)
        assert each
        elements = self._elements(first, one, pointed(self._checker.site, first), limits)
        words = [self._leaf(self._word(word)) for word in (first, end)]
        return SequenceShape(ElementCountShape(words[0], words[1], each), elements)

    def _slice(self, node: Typed, made: SliceType, limits: Limits) -> SequenceShape:
        start = pointed(self._checker.site, indexing.data_pointer(self._checker, node, made))
        one = indexing.element_at(self._checker, node, 0, node.span, node.span)
        elements = self._elements(node, one, start, limits)
        return SequenceShape(self._length(node, made.members[1], limits), elements)

    def _array(self, node: Typed, made: ArrayType, limits: Limits) -> Shape:
        checker = self._checker
        element = checker.resolved(made.element)
        full = in_full(checker, node) if made.count is None else None
        if full is not None:
            found_range = self.shape(full, None, limits)
            if not (is_character(element) and isinstance(found_range, RangeShape)):
                return found_range
            one = found_range
            return RangeShape(one.elements, one.start, one.low, one.high, one.bound, to_nul=True)
        if made.count is None or made.count == 0:
            # A string up to its NUL, or a refusal that says why.
            if is_character(element) and has_variable_length(node):
                called = node.name if isinstance(node, Held) and node.name else "a"
                raise reject(
                    "FC0311",
                    f"the length of `{checker.spell(node.type)}` is not known here",
                    node.span,
                    "how many characters are its own is not known",
                    notes=("a string in it may have no NUL, and go on behind it",),
                    help=f"cast it to read up to a NUL: `(char *){called}`, or name a length: "
                    f"`{called}[0:4]`",
                )
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
        return ListShape(items.items, self._guards_of(node), made.count)

    def _characters(self, node: Typed, found: Where, count: int, limits: Limits) -> Shape:
        if not isinstance(found, Memory):
            return ListShape(self._items(node, count, limits).items, (), count, text=True)
        size = min(count, limits.row)
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, size)
        return StringShape(field, size, "text", at, None, count, self._fields.guards(start))

    def _number_of(self, element: TypeId) -> Plain | None:
        # How the elements of an array of numbers are shown; None for maps, channels and function
        # values, which are shown as what they point to.
        made = self._checker.resolved(element)
        if isinstance(made, MapType | ChannelType) or self._is_closure(made):
            return None
        return self._plain(element)

    def _is_closure(self, made: Type) -> bool:
        """Whether a value of the type points to a closure: code and captures."""
        if not self._checker.site.language.closures or not isinstance(made, PointerType):
            return False
        return isinstance(self._checker.resolved(made.target), FunctionType)

    def _row(
        self, found: Memory, simple: Plain, count: int, node: Typed, total: int = 0
    ) -> NumbersShape:
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, count * simple.size)
        guards = self._fields.guards(start)
        return NumbersShape(field, simple.decode, count, simple.size, at, guards, total or count)

    def _items(self, node: Typed, count: int, limits: Limits) -> ListShape:
        shapes = []
        for index in range(count):
            one = indexing.element_at(self._checker, node, index, node.span, node.span)
            shapes.append(self.shape(one, None, limits))
        return ListShape(tuple(shapes))


# ------------------------------------------------------------------------------
# Ranges: the bounds are read at run time, so the first elements are fetched.


class RangeShapes(ListShapes):
    """Shapes of ranges."""

    def _range(
        self, node: Typed, made: RangeType, format: Format | None, limits: Limits
    ) -> RangeShape | None:
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
        return RangeShape(elements, node.start, bounds[0], bounds[1], bound)

    def _wide_text(self, node: Typed, encoding: str, limits: Limits) -> StringShape:
        # Up to the first unit that is 0; NULL is no string.
        start = load_word(self._checker.site, pointed(self._checker.site, node), node.span)
        assert isinstance(start, Deref)
        size = limits.text
        field, at = self._fields.block(start, size)
        guards = self._fields.guards(start, maybe_null=True)
        if guards and not guards[-1].moved:
            *before, last = guards
            empty = Guard(last.field, last.offset, 0, True, last.kernel, last.read_checks)
            guards = (*before, empty)
        return StringShape(field, size, encoding, at, None, None, guards)

    def _number(
        self, node: Typed | int, limits: Limits
    ) -> Leaf | ElementCountShape | DifferenceShape | ComputedShape | int:
        if isinstance(node, int):
            return node
        found = self.shape(node, None, limits)
        if isinstance(found, Leaf):
            # A character or an enumerator counts as its number.
            decode = Decode("integer", found.decode.bits, found.decode.signed)
            size, shift = found.size, found.shift
            return Leaf(found.field, decode, found.offset, size, shift, found.guards)
        assert isinstance(found, ElementCountShape | DifferenceShape | ComputedShape)
        return found

    def _part(
        self, node: RangedNode, made: RangeType, limits: Limits
    ) -> NumbersShape | ListShape | StringShape:
        checker = self._checker
        found = memory_of(checker, node.first, "a range")
        simple = self._number_of(made.element)
        if made.text:
            assert simple is not None
            size = simple.size * self._fewer(node, limits.text // simple.size)
            start = load_word(checker.site, found, node.span)
            assert isinstance(start, Deref)
            field, at = self._fields.block(start, size)
            return StringShape(field, size, made.text, at, None, None, self._fields.guards(start))
        are_texts = strings.is_text_pointer(checker, checker.resolved(made.element))
        if simple is not None and not are_texts and strings.units(checker, node.first) is None:
            return self._row(found, simple, self._most(node, simple.size, limits), node)
        inner = limits.inner()
        count = self._fewer(node, 2 * limits.items if are_texts else limits.items)
        self._fetch_bytes(node.first, inner, count)
        each = [self.shape(self._nth(node, made, index), None, inner) for index in range(count)]
        return ListShape(tuple(each), self._guards_of(node.first))

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


# ------------------------------------------------------------------------------
# Values that Go prints in a form of its own (times, IP addresses, UUIDs): their parts.
#
# ``targets/runtime`` lists the full names of the types; their members are checked too.

_ADDRESS = 16  # bytes of the longest
_ZONE = 32  # bytes of an address' zone, the name of an interface of the machine
_WORDS = (Decode("integer", 64), Decode("pointer", 64))


class FormattedShapes(ListShapes):
    """Shapes of formatted values."""

    def _form(self, made: Type) -> str:
        # What the language's own table calls the form of a type; empty where it has none.
        listed = self._checker.site.language.written
        name = made.name if isinstance(made, StructType | ArrayType | SliceType | IntType) else ""
        return table(listed)["types"].get(name, "") if listed and "." in name else ""

    def _plain(self, type_id: TypeId) -> Plain | None:
        found = plain(self._checker, type_id)
        if found is None or found.decode.kind != "integer":
            return found
        made = self._checker.resolved(type_id)
        if found.size == 8 and found.decode.signed and self._form(made) == "duration":
            return Plain(found.store, Decode("duration", 64, True), 8)
        if isinstance(made, IntType) and "." in made.name:
            go = self._checker.program.go
            names = () if go is None else go.named_constants(self._checker.bare(type_id))
            if names:
                bits, signed = found.decode.bits, found.decode.signed
                return Plain(found.store, Decode("enum", bits, signed, None, names), found.size)
        return found

    def _spelled(self, node: Typed, made: Type, limits: Limits) -> FormattedShape | None:
        """The shape of a value that its language prints in its own form; None for all others."""
        form = self._form(made)
        match form, made:
            case "time", StructType():
                parts = self._time(node, made)
            case "ip", SliceType(element=element) if self._is_byte(element):
                few = Limits(limits.text, _ADDRESS, limits.items, limits.depth)
                parts = (("bytes", self._slice(node, made, few)),)
            case "uuid", ArrayType(element=element, count=16) if self._is_byte(element):
                parts = (("bytes", self._array(node, made, limits)),)
            case "addr", StructType():
                return self._internet_address(node, limits)
            case _:
                return None
        return FormattedShape(form, parts) if parts else None

    def _is_byte(self, element: TypeId) -> bool:
        found = plain(self._checker, element)
        return found is not None and found.size == 1 and found.decode == Decode("integer", 8)

    def _time(self, node: Typed, made: StructType) -> tuple[tuple[str, Shape], ...]:
        wanted = {"wall": Decode("integer", 64), "ext": Decode("integer", 64, True)}
        found = []
        for member in made.members:
            simple = plain(self._checker, member.type)
            if simple is not None and wanted.get(member.name) == simple.decode:
                found.append((member.name, self._leaf(self._word(part(node, member, node.span)))))
        return tuple(found) if len(found) == len(wanted) else ()

    def _internet_address(self, node: Typed, limits: Limits) -> FormattedShape | None:
        # From Go 1.23 on `z` is a handle of the address's details; before, it is one of
        # two variables' values, or a pointer to the name of the zone.
        words = [self._inside(node, "addr", "hi"), self._inside(node, "addr", "lo")]
        kind = self._inside(node, "z")
        if kind is not None and isinstance(self._checker.resolved(kind.type), PointerType):
            own = [self._variable("net/netip.z4"), self._variable("net/netip.z6noz")]
            return self._of_words(("hi", "lo", "z", "z4", "z6noz"), [*words, kind, *own])
        handle = None if kind is None else self._inside(kind, "value")
        told = None if handle is None else self._checker.resolved(handle.type)
        found = self._of_words(("hi", "lo"), words)
        if handle is None or found is None or not isinstance(told, PointerType):
            return None
        detail = Follow(handle, told.target, node.span)
        six, zone = self._inside(detail, "isV6"), self._inside(detail, "zoneV6")
        name = None if zone is None else self._checker.resolved(zone.type)
        if six is None or zone is None or not isinstance(name, StringType):
            return None
        if not isinstance(self._checker.resolved(six.type), BoolType):
            return None
        reference = self._leaf(self._word(handle))
        few = Limits(_ZONE, limits.row, limits.items, limits.depth)
        sixth = OptionalShape(reference, self._leaf(self._word(six)))
        zoned = OptionalShape(reference, self._string(zone, name, few))
        return FormattedShape("addr", (*found.parts, ("six", sixth), ("zone", zoned)))

    def _of_words(self, names: tuple[str, ...], words: list[Typed | None]) -> FormattedShape | None:
        # The first three are the value's own; None where one is no number of 64 bits.
        found: list[tuple[str, Shape]] = []
        for name, word in zip(names, words, strict=True):
            simple = None if word is None else plain(self._checker, word.type)
            if word is None or simple is None or simple.decode not in _WORDS:
                return None
            found.append((name, self._leaf(self._word(word))))
        return FormattedShape("addr", tuple(found[:3]), tuple(found[3:]))

    def _inside(self, node: Typed, *names: str) -> Typed | None:
        # The member of that name, in the member of the name before.
        for name in names:
            if not isinstance(self._checker.resolved(node.type), StructType):
                return None
            path = find(self._checker, node.type, name, node.span)
            if path is None:
                return None
            node = through(self._checker, node, path, node.span)
        return node

    def _variable(self, name: str) -> Typed | None:
        span = self._fields.span
        assert span is not None
        variable = scope.find_global(self._checker, name, None, span)
        if variable is None:
            return None
        return scope.held(self._checker, variable, span)
