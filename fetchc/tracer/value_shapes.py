"""How the fields of a record make one value.

A place in a record is a field's name and a number of bytes from its start. Fields that were made
for one object lie side by side, so a place may be behind the end of the field it is named by.
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.fetch import Decode
    from fetchc.program.protocol import ObjectTypes, RuntimeTypes
    from fetchc.quantities import TypeId

__all__ = [
    "BoundsCheckShape",
    "CallerShape",
    "CastShape",
    "ChoiceShape",
    "ComputedShape",
    "ConditionalShape",
    "DifferenceShape",
    "ElementCountShape",
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
    "VariantCase",
    "VariantCheckShape",
]

# ------------------------------------------------------------------------------
# Values whose type is told by the object.


class TypeNameShape(Record):
    """The name of the dynamic type of a Go interface.

    ``word`` is the address of its descriptor, ``start`` the address that ``types`` count from.
    """

    word: Leaf
    start: Leaf
    types: RuntimeTypes


class TypeDescription(Record):
    """What is said of a value whose descriptor is ``wanted`` bytes from the start of all.

    ``parts`` are words and values; one alone is the value itself. ``numbered``: a number among
    them is a system's error number.
    """

    wanted: int
    parts: tuple[str | Shape, ...]
    numbered: bool


class InterfaceShape(Record):
    """A Go interface, with what is said of its value where the dynamic type is a known one.

    The others are ``plain``. ``inner``: the words alone, as they are part of others.
    """

    dynamic: TypeNameShape
    plain: Shape
    descriptions: tuple[TypeDescription, ...]
    inner: bool


class TypeAssertionShape(Record):
    """A value that is there if the dynamic type is the one ``wanted`` bytes from the start.

    Else it is ``{"type": ...}``, that type's name.
    """

    dynamic: TypeNameShape
    wanted: int
    inner: Shape


class TypeSwitchShape(Record):
    """One of several values, by the dynamic type: each of a type so far from the start.

    Of no such type it is ``{"type": ...}``, as :class:`Asserted`.
    """

    dynamic: TypeNameShape
    cases: tuple[tuple[int, Shape], ...]


class TypeIdentity(Record):
    """What a type is known by: the assembly's name, and a number that has its row in ``row``."""

    row: Leaf
    assembly: Leaf


