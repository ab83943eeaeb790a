"""Shapes: how the fields of a record make one value.

A place in a record is a field's name and a byte offset from its start. The fields of one object
are adjacent in the record, so an offset may exceed the size of the field.
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.arithmetic import Number
    from fetchc.ir.fetch import Decode
    from fetchc.program.protocol import ObjectTypes, RuntimeTypes
    from fetchc.quantities import TypeId

__all__ = [
    "ELEMENT",
    "BoundsCheckShape",
    "CallerShape",
    "CastShape",
    "ChoiceShape",
    "ComputedShape",
    "ConditionalShape",
    "DifferenceShape",
    "ElementCountShape",
    "ElementsShape",
    "EntryCountShape",
    "EnumShape",
    "FormattedShape",
    "GrowthCheckShape",
    "Guard",
    "InterfaceShape",
    "Leaf",
    "ListShape",
    "MultiArrayShape",
    "NotationShape",
    "NumbersShape",
    "OfEventShape",
    "OperandShape",
    "OperationShape",
    "OptionalShape",
    "RangeShape",
    "SequenceShape",
    "Shape",
    "SizedStringShape",
    "StringShape",
    "StructShape",
    "SumShape",
    "Term",
    "TypeAssertionShape",
    "TypeDescription",
    "TypeIdentity",
    "TypeNameShape",
    "TypeSwitchShape",
    "UnavailableShape",
    "VariantCase",
    "VariantCheckShape",
    "WalkShape",
    "texts_in",
]

# ------------------------------------------------------------------------------
# Values whose type is in the object: interfaces of Go, objects of .NET.


class TypeNameShape(Record):
    """The name of the dynamic type of a Go interface.

    ``word`` is the address of its type descriptor, ``start`` the address that the offsets of
    ``types`` are relative to.
    """

    word: Leaf
    start: Leaf
    types: RuntimeTypes


class TypeDescription(Record):
    """How to describe a value whose type descriptor has the offset ``wanted``.

    ``parts`` are strings and values; one alone is the value itself. ``numbered``: a number among
    them is an errno.
    """

    wanted: int
    parts: tuple[str | Shape, ...]
    numbered: bool


class InterfaceShape(Record):
    """A Go interface, with a description of its value for some dynamic types.

    For other types the value is ``plain``. ``inner``: the description alone, as a part of another.
    """

    dynamic: TypeNameShape
    plain: Shape
    descriptions: tuple[TypeDescription, ...]
    inner: bool


class TypeAssertionShape(Record):
    """The value of a type assertion: ``inner`` if the dynamic type has the offset ``wanted``.

    Else it is ``{"type": ...}``, that type's name.
    """

    dynamic: TypeNameShape
    wanted: int
    inner: Shape


class TypeSwitchShape(Record):
    """One of several values by the dynamic type; ``cases`` have the offset of its descriptor.

    For another type it is ``{"type": ...}``, as :class:`Asserted`.
    """

    dynamic: TypeNameShape
    cases: tuple[tuple[int, Shape], ...]


class TypeIdentity(Record):
    """What identifies a .NET type: the assembly's name, and a number that holds its row."""

    row: Leaf
    assembly: Leaf


class CastShape(Record):
    """The value of a cast: ``inner`` if the object of ``reference`` is of the type ``wanted``.

    Else it is ``otherwise``, or ``{"type": ...}`` with the object's own type. ``element`` is the
    type of an array's elements (None: no array is wanted), ``rank`` a number that depends on the
    number of dimensions. A null reference has no type to compare.
    """

    reference: Leaf
    own: TypeIdentity
    element: TypeIdentity | None
    rank: Leaf
    types: ObjectTypes
    wanted: TypeId
    inner: Shape
    otherwise: CastShape | None = None


# ------------------------------------------------------------------------------
# Lists, and how many elements they have.


