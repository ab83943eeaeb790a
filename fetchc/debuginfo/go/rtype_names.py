"""Names of Go's type descriptors: types by name, and the names that tell them apart.

Nothing lists types by name; but a type's name is in the file as a string, and its descriptor has
the string's offset. So both are searched for as bytes, and what is found is read as what it should
be.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import encode_number, uleb_bytes
from fetchc.debuginfo.dwarf.go_name_lookup import unescaped
from fetchc.debuginfo.go import rtypes
from fetchc.debuginfo.go.moduledata import Memory, module, supported_version
from fetchc.debuginfo.go.pclntab import function_table
from fetchc.debuginfo.go.rtypes import LABEL, Descriptors
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.go_symbol_names import ALIASES, INTEGERS, MOVED
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
from fetchc.quantities import Address, ByteOffset, ByteSize, TypeId
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from fetchc.debuginfo.dwarf.type_entries import TypeTable
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.elf.headers import Section
    from fetchc.debuginfo.go.rtypes import Descriptor
    from fetchc.program.types import Type

__all__ = [
    "FIRST",
    "Shapes",
    "descriptor_of",
    "descriptors_of",
    "interface_tables",
    "label",
    "linker_name",
    "named",
]

# ------------------------------------------------------------------------------
# Types of a Go program without debug information, out of the run time's descriptors.
#
# A type's id is the address of its descriptor, above all ids of debug information: a program may
# have that of C beside it. Names are as the linker writes them: with the whole import path,
# ``[]example.com/zone%2ev2.Record``; a structure or an interface without a name, and what is in a
# type's arguments, as ``%T`` prints it.

FIRST = 1 << 62  # what is added to an address; no file is so long

_DEEPEST = 64  # hops of a type's name; only a cyclic, hostile type has more
_OF_SHAPES = "go.shape"  # no package: the placeholder of a type argument in generic code
_NUMBERS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "word": 0}  # bytes; a word has the machine's
_WAYS = {1: "<-chan ", 2: "chan<- ", 3: "chan "}


class Shapes:
    """Program types by the address of their descriptor. ``interned`` has those without one."""

    __slots__ = ("_interned", "_types", "descriptors", "intern", "word")

    def __init__(self, descriptors: Descriptors, interned: TypeTable) -> None:
        self.descriptors = descriptors
        self.word = descriptors.memory.word_bytes
        self._interned = interned
        self.intern = interned.intern
        self._types: dict[int, Type] = {}

    def type(self, type_id: TypeId) -> Type:
        """The type with that descriptor; DebugInfoError FC0904 where it makes no sense."""
        if type_id < FIRST:
            return self._interned.type(type_id)
        found = self._types.get(type_id)
        if found is None:
            found = self._types[type_id] = self._type_of(self.descriptors.at(type_id - FIRST))
        return found

    def name(self, one: Descriptor) -> str:
        """Its name as the linker writes it."""
        return linker_name(self.descriptors, one)

    def _type_of(self, one: Descriptor) -> Type:
        name, size = self.name(one), ByteSize(one.size)
        kinds = rtypes
        if one.kind == kinds.BOOL:
            return BoolType(name, size)
        if kinds.INT <= one.kind <= kinds.UINTPTR:
            return IntType(name, size, one.kind <= kinds.INT64, INTEGERS[one.kind])
        if one.kind in (kinds.FLOAT32, kinds.FLOAT64):
            return FloatType(name, size)
        if one.kind in (kinds.COMPLEX64, kinds.COMPLEX128):
            return ComplexType(name, size)
        if one.kind == kinds.ARRAY:
            (element,) = one.parts
            each = self.descriptors.at(element).size
            if each * one.count != one.size:
                raise self.descriptors.error("an array of another size than its elements'", element)
            return ArrayType(name if one.named else "", _id(element), one.count, size)
        if one.kind == kinds.STRUCT:
            return self._structure(name, one)
        self._must_have(one, {kinds.STRING: 2, kinds.INTERFACE: 2, kinds.SLICE: 3}.get(one.kind, 1))
        return self._words(name, size, one)

    def _words(self, name: str, size: ByteSize, one: Descriptor) -> Type:
        kinds = rtypes
        if one.kind == kinds.STRING:
            return StringType(name, size, (self._pointer("str", "uint8"), self._count("len", 1)))
        if one.kind == kinds.SLICE:
            return self.slice_of(name, _id(one.parts[0]))
        if one.kind == kinds.INTERFACE:
            return self._interface(name, size, one)
        if one.kind == kinds.MAP:
            key, element = one.parts
            entries = _id(self.descriptors.entries(one))
            header = self._laid_out("swiss" if self.descriptors.swiss else "buckets", entries)
            return MapType(name, size, _id(key), _id(element), header)
        if one.kind == kinds.CHANNEL:
            buffer = self._pointer("buf", "", 2 * self.word)
            inside = (self._count("qcount", 0), self._count("dataqsiz", 1), buffer)
            header = self.intern(StructType("", "struct", ByteSize(3 * self.word), inside))
            return ChannelType(name, size, _id(one.parts[0]), header)
        if one.kind == kinds.FUNCTION:
            return PointerType(name, size, self.intern(FunctionType(name)))
        if one.kind == kinds.POINTER:
            return PointerType(name, size, _id(one.parts[0]))
        return PointerType(name, size, self.intern(VoidType()))  # unsafe.Pointer

    def _laid_out(self, row: str, entries: TypeId) -> TypeId:
        # The structure in a row of targets' maps.
        members, end = [], 0
        for part in table("runtime/go/program")["maps"][row].split():
            name, _, spelled = part.partition(":")
            what, size = spelled.lstrip("*"), self.word
            if what in _NUMBERS:
                size = _NUMBERS[what] or self.word
                inner = self.intern(IntType("", ByteSize(size), False))
            else:
                inner = entries if what == "entries" else self._laid_out(what, entries)
            for _ in range(spelled.count("*")):
                inner = self.intern(PointerType("", self._word(), inner))
            end += -end % min(size, self.word)
            members.append(Member(name, inner, ByteOffset(end)))
            end += size
        return self.intern(StructType("", "struct", ByteSize(end), tuple(members)))

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


def linker_name(descriptors: Descriptors, one: Descriptor, depth: int = 0) -> str:
    """The name of a type with whole import paths, their escapes and all."""
    if depth > _DEEPEST:
        raise descriptors.error("types nested too deeply", one.address)
    if one.named and one.package == _OF_SHAPES:
        return one.name
    if one.named:
        behind = one.name.partition("[")[0].partition(".")[2]
        rest = one.name[len(one.name.partition(".")[0]) :] if behind else ""
        return escaped_path(one.package) + rest if one.package and rest else one.name

    def inner(index: int) -> str:
        return linker_name(descriptors, descriptors.at(one.parts[index]), depth + 1)

    if one.kind == rtypes.POINTER:
        return f"*{inner(0)}"
    if one.kind == rtypes.SLICE:
        return f"[]{inner(0)}"
    if one.kind == rtypes.ARRAY:
        return f"[{one.count}]{inner(0)}"
    if one.kind == rtypes.MAP:
        return f"map[{inner(0)}]{inner(1)}"
    if one.kind == rtypes.CHANNEL and one.count in _WAYS:
        element = inner(0)
        both = one.count == 3 and element.startswith("<-")
        return _WAYS[one.count] + (f"({element})" if both else element)
    if one.kind == rtypes.FUNCTION:
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


_LONGEST = 256  # bytes of a package's name; people's are short
_IN_NAMES = frozenset(b"_*" + bytes(range(0x80, 0x100)))  # beside letters and digits
_MODIFIERS = 100  # `*` and `[]` before a name
_FLAGS = 1 << 4  # and above: no name has such flags


def named(shapes: Shapes, name: str, package: str) -> Iterator[TypeId]:
    """The types that a person calls ``name`` in code of ``package`` (import path, or empty)."""
    modifiers = []
    modifier, rest = _modifier(name)
    while modifier is not None:
        modifiers.append(modifier)
        name = rest
        modifier, rest = _modifier(name)
    if len(modifiers) > _MODIFIERS:
        return
    for found in _unmodified(shapes, name, package):
        inner: TypeId | None = found
        for each in reversed(modifiers):
            wrapped = None if inner is None else _around(shapes, each, inner)
            inner = None if wrapped is None else shapes.intern(wrapped)
        if inner is not None:
            yield inner


def _unmodified(shapes: Shapes, name: str, package: str) -> Iterator[TypeId]:
    wanted = ALIASES.get(name, name)
    seen = set()
    for one in _called(shapes.descriptors, wanted, package):
        if one.address not in seen:
            seen.add(one.address)
            yield TypeId(FIRST + one.address)
    if not seen and name in MOVED:
        yield from named(shapes, MOVED[name], package)


def _modifier(name: str) -> tuple[str | None, str]:
    # `*`, `[]` or `12` of `[12]`, and the type after it.
    if name.startswith("*"):
        return "*", name[1:].lstrip()
    if name.startswith("["):
        count, bracket, rest = name[1:].partition("]")
        if bracket and (not count or (count.isascii() and count.isdecimal())):
            return count or "[]", rest.lstrip()
    return None, name


def _around(shapes: Shapes, modifier: str, inner: TypeId) -> Type | None:
    word = ByteSize(shapes.word)
    if modifier == "*":
        return PointerType("", word, inner)
    if modifier == "[]":
        return shapes.slice_of("", inner)
    each = getattr(shapes.type(inner), "size", None)
    return (
        None
        if each is None
        else ArrayType("", inner, int(modifier), ByteSize(each * int(modifier)))
    )


def descriptor_of(shapes: Shapes, resolved: Type) -> Descriptor | None:
    """The descriptor of a pointer, slice or array whose element type has one; None without."""
    inner = (
        resolved.target
        if isinstance(resolved, PointerType)
        else getattr(resolved, "element", TypeId(-1))
    )
    if inner < FIRST:
        return None
    descriptors = shapes.descriptors
    modifier = "*"
    if isinstance(resolved, SliceType):
        modifier = "[]"
    elif isinstance(resolved, ArrayType):
        modifier = f"[{resolved.count}]"
    found = _exactly(descriptors, modifier + descriptors.at(inner - FIRST).name)
    return next((one for one in found if one.parts[:1] == (inner - FIRST,)), None)


def label(
    descriptors: Descriptors, one: Descriptor, described: Callable[[str], Collection[str]]
) -> str:
    """The name of a type as ``%T`` prints it, or as the linker where that means several types.

    ``described`` gives the whole names of the types that the debug information has by a name.
    """
    for each in _named_in(descriptors, one):
        others = _exactly(descriptors, each.name)
        if len(described(each.name)) > 1 or any(it.package != each.package for it in others):
            return unescaped(linker_name(descriptors, one))
    return one.name


def _named_in(descriptors: Descriptors, one: Descriptor) -> Iterator[Descriptor]:
    # The types of packages that the name of a type has in it, each once.
    seen: set[int] = set()
    waiting = [one.address]
    while waiting:
        address = waiting.pop()
        if address not in seen:
            seen.add(address)
            found = descriptors.at(address)
            if not found.named:
                waiting += found.parts
            elif found.package:
                yield found


def _called(descriptors: Descriptors, wanted: str, package: str) -> Iterator[Descriptor]:
    plain = unescaped(wanted)
    head = plain.partition("[")[0]
    last = head.rfind(".")
    if last > head.rfind("/"):
        # Where the package's path ends cannot be seen; the type's own name has no dot.
        whole, short = [], []
        for one in _ending(descriptors, plain[last:]):
            if not one.named:
                continue
            full = unescaped(linker_name(descriptors, one))
            if full == plain:
                whole.append(one)
            elif one.name == plain or full.endswith("/" + plain):
                short.append(one)
        own = [one for one in short if _is_of(descriptors, one, package)]
        yield from (
            own or whole or short or _exactly(descriptors, plain)
        )  # chan main.T, func(main.T)
        return
    found = False
    for one in _exactly(descriptors, plain):
        found = True
        yield one
    if package and not found:
        full = f"{unescaped(package)}.{plain}"
        for one in _ending(descriptors, f".{plain}"):
            if unescaped(linker_name(descriptors, one)) == full:
                yield one


def _is_of(descriptors: Descriptors, one: Descriptor, package: str) -> bool:
    full = unescaped(linker_name(descriptors, one))
    return bool(package) and full == f"{unescaped(package)}.{full[full.rfind('.') + 1 :]}"


def _ending(descriptors: Descriptors, ending: str) -> Iterator[Descriptor]:
    """Types with a name that ends so, after the name of a package and nothing else."""
    needle = ending.encode("utf-8", "surrogateescape")
    window, size = _names(descriptors)
    for at in window.find_all(needle):
        end = at + len(needle)
        if end > size:
            return
        before = window.bytes_between(max(0, at - _LONGEST), at)
        start = len(before)
        while start and (before[start - 1 : start].isalnum() or before[start - 1] in _IN_NAMES):
            start -= 1
            name = _beginning(descriptors, before[:start], end - at + len(before) - start)
            if name is not None:
                yield from _described(descriptors, at - len(before) + name)


def _exactly(descriptors: Descriptors, text: str) -> Iterator[Descriptor]:
    """Types of exactly that name, which may be stored with a star in front."""
    needle = text.encode("utf-8", "surrogateescape")
    window, size = _names(descriptors)
    for spelled in (needle, b"*" + needle) if needle else ():
        for at in window.find_all(spelled):
            if at + len(spelled) > size:
                break
            before = window.bytes_between(max(0, at - 4), at)
            name = _beginning(descriptors, before, len(spelled))
            if name is not None:
                described = _described(descriptors, at - len(before) + name)
                yield from (one for one in described if one.name == text)


def _names(descriptors: Descriptors) -> tuple[Section, int]:
    # The part of the file that has descriptors and names.
    window = descriptors.memory.elf.window(LABEL, Address(descriptors.start))
    return window, min(descriptors.end - descriptors.start, window.size)


def _beginning(descriptors: Descriptors, before: bytes, length: int) -> int | None:
    """Offset in ``before`` of the name whose text, of ``length`` bytes, is right after it."""
    if descriptors.short_lengths:
        header = encode_number(length, 2, False)
    else:
        header = uleb_bytes(length)
    at = len(before) - len(header) - 1
    return at if at >= 0 and before.endswith(header) and before[at] < _FLAGS else None


def _described(descriptors: Descriptors, name: int) -> Iterator[Descriptor]:
    """The descriptors that refer to the name at that offset: after four words and 8 bytes."""
    memory = descriptors.memory
    window, size = _names(descriptors)
    behind = 4 * memory.word_bytes + 8
    for at in window.find_all(memory.packed(name, 4)):
        address = descriptors.start + at - behind
        if at + 4 > size or address % memory.word_bytes:
            continue
        try:
            one = descriptors.at(address)
            descriptors.must_fit(one)
        except DebugInfoError:
            continue  # the same four bytes, and no descriptor around them
        yield one


# ------------------------------------------------------------------------------
# The run time's types of a program, and which of them it converts to which interfaces.
#
# Source: Go 1.15 to 1.27, src/runtime/symtab.go (moduledata.itablinks; 1.27: itaboffset).


def descriptors_of(elf: Elf, architecture: str) -> Descriptors | None:
    """The descriptors of a program's types; None where Go did not link it.

    Raises DebugInfoError where the program's tables are damaged, or of an unknown version.
    """
    memory = Memory(elf, architecture)
    functions = function_table(memory)
    if functions is None:
        return None
    return Descriptors(memory, module(functions), supported_version(memory))


def interface_tables(elf: Elf, architecture: str) -> tuple[tuple[str, str], ...]:
    """Names of interfaces, each with that of a type that is converted to it, as the linker writes.

    None of a program whose tables are damaged, or of a version that is not supported.
    """
    try:
        descriptors = descriptors_of(elf, architecture)
        if descriptors is None:
            return ()
        return tuple(
            [
                (
                    linker_name(descriptors, descriptors.at(interface)),
                    linker_name(descriptors, descriptors.at(holder)),
                )
                for interface, holder in descriptors.interface_tables()
            ]
        )
    except DebugInfoError:
        return ()
