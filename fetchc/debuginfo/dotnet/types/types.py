"""Closed types of .NET as fetchc's types.

A class has two: the object itself, and the reference to it that variables hold, a pointer.
Source of layouts: :mod:`fetchc.debuginfo.dotnet.types.layout` and targets/runtime/dotnet.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.types.closed import Code, Instance, Items, Link
from fetchc.debuginfo.dotnet.types.layout import Layouts
from fetchc.debuginfo.dotnet.types.numbers import NUMBERS, SIGNED, number_type
from fetchc.debuginfo.dotnet.types.sequences import array, string, window
from fetchc.debuginfo.dotnet.types.tuples import further_items, renamed, with_names
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.types import (
    ArrayType,
    DifferenceType,
    EnumType,
    FunctionType,
    Member,
    PointerType,
    SequenceType,
    StructType,
    UnknownType,
)
from fetchc.quantities import ByteOffset, ByteSize, TypeId
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.signatures import Signature
    from fetchc.debuginfo.dotnet.types.arrangement import Field, Layout
    from fetchc.debuginfo.dotnet.types.closed import ClosedTypes
    from fetchc.program.types import Type
    from fetchc.target.dotnet_runtimes import Runtime

__all__ = ["DotnetTypes"]

WORD = ByteSize(8)
LONG_TUPLE = "System.ValueTuple`8"
ROOTS = ("System.Object", "System.ValueType", "System.Enum")
BY_REFERENCE = "System.ByReference`1"
FLAGS = "System.FlagsAttribute"
BUFFER = "__FixedBuffer"  # in the names of the types of fixed buffers
BACKING = (">k__BackingField", "<")  # Roslyn's name of the field of an automatic property
MADE = ("<", "$", "CS$<")  # how other names begin that a compiler made


class DotnetTypes:
    """Answers for the types of one program. Ids are even for objects, odd for references."""

    __slots__ = ("_ids", "_known", "_made", "closed", "header", "layouts", "runtime")

    def __init__(self, closed: ClosedTypes, runtime: Runtime) -> None:
        self.closed = closed
        self.layouts = Layouts(closed, runtime.layout)
        self.header = runtime.header
        self.runtime = runtime
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
                return number_type(made.name)
            case Link("function"):
                return PointerType("", WORD, self.intern(FunctionType("delegate*")))
            case Link(kind, target):
                pointed = self.variable(target)
                return PointerType("", WORD, pointed, reference=kind == "byref")
            case Items():
                return array(self, number, made)
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
        except DebugInfoError as refused:
            if refused.code != "FC0905":
                raise
            return UnknownType(shown, None, refused.what)

    def _vector(self, number: int, shown: str, name: str) -> Type:
        # Of numbers of its type argument.
        stated = self.runtime.layout.vector_bytes.get(name)  # none: the processor's own
        size = None if stated is None else ByteSize(stated)
        (argument,) = self.closed.instance(number).arguments
        element = self.closed.types[self.closed.plain(argument)]
        each = NUMBERS.get(element.name) if isinstance(element, Code) else None
        if each is None:
            return UnknownType(shown, size, "its elements are no numbers")
        count = None if size is None else size // each
        return ArrayType(shown, self.object(argument), count, size, vector=True)

    def _structure(self, number: int, shown: str, name: str, kind: str) -> Type:
        layout = self.layouts.of(number)
        value = kind == "value"
        header = 0 if value else self.runtime.fields
        members = [self.member(one, number, layout.repeated) for one in layout.fields]
        if any(one.name.startswith(MADE) or one.name[-1:] == "@" for one in members):
            from fetchc.debuginfo.dotnet.types.generated import as_in_source

            as_in_source(self, layout.fields, members)
        if layout.passed > 1:
            members.append(self._passed_along(layout, members[0]))
        reckoned = self._reckoned(name, members)
        if name == LONG_TUPLE:
            reckoned = further_items(self, members)
        if names := self.closed.instance(number).names:
            members, reckoned = renamed(members, names), tuple(renamed(reckoned, names))
        above = -1 if value else self.closed.base(number)
        if above >= 0 and self.closed.name(above) not in ROOTS:
            members.insert(0, Member("", self.object(above), ByteOffset(0), None, True))
        size = ByteSize(header + layout.size)
        known = self.runtime.sequences.get(name)
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
        said = self.runtime.windows.get(name)
        if said is not None and (part := window(self, number, shown, members, size, said)):
            return part
        notation = self.runtime.notations.get(name, "")
        kind = "struct" if value else "class"
        return StructType(shown, kind, size, tuple(members), notation=notation, reckoned=reckoned)

    def _reckoned(self, name: str, members: list[Member]) -> tuple[Member, ...]:
        # Properties that take one field from another. A version that lacks the second counts in
        # the first what is there.
        named = {member.name: at for at, member in enumerate(members)}
        found = []
        for asked, (first, second) in self.runtime.differences.get(name, {}).items():
            if first in named and second in named:
                both = members[named[first]], members[named[second]]
                made = DifferenceType("int", ByteSize(NUMBERS["int"]), *both)
                found.append(Member(asked, self.intern(made), ByteOffset(0)))
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
        made = self.closed.types[number]
        if not isinstance(made, Instance) or BUFFER not in self.closed.name(number):
            return None
        layout = self.layouts.of(number)
        if layout.repeated < 2:
            return None
        element = self.variable(layout.fields[0].type)
        return self.intern(ArrayType("", element, layout.repeated, ByteSize(layout.size)))

    def _enum(self, number: int, shown: str, under: str) -> Type:
        made = self.closed.instance(number)
        signed = under in SIGNED
        listed = []
        for name, value in made.assembly.constants(made.row):
            listed.append((name, int.from_bytes(value, "little", signed=signed)))
        flags = made.assembly.attribute(made.row, FLAGS) is not None
        return EnumType(shown, ByteSize(NUMBERS[under]), signed, tuple(listed), flags)
