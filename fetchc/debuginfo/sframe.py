"""The stack trace format: ``.sframe``, a compact table of where the CFA and return addresses are.

Source: "The SFrame format", versions 1, 2 and 3 (binutils 2.40 to 2.46), include/sframe.h there.
Flexible entries of version 3, of functions that align their stack, are not read.
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.call_frames import Row
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, FrameRelative, InMemory
from fetchc.quantities import Address, ByteOffset, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Place
    from fetchc.target.machines import Architecture

__all__ = ["StackTraceTable", "stack_trace_table"]

SECTION = ".sframe"
_MAGIC = 0xDEE2
_START_RELATIVE = 0x4  # of the flags: a function's start counts from where it is stated
_AMD64 = 3  # SFRAME_ABI_AMD64_ENDIAN_LITTLE
_HEADER = 28  # bytes, before an auxiliary header
_ENTRY_BYTES = {1: 17, 2: 20, 3: 16}  # of a function descriptor entry, by version
_OUTERMOST = Absent("no location", "it is the first function of its stack")


class _Function(Record):
    """Code in [start, end). ``rows`` is where its frame row entries are in the section."""

    start: int
    end: int
    rows: int
    count: int
    info: int
    block: int


class StackTraceTable:
    """The section of one file, whose functions are read at the first question."""

    __slots__ = (
        "_address",
        "_descriptors",
        "_elf",
        "_return_offset",
        "_rows",
        "_starts",
        "_version",
    )

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._address = elf.section_address(SECTION) or Address(0)
        self._descriptors: list[tuple[int, int]] = []  # where functions start, and their entries
        self._rows = 0
        self._starts: list[int] | None = None
        self._version = 0
        self._return_offset = 0

    def _cursor(self, offset: int) -> Cursor:
        data = self._elf.section(SECTION)
        assert data is not None
        return Cursor(self._elf.path, SECTION, data, offset, None, self._elf.little_endian)

    def _load(self) -> list[int]:
        head = self._cursor(0)
        if head.u16() != _MAGIC:
            raise head.error("another magic number", 0)
        self._version, flags, machine = head.u8(), head.u8(), head.u8()
        if self._version not in _ENTRY_BYTES or machine != _AMD64:
            what = f"version {self._version} for the machine {machine}"
            raise DebugInfoError("FC0905", self._elf.path, what, SECTION, 2)
        head.skip(1)  # the fixed offset of the frame pointer
        self._return_offset, more = head.signed(1), head.u8()
        count = head.u32()
        head.skip(8)  # the number of rows, and their bytes
        descriptors, rows = (_HEADER + more + head.u32() for _ in range(2))
        size = _ENTRY_BYTES[self._version]
        data = self._elf.section(SECTION)
        if data is None or descriptors + count * size > len(data):
            raise head.error(f"a table of {count} functions runs past the end of the section", 8)
        relative = bool(flags & _START_RELATIVE) or self._version == 3
        self._rows = rows
        starts = []
        for at in range(descriptors, descriptors + count * size, size):
            start = self._cursor(at).signed(8 if self._version == 3 else 4)
            starts.append((start + self._address + (at if relative else 0), at))
        self._descriptors = sorted(starts)
        return [start for start, _ in self._descriptors]

    def _function(self, start: int, at: int) -> _Function:
        cursor, rows = self._cursor(at), self._rows
        cursor.skip(8 if self._version == 3 else 4)
        size, first = cursor.u32(), rows + cursor.u32()
        block = 0
        if self._version == 3:
            # Attributes before the rows: their number, two bytes of information, the block.
            cursor = self._cursor(first)
            count, info, more, block = cursor.u16(), cursor.u8(), cursor.u8(), cursor.u8()
            first = cursor.offset
            if more & 0x1F:
                what = f"an entry of the type {more & 0x1F}"
                raise DebugInfoError("FC0905", self._elf.path, what, SECTION, first)
        else:
            count, info = cursor.u32(), cursor.u8()
            block = cursor.u8() if self._version == 2 else 0
        return _Function(start, start + size, first, count, info, block)

    def row(self, address: Address, machine: Architecture) -> Row | None:
        """The rules at ``address``; None where no function has it.

        Raises DebugInfoError FC0904 or FC0905 where the section is damaged, or of another kind.
        """
        if self._starts is None:
            self._starts = self._load()
        at = bisect_right(self._starts, address) - 1
        function = None if at < 0 else self._function(*self._descriptors[at])
        if function is None or address >= function.end:
            return None
        distance = address - function.start
        if function.info >> 4 & 1:  # one pattern of instructions again and again, as in a PLT
            distance %= function.block or 16
        found = self._row_entry(function, distance)
        return None if found is None else self._rules(function, found, machine)

    def _row_entry(self, function: _Function, distance: int) -> tuple[int, list[int]] | None:
        # The last entry that starts at or before `distance`: its information and its words.
        cursor = self._cursor(function.rows)
        width = function.info & 0xF
        if width > 2:
            raise cursor.error(f"frame row entries of the type {width}")
        found = None
        for _ in range(function.count):
            start = cursor.unsigned(1 << width)
            if start > distance:
                break
            info = cursor.u8()
            size = info >> 5 & 3
            if size == 3:
                raise cursor.error("words of an unknown size")
            words = [cursor.signed(1 << size) for _ in range(info >> 1 & 0xF)]
            found = info, words
        return found

    def _rules(
        self, function: _Function, entry: tuple[int, list[int]], machine: Architecture
    ) -> Row | None:
        info, words = entry
        numbers = {name: number for number, name in machine.registers.items()}
        column, frame = DwarfRegister(numbers["ip"]), DwarfRegister(numbers["bp"])
        signal = self._version == 3 and bool(function.info & 0x80)
        own = FrameRelative(ByteOffset(self._return_offset))
        rules: list[tuple[DwarfRegister, Place]] = []
        if not words:  # the return address is undefined
            stack = InMemory(machine.stack_pointer, ByteOffset(0))
            return Row(stack, ((column, _OUTERMOST),), column, signal)
        base = machine.stack_pointer if info & 1 else frame
        rules.append((column, own))
        if len(words) > 1:
            rules.append((frame, FrameRelative(ByteOffset(words[1]))))
        return Row(InMemory(base, ByteOffset(words[0])), tuple(rules), column, signal)


def stack_trace_table(elf: Elf) -> StackTraceTable | None:
    """The table of a file; None where it has none."""
    return None if elf.section(SECTION) is None else StackTraceTable(elf)
