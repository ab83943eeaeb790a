"""Closed types of .NET as fetchc's types.

A class has two: the object itself, and the reference to it that variables hold, a pointer.
Source of layouts: :mod:`fetchc.debuginfo.dotnet.types.layout` and targets/runtime/dotnet.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.types.closed import Code, Instance, Items, Link
from fetchc.debuginfo.dotnet.types.layout import NUMBERS, Layouts
from fetchc.diag.errors import DebugInfoError
from fetchc.program.types import (
    ArrayType,
    BitField,
    BoolType,
    CharType,
    DifferenceType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    Member,
    PointerType,
    SequenceType,
    StructType,
    UnknownType,
    VoidType,
    Window,
)
from fetchc.record import assert_never
from fetchc.units import BitOffset, BitSize, ByteOffset, ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.types.closed import ClosedTypes
    from fetchc.debuginfo.dotnet.types.layout import Field
    from fetchc.program.types import Type
    from fetchc.target.dotnet import Runtime

__all__ = ["DotnetTypes"]

WORD = ByteSize(8)
SIGNED = ("sbyte", "short", "int", "long", "nint")
MOST_DIMENSIONS = 32
INDEX_BITS = 31  # of that of a Memory; the highest bit says that the array is pinned
TUPLE = "System.ValueTuple`"
OWN_ITEMS = 7  # elements of a tuple; further ones are in another tuple
ROOTS = ("System.Object", "System.ValueType", "System.Enum")
BY_REFERENCE = "System.ByReference`1"
FLAGS = "System.FlagsAttribute"
BACKING = (">k__BackingField", "<")  # Roslyn's name of the field of an automatic property


class DotnetTypes:
    """Answers for the types of one program. Ids are even for objects, odd for references."""

    __slots__ = ("_ids", "_known", "_made", "_runtime", "closed", "header", "layouts")

    def __init__(self, closed: ClosedTypes, runtime: Runtime) -> None:
        self.closed = closed
        self.layouts = Layouts(closed, runtime.layout)
        self.header = runtime.header
        self._runtime = runtime
        self._known: dict[TypeId, Type] = {}
        self._made: list[Type] = []
        self._ids: dict[Type, TypeId] = {}

    def object(self, number: int) -> TypeId:
        """The id of a type's own bytes."""
        return TypeId(2 * number + 2)

    def variable(self, number: int) -> TypeId:
        """The id of what a variable of a type holds: of classes the reference."""
        return TypeId(2 * number + 2 + self.is_reference(number))

    def is_reference(self, number: int) -> bool:
        """Whether variables of a type hold a reference to an object."""
        made = self.closed.types[number]
        if isinstance(made, Instance):
            return self.closed.kind(number) in ("class", "interface")
        return isinstance(made, Items)

    def number(self, type_id: TypeId) -> int | None:
        """The closed type of an id; None of a made-up one."""
        return None if type_id < 0 else (type_id - 2) // 2

    def intern(self, made: Type) -> TypeId:
        """An id for a type that is in no metadata."""
        found = self._ids.get(made)
        if found is None:
            self._made.append(made)
            found = self._ids[made] = TypeId(-len(self._made))
        return found

    def type(self, type_id: TypeId) -> Type:
        """The type of an id."""
        if type_id < 0:
            return self._made[-type_id - 1]
        found = self._known.get(type_id)
        if found is None:
            number = (type_id - 2) // 2
            if type_id & 1:
                found = PointerType("", WORD, self.object(number))
            else:
                found = self._object(number)
            self._known[type_id] = found
        return found

    def _object(self, number: int) -> Type:
        made = self.closed.types[number]
        match made:
            case Code():
                return _number(made.name)
            case Link("function"):
                return PointerType("", WORD, self.intern(FunctionType("delegate*")))
            case Link(kind, target):
                pointed = self.variable(target)
                return PointerType("", WORD, pointed, reference=kind == "byref")
            case Items():
                return self._array(number, made)
            case Instance():
                return self._instance(number)
            case _:
                assert_never(made)

    def _instance(self, number: int) -> Type:
        name, kind = self.closed.name(number), self.closed.kind(number)
        shown = self.closed.spelled(number)
        plain = self.closed.types[self.closed.plain(number)]
        if isinstance(plain, Code):
            if kind == "enum":
                return self._enum(number, shown, plain.name)
            return _number(plain.name)
        if name == BY_REFERENCE:
            (argument,) = self.closed.instance(number).arguments
            return PointerType("", WORD, self.variable(argument), reference=True)
        if name == "System.String":
            return self._string()
        if name in self._runtime.layout.vectors:
            return UnknownType(shown, None, "it is a vector of the processor")
        try:
            return self._structure(number, shown, name, kind)
        except DebugInfoError as refused:
            if refused.code != "FC0905":
                raise
            return UnknownType(shown, None, refused.what)

    def _structure(self, number: int, shown: str, name: str, kind: str) -> Type:
        layout = self.layouts.of(number)
        value = kind == "value"
        header = 0 if value else self._runtime.fields
        own = self.closed.instance(number).assembly
        members = [self._member(one, header, layout.repeated, name, own) for one in layout.fields]
        reckoned = self._reckoned(name, members)
        above = -1 if value else self.closed.base(number)
        if above >= 0 and self.closed.name(above) not in ROOTS:
            members.insert(0, Member("", self.object(above), ByteOffset(0), None, True))
        size = ByteSize(header + layout.size)
        known = self._runtime.sequences.get(name)
        if known is not None:
            by_field = dict(zip(layout.fields, members[-len(layout.fields) :], strict=True))
            named = {field.name: member for field, member in by_field.items()}
            count = named.get(known[0])
            items = next((named[one] for one in known[1:] if one in named), None)
            if count is not None and items is not None:
                (element,) = self.closed.instance(number).arguments
                text = value and self.closed.types[element] == Code("char")
                return SequenceType(shown, size, tuple(members), count, items, text, value)
        members.sort(key=lambda member: member.offset)  # the runtime sorts fields by their size
        said = self._runtime.windows.get(name)
        if said is not None and (window := self._window(number, shown, members, size, said)):
            return window
        notation = self._runtime.notations.get(name, "")
        kind = "struct" if value else "class"
        return StructType(shown, kind, size, tuple(members), notation=notation, reckoned=reckoned)

    def _window(
        self,
        number: int,
        shown: str,
        members: list[Member],
        size: ByteSize,
        said: Mapping[str, Any],
    ) -> SequenceType | None:
        # A part of an array; None where a version has other fields, or nothing tells the array.
        named = {member.name: member for member in members}
        if not all(said[one] in named for one in ("count", "items", "start")):
            return None
        count, items, start = (named[said[one]] for one in ("count", "items", "start"))
        value = self.closed.kind(number) == "value"
        of_any = bool(said.get("of_any"))
        if of_any:
            (element,) = self.closed.instance(number).arguments
            if self.header is None or not self.closed.is_plain(element):
                return None
            array = self.variable(self.closed.number(Items(element, 0)))
            items = Member(items.name, array, items.offset)
            bits = BitField(BitOffset(8 * start.offset), BitSize(INDEX_BITS))
            start = Member(start.name, start.type, start.offset, bits)
        window = Window(start, bool(said.get("around")), of_any)
        return SequenceType(shown, size, tuple(members), count, items, value=value, window=window)

    def _reckoned(self, name: str, members: list[Member]) -> tuple[Member, ...]:
        # Properties that take one field from another. A version that lacks the second counts in
        # the first what is there.
        named = {member.name: at for at, member in enumerate(members)}
        found = []
        for asked, (first, second) in self._runtime.differences.get(name, {}).items():
            if first in named and second in named:
                both = members[named[first]], members[named[second]]
                made = DifferenceType("int", ByteSize(NUMBERS["int"]), *both)
                found.append(Member(asked, self.intern(made), ByteOffset(0)))
            elif first in named:
                one = members[named[first]]
                members[named[first]] = Member(one.name, one.type, one.offset, also=asked)
        return tuple(found)

    def is_tuple(self, number: int) -> bool:
        """Whether a type is a tuple of C#."""
        return self.closed.name(number).startswith(TUPLE)

    def named(self, tuple_id: TypeId, names: tuple[str, ...]) -> TypeId:
        """A tuple whose elements have names of the source besides their own."""
        made = self.type(tuple_id)
        if not isinstance(made, StructType) or not any(names):
            return tuple_id
        called = {f"Item{number}": name for number, name in enumerate(names[:OWN_ITEMS], 1)}
        members = tuple(
            [
                Member(one.name, one.type, one.offset, also=called.get(one.name, ""))
                for one in made.members
            ]
        )
        return self.intern(StructType(made.name, made.kind, made.size, members))

    def _member(
        self, field: Field, header: int, repeated: int, holder: str, assembly: Assembly
    ) -> Member:
        name = field.name
        if name.startswith(BACKING[1]) and name.endswith(BACKING[0]):
            name = name[1 : -len(BACKING[0])]
        properties = self._runtime.properties.get(holder, {})
        also = next((one for one, behind in properties.items() if behind == field.name), "")
        kind = self.variable(field.type)
        if self.is_tuple(field.type):
            kind = self.named(kind, assembly.tuple_names(field.row))
        if repeated > 1:
            each = self.layouts.of(field.type).size
            kind = self.intern(ArrayType("", kind, repeated, ByteSize(each * repeated)))
        return Member(name, kind, ByteOffset(header + field.offset), None, False, also)

    def _string(self) -> Type:
        places = self._runtime.string
        length = Member("Length", self.intern(_number("int")), ByteOffset(places.length))
        units = self.intern(ArrayType("", self.intern(_number("char")), None, None))
        text = Member("Chars", units, ByteOffset(places.text))
        return SequenceType("string", None, (length, text), length, text, text=True)

    def _array(self, number: int, made: Items) -> Type:
        places = self._runtime.array
        shown = self.closed.spelled(number)
        integer = self.intern(_number("int"))
        length = Member("Length", integer, ByteOffset(places.length))
        if made.rank == 0:
            items = self.intern(ArrayType("", self.variable(made.element), None, None))
            elements = Member("Elements", items, ByteOffset(places.elements))
            return SequenceType(shown, None, (length, elements), length, elements)
        bounds = self._bounds(min(made.rank, MOST_DIMENSIONS), integer)
        start = places.elements + made.rank * places.elements_per_dimension
        items = self.intern(ArrayType("", self.variable(made.element), None, None))
        elements = Member("Elements", items, ByteOffset(start))
        ways: tuple[tuple[Member, ...], ...] = tuple([(one,) for one in bounds])
        if places.bounds is not None:
            behind = StructType("bounds", "struct", ByteSize(8 * len(bounds)), tuple(bounds))
            pointer = self.intern(PointerType("", WORD, self.intern(behind)))
            step = Member("", pointer, ByteOffset(places.bounds), None, True)
            ways, bounds = tuple([(step, one) for one in bounds]), [step]
        members = (length, *bounds, elements)
        return SequenceType(shown, None, members, length, elements, dimensions=ways)

    def _bounds(self, rank: int, integer: TypeId) -> list[Member]:
        # The lengths of the dimensions: in the array, or alternating with lower bounds elsewhere.
        places = self._runtime.array
        first, each = (places.lengths, 4) if places.bounds is None else (0, 8)
        return [
            Member(f"Length{dimension}", integer, ByteOffset(first + each * dimension))
            for dimension in range(rank)
        ]

    def _enum(self, number: int, shown: str, under: str) -> Type:
        made = self.closed.instance(number)
        signed = under in SIGNED
        listed = []
        for name, value in made.assembly.constants(made.row):
            listed.append((name, int.from_bytes(value, "little", signed=signed)))
        flags = made.assembly.attribute(made.row, FLAGS) is not None
        return EnumType(shown, ByteSize(NUMBERS[under]), signed, tuple(listed), flags)


def _number(name: str) -> Type:
    if name == "void":
        return VoidType()
    if name == "typedref":
        return UnknownType(name, ByteSize(16), "what it refers to is known to the runtime only")
    size = ByteSize(NUMBERS[name])
    if name == "bool":
        return BoolType(name, size)
    if name == "char":
        return CharType(name, size, False)
    if name in ("float", "double"):
        return FloatType(name, size)
    return IntType(name, size, name in SIGNED)
