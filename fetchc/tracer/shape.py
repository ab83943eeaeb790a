"""How the fields of a record make one value.

A place in a record is a field's name and a number of bytes from its start. Fields that were made
for one object lie side by side, so a place may be behind the end of the field it is named by.
"""

from __future__ import annotations

from fetchc.ir.decode import Decode
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import ObjectTypes, RuntimeTypes
    from fetchc.units import TypeId

__all__ = [
    "Asserted",
    "Between",
    "Bytes",
    "Called",
    "Case",
    "Choice",
    "Difference",
    "Either",
    "Grid",
    "Guard",
    "Identity",
    "Items",
    "Leaf",
    "Members",
    "Noted",
    "OfType",
    "OfVariant",
    "Ranged",
    "Reckoned",
    "Referred",
    "Row",
    "Sequence",
    "Shape",
    "Sum",
    "Term",
    "TypeName",
    "Variants",
]


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
    told: tuple[tuple[str, int], ...] = ()


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


class Bytes(Record):
    """A text in ``size`` bytes that were fetched.

    It ends where ``length``, a number, says (bytes of ``text``, units of ``utf-16``); without
    one at the first NUL or, where the object has no more than ``limit`` bytes, there.
    ``kind`` is that of :class:`~fetchc.ir.decode.Decode`, or utf-32 (units of four bytes).
    """

    field: str
    size: int
    kind: str = "text"
    offset: int = 0
    length: Leaf | None = None
    limit: int | None = None
    guards: tuple[Guard, ...] = ()


class Row(Record):
    """A list: ``count`` numbers of ``size`` bytes side by side, each as ``decode`` says."""

    field: str
    decode: Decode
    count: int
    size: int
    offset: int = 0
    guards: tuple[Guard, ...] = ()
    total: int = 0


class Items(Record):
    """A list whose elements are shapes of their own.

    ``text``: they are the characters of one, which ends at the first NUL or with them. ``parts``:
    they are those of a tuple.
    """

    items: tuple[Shape, ...]
    guards: tuple[Guard, ...] = ()
    total: int = 0
    text: bool = False
    parts: bool = False


class Between(Record):
    """How many objects of ``each`` bytes lie between two addresses: from ``start`` to ``end``."""

    start: Leaf
    end: Leaf
    each: int


class Difference(Record):
    """One number less another one, or less a constant."""

    minuend: Leaf
    subtrahend: Leaf | int


class Sequence(Record):
    """A list of as many elements as ``length`` says, of which ``elements`` has the first.

    With ``start`` they are those of an array, of which the list has some: from that index on, and
    with ``around``, the number of all, from the first one behind the last.
    """

    length: Leaf | Between
    elements: Row | Items
    start: Leaf | None = None
    around: Leaf | None = None


class Ranged(Record):
    """The elements from ``low`` up to, not including, ``high``: a list, or the text of the bytes.

    ``elements`` begins with the one of the index ``start``. There are ``bound`` of them in all,
    None where nothing tells.
    """

    elements: Row | Items | Bytes
    start: int
    low: Leaf | Between | Difference | Reckoned | int
    high: Leaf | Between | Difference | Reckoned | int
    bound: Leaf | Between | Difference | Reckoned | int | None


class Members(Record):
    """A structure: its members by name, in order."""

    members: tuple[tuple[str, Shape], ...]
    guards: tuple[Guard, ...] = ()


class Noted(Record):
    """A structure in a form of its own, of its members' numbers.

    See :mod:`fetchc.tracer.values.notations`.
    """

    notation: str
    members: tuple[tuple[str, Leaf], ...]
    guards: tuple[Guard, ...] = ()


class Term(Record):
    """A part of a number: ``number``, less ``less``, by ``each``, ``times``.

    With ``times`` 0 it adds nothing, and has to be ``each`` or 0 before it is divided.
    """

    number: Leaf
    less: Leaf | None
    each: int
    times: int


class Reckoned(Record):
    """The sum of terms and a constant; with ``is_none`` whether that is 0."""

    terms: tuple[Term, ...]
    constant: int
    is_none: bool


