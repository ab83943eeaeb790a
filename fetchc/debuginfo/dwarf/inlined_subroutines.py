"""Inlined subroutines (DW_TAG_inlined_subroutine), by the name of the function.

Such a call refers to the abstract instance of the function, which each unit has its own of: the
bytes of its units are searched for that reference, and few other entries are read.
"""

from __future__ import annotations

from itertools import chain

from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_abstract_origin,
    DW_AT_declaration,
    DW_AT_inline,
    DW_AT_linkage_name,
    DW_AT_MIPS_linkage_name,
    DW_AT_specification,
    DW_TAG_inlined_subroutine,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.die_search import referring
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.forms import LOCAL_REFERENCE_FORMS
from fetchc.debuginfo.dwarf.go_name_lookup import escaped
from fetchc.debuginfo.dwarf.languages import has_namespaces
from fetchc.debuginfo.dwarf.qualified_names import answers_to, last_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.quantities import DieOffset

    Linked = Callable[[str], list[Die]]

__all__ = ["concrete", "derived_from", "entries_named", "inlined_calls", "is_only_inlined"]

# ------------------------------------------------------------------------------
# Entries of functions by name, for what no symbol names: inlined, renamed, or stripped.
#
# A big file answers by its index, which has no mere declarations; else the names of all its
# entries are searched.

SUBPROGRAM = frozenset({DW_TAG_subprogram})


def entries_named(info: DebugInfo, name: str) -> Iterator[Die]:
    """Entries named ``name``: with code, or the origins and declarations of those with code."""
    return (die for die, _ in _answering(info, name))


def concrete(info: DebugInfo, name: str, linked: Linked) -> Iterator[Die]:
    """Entries with code whose own name, or their declaration's, is ``name``."""
    by_linkage: dict[str, list[Die]] = {}  # a method is declared in each unit that sees its class
    for spelling in escaped(name):
        given = _by_compiler_index(info, spelling)
        yield from given
        for die, code in _answering(info, spelling) if not given else ():
            if code is not False and info.ranges(die):
                yield die
            elif code is None:
                yield from _instances(info, die, linked, by_linkage)


def _by_compiler_index(info: DebugInfo, name: str) -> list[Die]:
    # Those with code that an index of the compiler's leads to.
    if info.files.in_several_files:
        return []
    listed = map(info.die, info.name_index.with_code(last_part(name)))
    return [die for die in listed if answers_to(info, die, name) and info.ranges(die)]


def is_only_inlined(info: DebugInfo, name: str) -> bool:
    """Whether a function of that name is described and has no code of its own."""
    found = across_units = False
    for spelling in escaped(name):
        for die, code in _answering(info, spelling):
            if code is not False and info.ranges(die):
                return False
            # What was compiled with -flto has its copies, and the word that they are inlined, in
            # units that gcc writes when linking.
            across_units = across_units or die.unit.compiler.is_lto_input
            # Of a method, the declaration does not say so.
            copies = _copies(info, die) if code is None and not found else ()
            for one in copies:
                if info.ranges(one):
                    return False
                found = found or one.has(DW_AT_inline)
            found = found or die.has(DW_AT_inline)
    if across_units and not found:
        return next(inlined_calls(info, name), None) is not None
    return found


def derived_from(unit: Unit, functions: list[int]) -> list[int] | None:
    """Where functions are that refer to those at these positions of the unit, directly or not.

    None as of :func:`~fetchc.debuginfo.dwarf.die_search.referring`.
    """
    found: dict[int, None] = {}
    targets = functions
    while targets:
        referrers = referring(
            unit, targets, SUBPROGRAM, (DW_AT_specification, DW_AT_abstract_origin)
        )
        if referrers is None:
            return None
        targets = [one for one in referrers if one not in found]
        found.update(dict.fromkeys(targets))
    return list(found)


def _copies(info: DebugInfo, die: Die) -> Iterator[Die]:
    # Entries of its unit that come from it.
    derived = derived_from(die.unit, [die.position])
    if derived is not None:
        return (Die(die.unit, start) for start in derived)
    return (one for one in info.subprograms(die.unit) if info.is_instance_of(one, die))


def _answering(info: DebugInfo, name: str) -> Iterator[tuple[Die, bool | None]]:
    # With whether an entry may have code: the index says so, and has the entries of all copies.
    plain = last_part(name)
    indexed = _indexed(info, plain)
    if indexed is None:
        for die in info.find_named(plain, SUBPROGRAM):
            if answers_to(info, die, name):
                yield die, None
        return
    from fetchc.debuginfo.dwarf.name_index_format import CODE

    for offset, kind in indexed:
        die = info.die(offset)
        if answers_to(info, die, name):
            # A mere declaration is there where its symbol may have another name.
            has_code = bool(kind & CODE)
            yield die, None if not has_code and die.has(DW_AT_declaration) else has_code


def _indexed(info: DebugInfo, name: str) -> list[tuple[DieOffset, int]] | None:
    # An index is of one file.
    found = None if info.files.in_several_files else info.name_index.functions(name)
    return None if found is None or (not found and _may_be_within(info, name)) else found


def _may_be_within(info: DebugInfo, name: str) -> bool:
    # A function within a function, GNU C's, which no index has: its symbol is `name.12`.
    prefix = name.encode("utf-8", "surrogateescape") + b"."
    tables = info.elf.symbol_lists()
    if all(table.names.name != ".strtab" for table in tables):
        return True  # local symbols were taken away
    found = (whole for table in tables for whole in table.beginning(prefix))
    return any(whole[len(prefix) : len(prefix) + 1].isdigit() for whole in found)


def _instances(
    info: DebugInfo, abstract: Die, linked: Linked, by_linkage: dict[str, list[Die]]
) -> Iterator[Die]:
    linkage = abstract.string(DW_AT_linkage_name) or abstract.string(DW_AT_MIPS_linkage_name) or ""
    if linkage and linkage not in by_linkage:
        by_linkage[linkage] = linked(linkage)
        yield from by_linkage[linkage]
    if by_linkage.get(linkage) or not (has_namespaces(abstract.unit) or abstract.has(DW_AT_inline)):
        return
    # Constructors: the declaration's linkage name (C4) is not a symbol, those of its copies are.
    for die in _copies(info, abstract):
        if info.ranges(die):
            yield die


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
    derived = derived_from(unit, functions)
    if derived is not None:
        found = referring(unit, [*functions, *derived], _CALLS, (DW_AT_abstract_origin,))
        if found is not None:
            return found
    return (
        start
        for start, declaration, _ in dies.entries(unit)
        if declaration.tag == DW_TAG_inlined_subroutine
    )
