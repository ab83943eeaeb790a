"""Plans of what is more than a number or a string: members, elements, one of several values.

Elements and members are planned when a policy asks for them (:func:`element`, :func:`members`): of
a million there may be four that it wants.
"""

from __future__ import annotations

from fetchc.check import indexing
from fetchc.check.array_dimensions import window_room
from fetchc.check.array_ranges import has_variable_length
from fetchc.check.builtins import capacity, length
from fetchc.check.members import follow_path, subobject
from fetchc.check.number_halves import halves
from fetchc.check.typed_tree import (
    Address,
    AssumedClass,
    Convert,
    Pointee,
    Ranged,
    Shift,
    Subobject,
)
from fetchc.lower.fetches import is_character, is_string_pointer, plain
from fetchc.program.types import (
    ArrayType,
    CellType,
    ChannelType,
    ChoiceType,
    ComplexType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    PointerType,
    RangeType,
    SequenceType,
    SliceType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.fetches import Plain
    from fetchc.program.types import Member, Type
    from fetchc.quantities import TypeId


__all__ = [
    "AddressPlan",
    "ArrayPlan",
    "CellPlan",
    "ChoicePlan",
    "Elements",
    "EntryCountPlan",
    "EnumPlan",
    "GridPlan",
    "HalvesPlan",
    "InterfacePlan",
    "MemberPlan",
    "NotationPlan",
    "OptionalPlan",
    "RangePlan",
    "ReferencePlan",
    "SequencePlan",
    "SizedStringPlan",
    "SlicePlan",
    "StructPlan",
    "UnfetchablePlan",
    "VariantPlan",
    "VectorPlan",
    "WideStringPlan",
    "WindowPlan",
    "aggregate",
    "array_plan",
    "behind_pointer",
    "element",
    "elements",
    "entry_count",
    "grid",
    "has_variable_length",
    "in_full",
    "is_empty",
    "is_entry_count",
    "library_object",
    "member",
    "members",
    "named_members",
    "numbers",
    "pointer",
    "range_element",
    "variants",
    "window",
]

# ------------------------------------------------------------------------------
# Pointers, as a program that decodes them shows what they lead to.


class ReferencePlan(Record):
    """A reference to the object ``target``; it may be null."""

    node: Typed
    scalar: Plain
    target: Typed


class WideStringPlan(Record):
    """A string of units of ``encoding`` up to the first one that is 0; ``node`` leads to it."""

    node: Typed
    encoding: str


class AddressPlan(Record):
    """The address of an object, which may be another address and a constant."""

    node: Typed
    scalar: Plain


def pointer(
    checker: Checker, node: Typed, resolved: PointerType, scalar: Plain
) -> ReferencePlan | WideStringPlan | AddressPlan | None:
    """The plan of a pointer that is more than a number and leads to no string of bytes."""
    from fetchc.check.conversions import wide_encoding

    if isinstance(checker.resolved(resolved.target), SequenceType):
        return ReferencePlan(node, scalar, Pointee(node, resolved.target, node.span))
    if encoding := wide_encoding(checker, resolved.target):
        return WideStringPlan(node, encoding)
    inner = node
    while isinstance(inner, Convert):
        inner = inner.base
    return AddressPlan(node, scalar) if isinstance(inner, Address | Shift) else None


def behind_pointer(checker: Checker, node: Typed) -> Typed | None:
    """What the pointer ``node`` leads to; None of others, and where its size is unknown."""
    resolved = checker.resolved(node.type)
    if not isinstance(resolved, PointerType) or not checker.size(resolved.target):
        return None
    if isinstance(checker.resolved(resolved.target), PointerType | FunctionType | VoidType):
        return None
    return Pointee(node, resolved.target, node.span)


class EntryCountPlan(Record):
    """The number of entries of the map or channel ``node``; a null pointer has none.

    ``room`` is the size of a channel's buffer.
    """

    node: Typed
    count: Typed
    room: Typed | None


def entry_count(checker: Checker, node: Typed) -> EntryCountPlan:
    """The plan of a map or a channel."""
    of_channel = isinstance(checker.resolved(node.type), ChannelType)
    room = capacity(checker, node, node.span) if of_channel else None
    return EntryCountPlan(node, length(checker, node, node.span), room)


def is_entry_count(checker: Checker, node: Typed) -> bool:
    """Whether ``node`` is a word of a map's or channel's header; the pointer to it may be null."""
    if not (isinstance(node, Subobject) and isinstance(node.base, Pointee)):
        return False
    return isinstance(checker.resolved(node.base.base.type), MapType | ChannelType)


# ------------------------------------------------------------------------------
# Elements: arrays, slices, objects of .NET and C++ that hold elements, ranges.


class Elements(Record):
    """What the elements of an array are, of ``size`` bytes each (None: unknown).

    ``scalar`` describes numbers; ``row`` does so, too, except for those that are shown as what they
    point to (strings, maps, channels, function values).
    """

    type: TypeId
    size: int | None
    scalar: Plain | None
    row: Plain | None
    are_characters: bool
    are_string_pointers: bool
    are_arrays: bool


class ArrayPlan(Record):
    """An array of ``count`` elements (None: unknown). ``flat`` are those of its rows, in order.

    ``text`` is the encoding where a reader shows all of them as a string; with ``to_nul`` those up
    to the first NUL.
    """

    node: Typed
    element: TypeId
    count: int | None
    flat: TypeId
    flat_count: int | None
    text: str = ""
    to_nul: bool = False


class SlicePlan(Record):
    """A slice: the pointer to its elements, their number, and its words by name."""

    node: Typed
    type: SliceType
    data: Typed
    length: Typed
    words: tuple[tuple[str, Typed], ...]


class SequencePlan(Record):
    """An object that holds ``length`` elements. ``layout``: its members as those of a structure."""

    node: Typed
    type: SequenceType
    length: Typed
    layout: StructType | None


class WindowPlan(Record):
    """``length`` elements of an array from the index ``start`` on; see :class:`.types.Window`.

    ``around`` is the number of elements after which they continue with the first one. ``check``:
    the object has to be an array of that type. ``units`` are the first units of a string or of an
    array of them, whichever of the types the object has.
    """

    start: Typed
    length: Typed
    around: Typed | None
    backwards: bool
    check: AssumedClass | None
    units: tuple[tuple[AssumedClass, Typed], ...]


class GridPlan(Record):
    """An array of several dimensions, of these lengths; ``flat`` has its elements in order.

    With ``indices`` the value is that one element.
    """

    lengths: tuple[Typed, ...]
    flat: SequencePlan
    indices: tuple[int, ...] = ()


class CellPlan(Record):
    """An element of an array of several dimensions, or of a window: ``array`` has it."""

    node: Typed
    type: CellType


class RangePlan(Record):
    """Elements from one index to another, which are known when the program runs.

    ``text`` is the encoding where they are characters. ``scalar`` describes them where a format
    says how to show them.
    """

    node: Ranged
    element: TypeId
    text: str
    scalar: Plain | None = None


class VectorPlan(Record):
    """Elements of ``each`` bytes, from where ``first`` leads up to where ``end`` leads."""

    first: Typed
    end: Typed
    each: int


class SizedStringPlan(Record):
    """A string of ``size`` bytes, which has a NUL at its end as well."""

    string: Typed
    size: Typed


def elements(checker: Checker, type_id: TypeId, reader: bool = False) -> Elements:
    """What elements of a type are; ``reader`` as for :func:`.value_plan.plan`."""
    resolved = checker.resolved(type_id)
    scalar = plain(checker, type_id)
    row = scalar
    if reader:
        from fetchc.lower.printed_values import is_closure, printed_scalar

        shown_by_target = (
            isinstance(resolved, MapType | ChannelType)
            or is_closure(checker, resolved)
            or _leads_to_string(checker, resolved)
        )
        row = None if shown_by_target else printed_scalar(checker, type_id, scalar)
    return Elements(
        type_id,
        checker.size(type_id),
        scalar,
        row,
        is_character(resolved),
        is_string_pointer(checker, resolved),
        isinstance(resolved, ArrayType),
    )


def _leads_to_string(checker: Checker, resolved: Type) -> bool:
    from fetchc.check.conversions import wide_encoding

    if not isinstance(resolved, PointerType):
        return False
    if is_string_pointer(checker, resolved) or wide_encoding(checker, resolved.target):
        return True
    target = checker.resolved(resolved.target)
    return isinstance(target, SequenceType) and target.text and target.window is None


def element(checker: Checker, node: Typed, index: int) -> Typed:
    """The element ``index`` of an array, a slice, a sequence or what a vector's pointer leads to.

    Raises CompileError FC0303 after the end.
    """
    return indexing.element_at(checker, node, index, node.span, node.span)


def range_element(checker: Checker, plan: RangePlan, index: int) -> Typed:
    """The element ``index`` of a range, counted from the first one that is fetched."""
    node = plan.node
    pointer = checker.pointer_to(plan.element)
    stride = checker.size(plan.element) or 0
    start = Address(node.first, pointer, node.span)
    moved = Shift(start, ByteOffset(stride * index), pointer, node.span)
    return Pointee(moved, plan.element, node.span)


def in_full(checker: Checker, plan: ArrayPlan) -> Ranged | None:
    """``a[0:n]`` of an array that has ``n`` elements at the probe; None of all others."""
    if plan.count is not None:
        return None
    from fetchc.check.array_ranges import whole_array

    return whole_array(checker, plan.node)


def array_plan(checker: Checker, node: Typed, resolved: ArrayType) -> ArrayPlan:
    """The plan of an array."""
    flat, flat_count = resolved.element, resolved.count
    for _ in range(16):
        inner = checker.resolved(flat)
        if not isinstance(inner, ArrayType) or inner.count is None or flat_count is None:
            break
        flat, flat_count = inner.element, flat_count * inner.count
    text = resolved.encoding
    return ArrayPlan(node, resolved.element, resolved.count, flat, flat_count, text)


def _sequence(checker: Checker, node: Typed, resolved: SequenceType) -> SequencePlan:
    layout = None
    if resolved.size is not None:
        layout = StructType(resolved.name, "class", resolved.size, resolved.members)
    return SequencePlan(node, resolved, subobject(node, resolved.length, node.span), layout)


def grid(checker: Checker, plan: SequencePlan | CellPlan) -> GridPlan | None:
    """The array of several dimensions that a sequence is, or that a cell is an element of."""
    if isinstance(plan, CellPlan):
        assert isinstance(plan.node, Subobject)
        node, resolved, indices = plan.node.base, plan.type.array, plan.type.indices
    elif plan.type.dimensions:
        node, resolved, indices = plan.node, plan.type, ()
    else:
        return None
    dimensions = resolved.dimensions or ((resolved.length,),)
    lengths = [follow_path(checker, node, way, node.span) for way in dimensions]
    return GridPlan(tuple(lengths), _sequence(checker, node, resolved), indices)


def window(checker: Checker, plan: SequencePlan) -> WindowPlan | None:
    """Which elements of an array a sequence has, where it has a part of one."""
    resolved, node = plan.type.window, plan.node
    if resolved is None:
        return None
    span = node.span
    start, array = subobject(node, resolved.start, span), subobject(node, plan.type.elements, span)
    kind = checker.resolved(array.type)
    assert isinstance(kind, PointerType)
    described = AssumedClass(array, kind.target, span)
    if resolved.or_text is not None:
        units = []
        for reference in (array, Convert(array, resolved.or_text, span)):
            leads_to = checker.resolved(reference.type)
            assert isinstance(leads_to, PointerType)
            holder = Pointee(reference, leads_to.target, span)
            each = AssumedClass(array, leads_to.target, span)
            units.append((each, indexing.element_at(checker, holder, 0, span, span)))
        return WindowPlan(start, plan.length, None, False, None, tuple(units))
    around = window_room(checker, node, plan.type)
    check = described if resolved.of_any else None
    return WindowPlan(start, plan.length, around, resolved.backwards, check, ())


# ------------------------------------------------------------------------------
# Members: structures, and what has members like one.


class StructPlan(Record):
    """A structure. ``is_tuple``: its members are numbered."""

    node: Typed
    layout: StructType
    is_tuple: bool


class HalvesPlan(Record):
    """A number of two halves (complex, or of 16 bytes), as a structure of both."""

    node: Typed
    layout: StructType


class NotationPlan(Record):
    """A structure that is written as one string; ``layout.notation`` says how."""

    node: Typed
    layout: StructType


class OptionalPlan(Record):
    """A ``value`` that is there if the truth value ``present`` says so."""

    node: Typed
    layout: StructType
    present: Typed
    value: Typed


class EnumPlan(Record):
    """An enum with fields: ``tag`` selects the variant; None where there is only one."""

    node: Typed
    layout: StructType
    tag: Typed | None


class VariantPlan(Record):
    """A variant of an enum: its name, its object, and how many fields that has.

    The enum's tag is ``value``; None matches every tag that no other variant has.
    """

    name: str
    value: int | None
    fields: Typed
    count: int


class ChoicePlan(Record):
    """One of several objects by the number ``tag``; ``layout`` has the tag and all of them."""

    node: Typed
    layout: StructType
    tag: Typed
    cases: tuple[tuple[int, str, Typed], ...]


class InterfacePlan(Record):
    """A Go interface: its type word and its data word by name."""

    node: Typed
    type: InterfaceType
    words: tuple[tuple[str, Typed], ...]


class UnfetchablePlan(Record):
    """A value of a type that nothing fetches, such as a function."""

    node: Typed
    type: Type


class MemberPlan(Record):
    """A member and the way to it, through anonymous ones. ``is_struct``: it has members itself."""

    name: str
    path: tuple[Member, ...]
    is_struct: bool


def members(checker: Checker, layout: StructType) -> Iterator[MemberPlan]:
    """The members of a structure, those of anonymous ones too."""
    for path, last in named_members(checker, layout, ()):
        is_struct = isinstance(checker.resolved(last.type), StructType)
        yield MemberPlan(last.name, (*path, last), is_struct)


def member(checker: Checker, node: Typed, plan: MemberPlan) -> Typed:
    """The object of a member of ``node``; raises CompileError where it has none."""
    return follow_path(checker, node, plan.path, node.span)


_DEEPEST = 8  # classes in each other; only a hostile type has more


def is_empty(checker: Checker, type_id: TypeId, depth: int = 0) -> bool:
    """Whether a type has no value: a marker, ``()``, a class of C++ without data."""
    resolved, size = checker.resolved(type_id), checker.size(type_id)
    if not isinstance(resolved, StructType | ArrayType) or depth == _DEEPEST or not size:
        return size == 0
    if isinstance(resolved, ArrayType):
        return is_empty(checker, resolved.element, depth + 1)
    if resolved.kind == "union" or resolved.variants:
        return False
    if not resolved.members:
        return size == 1  # which an object has at least: ISO C++ [class.pre]
    return all(is_empty(checker, member.type, depth + 1) for member in resolved.members)


def named_members(
    checker: Checker, resolved: StructType, path: tuple[Member, ...]
) -> list[tuple[tuple[Member, ...], Member]]:
    """The members of a structure, those of anonymous ones too, each with the way to it."""
    found: list[tuple[tuple[Member, ...], Member]] = []
    for member in resolved.members:
        inner = checker.resolved(member.type)
        if not member.name and isinstance(inner, StructType) and len(path) < 8:
            found += named_members(checker, inner, (*path, member))
        elif member.name:
            found.append((path, member))
    return found


def numbers(checker: Checker, node: Typed, layout: StructType) -> Iterator[tuple[str, Typed]]:
    """The numbers of a structure and of the structures in it, by the names of the members."""
    for one in layout.members:
        inner = subobject(node, one, node.span)
        kind = checker.resolved(one.type)
        if isinstance(kind, StructType):
            yield from numbers(checker, inner, kind)
        else:
            yield one.name, inner


def variants(checker: Checker, plan: EnumPlan) -> Iterator[VariantPlan]:
    """The variants of an enum."""
    for one in plan.layout.variants:
        resolved = checker.resolved(one.member.type)
        fields = resolved.members if isinstance(resolved, StructType) else ()
        # Without what takes no room: markers, `()`.
        count = len([field for field in fields if checker.size(field.type) != 0])
        yield VariantPlan(
            one.member.name, one.value, subobject(plan.node, one.member, plan.node.span), count
        )


def is_tuple(members: tuple[Member, ...]) -> bool:
    """Whether the members are numbered, as those of Rust's tuples are: ``__0``, ``__1``."""
    return bool(members) and all(
        member.name == f"__{number}" for number, member in enumerate(members)
    )


# ------------------------------------------------------------------------------
# The plan of each type.


def aggregate(checker: Checker, node: Typed, resolved: Type) -> AggregatePlan:
    """The plan of a value that is no number, string, map or channel."""
    span = node.span
    match resolved:
        case ArrayType():
            return array_plan(checker, node, resolved)
        case SliceType(members=listed):
            words = tuple([(one.name, subobject(node, one, span)) for one in listed])
            data = indexing.data_pointer(checker, node, resolved)
            return SlicePlan(node, resolved, data, words[1][1], words)
        case InterfaceType(members=listed):
            words = tuple([(one.name, subobject(node, one, span)) for one in listed])
            return InterfacePlan(node, resolved, words)
        case SequenceType():
            return _sequence(checker, node, resolved)
        case CellType():
            return CellPlan(node, resolved)
        case RangeType(element=element, text=text):
            assert isinstance(node, Ranged)
            return RangePlan(node, element, text)
        case ChoiceType(tag=number, cases=cases):
            listed = (number, *[one for _, one in cases])
            layout = StructType(resolved.name, "class", resolved.size, listed)
            chosen = [(value, one.name, subobject(node, one, span)) for value, one in cases]
            return ChoicePlan(node, layout, subobject(node, number, span), tuple(chosen))
        case StructType(notation="nullable", members=(present, value)):
            return OptionalPlan(
                node, resolved, subobject(node, present, span), subobject(node, value, span)
            )
        case StructType(variants=(_, *_)):
            tag = subobject(node, resolved.members[0], span) if resolved.members else None
            return EnumPlan(node, resolved, tag)
        case StructType() if resolved.notation:
            return NotationPlan(node, resolved)
        case StructType():
            return StructPlan(node, resolved, is_tuple(resolved.members))
        case ComplexType() | IntType() | FloatType():
            both_halves = halves(checker, resolved)
            if both_halves is not None:
                return HalvesPlan(node, both_halves)
            return UnfetchablePlan(node, resolved)
        case _:
            return UnfetchablePlan(node, resolved)


def library_object(
    checker: Checker, node: Typed, resolved: StructType
) -> VectorPlan | SizedStringPlan | None:
    """The plan of a vector, or of a string with a length, of a C++ library; None of others."""
    from fetchc.check.cpp_reader_values import ends, text_length

    if (between := ends(checker, node)) is not None:
        one = element(checker, between[0], 0)
        each = checker.size(one.type)
        assert each
        return VectorPlan(*between, each)
    size = text_length(checker, node)
    if size is None:
        return None
    reader_value = checker.rules_for(resolved).reader_value
    return SizedStringPlan(reader_value(checker, node) if reader_value else node, size)


if TYPE_CHECKING:
    Layout = StructType  # the members of what is fetched, for those who look at no types
    AggregatePlan = (
        ArrayPlan | SlicePlan | SequencePlan | CellPlan | RangePlan | VectorPlan
        | SizedStringPlan | ReferencePlan | WideStringPlan | AddressPlan
        | ChoicePlan | InterfacePlan | OptionalPlan | EnumPlan | NotationPlan | StructPlan
        | HalvesPlan | UnfetchablePlan
    )  # fmt: skip
