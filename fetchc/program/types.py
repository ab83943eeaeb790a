"""Types of a traced program, whatever its language and debug information.

Types refer to each other by :data:`~fetchc.quantities.TypeId` through their Program, so
they may be cyclic and are read when asked for. Sizes and offsets are bytes; a size
is None where the debug information gives none (a flexible array, a declaration).
"""

from __future__ import annotations

from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize, TypeId
from fetchc.record import Record

__all__ = [
    "USER",
    "ArrayType",
    "BitField",
    "BoolType",
    "CellType",
    "ChannelType",
    "CharType",
    "ChoiceType",
    "ComplexType",
    "DeclaredType",
    "EnumType",
    "FloatType",
    "FunctionType",
    "IntType",
    "InterfaceType",
    "MapType",
    "Member",
    "NamedType",
    "PointerType",
    "QualifiedType",
    "RangeType",
    "SequenceType",
    "SliceType",
    "StringType",
    "StructType",
    "Type",
    "UnknownType",
    "Variant",
    "VoidType",
    "Window",
]


class IntType(Record):
    """An integer; ``name`` as the source spells it.

    ``kind`` is the underlying type of Go's ``type ID int64``, ``untyped`` of a constant that takes
    the type of what it is computed with, empty where nothing says it.
    ``foreign_order``: a single byte among numbers of the byte order that the machine does not have.
    """

    name: str
    size: ByteSize
    signed: bool
    kind: str = ""
    foreign_order: bool = False


class CharType(Record):
    """A character of C or C++: an integer whose arrays and pointers are text."""

    name: str
    size: ByteSize
    signed: bool
    foreign_order: bool = False  # as of integers


class BoolType(Record):
    """A truth value."""

    name: str
    size: ByteSize
    foreign_order: bool = False  # as of integers


class FloatType(Record):
    """A binary floating-point number."""

    name: str
    size: ByteSize


class ComplexType(Record):
    """Two floating-point numbers side by side; ``size`` is in bytes, of both."""

    name: str
    size: ByteSize


class EnumType(Record):
    """An enumeration; ``enumerators`` in the order of the source.

    ``flags``: values are said to be sets of enumerators ([Flags] of .NET). ``otherwise`` is the
    name of every other value: of the variant of a Rust enum that has no value of its own.
    """

    name: str
    size: ByteSize
    signed: bool
    enumerators: tuple[tuple[str, int], ...]
    flags: bool = False
    otherwise: str = ""


class VoidType(Record):
    """What a ``void *`` points at."""


class PointerType(Record):
    """A pointer, a C++ reference (``reference``), or a Go pointer.

    ``name`` is empty where the language builds it from the target's name.
    """

    name: str
    size: ByteSize
    target: TypeId
    reference: bool = False


class BitField(Record):
    """A member narrower than its type.

    ``offset`` counts bits from the start of the enclosing object: from the least
    significant bit of its first byte on a little-endian target.
    """

    offset: BitOffset
    width: BitSize


class Member(Record):
    """A member of a structure, union or class, or a base class.

    ``embedded`` members are looked through: anonymous aggregates of C, base classes
    of C++, embedded fields of Go (which also have a name). ``also`` is another name that the
    source knows it by: a property of .NET. ``alignment`` is what the source asks of the
    member itself, in bytes; DWARF tells from version 5 on. ``difference``: the value is the first
    of these members of the same object less the second (Count of a Dictionary).
    """

    name: str
    type: TypeId
    offset: ByteOffset
    bits: BitField | None = None
    embedded: bool = False
    also: str = ""
    alignment: ByteSize | None = None
    difference: tuple[Member, Member] | None = None


class Variant(Record):
    """A variant of an enum that has fields (Rust): its fields, as one member of the enum.

    It is there where the enum's first member is ``value``; with None for every other number, or
    always where the enum has no members.
    """

    member: Member
    value: int | None


class StructType(Record):
    """A structure, union or class. ``kind`` is ``struct``, ``union``, ``class`` or ``enum``.

    ``by_reference`` is DW_AT_calling_convention 4 (DW_CC_pass_by_reference); None where
    the compiler does not say. ``notation`` names the form in which people write such a value
    (a decimal number, a point in time); empty where they write its members. ``computed_members``
    are members that take no room in it. ``variants`` lie over each
    other after the one member that tells which is there.

    ``value`` is the member that the whole means, at any offset in it: what a cell contains, with
    ``counts`` the number of elements that a collection has. With ``shared`` it is a pointer, and
    the member of that name is meant of what it leads to. ``owned``: names are those of ``value``
    first, of the structure's own members second.
    """

    name: str
    kind: str
    size: ByteSize
    members: tuple[Member, ...]
    alignment: ByteSize | None = None
    by_reference: bool | None = None
    notation: str = ""
    computed_members: tuple[Member, ...] = ()
    variants: tuple[Variant, ...] = ()
    value: Member | None = None
    counts: bool = False
    shared: str = ""
    owned: bool = False

    @property
    def is_library(self) -> bool:
        """Whether its name is of a C++ library: the standard one, gcc's extensions or Boost."""
        return self.name.startswith(("std::", "__gnu_cxx::", "__gnu_debug::", "boost::"))


