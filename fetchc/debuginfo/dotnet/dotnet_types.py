"""Closed types of .NET as fetchc's types.

A class has two: the object itself, and the reference to it that variables hold, a pointer.
Source of layouts: :mod:`fetchc.debuginfo.dotnet.class_layout` and targets/runtime/dotnet.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number
from fetchc.debuginfo.dotnet.class_layout import NUMBERS, SIGNED, Layouts, number_type
from fetchc.debuginfo.dotnet.closed_types import Code, Instance, Items, Link
from fetchc.debuginfo.dotnet.csharp_names import desugared, generated_prefix, split_outside
from fetchc.debuginfo.dotnet.metadata_signatures import Array, Generic, Pointer
from fetchc.debuginfo.dotnet.method_code import Methods
from fetchc.debuginfo.dotnet.portable_executable import NotSupported
from fetchc.program.entities import Absent, Constant
from fetchc.program.types import (
    ArrayType,
    BitField,
    EnumType,
    FunctionType,
    Member,
    PointerType,
    SequenceType,
    StructType,
    UnknownType,
    Window,
)
from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize, TypeId
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.dotnet.class_layout import Field, Layout
    from fetchc.debuginfo.dotnet.closed_types import ClosedTypes
    from fetchc.debuginfo.dotnet.metadata_signatures import Signature
    from fetchc.program.entities import Place
    from fetchc.program.types import Type
    from fetchc.target.dotnet_runtimes import ArrayPlaces, Runtime

__all__ = [
    "DotnetTypes",
    "WrittenTypes",
    "array",
    "as_in_source",
    "further_items",
    "renamed",
    "source_names",
    "static_fields",
    "static_place",
    "string",
    "window",
    "with_names",
]

# ------------------------------------------------------------------------------
# What .NET counts the elements of: strings, arrays, and parts of arrays.

WORD = ByteSize(8)
MOST_DIMENSIONS = 32
INDEX_BITS = 31  # of that of a Memory; the highest bit says that the array is pinned


def string(types: DotnetTypes) -> Type:
    """The object that a string refers to."""
    places = types.runtime.string
    length = Member("Length", types.intern(number_type("int")), ByteOffset(places.length))
    units = types.intern(ArrayType("", types.intern(number_type("char")), None, None))
    text = Member("Chars", units, ByteOffset(places.text))
    return SequenceType("string", None, (length, text), length, text, text=True)


def array(types: DotnetTypes, number: int, closed: Items) -> Type:
    """An array, of one dimension or of several."""
    places = types.runtime.array
    shown = types.closed.spelled(number)
    integer = types.intern(number_type("int"))
    length = Member("Length", integer, ByteOffset(places.length))
    if closed.rank == 0:
        items = types.intern(ArrayType("", types.variable(closed.element), None, None))
        elements = Member("Elements", items, ByteOffset(places.elements))
        return SequenceType(shown, None, (length, elements), length, elements)
    bounds = _bounds(places, min(closed.rank, MOST_DIMENSIONS), integer)
    start = places.elements + closed.rank * places.elements_per_dimension
    items = types.intern(ArrayType("", types.variable(closed.element), None, None))
    elements = Member("Elements", items, ByteOffset(start))
    ways: tuple[tuple[Member, ...], ...] = tuple([(one,) for one in bounds])
    if places.bounds is not None:
        behind = StructType("bounds", "struct", ByteSize(8 * len(bounds)), tuple(bounds))
        pointer = types.intern(PointerType("", WORD, types.intern(behind)))
        step = Member("", pointer, ByteOffset(places.bounds), None, True)
        ways, bounds = tuple([(step, one) for one in bounds]), [step]
    members = (length, *bounds, elements)
    return SequenceType(shown, None, members, length, elements, dimensions=ways)


def _bounds(places: ArrayPlaces, rank: int, integer: TypeId) -> list[Member]:
    # The lengths of the dimensions: in the array, or alternating with lower bounds elsewhere.
    first, each = (places.lengths, 4) if places.bounds is None else (0, 8)
    return [
        Member(f"Length{dimension}", integer, ByteOffset(first + each * dimension))
        for dimension in range(rank)
    ]


def window(
    types: DotnetTypes,
    number: int,
    shown: str,
    members: list[Member],
    size: ByteSize,
    said: Mapping[str, Any],
) -> SequenceType | None:
    """A part of an array, of a type with these ``members``, as the target's tables ``said``.

    None where a version has other fields, or the array is not known.
    """
    named = {member.name: member for member in members}
    if not all(said[one] in named for one in ("count", "items", "start")):
        return None
    count, items, start = (named[said[one]] for one in ("count", "items", "start"))
    value = types.closed.kind(number) == "value"
    of_any, texts = bool(said.get("of_any")), None
    if of_any:
        (element,) = types.closed.instance(number).arguments
        if types.header is None or not types.closed.is_plain(element):
            return None
        whole = types.variable(types.closed.number(Items(element, 0)))
        items = Member(items.name, whole, items.offset)
        bits = BitField(BitOffset(8 * start.offset), BitSize(INDEX_BITS))
        start = Member(start.name, start.type, start.offset, bits)
        if types.closed.types[element] == Code("char"):
            texts = types.variable(types.closed.code("string"))
    around, backwards = bool(said.get("around")), bool(said.get("backwards"))
    where = Window(start, around, of_any, or_text=texts, backwards=backwards)
    return SequenceType(
        shown, size, tuple(members), count, items, texts is not None, value, window=where
    )


# ------------------------------------------------------------------------------
# Tuples of C#: elements after the seventh, names that the source has for them.
#
# ``(a, b, …, h, i)`` is a ValueTuple of seven and ``Rest``, which is another tuple. Source:
# ECMA-334, 8.3.11 (tuple types); dotnet/runtime, ValueTuple.cs.

TUPLE = "System.ValueTuple`"

OWN_ITEMS = 7  # elements of a tuple; further ones are in another tuple
ITEM, REST = "Item", "Rest"


def further_items(types: DotnetTypes, members: list[Member]) -> tuple[Member, ...]:
    """``Item8`` and so on of a tuple, which are members of its last one."""
    rest = next((one for one in members if one.name == REST), None)
    inner = None if rest is None else types.type(rest.type)
    if rest is None or not isinstance(inner, StructType):
        return ()
    return tuple(
        [
            Member(f"{ITEM}{OWN_ITEMS + number}", one.type, ByteOffset(rest.offset + one.offset))
            for one in (*inner.members, *inner.computed_members)
            if (number := _number(one.name))
        ]
    )


def with_names(closed: ClosedTypes, signature: Signature, number: int, names: Iterator[str]) -> int:
    """A closed type, the tuples in which have the names that the source gives them.

    ``names`` has those of all tuples of the signature, outer ones first, then by type arguments; of
    a long tuple those of all its elements, then of the tuple that holds the further ones. Source:
    dotnet/roslyn, src/Compilers/CSharp/Portable/Symbols/TupleTypeDecoder.cs.
    """
    match signature, closed.types[number]:
        case Generic(_, given), Instance(assembly, row, arguments):
            own: tuple[str, ...] = ()
            if is_tuple(closed, number):
                own = tuple([next(names, "") for _ in range(_length(closed, number))])
            both = zip(given, arguments, strict=True)
            inner = tuple([with_names(closed, one, at, names) for one, at in both])
            return closed.number(Instance(assembly, row, inner, own))
        case ((Pointer(_, inner) | Array(inner, _)), Items(element, rank)):
            return closed.number(Items(with_names(closed, inner, element, names), rank))
        case Pointer(_, inner), Link(kind, target):
            return closed.number(Link(kind, with_names(closed, inner, target, names)))
        case _:
            return number


def is_tuple(closed: ClosedTypes, number: int) -> bool:
    """Whether a type is a tuple of C#."""
    return closed.name(number).startswith(TUPLE)


