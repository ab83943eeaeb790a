"""The pclntab of Go: names and addresses of all functions, in every Go program.

The run time prints tracebacks by it, so no linker option leaves it out. It is found by its
section's name, else by its first bytes: linkers of C put it into other sections.

Source: Go 1.15 to 1.27, src/runtime/symtab.go and runtime2.go (pcHeader, functab, _func),
src/cmd/link/internal/ld/pcln.go. Up to 1.15 it is one table, then several parts; addresses became
offsets from the text in 1.18, from 1.26 on the header does not say where that is.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import record_layout
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.elf.headers import Section
    from fetchc.debuginfo.go.moduledata import Memory

__all__ = ["FunctionTable", "Row", "function_table"]

LABEL = ".gopclntab"
_SECTIONS = (LABEL, ".data.rel.ro.gopclntab")  # the second in position-independent programs
# Of these each Go program has some, as ld(1) keeps what it does not know, and strip what is loaded.
# What Go's own linker writes has no frames of C beside them, whatever its sections are renamed to.
# Source: Go 1.15 to 1.27, src/cmd/link/internal/ld/data.go and elf.go.
_OF_C = ".eh_frame"
_OF_GO = (".go.buildinfo", ".note.go.buildid", ".noptrdata", ".noptrbss")
_HEADER = 8  # bytes: magic, two zeros, the instructions' alignment, the size of a word
_SEARCHES = 64  # for single names, each of which goes through all names; then all are read once
_LONGEST = 1 << 16  # bytes of a name; the compiler cuts far below
# Flags, from 1.17 on (funcFlagTopFrame, funcFlagSPWrite, funcFlagAsm).
_TOP_FRAME, _WRITES_STACK_POINTER, _ASSEMBLY = 1 << 0, 1 << 1, 1 << 2
# What these flags say, by name, up to 1.16 (src/runtime/traceback.go: topofstack, elideWrapper).
_TOP_FRAMES = frozenset(
    {
        "runtime.goexit", "runtime.mstart", "runtime.mcall", "runtime.morestack",
        "runtime.rt0_go", "_rt0_amd64_linux", "runtime.mstart1",
    }
)  # fmt: skip
_SWITCHES = frozenset({"runtime.systemstack", "runtime.asmcgocall", "runtime.cgocallback_gofunc"})


class Row(Record):
    """A function: its linker's name, its address, where its row of the table is."""

    name: str
    address: Address
    offset: int


