"""Where a variable is at an address, as its location description says.

Source: DWARF 5, sections 2.6 (location descriptions) and 3.3.5 (frame base).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_const_value,
    DW_AT_frame_base,
    DW_AT_location,
)
from fetchc.debuginfo.dwarf.entries.simple import NO_LOCATION, simple_place
from fetchc.program.entities import Absent
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.entries.die import Die, LocationListRef
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.locations.loclists import Entry
    from fetchc.program.entities import Place

    Pointee = Callable[[int], Place]

__all__ = ["described", "description_of", "frame_base_at", "place_at", "without_location"]

MAX_IMPLICIT_POINTERS = 8
"""Longer chains are refused: a hostile file may have a circle of them."""


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
        return without_location(info, die)
    expression = _expression_at(info, located, DW_AT_location, address)
    if expression is None:
        return Absent("FC0401", f"the debug information gives it no place at {address:#x}")
    base = None if function is None else frame_base_at(info, function, address)

    def pointee(offset: int) -> Place:
        if depth == MAX_IMPLICIT_POINTERS:
            return Absent("FC0406", f"it is behind {depth} pointers that are in no memory")
        return place_at(info, info.die(DieOffset(offset)), function, address, depth + 1)

    return described(info, located, expression, base, pointee)


def frame_base_at(info: DebugInfo, function: Die, address: Address) -> Place | None:
    """What DW_AT_frame_base of a concrete subprogram describes; None without one there."""
    holder = info.inherited(function, DW_AT_frame_base)
    if holder is None:
        return None
    expression = _expression_at(info, holder, DW_AT_frame_base, address)
    return None if expression is None else described(info, holder, expression, None)


def _expression_at(
    info: DebugInfo, die: Die, attribute: int, address: Address
) -> bytes | Entry | None:
    description = description_of(die, attribute)
    if isinstance(description, bytes):
        return description
    from fetchc.debuginfo.dwarf.locations.loclists import entry_at

    return entry_at(info, die.unit, description, address)


def description_of(die: Die, attribute: int) -> bytes | LocationListRef:
    """An attribute's expression or list; FC0904 where it is neither."""
    description = die.location(attribute)
    if description is None:
        from fetchc.debuginfo.dwarf.locations.const_value import wrong_class

        raise wrong_class(die, attribute)
    return description


def without_location(info: DebugInfo, die: Die) -> Place:
    """What stands for a variable that has no DW_AT_location: its constant value, or nothing."""
    valued = info.inherited(die, DW_AT_const_value)
    if valued is None:
        return NO_LOCATION
    from fetchc.debuginfo.dwarf.locations.const_value import constant_of

    return constant_of(valued) or NO_LOCATION


def described(
    info: DebugInfo,
    die: Die,
    expression: bytes | Entry,
    base: Place | None,
    pointee: Pointee | None = None,
) -> Place:
    """What an expression of ``die`` describes: one of an attribute itself, or of a list.

    ``base`` is the frame base, ``pointee`` where the variable at a DieOffset is.
    """
    content = expression if isinstance(expression, bytes) else expression.expression
    simple = simple_place(content, die.unit, base)
    if simple is not None:
        return simple
    from fetchc.debuginfo.dwarf.locations.expr import place

    if isinstance(expression, bytes):
        from fetchc.debuginfo.byte_reader import Cursor

        # Errors count from its start and name the entry.
        section = f".debug_info: expression of the entry at {die.offset:#x}"
        cursor = Cursor(die.unit.path, section, expression, little=die.unit.little)
    else:
        from fetchc.debuginfo.dwarf.locations.loclists import cursor_at

        cursor = cursor_at(info, die.unit, expression.offset)
        cursor.end = expression.offset + len(content)
    return place(cursor, die.unit, base, pointee)
