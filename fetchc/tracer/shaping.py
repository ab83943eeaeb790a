"""From a typed tree to the shape of its value: what is fetched for a reader, and how it is read.

Where a definition for people names each member (``lower``), a reader takes whole objects: a
structure or an array is fetched as its bytes, in one piece, and taken apart later.
"""

from __future__ import annotations

from fetchc.check import indices
from fetchc.check.assertions import dynamic_type, first_type
from fetchc.check.library import ends, reader_value
from fetchc.check.members import part, through
from fetchc.check.typed import Follow, Part, Special
from fetchc.diag.errors import CompileError
from fetchc.ir.decode import Decode
from fetchc.ir.nodes import Array, Bits, Deref, Scalar, Text
from fetchc.ir.verify import fixed_bytes
from fetchc.lower import wholes
from fetchc.lower.lower import entries, left_out, lower, named_members
from fetchc.lower.scalars import bit_field_of, scalar, special
from fetchc.lower.store import is_character, plain
from fetchc.lower.where import Memory, load_word, pointed, where
from fetchc.program.types import (
    ArrayType,
    ChannelType,
    InterfaceType,
    MapType,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.tracer.extents import extents, joined
from fetchc.tracer.shape import (
    Asserted,
    Between,
    Bytes,
    Guard,
    Items,
    Leaf,
    Members,
    Referred,
    Row,
    Sequence,
    TypeName,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.lower.model import Lowered
    from fetchc.lower.store import Plain
    from fetchc.lower.where import Where
    from fetchc.program.types import Type
    from fetchc.syntax.tree import Format
    from fetchc.tracer.extents import Limits
    from fetchc.tracer.fields import Fields
    from fetchc.tracer.shape import Shape

__all__ = ["Shaper"]


class Shaper:
    """Makes the shapes of one argument, and has :class:`Fields` fetch what they need."""

    def __init__(self, checker: Checker, fields: Fields) -> None:
        self._checker = checker
        self._fields = fields

    def value(self, node: Typed, format: Format | None, limits: Limits) -> Shape:
        """The shape of what an argument asks for; raises CompileError as :meth:`shape` does."""
        if isinstance(self._checker.resolved(node.type), ArrayType):
            limits = limits.of_array()
        return self.within(self.shape(node, format, limits))

    def shape(self, node: Typed, format: Format | None, limits: Limits) -> Shape:
        """The shape of ``node``; raises CompileError where it cannot be fetched."""
        checker = self._checker
        made = checker.resolved(node.type)
        if format is not None and not _natural(made, format):
            (lowered,) = lower(checker, node, format, whole=False)
            return self._formatted(lowered)
        if isinstance(node, Special) and (given := special(checker, node)) is not None:
            return self._leaf(given)
        if isinstance(made, StructType) and made.is_library:
            between = ends(checker, node)
            if between is not None:
                return self._elements_between(*between, limits)
            node = reader_value(checker, node)
            made = checker.resolved(node.type)
        simple = plain(checker, node.type)
        pointing = isinstance(made, PointerType | MapType | ChannelType)
        if simple is not None and (not pointing or bit_field_of(node) is not None):
            return self._leaf(scalar(checker, node, simple), self._counts(node))
        match made:
            case MapType() | ChannelType():
                return self._leaf(entries(checker, node), empty=True)
            case StringType():
                return self._string(node, made, limits)
            case ArrayType(vector=False):
                return self._array(node, made, limits)
            case SliceType():
                return self._slice(node, made, limits)
            case PointerType() | SequenceType() if text := wholes.units(checker, node):
                return self._referred(node, made, self._units(*text, limits))
            case PointerType() if isinstance(checker.resolved(made.target), SequenceType):
                inner = self.shape(Follow(node, made.target, node.span), None, limits)
                return self._referred(node, made, inner)
            case SequenceType():
                return self._sequence(node, made, limits)
            case InterfaceType():
                return self._interface(node, made, limits)
            case StructType() if limits.depth > 0:
                return self._structure(node, made, limits)
            case _:
                # A text behind a pointer, a pointer, or a refusal.
                (lowered,) = lower(checker, node, None, whole=False)
                return self._leaf(lowered)

    def within(self, shape: Shape) -> Shape:
        """``shape`` behind all that the argument's type assertions take for granted."""
        types = self._checker.program.runtime_types()
        for one in reversed(self._checker.assertions):
            assert types is not None
            # The first word of an interface with methods is NULL where it holds nothing.
            word = self._leaf(self._word(one.word), empty=not one.empty)
            start = self._leaf(self._word(one.start))
            shape = Asserted(TypeName(word, start, types), one.wanted.offset, shape)
        return shape

    def _word(self, node: Typed) -> Lowered:
        simple = plain(self._checker, node.type)
        assert simple is not None
        return scalar(self._checker, node, simple)

    def _interface(self, node: Typed, made: InterfaceType, limits: Limits) -> Members:
        self._fetch_bytes(node, limits)
        _, data = made.members
        words = [("data", self.shape(part(node, data, node.span), None, limits))]
        dynamic = self._dynamic_type(node, made)
        if dynamic is None:
            first = part(node, made.members[0], node.span)
            words.insert(0, (made.members[0].name.lstrip("_"), self.shape(first, None, limits)))
        else:
            words.insert(0, ("type", dynamic))
        return Members(tuple(words), self._guards_of(node))

    def _dynamic_type(self, node: Typed, made: InterfaceType) -> TypeName | None:
        types = self._checker.program.runtime_types()
        word = dynamic_type(self._checker, node, made, node.span)
        start = first_type(self._checker, node.span)
        if types is None or word is None or start is None:
            return None
        table = self._leaf(self._word(word), empty=not made.empty)
        return TypeName(table, self._leaf(self._word(start)), types)

    def _leaf(self, lowered: Lowered, empty: bool = False) -> Leaf:
        fetch = lowered.fetch
        spot = self._fields.spot(fetch)
        field, offset, size = spot or (self._fields.add(fetch), 0, 0)
        shift = fetch.store.offset if spot and isinstance(fetch.store, Bits) else 0
        guards = self._fields.guards(fetch.value)
        if empty and guards:
            last = guards[-1]
            guards = (*guards[:-1], Guard(last.field, last.offset, last.moved, True, last.kernel))
        return Leaf(field, lowered.decode, offset, size, shift, guards)

    def _counts(self, node: Typed) -> bool:
        # len(m), cap(c): the run-time's header behind a map or channel, which may be nil.
        if not (isinstance(node, Part) and isinstance(node.base, Follow)):
            return False
        held = self._checker.resolved(node.base.base.type)
        return isinstance(held, MapType | ChannelType)

    def _formatted(self, lowered: Lowered) -> Leaf | Row:
        store, decode, value = lowered.fetch.store, lowered.decode, lowered.fetch.value
        if isinstance(store, Array) and not isinstance(store.element, Text):
            each = store.element
            if isinstance(each, Scalar) and each.kind == "x":
                decode = Decode("address", each.bits)
            field = self._fields.add(lowered.fetch)
            guards = self._fields.guards(value)
            return Row(field, decode, store.count, fixed_bytes(each), 0, guards)
        leaf = self._leaf(lowered)
        if isinstance(store, Scalar) and store.kind == "x" and decode.kind == "integer":
            decode = Decode("address", decode.bits)
            return Leaf(leaf.field, decode, leaf.offset, leaf.size, leaf.shift, leaf.guards)
        return leaf

    def _string(self, node: Typed, made: StringType, limits: Limits) -> Bytes:
        data = indices.data_pointer(self._checker, node, made)
        found = pointed(self._checker.site, data)
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, limits.text)
        length = self.shape(part(node, made.members[1], node.span), None, limits)
        assert isinstance(length, Leaf)
        guards = self._fields.guards(start)
        return Bytes(field, limits.text, "text", at, length, None, guards)

    def _units(self, node: Typed, made: SequenceType, limits: Limits) -> Bytes:
        unit = indices.element(self._checker, node, 0, node.span, node.span)
        found = where(self._checker.site, unit)
        assert isinstance(found, Memory)
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, limits.text)
        length = self.shape(part(node, made.length, node.span), None, limits)
        assert isinstance(length, Leaf)
        return Bytes(field, limits.text, "utf-16", at, length, None, self._fields.guards(start))

    def _referred(self, node: Typed, made: Type, inner: Shape) -> Shape:
        # What a reference leads to: nothing where it is null.
        simple = plain(self._checker, node.type)
        if not isinstance(made, PointerType) or simple is None:
            return inner
        return Referred(self._leaf(scalar(self._checker, node, simple)), inner)

    def _sequence(self, node: Typed, made: SequenceType, limits: Limits) -> Sequence:
        checker = self._checker
        one = indices.element(checker, node, 0, node.span, node.span)
        simple = plain(checker, one.type)
        found = where(checker.site, one)
        elements: Row | Items
        if simple is not None and isinstance(found, Memory) and not self._is_text(one):
            count = min(limits.row // simple.size, 64)
            elements = self._row(found, simple, count, node)
        else:
            self._fetch_bytes(one, limits.inner(), limits.items)
            elements = self._items(node, limits.items, limits.inner())
        length = self.shape(part(node, made.length, node.span), None, limits)
        assert isinstance(length, Leaf)
        return Sequence(length, elements)

    def _is_text(self, node: Typed) -> bool:
        return wholes.units(self._checker, node) is not None

    def _elements_between(self, first: Typed, end: Typed, limits: Limits) -> Sequence:
        # Of a vector: the pointers to its first element and behind its last one.
        checker = self._checker
        one = indices.element(checker, first, 0, first.span, first.span)
        each = checker.size(one.type)
        assert each
        simple = plain(checker, one.type)
        elements: Row | Items
        if simple is not None and not self._is_text(one):
            count = min(limits.row // simple.size, 64)
            elements = self._row(pointed(checker.site, first), simple, count, first)
        else:
            self._fetch_bytes(one, limits.inner(), limits.items)
            elements = self._items(first, limits.items, limits.inner())
        words = [self._leaf(self._word(word)) for word in (first, end)]
        return Sequence(Between(words[0], words[1], each), elements)

    def _slice(self, node: Typed, made: SliceType, limits: Limits) -> Sequence:
        checker = self._checker
        data = indices.data_pointer(checker, node, made)
        start = pointed(checker.site, data)
        simple = plain(checker, made.element)
        elements: Row | Items
        if simple is not None:
            count = min(limits.row // simple.size, 64)
            elements = self._row(start, simple, count, node)
        else:
            first = indices.element(checker, node, 0, node.span, node.span)
            self._fetch_bytes(first, limits.inner(), limits.items)
            elements = self._items(node, limits.items, limits.inner())
        length = self.shape(part(node, made.members[1], node.span), None, limits)
        assert isinstance(length, Leaf)
        return Sequence(length, elements)

    def _array(self, node: Typed, made: ArrayType, limits: Limits) -> Shape:
        checker = self._checker
        element = checker.resolved(made.element)
        if made.count is None or made.count == 0:
            wholes.array(checker, node, made, whole=True)  # refuses, and says why
            raise AssertionError("an array without elements was lowered")
        found = where(checker.site, node)
        if is_character(element):
            return self._characters(node, found, made.count, limits)
        simple = plain(checker, made.element)
        if wholes.is_text_pointer(checker, element):
            cut = ArrayType("", made.element, min(made.count, 64), None)
            lowered = wholes.array(checker, node, cut, whole=True)[0]
            leaf = self._leaf(lowered)
            decode, guards = leaf.decode, leaf.guards
            return Leaf(leaf.field, decode, guards=guards, total=made.count)
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

    def _row(self, found: Memory, simple: Plain, count: int, node: Typed, total: int = 0) -> Row:
        start = load_word(self._checker.site, found, node.span)
        assert isinstance(start, Deref)
        field, at = self._fields.block(start, count * simple.size)
        guards = self._fields.guards(start)
        return Row(field, simple.decode, count, simple.size, at, guards, total or count)

    def _items(self, node: Typed, count: int, limits: Limits) -> Items:
        shapes = []
        for index in range(count):
            one = indices.element(self._checker, node, index, node.span, node.span)
            shapes.append(self.shape(one, None, limits))
        return Items(tuple(shapes))

    def _structure(self, node: Typed, made: StructType, limits: Limits) -> Members:
        checker = self._checker
        self._fetch_bytes(node, limits)
        found: list[tuple[str, Shape]] = []
        left: list[str] = []
        for path, member in named_members(checker, made, ()):
            mark = self._fields.mark()
            try:
                inner = through(checker, node, (*path, member), node.span)
                found.append((member.name, self.shape(inner, None, limits.deeper())))
            except CompileError:
                self._fields.forget(mark)
                left.append(member.name)
        if not found:
            raise wholes.refuse_whole(checker, node, made)
        if left:
            checker.warnings.append(left_out(checker, node, left))
        return Members(tuple(found), self._guards_of(node))

    def _fetch_bytes(self, node: Typed, limits: Limits, count: int = 1) -> None:
        # What is in memory comes in as few pieces as can be; its members are found in them.
        found = where(self._checker.site, node)
        if not isinstance(found, Memory):
            return
        stride = self._checker.size(node.type) or 0
        wanted = extents(self._checker, node.type, limits)
        starts = [stride * index for index in range(count)]
        for low, high in joined([(at + low, at + high) for at in starts for low, high in wanted]):
            place = Memory(found.base, found.offset + low, found.user)
            start = load_word(self._checker.site, place, node.span)
            assert isinstance(start, Deref)
            if high - low > 8:
                self._fields.block(start, high - low)

    def _guards_of(self, node: Typed) -> tuple[Guard, ...]:
        found = where(self._checker.site, node)
        if not isinstance(found, Memory):
            return ()
        return self._fields.guards(load_word(self._checker.site, found, node.span))


def _natural(made: object, format: Format) -> bool:
    # `:string` of what is a text with an end is what a reader shows anyway.
    if format.base not in ("string", "ustring") or format.count is not None:
        return False
    return isinstance(made, StringType | ArrayType)
