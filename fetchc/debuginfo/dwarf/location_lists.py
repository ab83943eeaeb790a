"""Location lists: .debug_loclists of DWARF 5, .debug_loc of DWARF 4.

Source: DWARF 5, section 7.7.3 (.debug_loclists) and DWARF 4, section 2.6.2 (.debug_loc);
view pairs: binutils' ``include/dwarf2.def``, DW_LLE_view_pair (gcc -gvariable-location-views).
"""

from __future__ import annotations

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import LocationListRef
    from fetchc.debuginfo.dwarf.units import Unit

__all__ = ["MAX_ENTRIES", "Entry", "cursor_at", "entries", "entry_at", "section_name"]

DW_LLE_end_of_list = 0x00
DW_LLE_base_addressx = 0x01
DW_LLE_startx_endx = 0x02
DW_LLE_startx_length = 0x03
DW_LLE_offset_pair = 0x04
DW_LLE_default_location = 0x05
DW_LLE_base_address = 0x06
DW_LLE_start_end = 0x07
DW_LLE_start_length = 0x08
DW_LLE_GNU_view_pair = 0x09

MAX_ENTRIES = 1 << 17
"""Longer lists are refused, so that a hostile one costs a bounded time."""


class Entry(Record):
    """An expression and the half-open range of addresses in which it holds.

    ``offset`` is where the expression's bytes start in the section. A ``default`` entry
    (DW_LLE_default_location) holds wherever no other one does; its range is everything.
    """

    start: Address
    end: Address
    expression: bytes
    offset: int
    default: bool = False


def entries(info: DebugInfo, unit: Unit, reference: LocationListRef) -> Iterator[Entry]:
    """The list that an attribute of an entry of ``unit`` names, in its order.

    Empty ranges are left out. Raises DebugInfoError FC0904 where the list is malformed or has
    no end.
    """
    cursor = cursor_at(info, unit, reference.offset)
    read = _read_kinds
    if unit.version <= 4:
        read = _read_split if unit.is_split else _read_pairs
    for count, entry in enumerate(read(cursor, unit)):
        if count == MAX_ENTRIES:
            what = f"a location list of more than {MAX_ENTRIES:,} entries"
            raise DebugInfoError("FC0905", cursor.path, what, cursor.section, cursor.offset)
        if entry.start < entry.end:
            yield entry


def entry_at(
    info: DebugInfo, unit: Unit, reference: LocationListRef, address: Address
) -> Entry | None:
    """The entry that holds at ``address``: the first one, else the default; None without one."""
    default: Entry | None = None
    for entry in entries(info, unit, reference):
        if entry.default:
            default = entry
        elif entry.start <= address < entry.end:
            return entry
    return default


def section_name(unit: Unit) -> str:
    """The section that has the lists of a unit."""
    return ".debug_loc" if unit.version <= 4 else ".debug_loclists"


def cursor_at(info: DebugInfo, unit: Unit, offset: int) -> Cursor:
    """A cursor on that section; FC0904 where it is missing."""
    name = section_name(unit)
    section = info.open_section(name, unit)
    if section is None:
        raise DebugInfoError(
            "FC0904", unit.path, f"a location list is referred to, but there is no {name}"
        )
    return section.cursor(offset)


def _read_pairs(cursor: Cursor, unit: Unit) -> Iterator[Entry]:
    # .debug_loc: two offsets and an expression; (largest address, base) selects a new base.
    size = unit.address_size
    largest = (1 << 8 * size) - 1
    base: int = unit.low_pc
    while True:
        start, end = cursor.address(size), cursor.address(size)
        if start == end == 0:
            return
        if start == largest:
            base = end
            continue
        length = cursor.u16()
        offset = cursor.offset
        expression = cursor.take(length)
        yield Entry(
            Address((base + start) & largest), Address((base + end) & largest), expression, offset
        )


def _read_split(cursor: Cursor, unit: Unit) -> Iterator[Entry]:
    # .debug_loc.dwo of DWARF 4: a code each, as in version 5, but a length of four bytes, an
    # expression's of two, and offsets of two times four.
    # Source: https://gcc.gnu.org/wiki/DebugFission; gcc/dwarf2out.cc, output_loc_list.
    base: int = unit.low_pc
    while True:
        at = cursor.offset
        kind = cursor.u8()
        if kind == DW_LLE_end_of_list:
            return
        if kind == DW_LLE_base_addressx:
            base = _indexed(cursor, unit)
            continue
        if kind == DW_LLE_startx_endx:
            start, end = _indexed(cursor, unit), _indexed(cursor, unit)
        elif kind == DW_LLE_startx_length:
            start = _indexed(cursor, unit)
            end = Address(start + cursor.u32())
        elif kind == DW_LLE_offset_pair:
            start, end = Address(base + cursor.u32()), Address(base + cursor.u32())
        else:
            raise cursor.error(f"unknown entry kind {kind:#x} of a split location list", at)
        length = cursor.u16()
        offset = cursor.offset
        yield Entry(start, end, cursor.take(length), offset)


def _read_kinds(cursor: Cursor, unit: Unit) -> Iterator[Entry]:
    # .debug_loclists: a code each, then addresses, then an expression with its length.
    size = unit.address_size
    largest = (1 << 8 * size) - 1
    base: int = unit.low_pc
    while True:
        at = cursor.offset
        kind = cursor.u8()
        if kind == DW_LLE_end_of_list:
            return
        if kind == DW_LLE_base_addressx:
            base = _indexed(cursor, unit)
            continue
        if kind == DW_LLE_base_address:
            base = cursor.address(size)
            continue
        if kind == DW_LLE_GNU_view_pair:
            cursor.uleb()
            cursor.uleb()
            continue
        start, end = 0, largest
        if kind == DW_LLE_offset_pair:
            start, end = base + cursor.uleb(), base + cursor.uleb()
        elif kind == DW_LLE_startx_endx:
            start, end = _indexed(cursor, unit), _indexed(cursor, unit)
        elif kind == DW_LLE_startx_length:
            start = _indexed(cursor, unit)
            end = start + cursor.uleb()
        elif kind == DW_LLE_start_end:
            start, end = cursor.address(size), cursor.address(size)
        elif kind == DW_LLE_start_length:
            start = cursor.address(size)
            end = start + cursor.uleb()
        elif kind != DW_LLE_default_location:
            raise cursor.error(f"unknown location list entry kind {kind:#x}", at)
        length = cursor.uleb()
        offset = cursor.offset
        expression = cursor.take(length)
        default = kind == DW_LLE_default_location
        yield Entry(Address(start & largest), Address(end & largest), expression, offset, default)


def _indexed(cursor: Cursor, unit: Unit) -> Address:
    return unit.tables.address_at(cursor.uleb())