class FunctionTable:
    """The table of one program. ``format`` is the first minor version of Go that writes it so."""

    __slots__ = (
        "_by_name", "_by_text", "_entries", "_entry_bytes", "_names", "_numbers", "_rows",
        "_searches", "_text", "address", "count", "format", "functions", "memory",
        "names", "pairs", "quantum", "window",
    )  # fmt: skip

    def __init__(self, memory: Memory, address: Address) -> None:
        self.memory, self.address = memory, address
        self.window: Section = memory.elf.window(LABEL, address)
        head = self.window.cursor(0)
        magic = head.u32()
        magics = table("runtime/go/program")["functions"]
        formats = {v: int(k.removeprefix("magic_")) for k, v in magics.items()}
        if magic not in formats:
            raise head.error(f"{magic:#x} begins no table of functions of Go 1.15 to 1.27", 0)
        self.format = formats[magic]
        zeros, self.quantum, word = head.u16(), head.u8(), head.u8()
        if zeros or self.quantum not in (1, 2, 4) or word != memory.word_bytes:
            raise head.error("a damaged header", 4)
        relative = self.format >= 18
        self._entry_bytes = 4 if relative else word
        self.count = self._header(0)
        # Words of the header before where the parts are.
        parts = 3 if relative else 2
        self.names = 0 if self.format == 2 else self._header(parts)
        self.functions = 0 if self.format == 2 else self._header(parts + 4)
        self.pairs = _HEADER + word if self.format == 2 else self.functions
        size = (2 * self.count + 1) * self._entry_bytes
        if not self.count or self.pairs + size > self.window.size or self.names > self.window.size:
            raise head.error(f"a table of {self.count} functions runs past the end", _HEADER)
        letter = "I" if relative or word == 4 else "Q"
        self._numbers = record_layout(memory.little, f"{2 * self.count}{letter}")
        self._text: int | None = None
        self._entries: tuple[int, ...] = ()
        self._rows: tuple[int, ...] = ()
        self._names: dict[str, tuple[Row, ...]] = {}
        self._by_name: dict[int, list[int]] = {}
        self._searches = 0
        self._by_text: dict[str, list[int]] = {}

    def _header(self, index: int) -> int:
        return self.memory.word(self.address + _HEADER + index * self.memory.word_bytes, LABEL)

    @property
    def module_mark(self) -> tuple[int, int]:
        """Which word of the run-time's description of the program has which address in here."""
        if self.format == 2:
            return 3, self.address + self.pairs
        return 1, self.address + self.names

    @property
    def text(self) -> int:
        """The address that those of functions count from, 0 where they are whole."""
        if self._text is None:
            self._text = 0 if self.format < 18 else self._header(2)
            if self.format >= 18 and not self._text:
                from fetchc.debuginfo.go.moduledata import module

                self._text = module(self).text
        return self._text

    def _load(self) -> None:
        if self._entries:
            return
        raw = self.window.bytes_between(self.pairs, self.pairs + self._numbers.size)
        numbers = self._numbers.unpack(raw)
        if self.format >= 18:
            text = self.text
            entries = tuple([text + each for each in numbers[::2]])
        else:  # addresses, which the loader may have to fill in
            size, start = self._entry_bytes, self.address + self.pairs
            words = self.memory.words(start, 2 * self.count, LABEL) if size else ()
            entries = words[::2]
        if list(entries) != sorted(entries):
            raise self.window.error("functions that are not in the order of addresses", self.pairs)
        self._entries = entries
        self._rows = tuple([self.functions + each for each in numbers[1::2]])

    def at(self, address: int) -> Row | None:
        """The function whose code holds ``address``, by where functions begin."""
        from bisect import bisect_right

        self._load()
        index = bisect_right(self._entries, address) - 1
        if index < 0:
            return None
        row = self._row(self._entries[index], self._rows[index])
        return row if address < row.address + self.size(row) else None

    def begins(self, address: int) -> bool:
        """Whether a function begins at ``address``."""
        from bisect import bisect_left

        self._load()
        index = bisect_left(self._entries, address)
        return index < self.count and self._entries[index] == address

    def beginning_at(self, address: int) -> Row | None:
        """The function that begins at ``address``."""
        found = self.at(address)
        return found if found is not None and found.address == address else None

    def named(self, name: str) -> tuple[Row, ...]:
        """The functions of exactly that linker's name; assembly and what calls it share one."""
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = tuple(self._find(name))
        return found

    def _find(self, name: str) -> Iterator[Row]:
        # The name's bytes, then the rows that refer to them. Who lists all asks for many.
        needle = name.encode("utf-8", "surrogateescape") + b"\0"
        if not name or b"\0" in needle[:-1]:
            return
        rows = self._rows_by_name()
        self._searches += 1
        if self._searches > _SEARCHES:
            for index in self._all_named().get(name, ()):
                yield self._row(self._entries[index], self._rows[index])
            return
        for at in self.window.find_all(needle):
            for index in rows.get(at - self.names, ()):
                yield self._row(self._entries[index], self._rows[index])

    def _all_named(self) -> dict[str, list[int]]:
        # All rows by their names; those of a name in the order of their places, as a search's.
        if not self._by_text:
            for _, indices in sorted(self._rows_by_name().items()):
                name = self._name(self._rows[indices[0]])
                self._by_text.setdefault(name, []).extend(indices)
        return self._by_text

    def _rows_by_name(self) -> dict[int, list[int]]:
        # Offset of a name to the rows that have it, by their index.
        if not self._by_name:
            self._load()
            one = record_layout(self.memory.little, "I")
            raw, behind = self.window.upto(), self._entry_bytes
            last = self.window.size - behind - one.size
            for index, row in enumerate(self._rows):
                if row > last:
                    raise self.window.error("a function's row past the end", self.pairs)
                self._by_name.setdefault(one.unpack_from(raw, row + behind)[0], []).append(index)
        return self._by_name

    def _entry(self, row: int) -> int:
        if self.format >= 18:
            return self.text + self.window.cursor(row).u32()
        return self.memory.word(self.address + row, LABEL)

    def every_name(self) -> Iterator[str]:
        """The names of all functions, each once, in the order of addresses."""
        self._load()
        seen = set()
        for row in self._rows:
            name = self._name(row)
            if name not in seen:
                seen.add(name)
                yield name

    def _name(self, row: int) -> str:
        at = self.names + self.window.cursor(row + self._entry_bytes).u32()
        text = self.window.cursor(at, at + _LONGEST).cstring()
        return text.decode("utf-8", "surrogateescape")

    def _row(self, entry: int, row: int) -> Row:
        # Each address is there twice.
        if self._entry(row) != entry:
            raise self.window.error(f"a row that is not that of {entry:#x}", row)
        return Row(self._name(row), Address(entry), row)

    def fields(self, row: Row) -> Cursor:
        """A cursor after a row's entry and name: at the bytes of its arguments."""
        return self.window.cursor(row.offset + self._entry_bytes + 4)

    def is_assembly(self, row: Row) -> bool | None:
        """Whether it was written in assembly; None up to Go 1.16, which does not say."""
        flags = self._flags(row)
        return None if flags is None else bool(flags & _ASSEMBLY)

    def is_top_frame(self, row: Row) -> bool:
        """Whether a stack begins with a call of it, as Go's own traceback has it."""
        flags = self._flags(row)
        return row.name in _TOP_FRAMES if flags is None else bool(flags & _TOP_FRAME)

    def switches_stacks(self, row: Row) -> bool:
        """Whether it sets the stack pointer, so that its caller is on another stack."""
        flags = self._flags(row)
        return row.name in _SWITCHES if flags is None else bool(flags & _WRITES_STACK_POINTER)

    def stack_bytes(self, row: Row, address: int) -> int | None:
        """Bytes of the function's stack below its return address, at the instruction ``address``.

        By its table ``pcsp``; None where that says nothing of the address.
        """
        fields = self.fields(row)
        fields.skip(2 * 4)  # args, deferreturn
        table = fields.u32()
        if not table:
            return None
        pairs = self.window.cursor(self._pc_tables() + table)
        value, at, first = -1, int(row.address), True
        while at <= address:
            change = pairs.uleb()
            if not change and not first:
                return None
            value += -1 - (change >> 1) if change & 1 else change >> 1
            at += pairs.uleb() * self.quantum
            first = False
        return value if value >= 0 else None

    def _flags(self, row: Row) -> int | None:
        fields = self.fields(row)
        fields.skip(6 * 4)  # args, deferreturn, pcsp, pcfile, pcln, npcdata
        if self.format == 2:
            return None
        fields.skip(8 if self.format == 20 else 4)  # cuOffset, startLine
        fields.skip(1)  # funcID
        return fields.u8()

    def size(self, row: Row) -> int:
        """Bytes of its code, by the table of its lines; up to the next one where it has none."""
        from bisect import bisect_right

        self._load()
        index = bisect_right(self._entries, row.address)
        end = self._end() if index == self.count else self._entries[index]
        fields = self.fields(row)
        fields.skip(4 * 4)  # args, deferreturn, pcsp, pcfile
        lines = fields.u32()
        if not lines:
            return end - row.address
        return self._covered(self._pc_tables() + lines, end - row.address)

    def _pc_tables(self) -> int:
        # Where the offsets of a row's tables count from.
        if self.format == 2:
            return 0
        return self._header(5 if self.format < 18 else 6)

    def _end(self) -> int:
        last = self.window.cursor(self.pairs + 2 * self.count * self._entry_bytes)
        if self.format >= 18:
            return self.text + last.u32()
        return self.memory.word(self.address + last.offset, LABEL)

    def _covered(self, start: int, room: int) -> int:
        # Pairs of differences, of the value and of the address; a value that stays ends it.
        pairs = self.window.cursor(start)
        size, first = 0, True
        while pairs.uleb() or first:
            size += pairs.uleb() * self.quantum
            first = False
            if size > room:
                raise self.window.error("a function that runs into the next one", start)
        return size


