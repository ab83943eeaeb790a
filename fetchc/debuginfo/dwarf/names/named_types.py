"""Types by name, as spelled by a person.

A name is looked for in the unit of the function at hand first, then in the whole file. Unlike
definitions of one name are all handed back, for the caller to refuse.
"""

from __future__ import annotations

from fetchc.debuginfo.c_type_names import QUALIFIERS, base_spelling
from fetchc.debuginfo.dwarf.entries.attributes import has_namespaces, is_c_family, is_go
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_declaration,
    DW_AT_name,
    DW_TAG_array_type,
    DW_TAG_base_type,
    DW_TAG_enumeration_type,
    DW_TAG_namespace,
    DW_TAG_pointer_type,
    DW_TAG_structure_type,
    DW_TAG_subroutine_type,
    DW_TAG_typedef,
    DW_TAG_union_type,
)
from fetchc.debuginfo.dwarf.entries.scopes import (
    answers_to,
    declaration,
    last_part,
    own_name,
    parts,
)
from fetchc.debuginfo.dwarf.names import go_names
from fetchc.debuginfo.dwarf.names.definitions import definition, distinct, indexed
from fetchc.debuginfo.dwarf.names.tags import CLASSES, NAMED, ORDINARY
from fetchc.program.types import FloatType, IntType
from fetchc.quantities import ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.c_type_names import Base
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.dwarf.types.table import TypeTable

__all__ = ["type_names", "types_named"]

TAGS_OF_KEYWORD = {
    "struct": CLASSES,
    "class": CLASSES,
    "union": frozenset({DW_TAG_union_type}),
    "enum": frozenset({DW_TAG_enumeration_type}),
}
GO_TAGS = frozenset(
    {
        DW_TAG_structure_type,
        DW_TAG_typedef,
        DW_TAG_base_type,
        DW_TAG_namespace,
        DW_TAG_pointer_type,
        DW_TAG_array_type,
        DW_TAG_subroutine_type,
    }
)
_MOST_KEPT = 4096  # answers: a plan asks for the same few types at each of its addresses
UNITS_FOR_BASE = 64  # a base type that so many units lack is not looked for any further


def types_named(types: TypeTable, name: str, within: Die | None) -> tuple[TypeId, ...]:
    """Ids of the unlike definitions of that name; ``within`` is an entry of the unit at hand."""
    origin = None if within is None else declaration(types.info, within)
    home = None if origin is None else origin.unit
    base = base_spelling(name)
    # Go's `int` is a word. Of a file without a unit at hand, the first one tells whose names count.
    unit = home or next(iter(types.info.units()), None)
    if base is not None and (unit is None or not is_go(unit)):
        return _base(types, base, home)
    words = [word for word in name.split() if word not in QUALIFIERS]
    if len(words) > 1 and words[0] in TAGS_OF_KEYWORD:
        tags = TAGS_OF_KEYWORD[words[0]]
        return distinct(types, _search_imported(types, " ".join(words[1:]), tags, home))
    if home is None or is_go(home):
        function = None if origin is None else origin.text(DW_AT_name)
        package = go_names.package_of(function or "")
        known = types.go_names.get((name, package))
        if known is None:
            known = _of_go(types, name, origin)
            if len(types.go_names) < _MOST_KEPT:
                types.go_names[name, package] = known
        if known or home is not None:
            return known
    return distinct(types, _preferred(_search_imported(types, " ".join(words), NAMED, home)))


def _of_go(types: TypeTable, name: str, home: Die | None) -> tuple[TypeId, ...]:
    for spellings in go_names.type_spellings(types.info, name, home):
        found: list[TypeId] = []
        for spelling in spellings:
            candidates = types.info.find_named(spelling, GO_TAGS, definitions=True)
            preferred = _preferred([die for die in candidates if is_go(die.unit)])
            found += distinct(types, preferred)
        if found:
            return tuple(found)
    return ()


def type_names(types: TypeTable) -> Iterator[str]:
    """Names of the types that are defined outside functions, each once."""
    if types.info.files.in_parts:
        from fetchc.debuginfo.dwarf.names.listing import names_in_parts

        return names_in_parts(types.info)
    return iter(dict.fromkeys(types.info.name_index.names()))


