"""Every location of a variable with its address ranges.

Source: DWARF 5, section 2.6.2 (location lists).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import (
    DW_AT_byte_size,
    DW_AT_count,
    DW_AT_frame_base,
    DW_AT_location,
    DW_AT_lower_bound,
    DW_AT_type,
    DW_AT_upper_bound,
    DW_TAG_subrange_type,
)
from fetchc.debuginfo.dwarf.expressions import value_place
from fetchc.debuginfo.dwarf.location_lists import MAX_ENTRIES, entries, section_name
from fetchc.debuginfo.dwarf.variables import (
    described,
    description_of,
    frame_base_at,
    place_at,
    without_location,
)
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import (
    NO_LOCATION,
    Absent,
    Arithmetic,
    Extent,
    Indirect,
    OnEntry,
    PointerTo,
    is_on_entry,
)
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.location_lists import Entry
    from fetchc.program.entities import Place

    Range = tuple[Address, Address]
    Part = tuple[Address, Address, Place | None]

__all__ = ["array_length", "extents"]


def extents(info: DebugInfo, die: Die, function: Die | None) -> tuple[Extent, ...]:
    """Every place of the variable ``die`` with its addresses, in the order of the list.

    A location without a list holds in all of ``function``, without one everywhere.
    Neighbours with the same place are one extent.
    """
    whole = ((Address(0), Address(1 << 8 * die.unit.address_size)),)
    scope = whole if function is None else info.ranges(function)
    located = info.inherited(die, DW_AT_location)
    if located is None:
        absent_or_constant = without_location(info, die)
        return tuple([Extent(start, end, absent_or_constant) for start, end in scope])
    bases = [] if function is None else _frame_bases(info, function)
    found: list[Extent] = []
    for start, end, expression in _ranges(info, located, DW_AT_location, scope):
        for low, high, base in _split(start, end, bases):
            at = _found(described(info, located, expression, base))
            if found and found[-1].end == low and found[-1].place == at:
                found[-1] = Extent(found[-1].start, high, at)
            else:
                if len(found) >= MAX_ENTRIES:
                    what = f"more than {MAX_ENTRIES} places of one variable"
                    section = section_name(located.unit)
                    raise DebugInfoError("FC0904", located.unit.path, what, section)
                found.append(Extent(low, high, at))
    return tuple(found)


def _found(at: Place) -> Place:
    # What only a caller may know is nowhere in the function.
    if isinstance(at, Indirect | OnEntry | PointerTo | Arithmetic) and is_on_entry(at):
        return Absent("computed", "it is what a register held on entry and not stored in memory")
    return at


def _frame_bases(info: DebugInfo, function: Die) -> list[Part]:
    holder = info.inherited(function, DW_AT_frame_base)
    if holder is None:
        return []
    scope = info.ranges(function)
    return _disjoint(
        [
            (start, end, described(info, holder, expression, None))
            for start, end, expression in _ranges(info, holder, DW_AT_frame_base, scope)
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
    while first < last:  # the first part that ends after ``start``
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
) -> Iterator[tuple[Address, Address, bytes | Entry]]:
    # Expressions of an attribute with their ranges; one without a list holds in ``scope``.
    description = description_of(die, attribute)
    if isinstance(description, bytes):
        for start, end in scope:
            yield start, end, description
        return
    taken: list[Part] = []
    default: Entry | None = None
    for entry in entries(info, die.unit, description):
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


# ------------------------------------------------------------------------------
# Where the number of elements of a variable-length array is.
#
# Its first subrange names a variable that the compiler adds for it, or has an expression of its
# own. Source: DWARF 5, sections 5.13 (subranges) and 2.19 (static and dynamic values of
# attributes).


def array_length(
    info: DebugInfo, array: Die, function: Die, address: Address
) -> tuple[Place, int] | None:
    """The place of a word, relative to the CFA as DWARF says it, and what to add to it.

    None where there is no such number at ``address``, it is one of another size, or computed.
    """
    subranges = [one for one in info.children(array) if one.tag == DW_TAG_subrange_type]
    if not subranges or subranges[0].has(DW_AT_lower_bound):
        return None
    subrange = subranges[0]
    for attribute, more in ((DW_AT_count, 0), (DW_AT_upper_bound, 1)):
        if not subrange.has(attribute):
            continue
        if subrange.constant(attribute) is not None:
            return None
        expression = subrange.block(attribute)
        if expression is not None:
            base = frame_base_at(info, function, address)
            found = value_place(expression, subrange.unit, base)
        else:
            variable = info.follow(subrange, attribute)
            if variable is None or not _is_word(info, variable):
                return None
            found = place_at(info, variable, function, address)
        return None if isinstance(found, Absent | Arithmetic) else (found, more)
    return None


def _is_word(info: DebugInfo, variable: Die) -> bool:
    typed = info.inherited(variable, DW_AT_type)
    target = None if typed is None else info.follow(typed, DW_AT_type)
    return target is not None and target.unsigned(DW_AT_byte_size) == variable.unit.address_size
