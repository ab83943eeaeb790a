"""From an attribute to the entry that it names, in whatever unit or file that is.

Source: DWARF 5, section 7.5.5.9 (reference) and 7.3.6 (supplementary files).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries.die import Die
from fetchc.debuginfo.dwarf.entries.forms import ALTERNATE_REFERENCE_FORMS, LOCAL_REFERENCE_FORMS
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo

__all__ = ["target"]


def target(info: DebugInfo, die: Die, attribute: int) -> Die:
    """The entry that ``attribute`` of ``die``, which has it, names; FC0904 where it names none."""
    value, form = die.raw(attribute), die.form(attribute)
    unit = die.unit
    if isinstance(value, int):
        if form in LOCAL_REFERENCE_FORMS:
            return Die(unit, value)
        if form == c.DW_FORM_ref_addr:
            return info.die(DieOffset(unit.sections.base + value))
        if form == c.DW_FORM_ref_sig8:
            return _signed_type(info, die, value)
        if form in ALTERNATE_REFERENCE_FORMS:
            return info.die(DieOffset(info.files.alternate.sections.base + value))
    raise unit.error(f"attribute {attribute:#x} is not a reference", die.position)


def _signed_type(info: DebugInfo, die: Die, signature: int) -> Die:
    offset = info.files.split.type_unit(die.unit, signature) if die.unit.is_split else None
    if offset is None:
        offset = info.files.own_signature(signature)
    if offset is None:
        raise die.unit.error(f"no type unit has signature {signature:#018x}", die.position)
    unit = info.unit_starting(offset)
    if unit.type_offset is None or not unit.die_offset <= unit.type_offset < unit.end:
        raise unit.error("the type's offset is outside its unit", 0)
    return Die(unit, unit.type_offset - unit.offset)
