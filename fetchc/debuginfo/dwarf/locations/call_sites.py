"""What is said of the calls in a function's code: DW_TAG_call_site, and what passes what.

Source: DWARF 5, sections 3.3.1.4 (DW_AT_call_all_calls and its like) and 3.4 (call sites); before
it the GNU extensions of the same meaning, gcc's ``include/dwarf2.def``.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_abstract_origin,
    DW_AT_location,
    DW_AT_low_pc,
    DW_TAG_call_site,
    DW_TAG_call_site_parameter,
    DW_TAG_GNU_call_site,
    DW_TAG_inlined_subroutine,
    DW_TAG_lexical_block,
)
from fetchc.debuginfo.dwarf.locations.operations import DW_OP_reg0, DW_OP_regx, is_register
from fetchc.quantities import Address, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo

__all__ = ["CallSite", "call_sites", "tells_of_tail_calls"]

DW_TAG_GNU_call_site_parameter = 0x410A
DW_AT_call_all_calls = 0x7A
DW_AT_call_all_tail_calls = 0x7C
DW_AT_call_return_pc = 0x7D
DW_AT_call_value = 0x7E
DW_AT_call_origin = 0x7F
DW_AT_call_tail_call = 0x82
DW_AT_GNU_call_site_value = 0x2111
DW_AT_GNU_tail_call = 0x2115
DW_AT_GNU_all_tail_call_sites = 0x2116
DW_AT_GNU_all_call_sites = 0x2117

_SITES = frozenset({DW_TAG_call_site, DW_TAG_GNU_call_site})
_PARAMETERS = frozenset({DW_TAG_call_site_parameter, DW_TAG_GNU_call_site_parameter})
_BLOCKS = frozenset({DW_TAG_lexical_block, DW_TAG_inlined_subroutine})
_COMPLETE = (
    DW_AT_call_all_calls,
    DW_AT_call_all_tail_calls,
    DW_AT_GNU_all_call_sites,
    DW_AT_GNU_all_tail_call_sites,
)


class CallSite(Record):
    """One call: where it returns to, None where that is not said (of tail calls).

    ``origin`` is the entry of what is called, None of a call through a pointer. ``values`` are
    the expressions of what registers hold when the callee is entered.
    """

    returns_to: Address | None
    origin: Die | None
    tail: bool
    values: tuple[tuple[DwarfRegister, bytes], ...]


def call_sites(info: DebugInfo, function: Die) -> Iterator[CallSite]:
    """Every call that is described in the code of a concrete subprogram."""
    waiting = [function]
    for die in waiting:  # grows
        for child in info.children(die):
            if child.tag in _BLOCKS:
                waiting.append(child)
            elif child.tag in _SITES:
                yield _site(info, child)


def tells_of_tail_calls(info: DebugInfo, function: Die) -> bool:
    """Whether all calls by which the function ends are described."""
    for attribute in _COMPLETE:
        holder = info.inherited(function, attribute)
        if holder is not None and holder.flag(attribute):
            return True
    return False


def _site(info: DebugInfo, die: Die) -> CallSite:
    if die.tag == DW_TAG_call_site:
        returns_to, tail = die.address(DW_AT_call_return_pc), die.flag(DW_AT_call_tail_call)
        origin = info.follow(die, DW_AT_call_origin) if _refers(die, DW_AT_call_origin) else None
    else:
        returns_to, tail = die.address(DW_AT_low_pc), die.flag(DW_AT_GNU_tail_call)
        origin = info.follow(die, DW_AT_abstract_origin)
    values = [_value(child) for child in info.children(die) if child.tag in _PARAMETERS]
    return CallSite(returns_to, origin, tail, tuple([one for one in values if one is not None]))


def _refers(die: Die, attribute: int) -> bool:
    # GCC writes an address where it has no entry of what is called.
    return die.has(attribute) and die.address(attribute) is None


def _value(die: Die) -> tuple[DwarfRegister, bytes] | None:
    # Of what is passed in a register; None of the stack.
    place = die.block(DW_AT_location)
    value = die.block(DW_AT_call_value) or die.block(DW_AT_GNU_call_site_value)
    register = None if place is None else _named_register(place)
    return None if register is None or not value else (register, value)


def _named_register(expression: bytes) -> DwarfRegister | None:
    """The register that an expression of one operation names; None of any other."""
    if len(expression) == 1 and is_register(expression[0]):
        return DwarfRegister(expression[0] - DW_OP_reg0)
    if len(expression) == 2 and expression[0] == DW_OP_regx and expression[1] < 0x80:
        return DwarfRegister(expression[1])
    return None
