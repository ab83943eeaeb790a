"""Line tables: runs line programs, whose rows give the file and line of each instruction.

Source: DWARF 5, sections 6.2.2 and 6.2.5.
"""

from __future__ import annotations

from bisect import bisect_right
from os.path import normpath

from fetchc.debuginfo.byte_reader import decode_number, read_uleb, skip_leb
from fetchc.debuginfo.dwarf import subprograms
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_call_file,
    DW_AT_call_line,
    DW_AT_decl_file,
    DW_AT_decl_line,
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
    DW_TAG_inlined_subroutine,
    DW_TAG_lexical_block,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.forms import DAMAGED
from fetchc.debuginfo.dwarf.inlined_subroutines import inlined_calls
from fetchc.debuginfo.dwarf.qualified_names import qualified_name
from fetchc.debuginfo.dwarf.variables import called_at, locals_around, parameters
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Instance
from fetchc.quantities import Address
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Function, Variable

    RawRow = tuple[int, int, int, bool, bool, bool]
    Lines = dict[int, tuple[Address, ...]]

__all__ = [
    "CodeLines",
    "CodeMap",
    "Header",
    "LineRow",
    "body_address",
    "file_name",
    "file_names",
    "raw_rows",
    "read_header",
    "rows",
    "source_line",
]

