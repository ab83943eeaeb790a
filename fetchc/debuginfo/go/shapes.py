"""Types of a Go program without debug information, out of the run time's descriptors.

A type's id is the address of its descriptor, above all ids of debug information: a program may have
that of C beside it. Names are as the linker writes them: with the whole
import path, ``[]example.com/zone%2ev2.Record``; a structure or an interface without a name, and
what is in a type's arguments, as ``%T`` prints it.
"""

from __future__ import annotations

from fetchc.debuginfo.go import descriptors
from fetchc.program.go_symbol_names import INTEGERS
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    ComplexType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    Member,
    PointerType,
    SliceType,
    StringType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteOffset, ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.types.table import TypeTable
    from fetchc.debuginfo.go.descriptors import Descriptor, Descriptors
    from fetchc.program.types import Type

__all__ = ["FIRST", "Shapes", "linker_name"]

FIRST = 1 << 62  # what is added to an address; no file is so long

_DEEPEST = 64  # hops of a type's name; only a cyclic, hostile type has more
_OF_SHAPES = "go.shape"  # no package: what stands for a type argument in generic code
_WAYS = {1: "<-chan ", 2: "chan<- ", 3: "chan "}


class Shapes:
    """Program types by the address of their descriptor. ``made`` are those without one."""

    __slots__ = ("_known", "_made_types", "descriptors", "intern", "word")

    def __init__(self, known: Descriptors, made: TypeTable) -> None:
        self.descriptors = known
        self.word = known.memory.word_bytes
        self._made_types = made
        self.intern = made.intern
        self._known: dict[int, Type] = {}

    def type(self, type_id: TypeId) -> Type:
        """The type with that descriptor; DebugInfoError FC0904 where it makes no sense."""
        if type_id < FIRST:
            return self._made_types.type(type_id)
        found = self._known.get(type_id)
        if found is None:
            found = self._known[type_id] = self._made(self.descriptors.at(type_id - FIRST))
        return found

    def name(self, one: Descriptor) -> str:
        """Its name as the linker writes it."""
        return linker_name(self.descriptors, one)

    def _made(self, one: Descriptor) -> Type:
        name, size = self.name(one), ByteSize(one.size)
        known = descriptors
        if one.kind == known.BOOL:
            return BoolType(name, size)
        if known.INT <= one.kind <= known.UINTPTR:
            return IntType(name, size, one.kind <= known.INT64, INTEGERS[one.kind])
        if one.kind in (known.FLOAT32, known.FLOAT64):
            return FloatType(name, size)
        if one.kind in (known.COMPLEX64, known.COMPLEX128):
            return ComplexType(name, size)
        if one.kind == known.ARRAY:
            (element,) = one.parts
            each = self.descriptors.at(element).size
            if each * one.count != one.size:
                raise self.descriptors.error("an array of another size than its elements'", element)
            return ArrayType(name if one.named else "", _id(element), one.count, size)
        if one.kind == known.STRUCT:
            return self._structure(name, one)
        self._must_have(one, {known.STRING: 2, known.INTERFACE: 2, known.SLICE: 3}.get(one.kind, 1))
        return self._words(name, size, one)

    def _words(self, name: str, size: ByteSize, one: Descriptor) -> Type:
        known = descriptors
        if one.kind == known.STRING:
            return StringType(name, size, (self._pointer("str", "uint8"), self._count("len", 1)))
        if one.kind == known.SLICE:
            return self.slice_of(name, _id(one.parts[0]))
        if one.kind == known.INTERFACE:
            return self._interface(name, size, one)
        if one.kind == known.MAP:
            key, element = one.parts
            header = self.intern(StructType("", "struct", self._word(), (self._count("count", 0),)))
            return MapType(name, size, _id(key), _id(element), header)
        if one.kind == known.CHANNEL:
            buffer = self._pointer("buf", "", 2 * self.word)
            inside = (self._count("qcount", 0), self._count("dataqsiz", 1), buffer)
            header = self.intern(StructType("", "struct", ByteSize(3 * self.word), inside))
            return ChannelType(name, size, _id(one.parts[0]), header)
        if one.kind == known.FUNCTION:
            return PointerType(name, size, self.intern(FunctionType(name)))
        if one.kind == known.POINTER:
            return PointerType(name, size, _id(one.parts[0]))
        return PointerType(name, size, self.intern(VoidType()))  # unsafe.Pointer

    def slice_of(self, name: str, element: TypeId) -> SliceType:
        """A slice of ``element``."""
        pointer = self.intern(PointerType("", self._word(), element))
        first = Member("array", pointer, ByteOffset(0))
        members = (first, self._count("len", 1), self._count("cap", 2))
        return SliceType(name, ByteSize(3 * self.word), element, members)

    def _must_have(self, one: Descriptor, words: int) -> None:
        if one.size != words * self.word:
            raise self.descriptors.error(f"`{one.name}` of {one.size} bytes", one.address)

    def _structure(self, name: str, one: Descriptor) -> Type:
        members = []
        for field in one.fields:
            inner = self.descriptors.at(field.type)
            if field.offset + inner.size > one.size:
                raise self.descriptors.error("a field beyond its structure", one.address)
            members.append(
                Member(field.name, _id(field.type), ByteOffset(field.offset), None, field.embedded)
            )
        return StructType(name, "struct", ByteSize(one.size), tuple(members))

    def _interface(self, name: str, size: ByteSize, one: Descriptor) -> Type:
        # An empty one has the dynamic type itself, others a table that names it second.
        # Source: Go 1.15 to 1.27, runtime/runtime2.go, internal/abi/iface.go (ITab).
        word = self._pointer("_type", "")
        data = self._pointer("data", "", self.word)
        if one.count:
            inside = Member("_type", word.type, ByteOffset(self.word))
            table = StructType("runtime.itab", "struct", ByteSize(2 * self.word), (inside,))
            pointer = self.intern(PointerType("", self._word(), self.intern(table)))
            word = Member("tab", pointer, ByteOffset(0))
        return InterfaceType(name, size, one.count == 0, (word, data))

    def _word(self) -> ByteSize:
        return ByteSize(self.word)

    def _count(self, name: str, index: int) -> Member:
        number = self.intern(IntType("int", self._word(), True))
        return Member(name, number, ByteOffset(index * self.word))

    def _pointer(self, name: str, target: str, offset: int = 0) -> Member:
        inner = IntType(target, ByteSize(1), False) if target else VoidType()
        pointer = self.intern(PointerType("", self._word(), self.intern(inner)))
        return Member(name, pointer, ByteOffset(offset))


