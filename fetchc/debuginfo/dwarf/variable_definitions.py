"""Finds the definition of a variable that is declared elsewhere, and values of constants.

Source: DWARF 5, section 4.1.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_abstract_origin,
    DW_AT_const_value,
    DW_AT_declaration,
    DW_AT_location,
    DW_AT_specification,
    DW_FORM_addr,
    DW_FORM_addrx,
    DW_FORM_addrx1,
    DW_FORM_addrx4,
    DW_FORM_GNU_addr_index,
    DW_FORM_indirect,
    DW_FORM_ref_addr,
    DW_TAG_member,
    DW_TAG_namespace,
    DW_TAG_variable,
)
from fetchc.debuginfo.dwarf.forms import SUPPLEMENTARY_REFERENCE_FORMS
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import NO_LOCATION, Absent, Constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.abbrev import Declaration
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die

__all__ = ["constant_of", "placed", "wrong_class"]

# ------------------------------------------------------------------------------
# DW_AT_const_value: a variable that is a constant. Source: DWARF 5, section 4.1.


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
        return Absent(
            "computed", "it is the address of something in the file, not stored in memory"
        )
    number = die.constant(DW_AT_const_value)
    if number is not None:
        return Constant(number)
    raw = die.block(DW_AT_const_value)
    if raw is None:
        text = die.string(DW_AT_const_value)
        if text is None:
            raise wrong_class(die, DW_AT_const_value)
        raw = text.encode("utf-8", "surrogateescape") + b"\0"
    if not raw:
        return NO_LOCATION
    return Constant(decode_number(raw, die.unit.little))


def wrong_class(die: Die, attribute: int) -> DebugInfoError:
    """The refusal of an attribute of a class that it cannot have."""
    what = f"attribute {attribute:#x} is neither an expression, a list nor a constant"
    return DebugInfoError("FC0904", die.unit.path, what, ".debug_info", die.offset)


# ------------------------------------------------------------------------------
# Where a variable is defined that is declared elsewhere.

# References to entries of other units.
ABROAD = frozenset({DW_FORM_ref_addr, DW_FORM_indirect}) | SUPPLEMENTARY_REFERENCE_FORMS


def placed(info: DebugInfo, die: Die) -> Die | None:
    """The entry with the location of a variable: ``die``, or a later one that refers to it as its
    declaration; None where it is only declared in the file.
    """
    if _has_place(die):
        return die
    definition = _defined_by(info, die)
    # Declared only: no variable of this file. A static member is merely declared in its class.
    if definition is None and (die.flag(DW_AT_declaration) or die.tag == DW_TAG_member):
        return None
    definition = definition or die
    if _has_place(definition):
        return definition
    # Neither here nor there: optimized away.
    return _instance_elsewhere(info, definition) or definition


def _has_place(die: Die) -> bool:
    return die.has(DW_AT_location) or die.has(DW_AT_const_value)


def _defined_by(info: DebugInfo, die: Die) -> Die | None:
    # The definition of what ``die`` declares, in the same unit.
    for child in _outside_functions(info, die.unit.top):
        if child.has(DW_AT_specification):
            declared = info.follow(child, DW_AT_specification)
            if declared is not None and declared.offset == die.offset:
                return child
    return None


def _instance_elsewhere(info: DebugInfo, die: Die) -> Die | None:
    # GCC's link-time optimization: the location is in a unit of the linked program, the
    # rest in the unit of the source. Source: gcc/dwarf2out.cc, dwarf2out_register_external_die.
    for unit in info.units():
        if not any(_refers_abroad(declaration) for _, declaration in unit.table.all()):
            continue
        for child in _outside_functions(info, unit.top):
            if child.form(DW_AT_abstract_origin) in ABROAD:
                origin = info.follow(child, DW_AT_abstract_origin)
                if origin is not None and origin.offset == die.offset:
                    return child
    return None


def _outside_functions(info: DebugInfo, top: Die) -> Iterator[Die]:
    # The variables of a unit and of its namespaces.
    scopes = [top]
    while scopes:
        for child in info.children(scopes.pop()):
            if child.tag == DW_TAG_namespace:
                scopes.append(child)
            elif child.tag == DW_TAG_variable:
                yield child


def _refers_abroad(declaration: Declaration) -> bool:
    return declaration.tag == DW_TAG_variable and declaration.form(DW_AT_abstract_origin) in ABROAD
