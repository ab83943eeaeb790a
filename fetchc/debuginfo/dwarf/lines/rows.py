"""The rows of a unit's line program: which line of which file each instruction is of.

Source: DWARF 5, sections 6.2.2 and 6.2.5.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.forms import DAMAGED, read_uleb
from fetchc.debuginfo.dwarf.lines.header import read_header
from fetchc.quantities import Address
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.dwarf.lines.header import Header

    RawRow = tuple[int, int, int, bool, bool, bool]

__all__ = ["LineRow", "raw_rows", "rows"]

DW_LNS_copy = 0x01
DW_LNS_advance_pc = 0x02
DW_LNS_advance_line = 0x03
DW_LNS_set_file = 0x04
DW_LNS_set_column = 0x05
DW_LNS_negate_stmt = 0x06
DW_LNS_set_basic_block = 0x07
DW_LNS_const_add_pc = 0x08
DW_LNS_fixed_advance_pc = 0x09
DW_LNS_set_prologue_end = 0x0A
DW_LNS_set_epilogue_begin = 0x0B
DW_LNS_set_isa = 0x0C
_OPERANDS = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])  # of the codes above, from 1

DW_LNE_end_sequence = 0x01
DW_LNE_set_address = 0x02


class LineRow(Record):
    """The code from ``address`` to the next row's belongs to ``line`` of ``file``.

    ``file`` is an index for ``file_name`` of :mod:`.lines.header`. The row of ``end_sequence``
    is the first address behind a run of code and belongs to no line.
    """

    address: Address
    file: int
    line: int
    is_stmt: bool
    prologue_end: bool
    end_sequence: bool


def rows(info: DebugInfo, unit: Unit) -> Iterator[LineRow]:
    """The rows of the unit's line program, in its own order; none without one.

    Raises DebugInfoError FC0904 where the program is malformed, FC0905 for machines with
    several operations an instruction (VLIW).
    """
    for address, file, line, is_stmt, prologue_end, end in raw_rows(info, unit):
        yield LineRow(Address(address), file, line, is_stmt, prologue_end, end)


def raw_rows(info: DebugInfo, unit: Unit) -> Iterator[RawRow]:
    """What :func:`rows` gives, each row as a tuple of a :class:`LineRow`'s fields: much faster."""
    found = read_header(info, unit)
    if found is None:
        return
    cursor, header = found
    cursor.offset, cursor.end = header.start, header.end
    from_zero = not info.elf.is_discarded(Address(0))
    yield from _run(cursor, header, (1 << 8 * unit.address_size) - 1, from_zero)


def _run(cursor: Cursor, header: Header, largest: int, from_zero: bool) -> Iterator[RawRow]:
    # The state machine of DWARF 5, section 6.2.2, without the registers that nobody asks for.
    # On plain bytes: a line that is in every unit runs all programs of a file. Rows from address 0
    # on are of code that the linker left out, where there can be none (``from_zero``).
    known = min(header.opcode_base - 1, len(_OPERANDS))
    if header.operand_counts[:known] != _OPERANDS[:known]:
        raise cursor.error("line number opcodes with other operands than the standard's")
    if header.line_range == 0:
        raise cursor.error("a line table whose special opcodes cover no lines")
    step, line_base, line_range = header.minimum_length, header.line_base, header.line_range
    opcode_base, counts = header.opcode_base, header.operand_counts
    constant_advance = step * ((255 - opcode_base) // line_range)
    order: Literal["little", "big"] = "little" if cursor.little else "big"
    data = bytes(cursor.take(header.end - header.start))
    size, at = len(data), 0
    address, file, line = 0, 1, 1
    is_stmt, prologue_end, linked = header.default_is_stmt, False, True
    try:
        while at < size:
            opcode = data[at]
            at += 1
            if opcode >= opcode_base:
                special = opcode - opcode_base
                address = (address + step * (special // line_range)) & largest
                line += line_base + special % line_range
                if linked:
                    yield address, file, line, is_stmt, prologue_end, False
                prologue_end = False
            elif opcode == 0:
                length, at = read_uleb(data, at)
                behind = at + length
                if behind > size:
                    raise cursor.error("truncated operation of a line table", header.start + at)
                extended = data[at] if length else 0
                if extended == DW_LNE_end_sequence:
                    if linked:
                        yield address, file, line, is_stmt, False, True
                    address, file, line = 0, 1, 1
                    is_stmt, prologue_end, linked = header.default_is_stmt, False, True
                elif extended == DW_LNE_set_address:
                    address = int.from_bytes(data[at + 1 : behind], order) & largest
                    linked = from_zero or address != 0
                at = behind
            elif opcode == DW_LNS_copy:
                if linked:
                    yield address, file, line, is_stmt, prologue_end, False
                prologue_end = False
            elif opcode == DW_LNS_advance_pc:
                number, at = read_uleb(data, at)
                address = (address + step * number) & largest
            elif opcode == DW_LNS_advance_line:
                start = at
                number, at = read_uleb(data, at)
                if data[at - 1] & 0x40:
                    number -= 1 << 7 * (at - start)
                line += number
            elif opcode == DW_LNS_set_file:
                file, at = read_uleb(data, at)
            elif opcode == DW_LNS_negate_stmt:
                is_stmt = not is_stmt
            elif opcode == DW_LNS_const_add_pc:
                address = (address + constant_advance) & largest
            elif opcode == DW_LNS_fixed_advance_pc:
                if at + 2 > size:
                    raise cursor.error("truncated 2-byte number", header.start + at)
                address = (address + int.from_bytes(data[at : at + 2], order)) & largest
                at += 2
            elif opcode == DW_LNS_set_prologue_end:
                prologue_end = True
            else:
                # set_column, set_basic_block, set_epilogue_begin, set_isa, or unknown: the header
                # says how many numbers to leave out.
                for _ in range(counts[opcode - 1]):
                    while data[at] > 0x7F:
                        at += 1
                    at += 1
    except DAMAGED as damage:
        what = f"a line table that cannot be read: {damage}"
        raise cursor.error(what, header.start + min(at, size)) from None
