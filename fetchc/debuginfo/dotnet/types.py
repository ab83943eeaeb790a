"""Closed types of .NET as fetchc's types.

A class has two: the object itself, and the reference to it that variables hold, a pointer.
Source of layouts: :mod:`fetchc.debuginfo.dotnet.layout` and targets/runtime/dotnet.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.closed import Code, Instance, Items, Link
from fetchc.debuginfo.dotnet.layout import NUMBERS, Layouts
from fetchc.debuginfo.dotnet.spelling import spelled
from fetchc.diag.errors import DebugInfoError
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CharType,
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
)
from fetchc.record import assert_never
from fetchc.units import ByteOffset, ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.closed import ClosedTypes
    from fetchc.debuginfo.dotnet.layout import Field
    from fetchc.program.types import Type
    from fetchc.target.dotnet import Runtime

__all__ = ["DotnetTypes"]

WORD = ByteSize(8)
SIGNED = ("sbyte", "short", "int", "long", "nint")
ROOTS = ("System.Object", "System.ValueType", "System.Enum")
BY_REFERENCE = "System.ByReference`1"
BACKING = (">k__BackingField", "<")  # Roslyn's name of the field of an automatic property


class DotnetTypes:
    """Answers for the types of one program. Ids are even for objects, odd for references."""

    __slots__ = ("_ids", "_known", "_made", "_runtime", "closed", "layouts")

    def __init__(self, closed: ClosedTypes, runtime: Runtime) -> None:
        self.closed = closed
        self.layouts = Layouts(closed, runtime.layout)
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
        shown = spelled(self.closed, number)
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
        members = [self._member(field, header, layout.repeated, name) for field in layout.fields]
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
        return StructType(shown, "struct" if value else "class", size, tuple(members))

    def _member(self, field: Field, header: int, repeated: int, holder: str) -> Member:
        name = field.name
        if name.startswith(BACKING[1]) and name.endswith(BACKING[0]):
            name = name[1 : -len(BACKING[0])]
        properties = self._runtime.properties.get(holder, {})
        also = next((one for one, behind in properties.items() if behind == field.name), "")
        kind = self.variable(field.type)
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
        shown = spelled(self.closed, number)
        integer = self.intern(_number("int"))
        length = Member("Length", integer, ByteOffset(places.length))
        if made.rank == 0:
            items = self.intern(ArrayType("", self.variable(made.element), None, None))
            elements = Member("Elements", items, ByteOffset(places.elements))
            return SequenceType(shown, None, (length, elements), length, elements)
        members = [length]
        if places.lengths is not None:
            for dimension in range(min(made.rank, 32)):
                at = ByteOffset(places.lengths + 4 * dimension)
                members.append(Member(f"Length{dimension}", integer, at))
        size = ByteSize(places.elements + made.rank * places.elements_per_dimension)
        return StructType(shown, "class", size, tuple(members))

    def _enum(self, number: int, shown: str, under: str) -> Type:
        made = self.closed.instance(number)
        signed = under in SIGNED
        listed = []
        for name, value in made.assembly.constants(made.row):
            listed.append((name, int.from_bytes(value, "little", signed=signed)))
        return EnumType(shown, ByteSize(NUMBERS[under]), signed, tuple(listed))


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