def _length(closed: ClosedTypes, number: int) -> int:
    arguments = closed.instance(number).arguments
    if len(arguments) <= OWN_ITEMS or not is_tuple(closed, arguments[-1]):
        return len(arguments)
    return OWN_ITEMS + _length(closed, arguments[-1])


def renamed(members: Sequence[Member], names: tuple[str, ...]) -> list[Member]:
    """The elements of a tuple, with their names of the source besides their own."""
    return [_renamed(one, names) for one in members]


def _renamed(one: Member, names: tuple[str, ...]) -> Member:
    number = _number(one.name)
    also = names[number - 1] if 0 < number <= len(names) else ""
    return Member(one.name, one.type, one.offset, also=also)


def _number(name: str) -> int:
    digits = name.removeprefix(ITEM)
    return int(digits) if digits != name and digits.isdecimal() and len(digits) < 6 else 0


LONG_TUPLE = "System.ValueTuple`8"
ROOTS = ("System.Object", "System.ValueType", "System.Enum")
BY_REFERENCE = "System.ByReference`1"
FLAGS = "System.FlagsAttribute"
BUFFER = "__FixedBuffer"  # in the names of the types of fixed buffers
BACKING = (">k__BackingField", "<")  # Roslyn's name of the field of an automatic property
GENERATED_PREFIXES = ("<", "$", "CS$<")  # how other names begin that a compiler generates


