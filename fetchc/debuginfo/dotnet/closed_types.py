"""Closed generic types: a definition and its type arguments, by number.

Every type gets a number of its own, by which caches find it.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.assemblies import CORE_LIBRARIES, Assembly, MissingAssembly
from fetchc.debuginfo.dotnet.metadata_signatures import (
    SUFFIXES,
    Array,
    Defined,
    Foreign,
    Function,
    Generic,
    Parameter,
    Pointer,
    Primitive,
    SignatureReader,
    class_spelled,
)
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import ObjectHeader
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.debuginfo.dotnet.assemblies import References
    from fetchc.debuginfo.dotnet.dotnet_types import DotnetTypes
    from fetchc.debuginfo.dotnet.metadata_signatures import Signature
    from fetchc.debuginfo.dotnet.metadata_tables import Token
    from fetchc.program.protocol import ObjectTypes
    from fetchc.quantities import TypeId

__all__ = [
    "PRIMITIVE_TYPES",
    "Closed",
    "ClosedTypes",
    "Code",
    "DotnetObjects",
    "Instance",
    "Items",
    "Link",
    "definitions",
    "overriding",
]

DEEPEST = 64
MOST_SPELLED = 16  # levels of type arguments that are written out
# Types that signatures have a code for, by their names in the core library.
PRIMITIVE_TYPES = {
    "System.Boolean": "bool", "System.Char": "char", "System.SByte": "sbyte",
    "System.Byte": "byte", "System.Int16": "short", "System.UInt16": "ushort",
    "System.Int32": "int", "System.UInt32": "uint", "System.Int64": "long",
    "System.UInt64": "ulong", "System.Single": "float", "System.Double": "double",
    "System.IntPtr": "nint", "System.UIntPtr": "nuint",
}  # fmt: skip
CLASSES = {"string": "System.String", "object": "System.Object", "__Canon": "System.__Canon"}


class Code(Record):
    """A type that signatures have a code for: a number, void, or a typed reference."""

    name: str


class Instance(Record):
    """A class or structure, with the types for the parameters of it and of those around it.

    ``names``: what the source calls the elements of a tuple.
    """

    assembly: Assembly
    row: int
    arguments: tuple[int, ...]
    names: tuple[str, ...] = ()


class Items(Record):
    """An array: of one dimension from 0 on (``rank`` 0), or of ``rank`` dimensions."""

    element: int
    rank: int


class Link(Record):
    """``kind``: pointer, byref, or function, which has no target (-1)."""

    kind: str
    target: int


Closed = Code | Instance | Items | Link


class ClosedTypes:
    """The closed types of one program."""

    __slots__ = ("_bases", "_fields", "_numbers", "_values", "references", "types")

    def __init__(self, references: References) -> None:
        self.references = references
        self.types: list[Closed] = []
        self._numbers: dict[Closed, int] = {}
        self._bases: dict[int, int] = {}
        self._fields: dict[int, tuple[tuple[int, str, int], ...]] = {}
        self._values: dict[int, str] = {}

    def number(self, closed: Closed) -> int:
        """The number of a type."""
        found = self._numbers.get(closed)
        if found is None:
            found = self._numbers[closed] = len(self.types)
            self.types.append(closed)
        return found

    def code(self, name: str) -> int:
        """The number of a type that signatures have a code for."""
        if name in CLASSES:
            core = self.references.core()
            row = core.type_named(CLASSES[name])
            if not row and name == "__Canon":  # Mono's library has no word for all classes
                return self.code("object")
            if not row:
                raise core.broken(f"it has no `{CLASSES[name]}`")
            return self.number(Instance(core, row, ()))
        return self.number(Code(name))

    def close(
        self,
        assembly: Assembly,
        signature: Signature,
        of_type: tuple[int, ...] = (),
        of_method: tuple[int, ...] = (),
        depth: int = 0,
    ) -> int:
        """A signature with types for its parameters. Raises DebugInfoError FC0904, FC0907."""
        if depth > DEEPEST:
            raise assembly.broken("a type nested too deeply")

        def inner(one: Signature) -> int:
            return self.close(assembly, one, of_type, of_method, depth + 1)

        match signature:
            case Primitive(name):
                return self.code(name)
            case Defined(token):
                found, row = self.references.resolve(assembly, token)
                return self.number(Instance(found, row, ()))
            case Generic(of, arguments):
                if isinstance(of, Foreign):
                    raise assembly.broken("a type of another image's module")
                found, row = self.references.resolve(assembly, of.token)
                return self.number(Instance(found, row, tuple([inner(one) for one in arguments])))
            case Parameter(index, in_method):
                type_arguments = of_method if in_method else of_type
                if index >= len(type_arguments):
                    raise assembly.broken(f"type parameter {index} of {len(type_arguments)}")
                return type_arguments[index]
            case Pointer("array", target):
                return self.number(Items(inner(target), 0))
            case Pointer(kind, target):
                return self.number(Link(kind, inner(target)))
            case Array(element, rank):
                return self.number(Items(inner(element), rank))
            case Function():
                return self.number(Link("function", -1))
            case Foreign():
                raise assembly.broken("a type of another image's module")
            case _:
                assert_never(signature)

    def instance(self, number: int) -> Instance:
        """The class or structure of that number, which must be one."""
        found = self.types[number]
        assert isinstance(found, Instance)
        return found

    def is_plain(self, number: int) -> bool:
        """Whether it is a number, or a class or structure that takes no type arguments."""
        found = self.types[number]
        if isinstance(found, Instance):
            return not found.assembly.type_parameters(found.row)
        return isinstance(found, Code)

    def name(self, number: int) -> str:
        """The whole name of a class or structure; empty of other types."""
        found = self.types[number]
        return found.assembly.type_name(found.row) if isinstance(found, Instance) else ""

    def spelled(self, number: int, depth: int = 0) -> str:
        """A type as C# writes it."""
        closed = self.types[number]
        if depth > MOST_SPELLED:
            return "..."
        match closed:
            case Code(name):
                return name
            case Instance(assembly, row, arguments):
                inner = [self.spelled(one, depth + 1) for one in arguments]
                return class_spelled(assembly.type_name(row), inner)
            case Items():
                brackets = ""  # the outermost first, as in C#
                while isinstance(items := self.types[number], Items):
                    brackets += f"[{',' * (items.rank - 1)}]"
                    number = items.element
                return self.spelled(number, depth + 1) + brackets
            case Link("function"):
                return "delegate*"
            case Link(kind, target):
                return self.spelled(target, depth + 1) + SUFFIXES[kind]
            case _:
                assert_never(closed)

    def base(self, number: int) -> int:
        """The class that one is derived from; -1 if none."""
        found = self._bases.get(number)
        if found is None:
            instance = self.instance(number)
            extends = instance.assembly.metadata.row("TypeDef", instance.row)[3]
            token = instance.assembly.metadata.coded("TypeDefOrRef", extends)
            found = -1
            if token.number and token.table == "TypeSpec":
                blob = instance.assembly.metadata.row("TypeSpec", token.number)[0]
                reader = SignatureReader(
                    instance.assembly.metadata, instance.assembly.metadata.blob(blob)
                )
                found = self.close(instance.assembly, reader.type(), instance.arguments)
            elif token.number:
                where, row = self.references.resolve(instance.assembly, token)
                found = self.number(Instance(where, row, ()))
            if found >= 0 and not isinstance(self.types[found], Instance):
                raise instance.assembly.broken("a class derived from something that is no class")
            self._bases[number] = found
        return found

    def bases(self, number: int) -> list[int]:
        """A class and all that it is derived from, itself first."""
        found = [number]
        while (above := self.base(found[-1])) >= 0:
            if len(found) > DEEPEST:
                raise self.instance(number).assembly.broken("a class with too many bases")
            found.append(above)
        return found

    def kind(self, number: int) -> str:
        """``value``, ``enum``, ``class`` or ``interface`` of an Instance."""
        found = self._values.get(number)
        if found is None:
            found = self._values[number] = self._kind(number)
        return found

    def _kind(self, number: int) -> str:
        instance = self.instance(number)
        if instance.assembly.metadata.row("TypeDef", instance.row)[0] & 0x20:
            return "interface"
        if self.name(number) in ("System.ValueType", "System.Enum"):
            return "class"
        above = self.base(number)
        named = self.name(above) if above >= 0 else ""
        return {"System.ValueType": "value", "System.Enum": "enum"}.get(named, "class")

    def fields(self, number: int) -> tuple[tuple[int, str, int], ...]:
        """Row, name and type of the instance fields that a type itself declares."""
        found = self._fields.get(number)
        if found is None:
            instance = self.instance(number)
            own = instance.assembly
            found = self._fields[number] = tuple(
                [
                    (
                        row,
                        own.field_name(row),
                        self.close(own, own.field_type(row), instance.arguments),
                    )
                    for row in own.fields(instance.row)
                ]
            )
        return found

    def plain(self, number: int) -> int:
        """A number's code for enumerations and for the structures that stand for numbers."""
        for _ in range(DEEPEST):
            closed = self.types[number]
            if not isinstance(closed, Instance):
                return number
            if closed.assembly.name in CORE_LIBRARIES:
                code = PRIMITIVE_TYPES.get(self.name(number))
                if code is not None:
                    return self.code(code)
            if self.kind(number) != "enum":
                return number
            fields = self.fields(number)
            if len(fields) != 1:
                raise closed.assembly.broken(f"an enumeration with {len(fields)} fields")
            number = fields[0][2]
        return number