class CastShape(Record):
    """A value that is there if the object of ``reference`` is of the type ``wanted``.

    Else it is ``{"type": ...}``, the name of the object's own type. ``element`` is that of an
    array's elements, None where no array is wanted, ``rank`` a number that tells arrays of
    several dimensions apart. Of null there is nothing to compare. ``otherwise`` is what else the
    value is.
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
# Several elements, and how many of them there are.


class ListShape(Record):
    """A list whose elements are shapes of their own.

    ``text``: they are the characters of one, which ends at the first NUL or with them. ``parts``:
    they are those of a tuple.
    """

    items: tuple[Shape, ...]
    guards: tuple[Guard, ...] = ()
    total: int = 0
    text: bool = False
    is_tuple: bool = False


class SequenceShape(Record):
    """A list of as many elements as ``length`` says, of which ``elements`` has the first.

    With ``start`` they are those of an array, of which the list has some: from that index on, and
    with ``around``, the number of all, from the first one behind the last. ``backwards``: from the
    one in front of that index on, down to the array's first.
    """

    length: Leaf | ElementCountShape
    elements: NumbersShape | ListShape
    start: Leaf | None = None
    around: Leaf | None = None
    backwards: bool = False


class RangeShape(Record):
    """The elements from ``low`` up to, not including, ``high``: a list, or the text of the bytes.

    ``elements`` begins with the one of the index ``start``. There are ``bound`` of them in all,
    None where nothing tells. ``to_nul``: of a text no more than up to its first NUL.
    """

    elements: NumbersShape | ListShape | StringShape
    start: int
    low: Leaf | ElementCountShape | DifferenceShape | ComputedShape | int
    high: Leaf | ElementCountShape | DifferenceShape | ComputedShape | int
    bound: Leaf | ElementCountShape | DifferenceShape | ComputedShape | int | None
    to_nul: bool = False


class BoundsCheckShape(Record):
    """A value that is there if ``number`` says that there are at least ``least`` elements."""

    number: Shape
    least: int
    inner: Shape


class MultiArrayShape(Record):
    """The elements of an array of several dimensions, as ``flat`` has them side by side.

    ``lengths`` are those of the dimensions. With ``indices`` the value is that one element.
    """

    lengths: tuple[Leaf, ...]
    flat: SequenceShape | CastShape
    indices: tuple[int, ...] = ()


# ------------------------------------------------------------------------------
# Numbers that are made of others.


class ElementCountShape(Record):
    """How many objects of ``each`` bytes lie between two addresses: from ``start`` to ``end``."""

    start: Leaf
    end: Leaf
    each: int


class DifferenceShape(Record):
    """One number less another one, or less a constant."""

    minuend: Leaf
    subtrahend: Leaf | int


class Term(Record):
    """A part of a number: ``number``, less ``less``, by ``each``, ``times``.

    With ``times`` 0 it adds nothing, and has to be ``each`` or 0 before it is divided.
    """

    number: Leaf
    less: Leaf | None
    each: int
    times: int


class ComputedShape(Record):
    """The sum of terms and a constant; with ``is_none`` whether that is 0."""

    terms: tuple[Term, ...]
    constant: int
    is_none: bool


class SumShape(Record):
    """A number that is in no place: the low ``size`` bytes of a word and a constant.

    Without ``word`` it is the constant.
    """

    word: Leaf | None
    addend: int
    size: int
    decode: Decode


# ------------------------------------------------------------------------------
# Members of a structure, and one of several shapes.


class StructShape(Record):
    """A structure: its members by name, in order. ``left`` are those that cannot be fetched."""

    members: tuple[tuple[str, Shape], ...]
    guards: tuple[Guard, ...] = ()
    left: tuple[str, ...] = ()


class NotationShape(Record):
    """A structure in a form of its own, of its members' numbers.

    See :mod:`fetchc.tracer.display_values`.
    """

    notation: str
    members: tuple[tuple[str, Leaf], ...]
    guards: tuple[Guard, ...] = ()


class FormattedShape(Record):
    """A value in the form that its language prints it in, of its parts.

    ``beside`` are values of other places that the form takes. See
    :mod:`fetchc.tracer.display_values`.
    """

    form: str
    parts: tuple[tuple[str, Shape], ...]
    beside: tuple[tuple[str, Shape], ...] = ()


class ConditionalShape(Record):
    """One of two shapes, by whether a number is 0."""

    number: ComputedShape
    at_none: Shape
    other: Shape


class ChoiceShape(Record):
    """One of several shapes, by the number ``tag``; nothing where it is none of ``cases``."""

    tag: Leaf
    cases: tuple[tuple[int, Shape], ...]


class VariantCase(Record):
    """A variant: its name, and what it holds; None of one without fields.

    It is there where the enum's tag is ``value``, with None where it is none of the others'.
    ``single``: it holds one value without a name, which ``fields`` is. ``left`` is the number of
    its fields where they are not fetched.
    """

    value: int | None
    name: str
    fields: Shape | None
    single: bool = False
    left: int = 0


class EnumShape(Record):
    """The variant of an enum that is there, by the number ``tag``; without one the only variant."""

    tag: Leaf | None
    cases: tuple[VariantCase, ...]


class GrowthCheckShape(Record):
    """A value that is there unless ``word`` is the address so far from the probed instruction.

    Then the call lost it.
    """

    word: Leaf
    distance: int
    inner: Shape


class VariantCheckShape(Record):
    """A value that is there if the number ``tag`` tells the variant ``wanted``.

    Else it is ``{"variant": ...}``, the name of the one that is. ``names`` are all, by number.
    """

    tag: Leaf
    names: tuple[tuple[int | None, str], ...]
    wanted: str
    inner: Shape


class CallerShape(Record):
    """One of several shapes, by the call that the function was entered by.

    ``returned`` is the address that the function returns to. ``cases`` have how far it is from the
    probed instruction; of other calls, ``{"caller": ...}``, nothing is known.
    """

    returned: Leaf
    cases: tuple[tuple[int, Shape], ...]


class OptionalShape(Record):
    """A value behind a reference: none, and no fault, where that is NULL (null of .NET).

    Of a ``Nullable`` the truth value in front of it is what says whether there is one.
    """

    reference: Leaf
    inner: Shape


# ------------------------------------------------------------------------------
# What the fields of a record hold by themselves: numbers, texts, rows; the pointers on the way.


class Guard(Record):
    """A pointer on the way to a value: the word at ``offset`` bytes into ``field``.

    What is loaded next stands ``moved`` bytes from where it leads. ``empty``: NULL is no fault
    there but stands for a thing without entries (a nil map of Go), or for no text. ``kernel``:
    it leads to memory of the kernel, not of the program.

    ``told`` are texts that are there where eight bytes could be read, from so many bytes behind
    where the pointer leads on: a probe of the kernel reads the memory of programs if it is in RAM,
    and else leaves in the record what was there before.
    """

    field: str
    offset: int = 0
    moved: int = 0
    empty: bool = False
    kernel: bool = False
    read_checks: tuple[tuple[str, int], ...] = ()


class Leaf(Record):
    """A number, or a text that the kernel fetched up to its NUL (``decode.kind`` text).

    ``size`` are the bytes of the number, 0 where the field holds nothing else (only then a
    filter of the kernel can have it). Of them ``decode.bits`` bits count, from bit ``shift`` on.
    A text with ``decode.count`` is a list of that many, whose pointers are side by side from
    ``offset`` bytes into ``pointers`` on. ``total`` is the number of elements of the source where
    not all were fetched.

    ``guards`` are the pointers on the way, outermost first: where one is no address of a
    program, the value could not be read. The other shapes have them too.
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
    """A text in ``size`` bytes that were fetched.

    It ends where ``length``, a number, says (bytes of ``text``, units of ``utf-16``); without
    one at the first NUL or, where the object has no more than ``limit`` bytes, there.
    ``kind`` is that of :class:`~fetchc.ir.fetch.Decode`, or utf-32 (units of four bytes).
    """

    field: str
    size: int
    kind: str = "text"
    offset: int = 0
    length: Leaf | None = None
    limit: int | None = None
    guards: tuple[Guard, ...] = ()


class SizedStringShape(Record):
    """A text that the kernel fetched up to its NUL, of an object that has ``length`` bytes.

    Where these are more, the text is its beginning alone: a NUL is a character of it, or the event
    had no room.
    """

    inner: Shape
    length: Shape


class NumbersShape(Record):
    """A list: ``count`` numbers of ``size`` bytes side by side, each as ``decode`` says."""

    field: str
    decode: Decode
    count: int
    size: int
    offset: int = 0
    guards: tuple[Guard, ...] = ()
    total: int = 0


Shape = (
    Leaf
    | StringShape
    | SizedStringShape
    | NumbersShape
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
    | ChoiceShape
    | CallerShape
    | GrowthCheckShape
    | SumShape
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
)