class DotnetTypes:
    """Answers for the types of one program. Ids are even for objects, odd for references."""

    __slots__ = ("_ids", "_interned", "_resolved", "closed", "header", "layouts", "runtime")

    def __init__(self, closed: ClosedTypes, runtime: Runtime) -> None:
        self.closed = closed
        self.layouts = Layouts(closed, runtime.layout)
        self.header = runtime.header
        self.runtime = runtime
        self._resolved: dict[TypeId, Type] = {}
        self._interned: list[Type] = []
        self._ids: dict[Type, TypeId] = {}

    def object(self, number: int) -> TypeId:
        """The id of a type's own bytes."""
        return TypeId(2 * number + 2)

    def variable(self, number: int) -> TypeId:
        """The id of what a variable of a type holds: of classes the reference."""
        return TypeId(2 * number + 2 + self.is_reference(number))

    def is_reference(self, number: int) -> bool:
        """Whether variables of a type hold a reference to an object."""
        closed = self.closed.types[number]
        if isinstance(closed, Instance):
            return self.closed.kind(number) in ("class", "interface")
        return isinstance(closed, Items)

    def number(self, type_id: TypeId) -> int | None:
        """The closed type of an id; None of an interned one."""
        return None if type_id < 0 else (type_id - 2) // 2

    def intern(self, resolved: Type) -> TypeId:
        """An id for a type that is in no metadata."""
        found = self._ids.get(resolved)
        if found is None:
            self._interned.append(resolved)
            found = self._ids[resolved] = TypeId(-len(self._interned))
        return found

    def type(self, type_id: TypeId) -> Type:
        """The type of an id."""
        if type_id < 0:
            return self._interned[-type_id - 1]
        found = self._resolved.get(type_id)
        if found is None:
            number = (type_id - 2) // 2
            if type_id & 1:
                found = PointerType("", WORD, self.object(number))
            else:
                found = self._object(number)
            self._resolved[type_id] = found
        return found

    def _object(self, number: int) -> Type:
        closed = self.closed.types[number]
        match closed:
            case Code():
                return number_type(closed.name)
            case Link("function"):
                return PointerType("", WORD, self.intern(FunctionType("delegate*")))
            case Link(kind, target):
                pointed = self.variable(target)
                return PointerType("", WORD, pointed, reference=kind == "byref")
            case Items():
                return array(self, number, closed)
            case Instance():
                return self._instance(number)
            case _:
                assert_never(closed)

    def _instance(self, number: int) -> Type:
        name, kind = self.closed.name(number), self.closed.kind(number)
        shown = self.closed.spelled(number)
        plain = self.closed.types[self.closed.plain(number)]
        if isinstance(plain, Code):
            if kind == "enum":
                return self._enum(number, shown, plain.name)
            return number_type(plain.name)
        if name == BY_REFERENCE:
            (argument,) = self.closed.instance(number).arguments
            return PointerType("", WORD, self.variable(argument), reference=True)
        if name == "System.String":
            return string(self)
        try:
            if name in self.runtime.layout.vectors and "`" in name:
                return self._vector(number, shown, name)
            return self._structure(number, shown, name, kind)
        except NotSupported as refused:
            return UnknownType(shown, None, refused.what)

    def _vector(self, number: int, shown: str, name: str) -> Type:
        # Of numbers of its type argument.
        stated = self.runtime.layout.vector_bytes.get(name)  # none: the processor's own
        size = None if stated is None else ByteSize(stated)
        (argument,) = self.closed.instance(number).arguments
        element = self.closed.types[self.closed.plain(argument)]
        each = NUMBERS.get(element.name) if isinstance(element, Code) else None
        if each is None:
            return UnknownType(shown, size, "its elements are not numbers")
        count = None if size is None else size // each
        return ArrayType(shown, self.object(argument), count, size, vector=True)

    def _structure(self, number: int, shown: str, name: str, kind: str) -> Type:
        layout = self.layouts.of(number)
        value = kind == "value"
        header = 0 if value else self.runtime.fields
        members = [self.member(one, number, layout.repeated) for one in layout.fields]
        if any(one.name.startswith(GENERATED_PREFIXES) or one.name[-1:] == "@" for one in members):
            as_in_source(self, layout.fields, members)
        if layout.passed > 1:
            members.append(self._passed_along(layout, members[0]))
        computed_members = self._computed_members(name, members)
        if name == LONG_TUPLE:
            computed_members = further_items(self, members)
        if names := self.closed.instance(number).names:
            members, computed_members = (
                renamed(members, names),
                tuple(renamed(computed_members, names)),
            )
        above = -1 if value else self.closed.base(number)
        if above >= 0 and self.closed.name(above) not in ROOTS:
            members.insert(0, Member("", self.object(above), ByteOffset(0), None, True))
        size = ByteSize(header + layout.size)
        sequence = self.runtime.sequences.get(name)
        if sequence is not None:
            by_field = dict(zip(layout.fields, members[-len(layout.fields) :], strict=True))
            named = {field.name: member for field, member in by_field.items()}
            count = named.get(sequence[0])
            items = next((named[one] for one in sequence[1:] if one in named), None)
            if count is not None and items is not None:
                (element,) = self.closed.instance(number).arguments
                text = value and self.closed.types[element] == Code("char")
                return SequenceType(shown, size, tuple(members), count, items, text, value)
        members.sort(key=lambda member: member.offset)  # the runtime sorts fields by their size
        said = self.runtime.windows.get(name)
        if said is not None and (part := window(self, number, shown, members, size, said)):
            return part
        notation = self.runtime.notations.get(name, "")
        kind = "struct" if value else "class"
        return StructType(
            shown, kind, size, tuple(members), notation=notation, computed_members=computed_members
        )

    def _computed_members(self, name: str, members: list[Member]) -> tuple[Member, ...]:
        # Properties that take one field from another. A version that lacks the second counts in
        # the first what is there.
        named = {member.name: at for at, member in enumerate(members)}
        found = []
        for asked, (first, second) in self.runtime.differences.get(name, {}).items():
            if first in named and second in named:
                both = members[named[first]], members[named[second]]
                found.append(both[0].replaced(name=asked, difference=both))
            elif first in named:
                one = members[named[first]]
                members[named[first]] = Member(one.name, one.type, one.offset, also=asked)
        return tuple(found)

    def variable_of(self, signature: Signature, number: int, names: tuple[str, ...]) -> TypeId:
        """The id of what a variable of that signature and closed type holds; ``names`` are those
        that the source gives the elements of tuples.
        """
        if any(names):
            number = with_names(self.closed, signature, number, iter(names))
        return self.variable(number)

    def member(self, field: Field, holder: int, repeated: int) -> Member:
        """A field of the closed type ``holder``, at its place in the whole object."""
        assembly = self.closed.instance(holder).assembly
        header = 0 if self.closed.kind(holder) == "value" else self.runtime.fields
        name = field.name
        if name.startswith(BACKING[1]) and name.endswith(BACKING[0]):
            name = name[1 : -len(BACKING[0])]
        properties = self.runtime.properties.get(self.closed.name(holder), {})
        also = next((one for one, behind in properties.items() if behind == field.name), "")
        kind = self._buffer(field.type)
        if kind is None:
            names = assembly.tuple_names(field.row)
            kind = self.variable_of(assembly.field_type(field.row), field.type, names)
        if repeated > 1:
            each = self.layouts.of(field.type).size
            kind = self.intern(ArrayType("", kind, repeated, ByteSize(each * repeated)))
        return Member(name, kind, ByteOffset(header + field.offset), None, False, also)

    def _passed_along(self, layout: Layout, first: Member) -> Member:
        # What is passed like several members, where there is one: the others, without a name.
        each, more = self.layouts.of(layout.fields[0].type).size, layout.passed - 1
        rest = self.intern(ArrayType("", first.type, more, ByteSize(each * more)))
        return Member("", rest, ByteOffset(each))

    def _buffer(self, number: int) -> TypeId | None:
        # A fixed buffer as the array that the source has; None of all else.
        closed = self.closed.types[number]
        if not isinstance(closed, Instance) or BUFFER not in self.closed.name(number):
            return None
        layout = self.layouts.of(number)
        if layout.repeated < 2:
            return None
        element = self.variable(layout.fields[0].type)
        return self.intern(ArrayType("", element, layout.repeated, ByteSize(layout.size)))

    def _enum(self, number: int, shown: str, under: str) -> Type:
        instance = self.closed.instance(number)
        signed = under in SIGNED
        listed = []
        for name, value in instance.assembly.constants(instance.row):
            listed.append((name, decode_number(value, True, signed)))
        flags = instance.assembly.attribute(instance.row, FLAGS) is not None
        return EnumType(shown, ByteSize(NUMBERS[under]), signed, tuple(listed), flags)


