"""Calls that were inlined, by the name of what was called.

Such a call refers to the abstract instance of the function, which each unit has its own of: the
bytes of its units are searched for that reference, and few other entries are read.
"""

from __future__ import annotations

from itertools import chain

from fetchc.debuginfo.dwarf.entries import walk
from fetchc.debuginfo.dwarf.entries.by_reference import referring
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_abstract_origin,
    DW_TAG_inlined_subroutine,
)
from fetchc.debuginfo.dwarf.entries.die import Die
from fetchc.debuginfo.dwarf.entries.forms import LOCAL_REFERENCE_FORMS
from fetchc.debuginfo.dwarf.names.described import entries_named, made_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["inlined_calls"]

_CALLS = frozenset({DW_TAG_inlined_subroutine})


def inlined_calls(info: DebugInfo, name: str) -> Iterator[Die]:
    """Every DW_TAG_inlined_subroutine of a function that answers to ``name``."""
    named: dict[int, bool] = {}  # entries that have been looked at, by their offset
    places: dict[int, list[int]] = {}  # where they are, by unit
    for die in entries_named(info, name):
        named[die.offset] = True
        places.setdefault(die.unit.offset, []).append(die.position)
    for unit in info.units() if named else ():
        for start in _calls(unit, places.get(unit.offset, [])):
            die = Die(unit, start)
            origin = info.follow(die, DW_AT_abstract_origin)
            if origin is not None and _comes_from(info, origin, named):
                yield die


def _comes_from(info: DebugInfo, die: Die, named: dict[int, bool]) -> bool:
    # Whether it is one of those, or its origin or specification is.
    passed: list[int] = []
    found = False
    for one in chain((die,), info.origins(die)):
        if one.offset in named:
            found = named[one.offset]
            break
        passed.append(one.offset)
    named.update(dict.fromkeys(passed, found))
    return found


def _calls(unit: Unit, functions: list[int]) -> Iterable[int]:
    # Starts of the unit's inlined calls, at least of those of the functions at these positions.
    declared = [one for _, one in unit.table.tagged(_CALLS)]
    forms = {one.form(DW_AT_abstract_origin) for one in declared} - {None}
    if forms <= LOCAL_REFERENCE_FORMS and not functions:
        return ()
    made = made_from(unit, functions)
    if made is not None:
        found = referring(unit, [*functions, *made], _CALLS, (DW_AT_abstract_origin,))
        if found is not None:
            return found
    return (
        start
        for start, declaration, _ in walk.entries(unit)
        if declaration.tag == DW_TAG_inlined_subroutine
    )