class Either(Record):
    """One of two shapes, by whether a number is 0."""

    number: Reckoned
    at_none: Shape
    other: Shape


class Choice(Record):
    """One of several shapes, by the number ``tag``; nothing where it is none of ``cases``."""

    tag: Leaf
    cases: tuple[tuple[int, Shape], ...]


class Case(Record):
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


class Variants(Record):
    """The variant of an enum that is there, by the number ``tag``; without one the only variant."""

    tag: Leaf | None
    cases: tuple[Case, ...]


class Sum(Record):
    """A number that is in no place: the low ``size`` bytes of a word and a constant.

    Without ``word`` it is the constant.
    """

    word: Leaf | None
    addend: int
    size: int
    decode: Decode


class Called(Record):
    """One of several shapes, by the call that the function was entered by.

    ``returned`` is the address that the function returns to. ``cases`` have how far it is from the
    probed instruction; of other calls, ``{"caller": ...}``, nothing is known.
    """

    returned: Leaf
    cases: tuple[tuple[int, Shape], ...]


class OfVariant(Record):
    """A value that is there if the number ``tag`` tells the variant ``wanted``.

    Else it is ``{"variant": ...}``, the name of the one that is. ``names`` are all, by number.
    """

    tag: Leaf
    names: tuple[tuple[int | None, str], ...]
    wanted: str
    inner: Shape


class Grid(Record):
    """The elements of an array of several dimensions, as ``flat`` has them side by side.

    ``lengths`` are those of the dimensions. With ``indices`` the value is that one element.
    """

    lengths: tuple[Leaf, ...]
    flat: Sequence | OfType
    indices: tuple[int, ...] = ()


class TypeName(Record):
    """The name of the dynamic type of a Go interface.

    ``word`` is the address of its descriptor, ``start`` the address that ``types`` count from.
    """

    word: Leaf
    start: Leaf
    types: RuntimeTypes


class Known(Record):
    """What is said of a value whose descriptor is ``wanted`` bytes from the start of all.

    ``parts`` are words and values; one alone is the value itself. ``numbered``: a number among
    them is a system's error number.
    """

    wanted: int
    parts: tuple[str | Shape, ...]
    numbered: bool


class Worded(Record):
    """A Go interface, with what is said of its value where the dynamic type is a known one.

    The others are ``plain``. ``inner``: the words alone, as they are part of others.
    """

    dynamic: TypeName
    plain: Shape
    known: tuple[Known, ...]
    inner: bool


class Referred(Record):
    """A value behind a reference: none, and no fault, where that is NULL (null of .NET).

    Of a ``Nullable`` the truth value in front of it is what says whether there is one.
    """

    reference: Leaf
    inner: Shape


class Asserted(Record):
    """A value that is there if the dynamic type is the one ``wanted`` bytes from the start.

    Else it is ``{"type": ...}``, that type's name.
    """

    dynamic: TypeName
    wanted: int
    inner: Shape


class Identity(Record):
    """What a type is known by: the assembly's name, and a number that has its row in ``row``."""

    row: Leaf
    assembly: Leaf


class OfType(Record):
    """A value that is there if the object of ``reference`` is of the type ``wanted``.

    Else it is ``{"type": ...}``, the name of the object's own type. ``element`` is that of an
    array's elements, None where no array is wanted, ``rank`` a number that tells arrays of
    several dimensions apart. Of null there is nothing to compare.
    """

    reference: Leaf
    own: Identity
    element: Identity | None
    rank: Leaf
    types: ObjectTypes
    wanted: TypeId
    inner: Shape


Shape = (
    Leaf
    | Bytes
    | Row
    | Items
    | Sequence
    | Ranged
    | Members
    | Noted
    | Difference
    | Either
    | Reckoned
    | Between
    | Choice
    | Called
    | Sum
    | Variants
    | Grid
    | TypeName
    | Asserted
    | OfType
    | OfVariant
    | Referred
    | Worded
)