def _base(types: TypeTable, base: Base, home: Unit | None) -> tuple[TypeId, ...]:
    # A word of the language: any unit's will do, so the search stops early, and what no unit
    # uses is made up where the platform leaves no choice.
    for unit in _first_units(types, home):
        for child in types.info.at_top(unit):
            if child.tag == DW_TAG_base_type and child.text(DW_AT_name) in base.names:
                return (TypeId(child.offset),)
    if base.size is None:
        return ()
    size = ByteSize(base.size or types.word_bytes)
    if base.signed is None:
        return (types.intern(FloatType(base.names[0], size)),)
    return (types.intern(IntType(base.names[0], size, base.signed)),)


def _first_units(types: TypeTable, home: Unit | None) -> Iterator[Unit]:
    if home is not None:
        yield home
    for position, unit in enumerate(types.info.units()):
        if position == UNITS_FOR_BASE:
            return
        if is_c_family(unit):
            yield unit


def _search_imported(
    types: TypeTable, name: str, tags: frozenset[int], home: Unit | None
) -> list[Die]:
    # Under its own name, else by what the namespaces of the unit import.
    found = list(_search(types, name, tags, home))
    if found or home is None or not has_namespaces(home):
        return found
    from fetchc.debuginfo.dwarf.names.namespaces import imported_names

    for names in imported_names(types.info, home, name):
        found = [die for one in names for die in _search(types, one, tags, home)]
        if found:
            break
    return found


def _search(types: TypeTable, name: str, tags: frozenset[int], home: Unit | None) -> Iterable[Die]:
    plain = last_part(name)
    if home is not None and not has_namespaces(home):
        named = [
            child
            for child in types.info.at_top(home)
            if child.tag in tags and child.text(DW_AT_name) == name
        ]
        own = [child for child in named if not child.flag(DW_AT_declaration)]
        if own:
            return own
        for declared in named:
            known = TypeId(declared.offset)
            completed = definition(types, known)
            if completed != known:
                return [types.die(completed)]
    if home is not None and home.is_split:
        # Its own file alone, before all others are opened.
        candidates = types.info.find_named(plain, tags, definitions=True, within=home.sections)
        own = [die for die in candidates if answers_to(types.info, die, name)]
        if own:
            return own
    # Of equal definitions the index has one, which may be another unit's: where there are unlike
    # ones, or none but within functions, all are looked at.
    kept = indexed(types, plain, tags) or ()
    found = [die for die in kept if answers_to(types.info, die, name)]
    if found and len(distinct(types, found)) == 1:
        return found
    candidates = types.info.find_named(plain, tags, definitions=True)
    found = [die for die in candidates if answers_to(types.info, die, name)]
    own = [die for die in found if home is not None and die.unit.offset == home.offset]
    if own or found:
        return own or found
    if plain.endswith(">"):
        return _instances(types, name, tags)
    return [die for die in types.info.find_named(plain, tags) if answers_to(types.info, die, name)]


def _instances(types: TypeTable, name: str, tags: frozenset[int]) -> list[Die]:
    # An instance of a template, whose name the compiler spells with all arguments.
    from fetchc.program.cpp_names import is_instance

    strings = types.info.elf.open_section(".debug_str")
    *scope, plain = parts(name)
    template = plain.partition("<")[0]
    if strings is None or not template:
        return []
    spellings = {
        strings.cstring(at).decode("utf-8", "surrogateescape")
        for at in strings.find_all(template.encode("utf-8", "surrogateescape") + b"<")
    }
    best: dict[int, list[Die]] = {}
    for die in types.info.find_named(template, tags, definitions=True):
        own = own_name(types.info, die)
        fits = is_instance(own, plain) if own else 0
        if own and fits and answers_to(types.info, die, "::".join([*scope, own])):
            best.setdefault(fits, []).append(die)
    for spelling in sorted(spellings):
        fits = is_instance(spelling, plain)
        for die in types.info.find_named(spelling, tags, definitions=True) if fits else ():
            if answers_to(types.info, die, "::".join([*scope, spelling])):
                best.setdefault(fits, []).append(die)
    return best[max(best)] if best else []


def _preferred(found: list[Die]) -> list[Die]:
    return [die for die in found if die.tag in ORDINARY] or found
