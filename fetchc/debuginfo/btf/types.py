"""BTF's types become types of the vocabulary, one at a time.

A type's id is its BTF id, 0 for void; what BTF does not have (a cast's pointer, the target of a
pointer to void) gets a negative id. Source: Documentation/bpf/btf.rst of Linux, section 2.2.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.types import (
    USER,
    ArrayType,
    BitField,
    BoolType,
    CharType,
    DeclaredType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    Member,
    NamedType,
    PointerType,
    QualifiedType,
    StructType,
    UnknownType,
    VoidType,
)
from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize, TypeId
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from fetchc.debuginfo.btf.reader import Btf, Entry
    from fetchc.program.types import Type

    Reader = Callable[["BtfTypes", Entry], Type]

__all__ = ["AGGREGATES", "BtfTypes"]

SIGNED, BOOL = 1, 4  # encoding of INT
CHARACTERS = ("char", "signed char", "unsigned char")
TRANSPARENT = frozenset({"TYPEDEF", "CONST", "VOLATILE", "RESTRICT", "TYPE_TAG"})
AGGREGATES = {"STRUCT": "struct", "UNION": "union"}
DEEPEST = 64  # steps through names, qualifiers and rows of arrays; only a cycle has more


class BtfTypes:
    """The types of one kernel or module; grows by what is asked for."""

    __slots__ = ("_ids", "_made", "_types", "btf", "word_bytes")

    def __init__(self, btf: Btf, word_bytes: int) -> None:
        self.btf = btf
        self.word_bytes = word_bytes
        self._types: dict[int, Type] = {0: VoidType()}
        self._made: list[Type] = []
        self._ids: dict[Type, TypeId] = {}

    def type(self, type_id: TypeId) -> Type:
        """The type itself; DebugInfoError FC0904 where the table makes no sense."""
        if type_id < 0:
            return self._made[-1 - type_id]
        found = self._types.get(type_id)
        if found is None:
            entry = self.btf.entry(type_id)
            reader = READERS.get(entry.kind)
            if reader is None:
                what = f"type {type_id} is a {entry.kind}, which is no type of a value"
                raise DebugInfoError("FC0904", self.btf.path, what, ".BTF")
            found = self._types[type_id] = reader(self, entry)
        return found

    def intern(self, made: Type) -> TypeId:
        """The id of a type that BTF does not have; equal types share one."""
        known = self._ids.get(made)
        if known is None:
            self._made.append(made)
            known = self._ids[made] = TypeId(-len(self._made))
        return known

    def of_user(self, number: int) -> TypeId:
        """The pointer type ``number`` with the program's memory behind it; itself if it is none."""
        bare = self.bare(number)
        if bare is None or bare.kind != "PTR" or self.btf.kind(bare.value) == "TYPE_TAG":
            return TypeId(number)
        target = self.intern(QualifiedType(USER, TypeId(bare.value)))
        return self.intern(PointerType("", ByteSize(self.word_bytes), target))

    def bare(self, number: int) -> Entry | None:
        """The entry behind typedefs, qualifiers and tags; None for void."""
        for _ in range(DEEPEST):
            if not number:
                return None
            entry = self.btf.entry(number)
            if entry.kind not in TRANSPARENT:
                return entry
            number = entry.value
        raise DebugInfoError("FC0904", self.btf.path, "a type that stands for itself", ".BTF")

    def size(self, number: int) -> int | None:
        """Bytes of a value of that type; None where it has no size."""
        factor = 1
        for _ in range(DEEPEST):
            entry = self.bare(number)
            if entry is None:
                return None
            match entry.kind:
                case "INT" | "STRUCT" | "UNION" | "ENUM" | "ENUM64" | "FLOAT":
                    return factor * entry.value
                case "PTR":
                    return factor * self.word_bytes
                case "ARRAY":
                    factor *= entry.words[2]
                    number = entry.words[0]
                case _:
                    return None
        raise DebugInfoError("FC0904", self.btf.path, "an array of itself", ".BTF")

    def member(
        self, name: int, target: int, place: int, flag: bool, users: Collection[str] = ()
    ) -> Member:
        """A member of a structure from its three words; ``users`` lead to the program's memory."""
        width, bit = (place >> 24, place & 0xFFFFFF) if flag else (0, place)
        bare = self.bare(target)
        if not width and bare is not None and bare.kind == "INT":
            # Before kind_flag the width of a bit field stood in an integer type of its own.
            encoding = bare.words[0]
            if encoding & 0xFF != 8 * bare.value:
                width, bit = encoding & 0xFF, bit + (encoding >> 16 & 0xFF)
        text = self.btf.text(name)
        embedded = not text and bare is not None and bare.kind in AGGREGATES
        if text in users:
            target = self.of_user(target)
        bits = BitField(BitOffset(bit), BitSize(width)) if width else None
        if bits is None and bit % 8:
            what = f"the member `{text}` begins inside a byte, at bit {bit}"
            raise DebugInfoError("FC0904", self.btf.path, what, ".BTF")
        return Member(text, TypeId(target), ByteOffset(bit // 8), bits, embedded)


def _int(types: BtfTypes, entry: Entry) -> Type:
    name, size, encoding = types.btf.text(entry.name), ByteSize(entry.value), entry.words[0] >> 24
    if encoding & BOOL:
        return BoolType(name, size)
    if name in CHARACTERS:  # compilers do not set the flag for characters
        return CharType(name, size, bool(encoding & SIGNED))
    return IntType(name, size, bool(encoding & SIGNED))


def _pointer(types: BtfTypes, entry: Entry) -> Type:
    return PointerType("", ByteSize(types.word_bytes), TypeId(entry.value))


def _array(types: BtfTypes, entry: Entry) -> Type:
    element, _index, count = entry.words
    each = types.size(element)
    # A flexible array and one of no elements look alike here; the kernel has the former.
    known = count or None
    size = None if known is None or each is None else ByteSize(known * each)
    return ArrayType("", TypeId(element), known, size)


def _aggregate(types: BtfTypes, entry: Entry) -> Type:
    words = entry.words
    name = types.btf.text(entry.name)
    users = table("kernel/user")["members"].get(name, ())
    members = tuple(
        [
            types.member(words[at], words[at + 1], words[at + 2], entry.flag, users)
            for at in range(0, 3 * entry.count, 3)
        ]
    )
    return StructType(name, AGGREGATES[entry.kind], ByteSize(entry.value), members)


def _enum(types: BtfTypes, entry: Entry) -> Type:
    words, wide = entry.words, entry.kind == "ENUM64"
    step, bits = (3, 64) if wide else (2, 32)
    listed = []
    for at in range(0, step * entry.count, step):
        value = words[at + 1] | (words[at + 2] << 32 if wide else 0)
        if entry.flag and value >> (bits - 1):
            value -= 1 << bits
        listed.append((types.btf.text(words[at]), value))
    return EnumType(types.btf.text(entry.name), ByteSize(entry.value), entry.flag, tuple(listed))


def _declared(types: BtfTypes, entry: Entry) -> Type:
    return DeclaredType(types.btf.text(entry.name), "union" if entry.flag else "struct")


def _typedef(types: BtfTypes, entry: Entry) -> Type:
    return NamedType(types.btf.text(entry.name), TypeId(entry.value))


def _qualified(types: BtfTypes, entry: Entry) -> Type:
    return QualifiedType(entry.kind.lower(), TypeId(entry.value))


def _tagged(types: BtfTypes, entry: Entry) -> Type:
    return QualifiedType(f"__{types.btf.text(entry.name)}", TypeId(entry.value))


def _float(types: BtfTypes, entry: Entry) -> Type:
    return FloatType(types.btf.text(entry.name), ByteSize(entry.value))


def _function(types: BtfTypes, entry: Entry) -> Type:
    return FunctionType("")


def _other(types: BtfTypes, entry: Entry) -> Type:
    return UnknownType(types.btf.text(entry.name), None, f"BTF calls it a {entry.kind}")


READERS: dict[str, Reader] = {
    "INT": _int,
    "PTR": _pointer,
    "ARRAY": _array,
    "STRUCT": _aggregate,
    "UNION": _aggregate,
    "ENUM": _enum,
    "ENUM64": _enum,
    "FWD": _declared,
    "TYPEDEF": _typedef,
    "VOLATILE": _qualified,
    "CONST": _qualified,
    "RESTRICT": _qualified,
    "TYPE_TAG": _tagged,
    "FLOAT": _float,
    "FUNC_PROTO": _function,
    "DATASEC": _other,
}