class ListShape(Record):
    """A list whose elements are shapes of their own.

    ``text``: they are the characters of a string, which ends at the first NUL or after the last.
    """

    items: tuple[Shape, ...]
    guards: tuple[Guard, ...] = ()
    total: int = 0
    text: bool = False
    is_tuple: bool = False


class SequenceShape(Record):
    """A list of ``length`` elements; ``elements`` has the first of them.

    With ``start`` the list is a part of an array, from that index on. ``around`` is the capacity of
    a ring buffer: the list continues at index 0. ``backwards``: from the element before ``start``
    down to the first.
    """

    length: Leaf | ElementCountShape
    elements: NumbersShape | ListShape | ElementsShape | WalkShape
    start: Leaf | None = None
    around: Leaf | None = None
    backwards: bool = False


class RangeShape(Record):
    """The elements from ``low`` up to, not including, ``high``: a list, or a string.

    ``elements`` begins with the index ``start``. ``bound`` is the length of the whole, None if
    unknown. ``to_nul``: a string ends at its first NUL.
    """

    elements: NumbersShape | ListShape | StringShape | ElementsShape | WalkShape
    start: int
    low: Leaf | ElementCountShape | DifferenceShape | ComputedShape | OperationShape | int
    high: Leaf | ElementCountShape | DifferenceShape | ComputedShape | OperationShape | int
    bound: Leaf | ElementCountShape | DifferenceShape | ComputedShape | OperationShape | int | None
    to_nul: bool = False


class WalkShape(Record):
    """The elements that a walk recorded: a list, in which each is ``inner`` of its own fields.

    Of those a :class:`~fetchc.tracer.events.BpfRecord` has the places, by ``field``. ``counted``:
    the container has the number of all of them. ``single``: the value is the one that was looked
    for. ``guards`` are those of elements side by side.
    """

    field: str
    inner: Shape
    counted: bool
    single: bool = False
    guards: tuple[Guard, ...] = ()


class BoundsCheckShape(Record):
    """``inner`` if ``number``, the length, is at least ``least``; else a fault."""

    number: Shape
    least: int
    inner: Shape


class MultiArrayShape(Record):
    """An array of several dimensions; ``flat`` has its elements in row-major order.

    ``lengths`` are those of the dimensions. With ``indices`` the value is that one element.
    """

    lengths: tuple[Leaf, ...]
    flat: SequenceShape | CastShape
    indices: tuple[int, ...] = ()


# ------------------------------------------------------------------------------
# Numbers computed from others.


class ElementCountShape(Record):
    """The number of objects of ``each`` bytes from the address ``start`` to the address ``end``."""

    start: Leaf
    end: Leaf
    each: int


class EntryCountShape(Record):
    """The number of entries, ``inner``, of the map or channel that ``reference`` points to.

    ``room`` is the size of a channel's buffer.
    """

    reference: Leaf
    inner: Leaf
    room: Leaf | None


class DifferenceShape(Record):
    """A number minus another one, or minus a constant."""

    minuend: Leaf
    subtrahend: Leaf | int


class Term(Record):
    """A term of a sum: (``number`` - ``less``) / ``each`` * ``times``.

    With ``times`` 0 it adds nothing, but the difference has to be ``each`` or 0.
    """

    number: Leaf
    less: Leaf | None
    each: int
    times: int


class ComputedShape(Record):
    """The sum of terms and a constant; with ``is_none`` whether the sum is 0."""

    terms: tuple[Term, ...]
    constant: int
    is_none: bool


class OperandShape(Record):
    """An operand: a constant, or the shape of one."""

    value: Shape | int | float
    number: Number


class OperationShape(Record):
    """What an operator gives for its operands, by :func:`fetchc.ir.arithmetic.evaluate`.

    The operands of a lazy operator are shapes of truth values; the last two of ``?:`` are of
    ``number``. ``rules`` is the key of the language's rules; ``decode`` says what the number
    ``result`` means.
    """

    operator: str
    operands: tuple[OperandShape, ...]
    number: Number
    rules: str
    result: Number
    decode: Decode