class ArrayType(Record):
    """One dimension of an array; the elements of an outer dimension are arrays.

    ``count`` is None where it is not fixed (flexible or variable-length arrays).
    ``vector`` marks a SIMD vector type (DW_AT_GNU_vector). ``encoding`` is, of a range ``a[0:4]``
    of characters, how they make a string; its elements are numbers.
    """

    name: str
    element: TypeId
    count: int | None
    size: ByteSize | None
    vector: bool = False
    encoding: str = ""


class FunctionType(Record):
    """A function's own type, target of a function pointer."""

    name: str


class NamedType(Record):
    """A typedef: another name of ``target``. ``alignment`` is DW_AT_alignment, if stated."""

    name: str
    target: TypeId
    alignment: ByteSize | None = None


USER = "__user"
"""The qualifier of what a pointer of the kernel has in the memory of a program."""


class QualifiedType(Record):
    """``target`` with ``const``, ``volatile``, ``restrict``, ``atomic`` or :data:`USER`."""

    qualifier: str
    target: TypeId


class DeclaredType(Record):
    """A declaration without a definition: struct s;"""

    name: str
    kind: str


class StringType(Record):
    """A string with a length beside its data pointer. ``members`` are its raw words: the
    pointer, the length and, where it has one, the capacity.

    The text begins ``lead`` bytes beyond where the pointer leads (counters of Rust's ``Rc<str>``).
    """

    name: str
    size: ByteSize
    members: tuple[Member, ...]
    lead: int = 0


class SliceType(Record):
    """A slice: data pointer, length and, where it has one, capacity, in that order in ``members``.

    The elements begin ``lead`` bytes beyond where the pointer leads.
    """

    name: str
    size: ByteSize
    element: TypeId
    members: tuple[Member, ...]
    lead: int = 0


class Window(Record):
    """Which elements of an array a sequence has: from the index ``start`` on.

    ``around``: the array's first element follows its last one. ``of_any``: what is said to be
    the array is an object that can be something else. ``capacity`` is how many elements the array
    has, where it does not say so itself. ``or_text``: of the units of a string, references to
    strings, one of which the object can be. ``backwards``: they begin before that index, and go
    down to the array's first element.
    """

    start: Member
    around: bool
    of_any: bool
    capacity: Member | None = None
    or_text: TypeId | None = None
    backwards: bool = False


class SequenceType(Record):
    """An object of .NET that holds counted elements: an array, a string, a list, a span.

    ``length`` and ``elements`` are members of it: a number, and an array in the object itself or
    a pointer to the elements or to another such object. ``text``: they are the UTF-16 units of
    a string. ``size`` is None of those whose elements are in the object. ``value``: a structure, to
    which variables hold no reference. ``dimensions``: of an array of several, the way to the
    length of each; the elements of the last one lie side by side. ``window``: of one that has
    a part of an array, which one.
    """

    name: str
    size: ByteSize | None
    members: tuple[Member, ...]
    length: Member
    elements: Member
    text: bool = False
    value: bool = False
    dimensions: tuple[tuple[Member, ...], ...] = ()
    window: Window | None = None


class ChoiceType(Record):
    """One of several members of an object, which lie where they like: by the number ``tag``.

    ``cases`` are values of the tag with the member that counts then; for other values there
    is no member (an empty std::optional).
    """

    name: str
    size: ByteSize
    tag: Member
    cases: tuple[tuple[int, Member], ...]


class CellType(Record):
    """An element of an array of several dimensions that is not in its first row, or of a window.

    A value of it has the place of the whole ``array``. ``name`` and ``size`` are the element's.
    """

    name: str
    size: ByteSize | None
    array: SequenceType
    indices: tuple[int, ...]


class RangeType(Record):
    """Elements of ``element`` whose number is computed when the program runs.

    ``text`` is the encoding where they are characters: text (bytes), utf-16, utf-32.
    """

    name: str
    size: ByteSize | None
    element: TypeId
    text: str


class InterfaceType(Record):
    """A Go interface: type word and data word. ``empty`` is for ``any`` (eface)."""

    name: str
    size: ByteSize
    empty: bool
    members: tuple[Member, ...]


class MapType(Record):
    """A Go map: one pointer to the run-time's header."""

    name: str
    size: ByteSize
    key: TypeId
    element: TypeId
    header: TypeId


class ChannelType(Record):
    """A Go channel: one pointer to the run-time's header."""

    name: str
    size: ByteSize
    element: TypeId
    header: TypeId


class UnknownType(Record):
    """A type that fetchc does not read; ``reason`` completes "because ...".

    ``slot``: of a virtual base, which word of the object's table says how far from the object it
    is, counted from where the object's first word leads, and ``target`` its class; None of all
    else. ``foreign_order``: it is a number in the byte order that the machine does not have.
    """

    name: str
    size: ByteSize | None
    reason: str
    slot: int | None = None
    target: TypeId | None = None
    foreign_order: bool = False


Type = (
    IntType
    | CharType
    | BoolType
    | FloatType
    | ComplexType
    | EnumType
    | VoidType
    | PointerType
    | StructType
    | ArrayType
    | FunctionType
    | NamedType
    | QualifiedType
    | DeclaredType
    | StringType
    | SliceType
    | SequenceType
    | ChoiceType
    | CellType
    | RangeType
    | InterfaceType
    | MapType
    | ChannelType
    | UnknownType
)
