"""Location lists of both generations, and where a variable is at an address or over all.

Source: DWARF 5, section 7.7.3 (.debug_loclists) and DWARF 4, section 2.6.2 (.debug_loc);
view pairs: binutils' ``include/dwarf2.def``, DW_LLE_view_pair (gcc -gvariable-location-views).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_const_value,
    DW_AT_frame_base,
    DW_AT_location,
)
from fetchc.debuginfo.dwarf.entries.cursor import Cursor
from fetchc.debuginfo.dwarf.entries.die import LocationListRef
from fetchc.debuginfo.dwarf.entries.simple import NO_LOCATION, simple_place
from fetchc.diag.errors import DebugInfoError
from fetchc.program.model import Extent
from fetchc.program.places import Absent, Indirect, OnEntry, PointerTo, is_on_entry
from fetchc.record import Record
from fetchc.units import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.program.places import Place

    Range = tuple[Address, Address]
    Part = tuple[Address, Address, Place | None]
    Pointee = Callable[[int], Place]

__all__ = ["Entry", "entries", "extents", "frame_base_at", "place_at"]

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

MAX_IMPLICIT_POINTERS = 8
"""Longer chains are refused: a hostile file may have a circle of them."""


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


def entries(info: DebugInfo, die: Die, reference: LocationListRef) -> tuple[Entry, ...]:
    """The list that an attribute of ``die`` names, in its order, without empty ranges.

    Raises DebugInfoError FC0904 where the list is malformed or has no end.
    """
    return tuple(_iterate(info, die.unit, reference))


def place_at(
    info: DebugInfo, die: Die, function: Die | None, address: Address, depth: int = 0
) -> Place:
    """Where the variable ``die`` is at ``address``, relative to the CFA as DWARF says it.

    ``function`` is the concrete subprogram around it, for its frame base; None for a
    variable of the file. What an abstract origin says counts where ``die`` says nothing.
    ``depth`` counts the implicit pointers that led here.
    """
    located = info.inherited(die, DW_AT_location)
    if located is None:
        return _without_location(info, die)
    description = located.location(DW_AT_location)
    if description is None:
        raise _wrong_class(located, DW_AT_location)
    base = None if function is None else frame_base_at(info, function, address)

    def pointee(offset: int) -> Place:
        if depth == MAX_IMPLICIT_POINTERS:
            return Absent("FC0406", f"it is behind {depth} pointers that are in no memory")
        return place_at(info, info.die(DieOffset(offset)), function, address, depth + 1)

    if isinstance(description, bytes):
        return _place(located, description, base, pointee)
    default: Entry | None = None
    for entry in _iterate(info, located.unit, description):
        if entry.default:
            default = entry
        elif entry.start <= address < entry.end:
            return _place_of(info, located, entry, base, pointee)
    if default is not None:
        return _place_of(info, located, default, base, pointee)
    return Absent("FC0401", f"the debug information gives it no place at {address:#x}")


def extents(info: DebugInfo, die: Die, function: Die | None) -> tuple[Extent, ...]:
    """Every place of the variable ``die`` with its addresses, in the order of the list.

    A location without a list holds in all of ``function``, without one everywhere.
    Neighbours with the same place are one extent.
    """
    whole = ((Address(0), Address(1 << 8 * die.unit.address_size)),)
    scope = whole if function is None else info.ranges(function)
    located = info.inherited(die, DW_AT_location)
    if located is None:
        absent_or_constant = _without_location(info, die)
        return tuple([Extent(start, end, absent_or_constant) for start, end in scope])
    bases = [] if function is None else _frame_bases(info, function)
    found: list[Extent] = []
    for start, end, entry in _ranges(info, located, DW_AT_location, scope):
        for low, high, base in _split(start, end, bases):
            at = _found(_place_of(info, located, entry, base))
            if found and found[-1].end == low and found[-1].place == at:
                found[-1] = Extent(found[-1].start, high, at)
            else:
                if len(found) >= MAX_ENTRIES:
                    what = f"more than {MAX_ENTRIES} places of one variable"
                    raise DebugInfoError("FC0904", located.unit.path, what, _section(located.unit))
                found.append(Extent(low, high, at))
    return tuple(found)


def _found(at: Place) -> Place:
    # What only a caller may know is nowhere in the function.
    if isinstance(at, Indirect | OnEntry | PointerTo) and is_on_entry(at):
        return Absent("FC0406", "it is what a register held on entry and kept in no memory")
    return at


def frame_base_at(info: DebugInfo, function: Die, address: Address) -> Place | None:
    """What DW_AT_frame_base of a concrete subprogram describes; None without one there."""
    described = info.inherited(function, DW_AT_frame_base)
    if described is None:
        return None
    location = described.location(DW_AT_frame_base)
    if isinstance(location, bytes):
        return _place(described, location, None)
    for start, end, entry in _ranges(info, described, DW_AT_frame_base, ()):
        if start <= address < end:
            return _place_of(info, described, entry, None)
    return None


def _without_location(info: DebugInfo, die: Die) -> Place:
    valued = info.inherited(die, DW_AT_const_value)
    if valued is None:
        return NO_LOCATION
    from fetchc.debuginfo.dwarf.locations.const_value import constant_of

    return constant_of(valued) or NO_LOCATION


def _wrong_class(die: Die, attribute: int) -> DebugInfoError:
    from fetchc.debuginfo.dwarf.locations.const_value import wrong_class

    return wrong_class(die, attribute)


def _place_of(
    info: DebugInfo, die: Die, entry: Entry, base: Place | None, pointee: Pointee | None = None
) -> Place:
    if entry.offset < 0:
        return _place(die, entry.expression, base, pointee)
    simple = simple_place(entry.expression, die.unit, base)
    if simple is not None:
        return simple
    from fetchc.debuginfo.dwarf.locations.expr import place

    cursor = _cursor(info, die.unit, entry.offset)
    cursor.end = entry.offset + len(entry.expression)
    return place(cursor, die.unit, base, pointee)


def _place(
    die: Die, expression: bytes, base: Place | None, pointee: Pointee | None = None
) -> Place:
    # Of an attribute's own expression: errors count from its start and name the entry.
    simple = simple_place(expression, die.unit, base)
    if simple is not None:
        return simple
    from fetchc.debuginfo.dwarf.locations.expr import place

    section = f".debug_info: expression of the entry at {die.offset:#x}"
    cursor = Cursor(die.unit.path, section, expression, little=die.unit.little)
    return place(cursor, die.unit, base, pointee)


def _frame_bases(info: DebugInfo, function: Die) -> list[Part]:
    described = info.inherited(function, DW_AT_frame_base)
    if described is None:
        return []
    scope = info.ranges(function)
    return _disjoint(
        [
            (start, end, _place_of(info, described, entry, None))
            for start, end, entry in _ranges(info, described, DW_AT_frame_base, scope)
        ]
    )


def _disjoint(parts: list[Part]) -> list[Part]:
    # In the order of their addresses; where two overlap, the one that starts first holds.
    result: list[Part] = []
    reached = Address(0)
    for low, high, at in sorted(parts, key=lambda part: part[:2]):
        if high > reached:
            result.append((max(low, reached), high, at))
            reached = high
    return result


def _split(start: Address, end: Address, parts: list[Part]) -> Iterator[Part]:
    # [start, end) cut at the borders of disjoint ``parts``; None where none of them is.
    first, last = 0, len(parts)
    while first < last:  # the first part that ends behind ``start``
        middle = (first + last) // 2
        if parts[middle][1] <= start:
            first = middle + 1
        else:
            last = middle
    at = start
    for position in range(first, len(parts)):
        low, high, base = parts[position]
        if low >= end:
            break
        if at < low:
            yield at, low, None
            at = low
        stop = min(high, end)
        yield at, stop, base
        at = stop
    if at < end:
        yield at, end, None


def _ranges(
    info: DebugInfo, die: Die, attribute: int, scope: tuple[Range, ...]
) -> Iterator[tuple[Address, Address, Entry]]:
    # Expressions of an attribute with their ranges; one without a list holds in ``scope``.
    location = die.location(attribute)
    if location is None:
        raise _wrong_class(die, attribute)
    if isinstance(location, bytes):
        for start, end in scope:
            yield start, end, Entry(start, end, location, -1)
        return
    taken: list[Part] = []
    default: Entry | None = None
    for entry in _iterate(info, die.unit, location):
        if entry.default:
            default = entry
        else:
            taken.append((entry.start, entry.end, NO_LOCATION))
            yield entry.start, entry.end, entry
    if default is not None:
        others = _disjoint(taken)
        for start, end in scope:
            for low, high, other in _split(start, end, others):
                if other is None:
                    yield low, high, default


def _section(unit: Unit) -> str:
    return ".debug_loc" if unit.version <= 4 else ".debug_loclists"


def _cursor(info: DebugInfo, unit: Unit, offset: int) -> Cursor:
    name = _section(unit)
    section = info.open_section(name, unit)
    if section is None:
        raise DebugInfoError(
            "FC0904", unit.path, f"a location list is referred to, but there is no {name}"
        )
    return section.cursor(offset)


def _iterate(info: DebugInfo, unit: Unit, reference: LocationListRef) -> Iterator[Entry]:
    cursor = _cursor(info, unit, reference.offset)
    read = _read_kinds
    if unit.version <= 4:
        read = _read_split if unit.is_split else _read_pairs
    for count, entry in enumerate(read(cursor, unit)):
        if count == MAX_ENTRIES:
            raise cursor.error(f"a location list of more than {MAX_ENTRIES} entries")
        if entry.start < entry.end:
            yield entry


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
            base = unit.address_at(cursor.uleb())
            continue
        if kind == DW_LLE_startx_endx:
            start, end = unit.address_at(cursor.uleb()), unit.address_at(cursor.uleb())
        elif kind == DW_LLE_startx_length:
            start = unit.address_at(cursor.uleb())
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
            base = unit.address_at(cursor.uleb())
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
            start, end = unit.address_at(cursor.uleb()), unit.address_at(cursor.uleb())
        elif kind == DW_LLE_startx_length:
            start = unit.address_at(cursor.uleb())
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
