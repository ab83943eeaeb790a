"""Headers of line tables: the names of a unit's source files, and how its program is written.

Source: DWARF 5, section 6.2.4; the tables of files and directories of versions 2 to 4: DWARF 4,
section 6.2.4.
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
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["Header", "file_name", "file_names", "read_header"]

DW_LNCT_path = 0x1
DW_LNCT_directory_index = 0x2

_FIXED_SIZES = {
    DW_FORM_data1: 1,
    DW_FORM_data2: 2,
    DW_FORM_data4: 4,
    DW_FORM_data8: 8,
    DW_FORM_data16: 16,
}
_STRING_SECTIONS = {DW_FORM_strp: ".debug_str", DW_FORM_line_strp: ".debug_line_str"}


class _Name(Record):
    # A string in ``section``, whose bytes are looked up when asked for, or ``text`` itself.
    text: bytes
    section: str = ""
    offset: int = 0


class Header(Record):
    """What comes before a line program; the program is at [start, end) of the section."""

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
        unit.line_header = read_header(info, unit)
        if unit.line_header is None:
            return None
    cursor, header = unit.line_header
    position = index if header.version >= 5 else index - 1
    if not 0 <= position < len(header.files):
        return None
    return _path(info, unit, cursor, header, position)


def file_names(info: DebugInfo, unit: Unit) -> dict[int, str]:
    """The paths of all files of the unit's line table, by the index that its rows have."""
    found = read_header(info, unit)
    if found is None:
        return {}
    cursor, header = found
    first = 0 if header.version >= 5 else 1
    return {
        first + position: _path(info, unit, cursor, header, position)
        for position in range(len(header.files))
    }


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


def read_header(info: DebugInfo, unit: Unit) -> tuple[Cursor, Header] | None:
    """The header of the unit's line table, and a cursor on its section; None without a table.

    Raises DebugInfoError FC0904 where the table is malformed or missing, FC0905 for machines with
    several operations an instruction (VLIW).
    """
    unit = unit.skeleton
    offset = unit.top.raw(DW_AT_stmt_list)
    if offset is None:
        return None
    section = info.open_section(".debug_line", unit)
    if section is None or not isinstance(offset, int):
        raise DebugInfoError("FC0904", unit.path, "a line table is referred to, but there is none")
    cursor = section.cursor(offset)
    return cursor, _header(cursor)


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
