"""Where the number of elements of a variable-length array is.

Its first subrange names a variable that the compiler made for it, or has an expression of its own.
Source: DWARF 5, sections 5.13 (subranges) and 2.19 (static and dynamic values of attributes).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_byte_size,
    DW_AT_count,
    DW_AT_lower_bound,
    DW_AT_type,
    DW_AT_upper_bound,
    DW_TAG_subrange_type,
)
from fetchc.debuginfo.dwarf.locations.expr import worth
from fetchc.debuginfo.dwarf.locations.location import frame_base_at, place_at
from fetchc.program.entities import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.program.entities import Place
    from fetchc.quantities import Address

__all__ = ["array_length"]


def array_length(
    info: DebugInfo, array: Die, function: Die, address: Address
) -> tuple[Place, int] | None:
    """The place of a word, relative to the CFA as DWARF says it, and what to add to it.

    None where there is no such number at ``address``, or it is one of another size.
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
            found = worth(expression, subrange.unit, base)
        else:
            variable = info.follow(subrange, attribute)
            if variable is None or not _is_word(info, variable):
                return None
            found = place_at(info, variable, function, address)
        return None if isinstance(found, Absent) else (found, more)
    return None


def _is_word(info: DebugInfo, variable: Die) -> bool:
    typed = info.inherited(variable, DW_AT_type)
    made = None if typed is None else info.follow(typed, DW_AT_type)
    return made is not None and made.unsigned(DW_AT_byte_size) == variable.unit.address_size
