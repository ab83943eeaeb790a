"""Line tables: names of source files, and the rows of one unit's line program.

Read only where a source line is shown or asked for. Source: DWARF 5, section 6.2; the
tables of files and directories of versions 2 to 4: DWARF 4, section 6.2.4.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_stmt_list,
    DW_FORM_block,
    DW_FORM_data1,
    DW_FORM_data2,
    DW_FORM_data4,
    DW_FORM_data8,
    DW_FORM_data16,
    DW_FORM_line_strp,
    DW_FORM_string,
    DW_FORM_strp,
    DW_FORM_udata,
)
from fetchc.debuginfo.dwarf.entries.forms import DAMAGED, read_uleb
from fetchc.diag.errors import DebugInfoError
from fetchc.record import Record
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from fetchc.debuginfo.dwarf.entries.cursor import Cursor
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit

    RawRow = tuple[int, int, int, bool, bool, bool]

__all__ = ["LineRow", "file_name", "file_names", "raw_rows", "rows"]

DW_LNCT_path = 0x1
DW_LNCT_directory_index = 0x2

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

_FIXED_SIZES = {
    DW_FORM_data1: 1,
    DW_FORM_data2: 2,
    DW_FORM_data4: 4,
    DW_FORM_data8: 8,
    DW_FORM_data16: 16,
}
_STRING_SECTIONS = {DW_FORM_strp: ".debug_str", DW_FORM_line_strp: ".debug_line_str"}


class LineRow(Record):
    """The code from ``address`` to the next row's belongs to ``line`` of ``file``.

    ``file`` is an index for :func:`file_name`. The row of ``end_sequence`` is the first
    address behind a run of code and belongs to no line.
    """

    address: Address
    file: int
    line: int
    is_stmt: bool
    prologue_end: bool
    end_sequence: bool


class _Name(Record):
    # A string in ``section``, whose bytes are looked up when asked for, or ``text`` itself.
    text: bytes
    section: str = ""
    offset: int = 0


class Header(Record):
    # What comes before a line program; the program is at [start, end) of the section.
    version: int
    minimum_length: int
    default_is_stmt: bool
    line_base: int
    line_range: int
    opcode_base: int
    operand_counts: bytes
    directories: tuple[_Name, ...]
    files: tuple[tuple[_Name, int], ...]
    start: int
    end: int


def file_name(info: DebugInfo, unit: Unit, index: int) -> str | None:
    """Path of the file that DW_AT_decl_file ``index`` of ``unit`` means.

    Absolute where the debug information says it. None where the unit has no line table or
    the table no such file (index 0 of versions before 5).
    """
    # A listing asks for each function of a unit.
    if unit.line_header is None:
        cursor = _open(info, unit)
        if cursor is None:
            return None
        unit.line_header = cursor, _header(cursor)
    cursor, header = unit.line_header
    position = index if header.version >= 5 else index - 1
    if not 0 <= position < len(header.files):
        return None
    return _path(info, unit, cursor, header, position)


def file_names(info: DebugInfo, unit: Unit) -> dict[int, str]:
    """The paths of all files of the unit's line table, by the index that its rows have."""
    cursor = _open(info, unit)
    if cursor is None:
        return {}
    header = _header(cursor)
    first = 0 if header.version >= 5 else 1
    return {
        first + position: _path(info, unit, cursor, header, position)
        for position in range(len(header.files))
    }


def rows(info: DebugInfo, unit: Unit) -> Iterator[LineRow]:
    """The rows of the unit's line program, in its own order; none without one.

    Raises DebugInfoError FC0904 where the program is malformed, FC0905 for machines with
    several operations an instruction (VLIW).
    """
    for address, file, line, is_stmt, prologue_end, end in raw_rows(info, unit):
        yield LineRow(Address(address), file, line, is_stmt, prologue_end, end)


def raw_rows(info: DebugInfo, unit: Unit) -> Iterator[RawRow]:
    """What :func:`rows` gives, each row as a tuple of a :class:`LineRow`'s fields: much faster."""
    cursor = _open(info, unit)
    if cursor is None:
        return
    header = _header(cursor)
    cursor.offset, cursor.end = header.start, header.end
    from_zero = not info.elf.is_discarded(Address(0))
    yield from _run(cursor, header, (1 << 8 * unit.address_size) - 1, from_zero)


def _path(info: DebugInfo, unit: Unit, cursor: Cursor, header: Header, position: int) -> str:
    name, directory = header.files[position]
    parts = [unit.comp_dir or ""]
    if header.version >= 5:
        if directory < len(header.directories):
            parts.append(_text(info, unit, cursor, header.directories[directory]))
    elif 0 < directory <= len(header.directories):
        parts.append(_text(info, unit, cursor, header.directories[directory - 1]))
    parts.append(_text(info, unit, cursor, name))
    path = ""
    for part in parts:
        path = part if part.startswith("/") or not path else f"{path}/{part}" if part else path
    return path