class SumShape(Record):
    """A computed number: the low ``size`` bytes of ``word`` plus a constant, or of a constant."""

    word: Leaf | None
    addend: int
    size: int
    decode: Decode


# ------------------------------------------------------------------------------
# Structures, and one of several shapes.


class StructShape(Record):
    """A structure: its members by name, in order. ``left`` names those that cannot be fetched."""

    members: tuple[tuple[str, Shape], ...]
    guards: tuple[Guard, ...] = ()
    left: tuple[str, ...] = ()


class NotationShape(Record):
    """A structure that is shown as one string, built from its members' numbers.

    See :mod:`fetchc.tracer.display_values`.
    """

    notation: str
    members: tuple[tuple[str, Leaf], ...]
    guards: tuple[Guard, ...] = ()


class FormattedShape(Record):
    """A value as Go prints it, composed of its parts.

    ``beside`` are values from elsewhere that the form needs. See
    :mod:`fetchc.tracer.display_values`.
    """

    form: str
    parts: tuple[tuple[str, Shape], ...]
    beside: tuple[tuple[str, Shape], ...] = ()


class ConditionalShape(Record):
    """One of two shapes: ``at_none`` if a number is 0, else ``other``."""

    number: ComputedShape
    at_none: Shape
    other: Shape


class ChoiceShape(Record):
    """One of several shapes by the number ``tag``; None if ``cases`` lacks the number."""

    tag: Leaf
    cases: tuple[tuple[int, Shape], ...]


class VariantCase(Record):
    """A variant: its name and its fields (None: it has no fields).

    The enum's tag is ``value``; None matches every tag that no other variant has. ``single``:
    ``fields`` is the one field, which has no name. ``left`` is the number of fields that are not
    fetched.
    """

    value: int | None
    name: str
    fields: Shape | None
    single: bool = False
    left: int = 0


class EnumShape(Record):
    """An enum with fields: the variant that ``tag`` selects; without a tag the only variant."""

    tag: Leaf | None
    cases: tuple[VariantCase, ...]


class GrowthCheckShape(Record):
    """``inner``, or a fault where the function runs again after its stack has grown.

    ``word`` is then the address at ``distance`` from the probed instruction.
    """

    word: Leaf
    distance: int
    inner: Shape


class VariantCheckShape(Record):
    """``inner`` if the number ``tag`` selects the variant ``wanted``.

    Else it is ``{"variant": ...}``, the name of the selected one. ``names`` are all, by tag.
    """

    tag: Leaf
    names: tuple[tuple[int | None, str], ...]
    wanted: str
    inner: Shape


class CallerShape(Record):
    """One of several shapes by the call site of the function.

    ``returned`` is the return address. ``cases`` have its distance from the probed instruction; for
    other call sites the value is ``{"caller": ...}``.
    """

    returned: Leaf
    cases: tuple[tuple[int, Shape], ...]


class OptionalShape(Record):
    """The value that a reference points to; None, and no fault, where that is null.

    For a ``Nullable`` of .NET the reference is its flag.
    """

    reference: Leaf
    inner: Shape


# ------------------------------------------------------------------------------
# What fields hold directly: numbers, strings, arrays of numbers; the pointers to them.


class Guard(Record):
    """A pointer on the path to a value: the word at ``offset`` bytes into ``field``.

    The next load is ``moved`` bytes from where it points. ``empty``: NULL is no fault but an empty
    value (a nil map of Go, no string). ``kernel``: it points to kernel memory, not the program's.

    ``read_checks`` are string fields, each with its offset from the pointer: a string is there
    if the kernel could read eight bytes at it. A kernel probe reads a program's memory only if it
    is in RAM; else the record holds stale bytes.
    """

    field: str
    offset: int = 0
    moved: int = 0
    empty: bool = False
    kernel: bool = False
    read_checks: tuple[tuple[str, int], ...] = ()


