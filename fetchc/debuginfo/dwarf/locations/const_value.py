"""DW_AT_const_value: a variable that is a constant. Source: DWARF 5, section 4.1."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_const_value,
    DW_FORM_addr,
    DW_FORM_addrx,
    DW_FORM_addrx1,
    DW_FORM_addrx4,
    DW_FORM_GNU_addr_index,
)
from fetchc.debuginfo.dwarf.entries.simple import NO_LOCATION
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, Constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from fetchc.debuginfo.dwarf.entries.die import Die

__all__ = ["constant_of", "wrong_class"]


def constant_of(die: Die) -> Constant | Absent | None:
    """DW_AT_const_value of ``die`` itself; None without one.

    Data forms are unsigned, as their bits stand; a block or string is read in the byte
    order of the target, its first byte being the object's.
    """
    form = die.form(DW_AT_const_value)
    if form is None:
        return None
    if form in (DW_FORM_addr, DW_FORM_GNU_addr_index, DW_FORM_addrx) or (
        DW_FORM_addrx1 <= form <= DW_FORM_addrx4
    ):
        return Absent("FC0406", "it is the address of something in the file, kept in no memory")
    number = die.constant(DW_AT_const_value)
    if number is not None:
        return Constant(number)
    raw = die.block(DW_AT_const_value)
    if raw is None:
        text = die.text(DW_AT_const_value)
        if text is None:
            raise wrong_class(die, DW_AT_const_value)
        raw = text.encode("utf-8", "surrogateescape") + b"\0"
    if not raw:
        return NO_LOCATION
    order: Literal["little", "big"] = "little" if die.unit.little else "big"
    return Constant(int.from_bytes(raw, order))


def wrong_class(die: Die, attribute: int) -> DebugInfoError:
    """The refusal of an attribute of a class that it cannot have."""
    what = f"attribute {attribute:#x} is neither an expression, a list nor a constant"
    return DebugInfoError("FC0904", die.unit.path, what, ".debug_info", die.offset)
