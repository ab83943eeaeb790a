"""Moduledata of Go: which version built the program, and where its types are."""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number, encode_number, record_layout
from fetchc.debuginfo.dwarf.subprograms import ABI0
from fetchc.debuginfo.go.build_info import build_strings
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Variable
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.go.pclntab import FunctionTable
    from fetchc.program.entities import Function

__all__ = [
    "GoVersion",
    "Memory",
    "Module",
    "build_version",
    "declared_by_twin",
    "module",
    "supported_version",
]

LABEL = "runtime.moduledata"
_LONGEST_TABLE = 1 << 28  # entries of a slice
_CURE = "build it with its debug information: without `-s` and `-w` in `-ldflags`"


class GoVersion(Record):
    """``text`` is what the linker wrote, ``go1.22.10``; ``minor`` its 22."""

    text: str
    minor: int


class Module(Record):
    """The fields of runtime.firstmoduledata, which is at ``address``.

    The types' descriptors and names are from ``types`` to ``end``. ``listed`` are the types that
    the file lists (address, count of 4-byte offsets), ``tables`` the interface tables (address,
    count of pointers); from 1.27 on the descriptors stand one after the other in the first
    ``described`` bytes, and the tables themselves in (address, bytes) ``itabs``.
    """

    address: int
    text: int
    types: int
    end: int
    listed: tuple[int, int]
    tables: tuple[int, int]
    described: int
    itabs: tuple[int, int]
    types_word: int


def build_version(memory: Memory) -> GoVersion | None:
    """Which Go built the program; None where the linker's note of it is missing or unreadable."""
    for text, _ in build_strings(memory):
        # "go1.22.10", "go1.24.1 X:noswissmap", "devel go1.23-abcdef"
        for word in text.split():
            major, _, rest = word.partition(".")
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            if major == "go1" and digits and len(digits) < 4:
                return GoVersion(text, int(digits))
    return None


def module(functions: FunctionTable) -> Module:
    """The description of the program with that table; DebugInfoError where it is not found."""
    memory = functions.memory
    index, mark = functions.module_mark
    for address in memory.holding(functions.address):
        try:
            if memory.word(address + index * memory.word_bytes, LABEL) == mark:
                return _read(memory, address)
        except DebugInfoError as refused:
            if refused.section != LABEL or "has no" not in refused.what:
                raise
    raise DebugInfoError(
        "FC0904", memory.elf.path, "the program does not refer to its table of functions", LABEL
    )


def supported_version(memory: Memory) -> GoVersion:
    """Which Go built the program; DebugInfoError FC0905 for a version that is not supported."""
    facts = table("runtime/go/program")
    found = build_version(memory)
    if found is None:
        what = "the program does not say which version of Go built it"
        raise DebugInfoError("FC0905", memory.elf.path, what, help=_CURE)
    if not facts["first"] <= found.minor <= facts["last"]:
        what = f"without debug information, Go 1.{found.minor} is not read"
        raise DebugInfoError("FC0905", memory.elf.path, what, help=_CURE)
    return found


def _read(memory: Memory, address: int) -> Module:
    minor = supported_version(memory).minor
    sequences = table("runtime/go/program")["module"]
    first = max(n for key in sequences if (n := int(key.removeprefix("since_"))) <= minor)
    places: dict[str, int] = {}
    count = 0
    for member in sequences[f"since_{first}"].split():
        name, _, words = member.partition(":")
        places[name] = count
        count += int(words or 1)
    words = memory.words(address, count, LABEL)

    def word(name: str) -> int:
        return words[places[name]] if name in places else 0

    def listed(name: str) -> tuple[int, int]:
        at = places.get(name)
        return (0, 0) if at is None else (words[at], words[at + 1])

    types, end = word("types"), word("etypes")
    if not types < end or not memory.elf.is_code(Address(word("text"))):
        raise memory.error("no types, or no code", LABEL, address)
    if max(listed("typelinks")[1], listed("itablinks")[1]) > _LONGEST_TABLE:
        raise memory.error("a list too long for any file", LABEL, address)
    return Module(
        address,
        word("text"),
        types,
        end,
        listed("typelinks"),
        listed("itablinks"),
        word("typedesclen"),
        (types + word("itaboffset"), word("itabsize")),
        places["types"],
    )


# ------------------------------------------------------------------------------
# What a Go program's data will hold once it is loaded: bytes of the file, and relocated words.
#
# The linker leaves addresses in position-independent programs to the loader, and the file may
# have nothing in their place. Source: System V gABI, chapter 5 (relocation); Go,
# src/cmd/link/internal/ld.

_SHT_RELA = 4
_ELSEWHERE = 1 << 63
"""Where a word that another file fills in leads: after this, there is no program's data."""


