"""Enumerators by name, as values of their enumeration.

The name of one is known in the scope around its enumeration, too, unless that is a scoped one.
References: DWARF 5, section 5.7; C++17, [dcl.enum].
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import has_namespaces
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_const_value,
    DW_TAG_enumerator,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.entries.scopes import answers_to, declaration, last_part
from fetchc.quantities import TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo

__all__ = ["enumerators"]

_ENUMERATORS = frozenset({DW_TAG_enumerator})


def enumerators(info: DebugInfo, name: str, within: Die | None) -> tuple[tuple[int, TypeId], ...]:
    """The values of enumerators of the whole name ``name``, each with its enumeration.

    Those of the unit of ``within`` hide the others. An enumeration within a function is known in
    that function alone.
    """
    home = None if within is None else declaration(info, within)
    plain = name.removeprefix("::")
    found = _named(info, plain, home)
    if not found and home is not None and has_namespaces(home.unit):
        from fetchc.debuginfo.dwarf.names.namespaces import imported_names

        for names in imported_names(info, home.unit, plain):
            found = [one for each in names for one in _named(info, each, home)]
            if found:
                break
    return tuple({value: (value, holder) for value, holder in found}.values())


def _named(info: DebugInfo, name: str, home: Die | None) -> list[tuple[int, TypeId]]:
    found, own = [], []
    for die in info.find_named(last_part(name), _ENUMERATORS):
        value = die.constant(DW_AT_const_value)
        around = info.ancestors(die)
        if value is None or not around or not answers_to(info, die, name, whole=True):
            continue
        functions = [one for one in around if one.tag == DW_TAG_subprogram]
        if functions and (home is None or functions[-1].offset != home.offset):
            continue
        found.append((value, TypeId(around[-1].offset)))
        if home is not None and die.unit.offset == home.unit.offset:
            own.append(found[-1])
    return own or found