# ------------------------------------------------------------------------------
# Classes that are derived from others, by their definitions alone: type arguments are left out.

VIRTUAL, NEW_SLOT = 0x40, 0x100  # MethodAttributes: ECMA-335, II.23.1.10


def definitions(references: References, assembly: Assembly, row: int) -> list[tuple[Assembly, int]]:
    """A class and all that it is derived from, itself first."""
    found = [(assembly, row)]
    while len(found) < DEEPEST:
        metadata = assembly.metadata
        token = metadata.coded("TypeDefOrRef", metadata.row("TypeDef", row)[3])
        if not token.number:
            break
        if token.table == "TypeSpec":
            token = _of_instantiation(assembly, token)
        assembly, row = references.resolve(assembly, token)
        found.append((assembly, row))
    return found


def overriding(
    references: References, within: Assembly, base: tuple[Assembly, int], method: str
) -> list[int]:
    """Rows of the classes of an assembly that have a method of their own in place of that of
    ``base``.
    """
    offsets = within.metadata.names_at(method)
    found = []
    for number, (_, _, flags, name, *_) in enumerate(within.metadata.rows("MethodDef"), 1):
        if name in offsets and flags & (VIRTUAL | NEW_SLOT) == VIRTUAL:
            owner = within.owner(number)
            try:
                above = definitions(references, within, owner)[1:]
            except DebugInfoError:
                continue  # a base is in an assembly that is not at hand
            if base in above:
                found.append(owner)
    return found