def function_table(memory: Memory) -> FunctionTable | None:
    """The table of a program; None where there is none: it is no Go program, or packed.

    DebugInfoError FC0904 for a damaged one.
    """
    for name in _SECTIONS:
        address = memory.elf.section_address(name)
        if address is not None:
            return FunctionTable(memory, address)
    of_go = [name for name in _OF_GO if memory.elf.section_address(name) is not None]
    if not of_go and memory.elf.section_address(_OF_C) is not None:
        return None  # without a search through 100 MB of a library
    for address in _beginnings(memory):
        found = None if address % memory.word_bytes else _plausible(memory, address)
        if found is not None:
            return found
    return None


def _beginnings(memory: Memory) -> list[Address]:
    # Where the first bytes of a table are, those of one magic after the other.
    magics = table("runtime/go/program")["functions"].values()
    needles = [memory.packed(magic, 4) + b"\0\0" for magic in magics]
    # They differ in one byte; where it is the first, one search finds all.
    first = int(memory.little)
    found = []
    for number, segment in enumerate(memory.elf.segments):
        if not segment.file_size:
            continue
        window = memory.elf.window(LABEL, segment.address)
        for shared in {needle[first:] for needle in needles}:
            for at in window.find_all(shared):
                whole = window.bytes_between(max(at - first, 0), at + len(shared))
                if whole in needles:
                    address = Address(segment.address + at - first)
                    found.append((needles.index(whole), number, address))
    return [address for _, _, address in sorted(found)]


def _plausible(memory: Memory, address: Address) -> FunctionTable | None:
    # The first bytes alone also stand in code; a table has functions in code, in order.
    try:
        found = FunctionTable(memory, address)
        first = next(found.every_name(), None)
        rows = () if first is None else found.named(first)
    except DebugInfoError:
        return None
    return found if rows and memory.elf.is_code(rows[0].address) else None