class Leaf(Record):
    """A number, or a string that the kernel fetched up to its NUL (``decode.kind`` text).

    ``size`` is the number's size in bytes, 0 where the field holds nothing else (only then the
    kernel's event filter can use it). ``decode.bits`` bits from bit ``shift`` on are the number.
    A string with ``decode.count`` is a list of so many; their pointers are an array at ``offset``
    bytes into ``pointers``. ``total`` is the number of elements of the source where not all are
    fetched.

    ``guards`` are the pointers on the path, outermost first: where one is not an address, the
    value is a fault. Other shapes have them too.
    """

    field: str
    decode: Decode
    offset: int = 0
    size: int = 0
    shift: int = 0
    guards: tuple[Guard, ...] = ()
    total: int = 0
    pointers: str = ""


class StringShape(Record):
    """A string in ``size`` bytes that were fetched.

    It has ``length`` bytes (units, for ``utf-16``). Without ``length`` it ends at the first NUL or
    at the object's end, which is ``limit`` bytes. ``kind`` is that of
    :class:`~fetchc.ir.fetch.Decode`, or utf-32 (units of four bytes).
    """

    field: str
    size: int
    kind: str = "text"
    offset: int = 0
    length: Leaf | None = None
    limit: int | None = None
    guards: tuple[Guard, ...] = ()


class SizedStringShape(Record):
    """A string that the kernel fetched up to its NUL, of an object of ``length`` bytes.

    A shorter string is cut: the object contains a NUL, or the event had no room.
    """

    inner: Shape
    length: Shape


class OfEventShape(Record):
    """What the reader knows of each event: ``name`` is a key of ``OF_EVENT`` in :mod:`.events`."""

    name: str


class UnavailableShape(Record):
    """A variable that cannot be fetched here, and why: its value is that text."""

    reason: str


class NumbersShape(Record):
    """A list: an array of ``count`` numbers of ``size`` bytes, each as ``decode`` says."""

    field: str
    decode: Decode
    count: int
    size: int
    offset: int = 0
    guards: tuple[Guard, ...] = ()
    total: int = 0


ELEMENT = "element"
"""The field that has all bytes of an element: see :class:`ElementsShape`."""


class ElementsShape(Record):
    """A list whose elements an eBPF program has copied: ``count`` of ``size`` bytes at most.

    Each of them is ``inner``, of a record with the field :data:`ELEMENT` alone. ``total`` is the
    number of elements of an array.
    """

    field: str
    inner: Shape
    count: int
    size: int
    guards: tuple[Guard, ...] = ()
    total: int = 0


Shape = (
    Leaf
    | StringShape
    | SizedStringShape
    | NumbersShape
    | ElementsShape
    | ListShape
    | SequenceShape
    | RangeShape
    | StructShape
    | NotationShape
    | FormattedShape
    | DifferenceShape
    | ConditionalShape
    | ComputedShape
    | ElementCountShape
    | EntryCountShape
    | ChoiceShape
    | CallerShape
    | GrowthCheckShape
    | SumShape
    | OperationShape
    | EnumShape
    | MultiArrayShape
    | TypeNameShape
    | TypeAssertionShape
    | TypeSwitchShape
    | CastShape
    | VariantCheckShape
    | BoundsCheckShape
    | OptionalShape
    | InterfaceShape
    | OfEventShape
    | UnavailableShape
    | WalkShape
)


def texts_in(part: object, read_checks: bool = True) -> set[str]:
    """All strings in a shape or a part of one, the names of fields among them.

    ``read_checks``: also those that only say whether memory could be read.
    """
    match part:
        case str():
            return {part}
        case Guard() if not read_checks:
            return {part.field}
        case Record():
            names: tuple[str, ...] = type(part).__match_args__
            return {one for name in names for one in texts_in(getattr(part, name), read_checks)}
        case tuple():
            return {found for one in part for found in texts_in(one, read_checks)}
        case _:
            return set()