# ------------------------------------------------------------------------------
# Fields whose names compilers generate: for variables that outlive a step or are captured, and for
# the objects that contain those.
#
# Source: dotnet/roslyn, src/Compilers/CSharp/Portable/Symbols/Synthesized/GeneratedNames.cs and
# GeneratedNameKind.cs; mono/mono, mcs/mcs/anonymous.cs, iterators.cs, async.cs; dotnet/fsharp,
# src/Compiler/TypedTree (CompilerGeneratedName). Seen of Roslyn 3.4 and 4, and of mcs 6.8.

THIS = ("<>4__this", "$this")  # the object whose method it is
# A closure around this one; one that a method's steps share. mcs calls other things `$locvar`, too.
CLOSURES = ("CS$<>8__locals", "<>8__", "<>f__ref$", "$locvar")
CLOSURE_TYPES = ("<>c__DisplayClass", "c__AnonStorey")
# What follows the name of the source in `<name>`: a hoisted local, a captured parameter of a
# class, a member of an anonymous type; of mcs a local with a number, or nothing.
LOCAL, PARAMETER, MEMBER, OWN_LOCAL = ">5__", ">P", ">i__Field", ">__"
OF_FSHARP = "@"


def as_in_source(types: DotnetTypes, fields: Sequence[Field], members: list[Member]) -> None:
    """Call ``members``, which are ``fields``, as the source does, and look through scopes.

    Several variables of one name, of one block each, get the compiler's number: ``i__3``. What a
    parameter was at first, where a closure has the variable, gets 0: ``retries__0``.
    """
    closed = types.closed
    type_names = [closed.name(one.type) if types.is_reference(one.type) else "" for one in fields]
    inner = [
        bool(of) and _is_scope(one.name, of) for one, of in zip(fields, type_names, strict=True)
    ]
    captured = {
        name
        for one, is_scope in zip(fields, inner, strict=True)
        if is_scope and one.name not in THIS
        for _, name, _ in closed.fields(one.type)
    }
    called = source_names(tuple([one.name for one in fields]))
    for at, (field, one, is_scope) in enumerate(zip(fields, members, inner, strict=True)):
        name = called.get(field.name, one.name)
        if name in captured:
            name += "__0"
        members[at] = Member(name, one.type, one.offset, one.bits, is_scope, one.also)


