"""Reads BTF: a header, a table of types, a table of names; of one object or split BTF.

Type ids count from 1 in the order of the table, and types have different lengths, so opening
walks the table once and notes where each begins. Everything else is read when asked for, and
nothing is copied: a kernel has 5 MB of it.
Source: Documentation/bpf/btf.rst and include/uapi/linux/btf.h of Linux.
"""

from __future__ import annotations

import sys
from array import array
from functools import lru_cache

from fetchc.debuginfo.byte_reader import decode_number, encode_number
from fetchc.debuginfo.kernel_variables import of_several
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, AtSymbol
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
    from collections.abc import Callable, Collection, Iterator
    from mmap import mmap

    from fetchc.debuginfo.btf.kernel_program import BtfProgram
    from fetchc.debuginfo.elf.headers import Buffer
    from fetchc.program.entities import Place
    from fetchc.program.types import Type

    Words = array[int] | memoryview[int]

__all__ = [
    "AGGREGATES",
    "KINDS",
    "SYMBOLS",
    "Btf",
    "BtfTypes",
    "Entry",
    "place_of_symbol",
    "symbol_type",
]

MAGIC = 0xEB9F
WORD = 4
COMMON = 3  # words before each type: name, info, size or type

# Kind number -> (name, words after the common ones, words a member). A kind that is not here has
# an unknown length, so nothing after it can be found.
KINDS = {
    1: ("INT", 1, 0),
    2: ("PTR", 0, 0),
    3: ("ARRAY", 3, 0),
    4: ("STRUCT", 0, 3),
    5: ("UNION", 0, 3),
    6: ("ENUM", 0, 2),
    7: ("FWD", 0, 0),
    8: ("TYPEDEF", 0, 0),
    9: ("VOLATILE", 0, 0),
    10: ("CONST", 0, 0),
    11: ("RESTRICT", 0, 0),
    12: ("FUNC", 0, 0),
    13: ("FUNC_PROTO", 0, 2),
    14: ("VAR", 1, 0),
    15: ("DATASEC", 0, 3),
    16: ("FLOAT", 0, 0),
    17: ("DECL_TAG", 1, 0),
    18: ("TYPE_TAG", 0, 0),
    19: ("ENUM64", 0, 3),
}
_LISTS = {name: each for name, _, each in KINDS.values() if name in ("ENUM", "ENUM64")}
_NAMES = ("VOID", *(name for name, _, _ in KINDS.values()))


class Entry:
    """One type as the table has it. ``count`` is vlen, ``flag`` kind_flag, ``value`` size or type.

    ``words`` are those after the common ones. ``name`` is an offset among the names.
    """

    __slots__ = ("count", "flag", "kind", "name", "value", "words")

    def __init__(
        self, kind: str, name: int, count: int, flag: bool, value: int, words: Words
    ) -> None:
        self.kind = kind
        self.name = name
        self.count = count
        self.flag = flag
        self.value = value
        self.words = words