def _of_instantiation(assembly: Assembly, token: Token) -> Token:
    metadata = assembly.metadata
    blob = metadata.blob(metadata.row("TypeSpec", token.number)[0])
    signature = SignatureReader(metadata, blob).type()
    if isinstance(signature, Generic) and isinstance(signature.of, Defined):
        return signature.of.token
    raise assembly.broken("a class derived from something that is no class")


# ------------------------------------------------------------------------------
# What objects of .NET are of, by their headers: an assembly's name, a row of its types.


class DotnetObjects:
    """Answers for the objects of one program; see :class:`fetchc.program.protocol.ObjectTypes`."""

    __slots__ = ("_types", "header")

    def __init__(self, types: DotnetTypes, header: Mapping[str, Any]) -> None:
        self._types = types
        self.header = ObjectHeader(
            type=tuple(header["type"]),
            assembly=tuple(header["assembly"]),
            element=tuple(header["element"]),
            row=tuple(header["row"]),
            rank=tuple(header["rank"]),
            vector=header["vector"],
            ranks=header["ranks"],
            each_rank=header["each_rank"],
        )

    def rank(self, wanted: TypeId) -> int | None:
        """The rank of an array type: 0 for a vector, else its dimensions; None for other types."""
        closed = self._closed(wanted)
        return closed.rank if isinstance(closed, Items) else None

    def comparable(self, wanted: TypeId) -> bool:
        """Whether an object's header identifies the type, and no other one."""
        number = self._types.number(wanted)
        if number is None:
            return False
        closed = self._types.closed.types[number]
        # Type arguments are not among what is compared.
        return self._types.closed.is_plain(closed.element if isinstance(closed, Items) else number)

    def _closed(self, wanted: TypeId) -> object:
        number = self._types.number(wanted)
        return None if number is None else self._types.closed.types[number]

    def fits(self, assembly: str, row: int, wanted: TypeId) -> bool:
        """Whether an object, or an element of an array, of a type is one of ``wanted``."""
        closed = self._types.closed
        number = self._types.number(wanted)
        assert number is not None
        target = closed.types[number]
        in_array = isinstance(target, Items)
        if isinstance(target, Items):
            number, target = target.element, closed.types[target.element]
        found = self._assembly(assembly)
        if found is None or not 0 < row <= found.metadata.count("TypeDef"):
            return False
        if isinstance(target, Code):
            # An enumeration in a box can be taken out as its number.
            dynamic = Instance(found, row, ())
            return not found.type_parameters(row) and closed.plain(closed.number(dynamic)) == number
        assert isinstance(target, Instance)
        bases = definitions(closed.references, found, row)
        # An array of numbers is no array of objects, though each number can be one.
        number = any(one.type_name(at) == "System.ValueType" for one, at in bases)
        if in_array and number and (found, row) != (target.assembly, target.row):
            return False
        return (target.assembly, target.row) in bases

    def name(self, assembly: str, row: int) -> str:
        """The name of a type; of one whose assembly is not found, assembly and row."""
        found = self._assembly(assembly)
        if found is None or not 0 < row <= found.metadata.count("TypeDef"):
            return f"{assembly}!{row:#x}"
        name = found.type_name(row)
        return PRIMITIVE_TYPES.get(name) or class_spelled(name, ())

    def _assembly(self, name: str) -> Assembly | None:
        try:
            return self._types.closed.references.assembly(name)
        except MissingAssembly:
            return None  # loaded from elsewhere: name() says so


if TYPE_CHECKING:

    def _are_types(objects: DotnetObjects) -> ObjectTypes:
        return objects