def source_names(names: tuple[str, ...]) -> dict[str, str]:
    """The fields of a type whose names a compiler generated, by name, with their source names."""
    found = {name: source_name for name in names if (source_name := _source_name(name))}
    called = list(found.values())
    taken = {name for name in names if name not in found}
    for name, source_name in found.items():
        if called.count(source_name) > 1:
            found[name] = source_name = f"{source_name}__{name.rpartition('__')[2]}"
        if source_name in taken:
            found[name] = name
    return found


def _source_name(name: str) -> str:
    if name in THIS:
        return "this"
    if name.endswith(OF_FSHARP):
        return name[: -len(OF_FSHARP)]
    inside, closed, rest = name[1:].partition(">")
    if name[:1] != "<" or not closed or not inside or "<" in inside:
        return ""
    rest = f">{rest}"
    numbered = next((one for one in (LOCAL, OWN_LOCAL) if rest.startswith(one)), "")
    if numbered:
        return inside if rest[len(numbered) :].isdecimal() else ""
    return inside if rest in (PARAMETER, MEMBER, ">") else ""


def _is_scope(name: str, of: str) -> bool:
    # Whether variables of the source are fields of the class ``of``, to which the field refers.
    in_closure = name.startswith(CLOSURES) and any(one in of for one in CLOSURE_TYPES)
    return name in THIS or in_closure