def _open(info: DebugInfo, unit: Unit) -> Cursor | None:
    unit = unit.skeleton
    offset = unit.top.raw(DW_AT_stmt_list)
    if offset is None:
        return None
    section = info.open_section(".debug_line", unit)
    if section is None or not isinstance(offset, int):
        raise DebugInfoError("FC0904", unit.path, "a line table is referred to, but there is none")
    return section.cursor(offset)


def _header(cursor: Cursor) -> Header:
    at = cursor.offset
    length, offset_size = cursor.initial_length()
    end = cursor.offset + length
    cursor.end = end
    version = cursor.u16()
    if not 2 <= version <= 5:
        what = f"version {version} of a line table"
        raise DebugInfoError("FC0905", cursor.path, what, cursor.section, at)
    if version >= 5:
        cursor.skip(2)  # address and segment selector size: DW_LNE_set_address has its own
    header_length = cursor.unsigned(offset_size)
    start = cursor.offset + header_length
    if start > end:
        raise cursor.error("a line table header longer than its table")
    minimum_length = cursor.u8()
    if version >= 4 and cursor.u8() > 1:
        what = "several operations an instruction"
        raise DebugInfoError("FC0905", cursor.path, what, cursor.section, at)
    default_is_stmt = cursor.u8() != 0
    line_base, line_range, opcode_base = cursor.signed(1), cursor.u8(), cursor.u8()
    if opcode_base == 0:
        raise cursor.error("a line table whose first special opcode is 0")
    operand_counts = cursor.take(opcode_base - 1)
    directories: tuple[_Name, ...]
    if version >= 5:
        directories = tuple([name for name, _ in _entries(cursor, offset_size)])
        files = tuple(_entries(cursor, offset_size))
    else:
        directories = tuple([_Name(text) for text in _strings(cursor)])
        files = tuple(_old_files(cursor))
    return Header(
        version,
        minimum_length,
        default_is_stmt,
        line_base,
        line_range,
        opcode_base,
        operand_counts,
        directories,
        files,
        start,
        end,
    )


def _strings(cursor: Cursor) -> Iterator[bytes]:
    # NUL-terminated strings up to an empty one.
    while True:
        text = cursor.cstring()
        if not text:
            return
        yield text


def _old_files(cursor: Cursor) -> Iterator[tuple[_Name, int]]:
    for text in _strings(cursor):
        directory = cursor.uleb()
        cursor.uleb()  # time
        cursor.uleb()  # size
        yield _Name(text), directory


def _entries(cursor: Cursor, offset_size: int) -> Iterator[tuple[_Name, int]]:
    # A table of version 5: the format of an entry, then the entries.
    formats = [(cursor.uleb(), cursor.uleb()) for _ in range(cursor.u8())]
    count = cursor.uleb()
    if count > cursor.remaining() or (count and not formats):
        raise cursor.error(f"a table of {count} entries runs past the end of the section")
    for _ in range(count):
        name = _Name(b"")
        directory = 0
        for content, form in formats:
            value = _value(cursor, form, offset_size)
            if content == DW_LNCT_path and isinstance(value, _Name):
                name = value
            elif content == DW_LNCT_directory_index and isinstance(value, int):
                directory = value
        yield name, directory


def _value(cursor: Cursor, form: int, offset_size: int) -> _Name | int:
    # Every form has at least one byte, so a count of entries is bounded by the section.
    if form == DW_FORM_string:
        return _Name(cursor.cstring())
    if form in _STRING_SECTIONS:
        return _Name(b"", _STRING_SECTIONS[form], cursor.unsigned(offset_size))
    if form == DW_FORM_udata:
        return cursor.uleb()
    if form == DW_FORM_block:
        cursor.skip(cursor.uleb())
        return 0
    if form in _FIXED_SIZES:
        return cursor.unsigned(_FIXED_SIZES[form])
    raise DebugInfoError(
        "FC0905",
        cursor.path,
        f"form {form:#x} in a line table",
        cursor.section,
        cursor.offset,
    )


def _text(info: DebugInfo, unit: Unit, cursor: Cursor, name: _Name) -> str:
    raw = name.text
    if name.section:
        section = info.open_section(name.section, unit.skeleton)
        if section is None:
            raise DebugInfoError(
                "FC0904", cursor.path, f"a line table without {name.section}", cursor.section
            )
        raw = section.cstring(name.offset)
    return raw.decode("utf-8", "surrogateescape")


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
