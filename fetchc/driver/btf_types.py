"""Types of a program as BTF: those asked for, and all that they lead to."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.driver.function_lookup import find_function
from fetchc.driver.type_layouts import named_types, types_checker
from fetchc.emit.btf_file import (
    MOST_MEMBERS,
    VOID,
    WIDEST_OFFSET,
    Aggregate,
    Alias,
    Array,
    Declaration,
    Enumeration,
    Floating,
    Function,
    Integer,
    Pointer,
    Prototype,
    Qualifier,
    Slot,
    encode,
    identifiers,
    merged,
)
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    CharType,
    ComplexType,
    DeclaredType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    MapType,
    NamedType,
    PointerType,
    QualifiedType,
    StructType,
    VoidType,
)
from fetchc.quantities import TypeId
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.check.checker import Checker
    from fetchc.emit.btf_file import BtfType
    from fetchc.program import entities
    from fetchc.program.protocol import Program
    from fetchc.program.types import Member, Type

__all__ = ["BtfFile", "btf_of"]

# Names of C by the bytes that a FLOAT and an INT may have, an ENUM up to 8.
_FLOATS = {2: "_Float16", 4: "float", 8: "double", 12: "long double", 16: "long double"}
_SIGNED = {1: "signed char", 2: "short int", 4: "int", 8: "long long int", 16: "__int128"}
_UNSIGNED = {
    1: "unsigned char", 2: "short unsigned int", 4: "unsigned int", 8: "long long unsigned int",
    16: "unsigned __int128",
}  # fmt: skip
_IN_C = {"char": 1, "_Bool": 1, "short": 2, "float": 4, "double": 8, "__int128": 16}
_LARGEST = 1 << 32  # bytes: no array has as many
_BYTE = Integer("unsigned char", 1, False, False)
_INDEX = Integer("__ARRAY_SIZE_TYPE__", 4, False, False)


class BtfFile(Record):
    """A file of BTF.

    ``types`` is how many it has. ``names`` are those that it spells otherwise than the program,
    with the spelling in the file. ``left_out`` are members that no BTF can hold, and why.
    """

    data: bytes
    types: int
    names: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]


def btf_of(program: Program, globs: Sequence[str], functions: Sequence[str]) -> BtfFile:
    """The types whose names match ``globs``, prototypes of ``functions``, and what they lead to.

    Raises CompileError where a name is unknown: FC0204 for a type, FC0202 for a function.
    """
    converter = _Converter(types_checker(program))
    for glob in globs:
        found = named_types(program, glob)
        if not found:
            raise _unknown(glob)
        for type_id in found:
            converter.number(type_id)
    for name in functions:
        converter.function(find_function(program, name)[0])
    return converter.file(program.little_endian)


def _unknown(name: str) -> Exception:
    return reject(
        "FC0204",
        f"no type matches `{name}`",
        Span(0, len(name)),
        "unknown type",
        help=f"list the types: `fetchc types '*{name.strip('*')}*'`",
    )


class _Converter:
    # Names are those of the program until all are known: `file` makes identifiers of them.
    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._program = checker.program
        self._types: list[BtfType] = []
        self._numbers: dict[TypeId, int] = {}
        self._pending: list[tuple[int, TypeId]] = []
        self._own: dict[BtfType, int] = {}  # which are of no type of the program
        self._left_out: dict[tuple[str, str], None] = {}

    def number(self, type_id: TypeId) -> int:
        """The number of a type in the file."""
        resolved = self._program.type(type_id)
        for _ in range(64):  # qualifiers that BTF does not have, and declarations
            if isinstance(resolved, QualifiedType) and resolved.qualifier not in _QUALIFIERS:
                type_id = resolved.target
            elif isinstance(resolved, DeclaredType):
                completed = self._program.completed(type_id)
                if completed == type_id:
                    break
                type_id = completed
            else:
                break
            resolved = self._program.type(type_id)
        if isinstance(resolved, VoidType):
            return VOID
        found = self._numbers.get(type_id)
        if found is None:
            self._types.append(_BYTE)  # its place
            found = self._numbers[type_id] = len(self._types)
            self._pending.append((found, type_id))
        return found

    def function(self, function: entities.Function) -> None:
        """Add the prototype of a function, with what the declaration says."""
        parameters: list[Slot] = []
        results: list[Slot] = []
        for each in self._program.parameters(function):
            if self._checker.size(each.type) is None:
                self._leave_out(f"{function.name}({each.name})", each.type)
                continue
            slot = Slot(each.name, self.number(each.type))
            (results if each.kind == "result" else parameters).append(slot)
        declared = self._program.result(function)
        result = VOID if declared is None else self.number(declared)
        if len(results) == 1:
            result = results[0].type
        elif results:
            self._left_out[f"{function.name}()", "BTF has one result, and this has several"] = None
        prototype = self._add(Prototype(result, tuple(parameters)))
        self._add(Function(function.name, prototype))

    def _add(self, each: BtfType) -> int:
        found = self._own.get(each)
        if found is None:
            self._types.append(each)
            found = self._own[each] = len(self._types)
        return found

    def file(self, little_endian: bool) -> BtfFile:
        """All that was asked for."""
        while self._pending:
            place, type_id = self._pending.pop()
            converted = self._converted(type_id, self._program.type(type_id))
            self._types[place - 1] = converted
        types, _ = merged(self._types)
        names = identifiers([each.name for each in types if isinstance(each, _NAMED) and each.name])
        spelled = [_respelled(each, names) for each in types]
        changed = {(one, names[one]) for one in names if one != names[one]}
        shapes = [each for each in types if isinstance(each, Aggregate)]
        within = {one.type for each in shapes for one in each.members if not one.name}
        for number, each in enumerate(types, 1):
            if isinstance(each, Aggregate | Enumeration) and number not in within:
                changed.update(_respelled_members(types, spelled, number, each.name))
        data = encode(spelled, little_endian)
        return BtfFile(data, len(types), tuple(sorted(changed)), tuple(sorted(self._left_out)))

    def _converted(self, type_id: TypeId, resolved: Type) -> BtfType:
        match resolved:
            case IntType(size=size, signed=signed) | CharType(size=size, signed=signed):
                if size in _SIGNED:
                    name = (_SIGNED if signed else _UNSIGNED)[size]
                    return self._number(type_id, Integer(name, size, signed, False))
            case BoolType(size=size) if size in _UNSIGNED:
                name = "_Bool" if size == 1 else _UNSIGNED[size]
                return self._number(type_id, Integer(name, size, False, True))
            case FloatType(size=size) if size in _FLOATS:
                return self._number(type_id, Floating(_FLOATS[size], size))
            case ComplexType(size=size) if size // 2 in _FLOATS:
                half = self._add(Floating(_FLOATS[size // 2], size // 2))
                parts = (Slot("real", half), Slot("imag", half, 4 * size))
                return Aggregate(self._spelled(type_id), False, size, parts)
            case EnumType(size=size, signed=signed, enumerators=listed) if size in (1, 2, 4, 8):
                if len(listed) <= MOST_MEMBERS:
                    return Enumeration(self._tag(resolved.name), size, signed, listed)
            case PointerType(size=size, target=target) if size == self._program.word_bytes:
                return Pointer(self.number(target))
            case ArrayType(element=element, count=count):
                each = self._checker.size(element)
                if each is not None and each * (count or 0) < _LARGEST:
                    return Array(self.number(element), self._add(_INDEX), count or 0)
                if each is not None:
                    why = "BTF has arrays of less than 4 GB: it has no elements there"
                    self._left_out[self._checker.spell(type_id), why] = None
                    return Array(self.number(element), self._add(_INDEX), 0)
            case NamedType(name=name, target=target):
                return Alias(name or "unnamed", self.number(target))
            case QualifiedType(qualifier=qualifier, target=target):
                return Qualifier(qualifier, self.number(target))
            case DeclaredType(name=name, kind=kind):
                return Declaration(self._tag(name) or "unnamed", kind == "union")
            case FunctionType():
                return Prototype(VOID, ())
            case _:
                return self._other(type_id, resolved)
        return self._bytes(type_id)

    def _number(self, type_id: TypeId, number: Integer | Floating) -> BtfType:
        # Its own name where that is C's for as many bytes; `int` of Go is not: a TYPEDEF.
        name = self._spelled(type_id) or number.name
        words = name.split()
        if not {*words} - {*_IN_C, "int", "long", "signed", "unsigned"}:
            size = next((_IN_C[word] for word in words if word in _IN_C), 4)
            if "double" not in words and "long" in words:
                size = 8 if words.count("long") > 1 else self._program.word_bytes
            if size == number.size or words == ["long", "double"]:
                return number.replaced(name=name)
        return Alias(name, self._add(number))

    def _other(self, type_id: TypeId, resolved: Type) -> BtfType:
        # What has members of its own; a map or a channel of Go is a pointer.
        if isinstance(resolved, MapType | ChannelType):
            return Pointer(self.number(resolved.header))
        members = self._checker.members_of(type_id)
        if isinstance(resolved, StructType):
            members += tuple([each.member for each in resolved.variants])
        size = self._checker.size(type_id)
        if not members and not isinstance(resolved, StructType):
            return self._bytes(type_id)
        name = self._spelled(type_id)
        slots: list[Slot] = []
        ends: list[int] = []  # in bits
        for each in members:
            slot = self._slot(name, each)
            if slot is not None:
                slots.append(slot)
                bits = slot.width or 8 * (self._checker.size(each.type) or 0)
                ends.append(slot.offset + bits)
        union = isinstance(resolved, StructType) and resolved.kind == "union"
        union = union and not any(one.offset for one in slots)
        whole = (max(ends, default=0) + 7) // 8 if size is None else size
        shown = self._tag(resolved.name) if isinstance(resolved, StructType) else name
        if not union:
            slots = self._beside(slots, ends, whole)
        return Aggregate(shown, union, whole, tuple(slots[:MOST_MEMBERS]))

    def _beside(self, slots: list[Slot], ends: list[int], size: int) -> list[Slot]:
        # In their order. C has no members that overlap outside of unions; C++ has (an empty base
        # class, a member in the padding of one), and the variants of Rust: these are structures
        # without names in a union.
        layers: list[tuple[int, list[Slot]]] = []
        for slot, end in sorted(zip(slots, ends, strict=True), key=lambda pair: pair[0].offset):
            for number, (before, layer) in enumerate(layers):
                if before <= slot.offset:
                    layers[number] = max(before, end), [*layer, slot]
                    break
            else:
                layers.append((end, [slot]))
        if len(layers) < 2:
            return [slot for _, layer in layers for slot in layer]
        parts = [Aggregate("", False, size, tuple(layer)) for _, layer in layers]
        each = tuple([Slot("", self._add(part)) for part in parts])
        return [Slot("", self._add(Aggregate("", True, size, each)))]

    def _slot(self, holder: str, member: Member) -> Slot | None:
        if self._checker.size(member.type) is None and not self._is_flexible(member.type):
            self._leave_out(f"{holder}.{member.name}", member.type)
            return None
        if member.bits is None:
            name, shape = member.name, self._checker.resolved(member.type)
            if not name and isinstance(shape, StructType):
                name = self._tag(shape.name)  # a base class of .NET
            return Slot(name, self.number(member.type), 8 * member.offset)
        if member.bits.offset >= WIDEST_OFFSET:
            why = "BTF has room for bit fields of the first 2 MB of a structure"
            self._left_out[f"{holder}.{member.name}", why] = None
            return None
        return Slot(member.name, self.number(member.type), member.bits.offset, member.bits.width)

    def _is_flexible(self, type_id: TypeId) -> bool:
        resolved = self._checker.resolved(type_id)
        return isinstance(resolved, ArrayType) and self._checker.size(resolved.element) is not None

    def _leave_out(self, path: str, type_id: TypeId) -> None:
        why = f"`{self._checker.spell(type_id)}` has no size"
        self._left_out[path, why] = None

    def _bytes(self, type_id: TypeId) -> BtfType:
        # A value that BTF has no kind of type for.
        size = self._checker.size(type_id) or 0
        return Array(self._add(_BYTE), self._add(_INDEX), size)

    def _spelled(self, type_id: TypeId) -> str:
        return self._tag(self._checker.spell(type_id))

    @staticmethod
    def _tag(name: str) -> str:
        # BTF says by the kind of a type what C says by a word before its name.
        for word in ("struct ", "union ", "enum ", "class "):
            name = name.removeprefix(word)
        return "" if name.startswith(("<", "(", "{")) else name


_QUALIFIERS = ("const", "volatile", "restrict")
_NAMED = (Aggregate, Alias, Declaration, Enumeration, Function)


def _respelled(each: BtfType, names: dict[str, str]) -> BtfType:
    match each:
        case Aggregate(name=name, members=members):
            return each.replaced(name=names.get(name, ""), members=_slots(members))
        case Enumeration(name=name, enumerators=listed):
            words = identifiers([text for text, _ in listed])
            renamed = tuple([(words[text], value) for text, value in listed])
            return each.replaced(name=names.get(name, ""), enumerators=renamed)
        case Alias(name=name) | Declaration(name=name) | Function(name=name):
            return each.replaced(name=names[name])
        case Prototype(parameters=parameters):
            return each.replaced(parameters=_slots(parameters))
        case _:
            return each


def _slots(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    names = identifiers([one.name for one in slots if one.name])
    found: list[Slot] = []
    times: dict[str, int] = {}
    for one in slots:
        name = names.get(one.name, "")
        count = times[name] = times.get(name, 0) + 1
        if count > 1 and name:  # `_` of Go may be several
            name = f"{name}_{count}"
        found.append(one.replaced(name=name))
    return tuple(found)


def _respelled_members(
    types: Sequence[BtfType], spelled: Sequence[BtfType], number: int, holder: str
) -> Iterator[tuple[str, str]]:
    # Members and enumerators whose names changed, after the name of the type that has them.
    match types[number - 1], spelled[number - 1]:
        case Aggregate(members=old), Aggregate(members=new):
            for one, other in zip(old, new, strict=True):
                if not one.name:
                    yield from _respelled_members(types, spelled, one.type, holder)
                elif one.name != other.name:
                    yield f"{holder}.{one.name}", other.name
        case Enumeration(enumerators=listed), Enumeration(enumerators=renamed):
            for (before, _), (after, _) in zip(listed, renamed, strict=True):
                if before != after:
                    yield f"{holder}.{before}", after
        case _:
            pass