# ------------------------------------------------------------------------------
# Static fields and constants of .NET: what they are called, and why only constants have a value.
#
# Where a static field is the runtime decides when it loads the class: nothing in the image says
# it.

STATIC, LITERAL = 0x10, 0x40  # FieldAttributes
# Codes of the types of constants that are numbers, and whether they have a sign.
NUMBER_CODES = {
    0x02: False, 0x03: False, 0x04: True, 0x05: False, 0x06: True, 0x07: False, 0x08: True,
    0x09: False, 0x0A: True, 0x0B: False,
}  # fmt: skip


def static_fields(assembly: Assembly, name: str, owner: int) -> list[tuple[int, int]]:
    """Types and fields, by their rows, that ``Type.Field`` means, or a name alone in ``owner``."""
    *parts, short = name.replace("::", ".").replace("+", ".").split(".")
    types = Methods(assembly).types(parts) if parts else [owner] if owner else []
    found = []
    for row in types:
        for field in assembly.metadata.span("TypeDef", row, 4, "Field"):
            static = assembly.metadata.row("Field", field)[0] & STATIC
            if static and assembly.field_name(field) in (short, f"<{short}>k__BackingField"):
                found.append((row, field))
    return found


def static_place(assembly: Assembly, field: int) -> Place:
    """The value of a constant that is a number; nowhere of all else, with the reason."""
    if not assembly.metadata.row("Field", field)[0] & LITERAL:
        what = "it is a static field, which the runtime puts where it likes when it loads the class"
        return Absent("no location", what)
    for kind, _, blob in assembly.metadata.rows_of("Constant", 1, field << 2):
        if kind & 0xFF in NUMBER_CODES:
            value = assembly.metadata.blob(blob)
            number = decode_number(value, True, signed=NUMBER_CODES[kind & 0xFF])
            return Constant(number, ByteSize(len(value)))
    return Absent(
        "no location", "it is a constant, which is in the code that uses it and nowhere else"
    )


# ------------------------------------------------------------------------------
# The types that a written name means: ``int``, ``Ns.Type``, ``List<string>``, ``byte[]``.

DEEPEST = 16
IN_ONE_TUPLE = 7  # elements of a ValueTuple