class Btf:
    """The types of one object; those of a module's continue after its ``base``'s.

    ``path`` is for messages. Raises DebugInfoError FC0902 where ``data`` is no BTF, FC0904 where
    it is broken, FC0905 for a kind of type that is not supported.
    """

    __slots__ = (
        "_base", "_data", "_first", "_names", "_names_first", "_types", "_words",
        "little_endian", "path", "starts",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        data: Buffer | mmap,
        base: Btf | None = None,
        starts: Words | None = None,
    ) -> None:
        self.path = path
        self._base = base
        little = bytes(data[:2]) == encode_number(MAGIC, 2, True)
        if not little and bytes(data[:2]) != encode_number(MAGIC, 2, False):
            raise DebugInfoError("FC0902", path, "it does not begin as BTF does")
        self.little_endian = little

        def word(at: int) -> int:
            return decode_number(data[at : at + WORD], little)

        header = word(4)
        if len(data) < 24 or header < 24:
            raise self._broken(4, f"the header has {min(header, len(data))} bytes, not 24")
        if data[2] != 1:
            what = f"version {data[2]} of BTF, not 1"
            raise DebugInfoError("FC0905", path, what, ".BTF", 2)
        at, size = header + word(8), word(12)
        names, length = header + word(16), word(20)
        if at + size > len(data) or size % WORD or at % WORD:
            raise self._broken(8, f"{size} bytes of types at {at:#x} do not fit the file")
        if names + length > len(data) or not length or data[names + length - 1]:
            raise self._broken(16, f"{length} bytes of names at {names:#x} do not fit or end")
        # What can be searched: a view cannot.
        self._data = bytes(data) if isinstance(data, memoryview) else data
        self._types, self._names = range(at, at + size), range(names, names + length)
        self._words: Words = memoryview(self._data)[at : at + size].cast("I")
        if little != (sys.byteorder == "little"):
            self._words = array("I", self._words)
            self._words.byteswap()
        self._first: int = 1 if base is None else base.end
        self._names_first: int = 0 if base is None else base._names_first + len(base._names)
        # Where each type begins, in words; a caller that cached them passes them in.
        self.starts: Words = self._walk() if starts is None else starts

    def _broken(self, offset: int, what: str) -> DebugInfoError:
        return DebugInfoError("FC0904", self.path, what, ".BTF", offset)

    def _walk(self) -> array[int]:
        # The one loop over all types: 126,000 in 30 ms, so it stays free of calls.
        words, starts, at = self._words, array("I"), 0
        fixed = [KINDS[kind][1] + COMMON if kind in KINDS else 0 for kind in range(32)]
        each = [KINDS[kind][2] if kind in KINDS else 0 for kind in range(32)]
        append, end = starts.append, len(words)
        try:
            while at < end:
                append(at)
                info = words[at + 1]
                kind = info >> 24 & 31
                length = fixed[kind] + each[kind] * (info & 0xFFFF)
                if not length:
                    what = f"a type of kind {kind}, whose length is not known"
                    raise DebugInfoError("FC0905", self.path, what, ".BTF types", at * WORD)
                at += length
        except IndexError:
            at = end + 1
        if at != end:
            raise self._broken(starts[-1] * WORD, "the last type runs past the end of the types")
        return starts

    @property
    def end(self) -> int:
        """The first id that names no type."""
        return self._first + len(self.starts)

    def entry(self, number: int) -> Entry:
        """The type of that id; raises DebugInfoError FC0904 where there is none."""
        home = self
        while number < home._first and home._base is not None:
            home = home._base
        if not home._first <= number < home.end:
            raise self._broken(0, f"there is no type {number}")
        index = number - home._first
        at = home.starts[index]
        stop = home.starts[index + 1] if index + 1 < len(home.starts) else len(home._words)
        info = home._words[at + 1]
        return Entry(
            _NAMES[info >> 24 & 31],
            home._words[at],
            info & 0xFFFF,
            bool(info >> 31),
            home._words[at + 2],
            home._words[at + COMMON : stop],
        )

    def kind(self, number: int) -> str:
        """The kind of a type: ``INT``, ``STRUCT``, ...; ``VOID`` for 0."""
        return self.entry(number).kind if number else "VOID"

    def text(self, offset: int) -> str:
        """The name at ``offset`` among the names of this object and its base."""
        home = self
        while offset < home._names_first and home._base is not None:
            home = home._base
        within = offset - home._names_first
        if not 0 <= within < len(home._names):
            raise self._broken(0, f"there is no name at {offset:#x}")
        at = home._names[within]
        end = home._data.find(b"\0", at)  # the last byte is a NUL
        return home._data[at:end].decode("utf-8", "surrogateescape")

    def named(self, name: str, kinds: tuple[str, ...]) -> list[int]:
        """Ids of the types of that name and of those kinds, the base's first."""
        found = [] if self._base is None else self._base.named(name, kinds)
        for offset in self._offsets(name):
            found += [one for one in self._using(offset) if self.kind(one) in kinds]
        return sorted(found)

    def enumerations_with(self, name: str) -> list[int]:
        """Ids of the enumerations that have an enumerator of that name, the base's first."""
        found = [] if self._base is None else self._base.enumerations_with(name)
        for offset in self._offsets(name):
            found += self._listing(offset)
        return sorted(found)

    def _listing(self, name: int) -> Iterator[int]:
        # Enumerations in whose lists a word is the name's offset, a word of a value left out.
        from bisect import bisect_right

        first, end = self._types.start, self._types.stop
        key = encode_number(name, WORD, self.little_endian)
        at = self._data.find(key, first, end)
        while at >= 0:
            index, rest = divmod(at - first, WORD)
            if not rest:
                position = bisect_right(self.starts, index) - 1
                kind = self.kind(self._first + position)
                behind = index - self.starts[position] - COMMON
                if kind in _LISTS and behind >= 0 and not behind % _LISTS[kind]:
                    yield self._first + position
            at = self._data.find(key, at + 1, end)

    def _offsets(self, name: str) -> list[int]:
        # Where the names of this object and its base have it.
        key = b"\0" + name.encode("utf-8", "surrogateescape") + b"\0"
        wanted = []
        home: Btf | None = self
        while home is not None:  # a split object may use the names of its base
            first, end = home._names.start, home._names.stop
            at = home._data.find(key, first, end)
            while at >= 0:
                wanted.append(home._names_first + at - first + 1)
                at = home._data.find(key, at + 1, end)
            home = home._base
        return wanted

    def _using(self, name: int) -> Iterator[int]:
        # The name's bytes in the table; a hit counts where a type begins.
        from bisect import bisect_left

        starts = self.starts
        first, end = self._types.start, self._types.stop
        key = encode_number(name, WORD, self.little_endian)
        # A zero at the end makes the search twice as long; in a short key it has to be there.
        key = key[:3] if key[2] and not key[3] else key
        at = self._data.find(key, first, end)
        while at >= 0:
            index, rest = divmod(at - first, WORD)
            if not rest:
                position = bisect_left(starts, index)
                begins = position < len(starts) and starts[position] == index
                if begins and self._words[index] == name:
                    yield self._first + position
            at = self._data.find(key, at + 1, end)

    def all_named(self, kinds: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """Id and name of every named type of those kinds, this object's own."""
        numbers = {number for number, kind in KINDS.items() if kind[0] in kinds}
        words = self._words
        for index, at in enumerate(self.starts):
            if words[at + 1] >> 24 & 31 in numbers and words[at]:
                yield self._first + index, self.text(words[at])


# ------------------------------------------------------------------------------
# BTF's types become types of the vocabulary, one at a time.
#
# A type's id is its BTF id, 0 for void; what BTF does not have (a cast's pointer, the target of a
# pointer to void) gets a negative id. Source: Documentation/bpf/btf.rst of Linux, section 2.2.

SIGNED, BOOL = 1, 4  # encoding of INT
CHARACTERS = ("char", "signed char", "unsigned char")
TRANSPARENT = frozenset({"TYPEDEF", "CONST", "VOLATILE", "RESTRICT", "TYPE_TAG"})
AGGREGATES = {"STRUCT": "struct", "UNION": "union"}
DEEPEST = 64  # steps through names, qualifiers and rows of arrays; only a cycle has more


class BtfTypes:
    """The types of one kernel or module. A type is read when something asks for it."""

    __slots__ = ("_ids", "_interned", "_types", "btf", "word_bytes")

    def __init__(self, btf: Btf, word_bytes: int) -> None:
        self.btf = btf
        self.word_bytes = word_bytes
        self._types: dict[int, Type] = {0: VoidType()}
        self._interned: list[Type] = []
        self._ids: dict[Type, TypeId] = {}

    def type(self, type_id: TypeId) -> Type:
        """The type itself; DebugInfoError FC0904 where the table makes no sense."""
        if type_id < 0:
            return self._interned[-1 - type_id]
        found = self._types.get(type_id)
        if found is None:
            entry = self.btf.entry(type_id)
            reader = READERS.get(entry.kind)
            if reader is None:
                what = f"type {type_id} is a {entry.kind}, which is no type of a value"
                raise DebugInfoError("FC0904", self.btf.path, what, ".BTF")
            found = self._types[type_id] = reader(self, entry)
        return found

    def intern(self, resolved: Type) -> TypeId:
        """The id of a type that BTF does not have; equal types share one."""
        type_id = self._ids.get(resolved)
        if type_id is None:
            self._interned.append(resolved)
            type_id = self._ids[resolved] = TypeId(-len(self._interned))
        return type_id

    def of_user(self, number: int) -> TypeId:
        """The pointer type ``number`` to memory of the program; itself if it is none."""
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
        raise DebugInfoError("FC0904", self.btf.path, "a type refers to itself", ".BTF")

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
    length = count or None
    size = None if length is None or each is None else ByteSize(length * each)
    return ArrayType("", TypeId(element), length, size)


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


# ------------------------------------------------------------------------------
# Variables of a kernel that BTF does not have: at its symbols, with types from a table.
#
# The kernel looks a symbol up by its name alone when it reads it (``@jiffies``), and one that it
# does not find reads as nothing. So of a kernel that runs its own list is asked.

SYMBOLS = "/proc/kallsyms"


def symbol_type(program: BtfProgram, name: str) -> TypeId | None:
    """The type of a variable that every kernel has; None of any other."""
    words = table("kernel/symbols")["types"].get(name)
    if words is None:
        return None
    found = program.types_named(words[0], None)
    if len(found) != 1:
        return None
    if len(words) == 1:
        return found[0]
    if words[1] == "*":
        return program.intern(PointerType("", ByteSize(program.word_bytes), found[0]))
    return program.intern(ArrayType("", found[0], int(words[1]), None))


def place_of_symbol(
    name: str, running: bool, symbols: str = SYMBOLS, per_cpu: bool = False
) -> Place:
    """Where the variable ``name`` is, in the running kernel or in one that is elsewhere."""
    if not running:
        return AtSymbol(name, verified=False, per_cpu=per_cpu)
    found = _symbols_named(name, symbols)
    if found == 1:
        return AtSymbol(name, per_cpu=per_cpu)
    if found:
        return of_several(found)
    why = "the kernel lists no symbol of it (built without CONFIG_KALLSYMS_ALL)"
    return Absent("no location", why)


@lru_cache(maxsize=64)  # each expression asks several times, and the list has 200,000 lines
def _symbols_named(name: str, symbols: str) -> int:
    ending = f" {name}"
    try:
        with open(symbols, encoding="utf-8", errors="surrogateescape") as file:
            return sum(line.rstrip("\n").partition("\t")[0].endswith(ending) for line in file)
    except OSError as refused:
        raise DebugInfoError.of(symbols, refused) from None


if TYPE_CHECKING:
    Reader = Callable[["BtfTypes", Entry], Type]