def _id(address: int) -> TypeId:
    return TypeId(FIRST + address)


def linker_name(known: Descriptors, one: Descriptor, depth: int = 0) -> str:
    """The name of a type with whole import paths, their escapes and all."""
    if depth > _DEEPEST:
        raise known.error("types nested too deeply", one.address)
    if one.named and one.package == _OF_SHAPES:
        return one.name
    if one.named:
        behind = one.name.partition("[")[0].partition(".")[2]
        rest = one.name[len(one.name.partition(".")[0]) :] if behind else ""
        return escaped_path(one.package) + rest if one.package and rest else one.name

    def inner(index: int) -> str:
        return linker_name(known, known.at(one.parts[index]), depth + 1)

    if one.kind == descriptors.POINTER:
        return f"*{inner(0)}"
    if one.kind == descriptors.SLICE:
        return f"[]{inner(0)}"
    if one.kind == descriptors.ARRAY:
        return f"[{one.count}]{inner(0)}"
    if one.kind == descriptors.MAP:
        return f"map[{inner(0)}]{inner(1)}"
    if one.kind == descriptors.CHANNEL and one.count in _WAYS:
        element = inner(0)
        both = one.count == 3 and element.startswith("<-")
        return _WAYS[one.count] + (f"({element})" if both else element)
    if one.kind == descriptors.FUNCTION:
        return _signature(one, [inner(index) for index in range(len(one.parts))])
    return one.name


def _signature(one: Descriptor, names: list[str]) -> str:
    taken, given = names[: one.count], names[one.count :]
    if one.variadic and taken:
        taken[-1] = "..." + taken[-1].removeprefix("[]")
    results = ", ".join(given)
    behind = f" ({results})" if len(given) > 1 else f" {results}" if given else ""
    return f"func({', '.join(taken)}){behind}"


def escaped_path(path: str) -> str:
    """An import path as the linker writes it: dots of its last element, and marks, escaped.

    Source: Go, src/cmd/internal/objabi/path.go (PathToPrefix).
    """
    last = path.rfind("/") + 1
    return "".join(
        f"%{ord(each):02x}"
        if each <= " " or each in '%"\x7f' or (each == "." and at >= last)
        else each
        if each < "\x7f"
        else "".join(f"%{byte:02x}" for byte in each.encode())
        for at, each in enumerate(path)
    )