# ------------------------------------------------------------------------------
# Headers of line tables: the names of a unit's source files, and how its program is written.
#
# Source: DWARF 5, section 6.2.4; the tables of files and directories of versions 2 to 4: DWARF 4,
# section 6.2.4.

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

    ``file`` is an index for ``file_name``. The row of ``end_sequence``
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
    standard = min(header.opcode_base - 1, len(_OPERANDS))
    if header.operand_counts[:standard] != _OPERANDS[:standard]:
        raise cursor.error("line number opcodes with other operands than the standard's")
    if header.line_range == 0:
        raise cursor.error("a line table whose special opcodes cover no lines")
    step, line_base, line_range = header.minimum_length, header.line_base, header.line_range
    opcode_base, counts = header.opcode_base, header.operand_counts
    constant_advance = step * ((255 - opcode_base) // line_range)
    little = cursor.little
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
                    address = decode_number(data[at + 1 : behind], little) & largest
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
                address = (address + decode_number(data[at : at + 2], little)) & largest
                at += 2
            elif opcode == DW_LNS_set_prologue_end:
                prologue_end = True
            else:
                # set_column, set_basic_block, set_epilogue_begin, set_isa, or unknown: the header
                # says how many numbers to leave out.
                for _ in range(counts[opcode - 1]):
                    at = skip_leb(data, at)
    except DAMAGED as damage:
        what = f"a line table that cannot be read: {damage}"
        raise cursor.error(what, header.start + min(at, size)) from None


# ------------------------------------------------------------------------------
# What the line table and the declaration say of one function: its body, its source.


def body_address(info: DebugInfo, die: Die, start: Address) -> Address:
    """The first instruction after the prologue of a function that starts at ``start``.

    Marked by prologue_end; else the next statement after the first row. That GCC's
    second row is where unoptimized code has stored its parameters was measured, not
    promised by anyone. The function's start where the line table says neither.
    """
    end = next((high for low, high in info.ranges(die) if low <= start < high), start)
    second: Address | None = None
    inside = False
    for address, _, _, is_stmt, prologue_end, _ in raw_rows(info, die.unit):
        if not start <= address < end:
            if inside and address >= end:
                break  # the addresses of a sequence rise, and the function is in one of them
            continue
        inside = True
        if prologue_end:
            return Address(address)
        if second is None and is_stmt and address > start:
            second = Address(address)
    return start if second is None else second


def source_line(info: DebugInfo, die: Die) -> str | None:
    """``file.c:17`` of the declaration, None where unknown."""
    lined, filed = info.inherited(die, DW_AT_decl_line), info.inherited(die, DW_AT_decl_file)
    if lined is None or filed is None:
        return None
    number, index = lined.unsigned(DW_AT_decl_line), filed.unsigned(DW_AT_decl_file)
    name = None if index is None else file_name(info, filed.unit, index)
    if not number or name is None:
        return None
    return f"{name.rpartition('/')[2]}:{number}"


# ------------------------------------------------------------------------------
# Where source lines, and the bodies of functions that were inlined, are in the code.
#
# Source: DWARF 5, sections 6.2.2 (statements), 3.3.8.2 (inlined instances), 2.18 (where a range
# of code is entered).


class CodeMap:
    """Implements :class:`~fetchc.program.protocol.CodeMap` for one file."""

    __slots__ = ("_elf", "_info")

    def __init__(self, elf: Elf, info: DebugInfo) -> None:
        self._elf = elf
        self._info = info

    def lines(self, file: str) -> dict[str, Lines]:
        """By source file whose path ends in ``file``: the addresses at which each line begins."""
        wanted = _words(file)
        found: dict[str, dict[int, dict[Address, None]]] = {}
        seen = set()
        for unit in self._info.units():
            table = unit.skeleton.top.raw(DW_AT_stmt_list)
            if table is None or table in seen:
                continue
            seen.add(table)
            names = {
                index: normpath(path)
                for index, path in file_names(self._info, unit).items()
                if _words(path)[-len(wanted) :] == wanted
            }
            if names:
                self._gather(raw_rows(self._info, unit), names, found)
        return {path: _sorted(lines) for path, lines in found.items()}

    def lines_of(self, function: Function) -> tuple[str, Lines] | None:
        """The file that ``function`` is in, and where its lines begin in its own code.

        None where the debug information has neither.
        """
        if function.die is None:
            return None
        die = self._info.die(function.die)
        filed = self._info.inherited(die, DW_AT_decl_file)
        index = None if filed is None else filed.unsigned(DW_AT_decl_file)
        if filed is None or index is None:
            return None
        path = file_name(self._info, filed.unit, index)
        if path is None:
            return None
        names = {
            index: normpath(path)
            for index, other in file_names(self._info, die.unit).items()
            if normpath(other) == normpath(path)
        }
        ranges = self._info.ranges(die)
        own = (
            row
            for row in raw_rows(self._info, die.unit)
            if row[5] or any(start <= row[0] < end for start, end in ranges)
        )
        found: dict[str, dict[int, dict[Address, None]]] = {}
        self._gather(own, names, found)
        return normpath(path), _sorted(found.get(normpath(path), {}))

    def _gather(
        self,
        rows: Iterable[RawRow],
        names: dict[int, str],
        found: dict[str, dict[int, dict[Address, None]]],
    ) -> None:
        # Rows of one line in a row are one visit of it; line 0 is nobody's and ends none.
        path: str | None = None
        last, visited = 0, False  # the line of the last row, and whether its visit has begun
        for address, file, number, is_stmt, _, end in rows:
            if file not in names or end:
                if number or end:
                    path = None
                continue
            if not number:
                continue
            if number != last or path != names[file]:
                path, last, visited = names[file], number, False
            if is_stmt and not visited:
                visited = True
                if self._elf.is_code(Address(address)):
                    found.setdefault(path, {}).setdefault(number, {})[Address(address)] = None

    def statement_behind(self, function: Function, address: Address) -> Address | None:
        """The first statement of ``function`` behind ``address``; None where there is none."""
        if function.die is None:
            return None
        die = self._info.die(function.die)
        ranges = [(low, high) for low, high in self._info.ranges(die) if low <= address < high]
        behind = [
            row.address
            for row in rows(self._info, die.unit)
            if row.is_stmt
            and not row.end_sequence
            and row.address > address
            and any(low <= row.address < high for low, high in ranges)
        ]
        return min(behind, default=None)

    def instances(self, name: str) -> tuple[Instance, ...]:
        """Every inlined copy of the functions of that name, by address."""
        found = {}
        for die in inlined_calls(self._info, name):
            address = called_at(self._info, die)
            if address is None or not self._elf.is_code(address):
                continue
            around = [one for one in self._info.ancestors(die) if one.tag == DW_TAG_subprogram]
            holder = (
                subprograms.subprogram_at(self._elf, self._info, around[-1], address)
                if around
                else None
            )
            if holder is not None:
                called = qualified_name(self._info, die)
                line = call_line(self._info, die)
                found[die.offset] = Instance(called, holder, address, die.offset, line)
        return tuple(sorted(found.values(), key=lambda one: (one.address, one.die)))

    def variables(self, instance: Instance) -> tuple[Variable, ...]:
        """The variables visible in the inlined call: its own, then those around it."""
        assert instance.function.die is not None
        function = self._info.die(instance.function.die)
        own = self._info.die(instance.die)
        return (*locals_around(self._info, function, own), *parameters(self._info, function))


_SCOPES_OF_CODE = frozenset({DW_TAG_inlined_subroutine, DW_TAG_lexical_block})


class CodeLines:
    """The source of single addresses of one file: functions, inlined ones too, and lines."""

    __slots__ = ("_functions", "_info", "_rows")

    def __init__(self, elf: Elf) -> None:
        self._info = DebugInfo(elf)
        self._rows: dict[int, tuple[list[int], list[tuple[int, int]]]] = {}  # by the unit's offset
        self._functions: dict[int, list[tuple[Address, Address, Die]]] = {}

    def at(self, address: Address) -> tuple[tuple[str, str | None], ...]:
        """Each function and its line, ``file.c:17``, at ``address``: first those inlined there.

        Empty where no debug information has the address. Raises nothing of a damaged file.
        """
        try:
            unit = self._info.unit_of_address(address) if self._info.present else None
            return () if unit is None else tuple(self._of_unit(unit, address))
        except DebugInfoError:
            return ()  # names by symbols are still there

    def _of_unit(self, unit: Unit, address: Address) -> Iterator[tuple[str, str | None]]:
        line = self._line(unit, address)
        around = self._around(unit, address)
        if not around and line is not None:
            yield "", line
        for die in reversed(around):
            yield qualified_name(self._info, die), line
            line = call_line(self._info, die)

    def _line(self, unit: Unit, address: Address) -> str | None:
        if unit.offset not in self._rows:
            found = sorted(
                [(at, end, file, line) for at, file, line, _, _, end in raw_rows(self._info, unit)],
                key=lambda one: (one[0], not one[1]),
            )
            places = [(0, 0) if end else (file, line) for _, end, file, line in found]
            self._rows[unit.offset] = [one[0] for one in found], places
        addresses, places = self._rows[unit.offset]
        at = bisect_right(addresses, address) - 1
        if at < 0 or not places[at][1]:
            return None
        file, line = places[at]
        name = file_name(self._info, unit, file)
        return None if name is None else f"{name.rpartition('/')[2]}:{line}"

    def _around(self, unit: Unit, address: Address) -> list[Die]:
        # The subprogram, and in it the inlined calls, outermost first.
        if unit.offset not in self._functions:
            self._functions[unit.offset] = [
                (start, end, die)
                for die in self._info.subprograms(unit)
                for start, end in self._info.ranges(die)
            ]
        listed = self._functions[unit.offset]
        found = [die for start, end, die in listed if start <= address < end][:1]
        waiting = list(found)
        while waiting:
            for die in self._info.children(waiting.pop()):
                if die.tag not in _SCOPES_OF_CODE:
                    continue
                if any(start <= address < end for start, end in self._info.ranges(die)):
                    if die.tag == DW_TAG_inlined_subroutine:
                        found.append(die)
                    waiting = [die]
                    break
        return found


def call_line(info: DebugInfo, die: Die) -> str | None:
    """``file.c:17`` of the call that was inlined as ``die``; None where unknown."""
    number, index = die.unsigned(DW_AT_call_line), die.unsigned(DW_AT_call_file)
    path = None if index is None else file_name(info, die.unit, index)
    return None if not number or path is None else f"{path.rpartition('/')[2]}:{number}"


def _words(path: str) -> list[str]:
    return [word for word in normpath(path).split("/") if word]


def _sorted(lines: dict[int, dict[Address, None]]) -> Lines:
    return {number: tuple(sorted(addresses)) for number, addresses in sorted(lines.items())}