class WrittenTypes(Record):
    """Looks names up in an assembly first, then in the runtime's core library, in the assemblies
    that it refers to, and in all those of ``folders``: what a library is given is of its caller.
    """

    types: DotnetTypes
    assembly: Assembly
    folders: tuple[str, ...] = ()

    def named(self, name: str) -> tuple[TypeId, ...]:
        """The objects of that type, more than one where the name is not whole."""
        return tuple([self.types.object(one) for one in self._named(name.strip(), 0)])

    def _named(self, name: str, depth: int) -> list[int]:
        closed = self.types.closed
        if depth > DEEPEST or not name:
            return []
        if name.endswith("]"):
            # Of several brackets the last are those of the innermost array, as in C#.
            start = name.find("[", max(name.rfind(">"), name.rfind(")")) + 1)
            commas_of = name[start + 1 : -1].split("][")
            if start < 0 or any(one.strip(", ") for one in commas_of):
                return []
            ranks = [one.count(",") for one in commas_of]
            found = self._named(name[:start].strip(), depth + 1)
            for commas in reversed(ranks):
                found = [closed.number(Items(one, commas and commas + 1)) for one in found]
            return found
        if name.endswith("?") or name.startswith("("):
            return self._named(desugared(name), depth + 1)
        if name.endswith("*"):
            found = self._named(name[:-1].strip(), depth + 1)
            return [closed.number(Link("pointer", one)) for one in found]
        if name in NUMBERS:
            return [closed.number(Code(name))]
        if name in ("string", "object"):
            return [closed.code(name)]
        if name == "decimal":
            name = "System.Decimal"  # the one keyword of C# that has no code in signatures
        arguments: list[int] = []
        parts = split_outside(name.replace("+", "."), ".")
        for part in parts:
            _, opened, inside = part[len(generated_prefix(part)) :].partition("<")
            if opened:
                for one in split_outside(inside.rpartition(">")[0], ","):
                    found = self._named(one, depth + 1)
                    if len(found) != 1:
                        return []
                    arguments += found
        plain = parts[-1].partition("<")[0]
        if plain == "Nullable" and len(arguments) == 1 and self.types.is_reference(arguments[0]):
            return arguments  # `string?` says nothing about the type
        if plain == "ValueTuple" and len(arguments) > IN_ONE_TUPLE and not self._nests(arguments):
            # The elements after the seventh are in a tuple of their own.
            words = [closed.spelled(one) for one in arguments]
            rest = ", ".join(words[IN_ONE_TUPLE:])
            first = ", ".join(words[:IN_ONE_TUPLE])
            whole = f"System.ValueTuple<{first}, System.ValueTuple<{rest}>>"
            return self._named(whole, depth + 1)
        given = tuple(arguments)
        defined = next(self._defining(parts, len(given)), None)
        if defined is None:
            others = dict.fromkeys(closed.references.within(self.folders))
            defined = [each for one in others for each in _called(one, parts, len(given))]
        return [closed.number(Instance(assembly, row, given)) for assembly, row in defined]

    def _nests(self, arguments: list[int]) -> bool:
        last = self.types.closed.spelled(arguments[-1])
        return len(arguments) == IN_ONE_TUPLE + 1 and last.startswith("System.ValueTuple<")

    def _defining(self, parts: list[str], arity: int) -> Iterator[list[tuple[Assembly, int]]]:
        # What each assembly in question has of them, those first that are meant before others.
        references = self.types.closed.references
        for assembly in (self.assembly, references.core()):
            if found := _called(assembly, parts, arity):
                yield found
        for assembly in references.referred(self.assembly):
            if found := _called(assembly, parts, arity):
                yield found
            # What it only forwards, as System.Runtime does, is elsewhere.
            whole = ".".join(parts)
            if moved := assembly.forwarded(whole):
                defining, row = references.type_named(moved, whole)
                yield [(defining, row)]


def _called(assembly: Assembly, parts: list[str], arity: int) -> list[tuple[Assembly, int]]:
    # Its types that a written name, or the end of a whole one, can mean.
    rows = Methods(assembly).types(parts)
    return [(assembly, row) for row in rows if assembly.type_parameters(row) == arity]
