"""The code ranges of an entry: low and high pc, or a range list of either generation.

Source: DWARF 5, sections 2.17 and 7.25 (range lists); DWARF 4, section 2.17.3.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries.forms import ADDRESS_FORMS
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.units import Unit

    Range = tuple[Address, Address]

__all__ = ["ranges"]


def ranges(die: Die) -> tuple[Range, ...]:
    """Half-open ranges of code in the order of the file; none of what the linker left out."""
    if die.has(c.DW_AT_high_pc):
        low = die.address(c.DW_AT_low_pc)
        if low is None:
            return ()
        # Since DWARF 4 a constant is a length.
        if die.form(c.DW_AT_high_pc) in ADDRESS_FORMS:
            high = die.address(c.DW_AT_high_pc)
        else:
            length = die.unsigned(c.DW_AT_high_pc)
            high = None if length is None else Address(low + length)
        if high is None:
            raise die.unit.error("DW_AT_high_pc is neither address nor length", die.position)
        return ((low, high),) if low < high and (low or _has_zero(die.unit)) else ()
    offset = die.raw(c.DW_AT_ranges)
    if offset is None:
        return ()
    unit = die.unit
    if isinstance(offset, bytes):
        raise unit.error("DW_AT_ranges is no offset", die.position)
    if unit.version < 5:
        listed = _range_list(unit, unit.ranges_base + offset)
    else:
        if die.form(c.DW_AT_ranges) == c.DW_FORM_rnglistx:
            offset = unit.tables.list_offset(".debug_rnglists", offset)
        listed = _rnglist(unit, offset)
    return tuple([one for one in listed if one[0] < one[1] and (one[0] or _has_zero(unit))])


def _has_zero(unit: Unit) -> bool:
    # Whether there can be code at address 0; else it is of what the linker left out.
    return not unit.info.elf.is_discarded(Address(0))


def _range_list(unit: Unit, offset: int) -> Iterator[Range]:
    # .debug_ranges: pairs relative to a base, (-1, base) chooses another, (0, 0) ends.
    reader = unit.info.required_section(".debug_ranges", unit).cursor(offset)
    size = unit.address_size
    choose = (1 << 8 * size) - 1
    base = unit.low_pc
    while True:
        low, high = reader.address(size), reader.address(size)
        if low == choose:
            base = Address(high)
        elif low == 0 and high == 0:
            return
        else:
            yield Address((base + low) & choose), Address((base + high) & choose)


def _rnglist(unit: Unit, offset: int) -> Iterator[Range]:
    reader = unit.info.required_section(".debug_rnglists", unit).cursor(offset)
    size = unit.address_size
    highest = (1 << 8 * size) - 1
    base = unit.low_pc
    while True:
        kind = reader.u8()
        if kind == c.DW_RLE_end_of_list:
            return
        if kind == c.DW_RLE_base_addressx:
            base = unit.tables.address_at(reader.uleb())
        elif kind == c.DW_RLE_base_address:
            base = Address(reader.address(size))
        elif kind == c.DW_RLE_startx_endx:
            yield unit.tables.address_at(reader.uleb()), unit.tables.address_at(reader.uleb())
        elif kind == c.DW_RLE_startx_length:
            start = unit.tables.address_at(reader.uleb())
            yield start, Address(start + reader.uleb())
        elif kind == c.DW_RLE_offset_pair:
            # Go writes what lies in front of the base as a distance that wraps.
            low, high = reader.uleb(), reader.uleb()
            yield Address((base + low) & highest), Address((base + high) & highest)
        elif kind == c.DW_RLE_start_end:
            yield Address(reader.address(size)), Address(reader.address(size))
        elif kind == c.DW_RLE_start_length:
            start = Address(reader.address(size))
            yield start, Address(start + reader.uleb())
        else:
            raise reader.error(f"unknown range list entry {kind:#x}", reader.offset - 1)