class Memory:
    """The data of one program by address. ``label`` of a failed read says what was read."""

    __slots__ = ("_architecture", "_relocated", "elf", "little", "word_bytes")

    def __init__(self, elf: Elf, architecture: str) -> None:
        self.elf = elf
        self.word_bytes = elf.word_bytes
        self.little = elf.little_endian
        self._architecture = architecture
        self._relocated: dict[int, int] | None = None

    def error(self, what: str, label: str, address: int) -> DebugInfoError:
        """A located FC0904 for ``raise``."""
        return DebugInfoError("FC0904", self.elf.path, f"{what} at {address:#x}", label)

    def take(self, address: int, size: int, label: str) -> bytes:
        """Exactly ``size`` bytes; DebugInfoError where the file does not have them."""
        if address >= _ELSEWHERE:
            what = "the loader takes it from another file"
            raise DebugInfoError("FC0904", self.elf.path, what, label)
        segment = self.elf.segment_of(Address(address))
        if segment is None or address + size > segment.address + segment.file_size:
            raise self.error(f"the file has no {size} bytes", label, address)
        return self.elf.read(Address(address), size)

    def number(self, address: int, size: int, label: str) -> int:
        """An unsigned number of the file's byte order, not relocated."""
        raw = self.take(address, size, label)
        return decode_number(raw, self.little)

    def packed(self, value: int, size: int) -> bytes:
        """A number as the file has it."""
        return encode_number(value, size, self.little)

    def word(self, address: int, label: str) -> int:
        """A machine word as the loader leaves it: an address, a length."""
        found = self._relocations().get(address)
        return self.number(address, self.word_bytes, label) if found is None else found

    def words(self, address: int, count: int, label: str) -> tuple[int, ...]:
        """``count`` machine words one after the other."""
        size = self.word_bytes
        raw = self.take(address, count * size, label)
        plain = record_layout(self.little, f"{count}{'Q' if size == 8 else 'I'}").unpack(raw)
        relocated = self._relocations()
        if not relocated:
            return plain
        return tuple([relocated.get(address + i * size, each) for i, each in enumerate(plain)])

    def holding(self, wanted: int) -> Iterator[int]:
        """Addresses of the aligned words that hold ``wanted``, those that can be written first."""
        size = self.word_bytes
        seen = set()
        for address, value in self._relocations().items():
            if value == wanted and address % size == 0:
                seen.add(address)
                yield address
        needle = self.packed(wanted, size)
        filled = [one for one in self.elf.segments if one.file_size]
        for segment in sorted(filled, key=lambda one: not one.flags & 2):
            window = self.elf.window("data", segment.address)
            for at in window.find_all(needle):
                if (segment.address + at) % size == 0 and segment.address + at not in seen:
                    yield segment.address + at

    def _relocations(self) -> dict[int, int]:
        # What words hold whose value is an address: of this file, or of a symbol of any.
        if self._relocated is None:
            self._relocated = {}
            relocations = table(f"arch/{self._architecture}")["relocations"]
            kind, named = relocations["relative"], relocations["symbol"]
            bits = 32 if self.word_bytes == 8 else 8
            entry = record_layout(self.little, "QQq" if self.word_bytes == 8 else "IIi")
            symbols: dict[int, int] | None = None
            for section in self.elf.sections_of_kind(_SHT_RELA):
                raw = section.upto()
                whole = len(raw) // entry.size * entry.size
                for offset, info, addend in entry.iter_unpack(raw[:whole]):
                    if info == kind:
                        self._relocated[offset] = addend
                    elif info & (1 << bits) - 1 == named:
                        symbols = self._symbols() if symbols is None else symbols
                        self._relocated[offset] = symbols.get(info >> bits, _ELSEWHERE) + addend
        return self._relocated

    def _symbols(self) -> dict[int, int]:
        # Addresses of the dynamic symbols that are of this file, by number. Plugins refer to types
        # so: the loader may take another file's, which are equal.
        raw = self.elf.section(".dynsym")
        if raw is None:
            return {}
        wide = self.word_bytes == 8
        entry = record_layout(self.little, "IBBHQQ" if wide else "IIIBBH")
        place, section = (4, 3) if wide else (1, 5)
        whole = len(raw) // entry.size * entry.size
        rows = entry.iter_unpack(bytes(raw[:whole]))
        return {index: row[place] for index, row in enumerate(rows) if row[section]}


# ------------------------------------------------------------------------------
# ABI wrappers of Go: one function, called by two conventions, has code for each of them.
#
# What is written in assembly lists no parameters. Its Go declaration is compiled to a wrapper,
# from Go 1.17 on, and linked where a function value needs it: calls by name go straight to
# assembly. The linker gives both the name of the function, and the one by the stack convention
# ``.abi0`` after it.
#
# Source: Go, src/cmd/compile/internal/ssagen/abi.go (makeABIWrapper); src/cmd/link/internal/ld
# (symtab.go, mangleABIName).


def declared_by_twin(elf: Elf, info: DebugInfo, function: Function) -> tuple[Variable, ...]:
    """What the function's other code declares: its parameters, then its results.

    Nothing where there is no other code. The variables are ``elsewhere``.
    """
    from fetchc.debuginfo.dwarf.subprograms import function_at
    from fetchc.debuginfo.dwarf.variables import parameters

    plain = function.symbol.removesuffix(ABI0)
    other = plain if plain != function.symbol else plain + ABI0
    twins = {symbol.address for symbol in elf.symbols_named(other)} - {function.address}
    if len(twins) != 1:
        return ()
    twin = function_at(elf, info, twins.pop())
    if twin is None or twin.die is None or twin.name != function.name:
        return ()
    return tuple(
        [
            Variable(one.name, one.type, one.kind, one.die, one.line, elsewhere=True)
            for one in parameters(info, info.die(twin.die))
        ]
    )
