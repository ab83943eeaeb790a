"""Finds types by the name that a user writes.

A name is looked for in the unit of the function at hand first, then in the whole file. Unlike
definitions of one name are all handed back, for the caller to refuse.
"""

from __future__ import annotations

from itertools import islice

from fetchc.debuginfo.c_type_names import base_spelling, unqualified
from fetchc.debuginfo.dwarf import go_name_lookup
from fetchc.debuginfo.dwarf.constants import (
    AGGREGATES,
    CLASSES,
    KEYWORDS,
    NAMED,
    NESTING,
    ORDINARY,
    DW_AT_decl_line,
    DW_AT_declaration,
    DW_AT_encoding,
    DW_AT_name,
    DW_AT_signature,
    DW_AT_specification,
    DW_AT_type,
    DW_TAG_array_type,
    DW_TAG_base_type,
    DW_TAG_enumeration_type,
    DW_TAG_namespace,
    DW_TAG_pointer_type,
    DW_TAG_structure_type,
    DW_TAG_subprogram,
    DW_TAG_subroutine_type,
    DW_TAG_typedef,
    DW_TAG_union_type,
)
from fetchc.debuginfo.dwarf.imported_names import imported_names
from fetchc.debuginfo.dwarf.languages import has_namespaces, is_c_family, is_go
from fetchc.debuginfo.dwarf.qualified_names import (
    UNNAMED_NAMESPACE,
    answers_to,
    declaration,
    last_part,
    own_name,
    parts,
    qualified_name,
)
from fetchc.debuginfo.dwarf.type_entries import members
from fetchc.program.types import FloatType, IntType
from fetchc.quantities import ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.c_type_names import Base
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.type_entries import TypeTable
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.program.types import Member


__all__ = [
    "definition",
    "distinct",
    "indexed",
    "names_in_parts",
    "type_names",
    "types_named",
]

# ------------------------------------------------------------------------------
# Definitions of types: which of them are equal, and that of what is only declared.
#
# Every C file that includes a header has a definition of its own; equal ones count as one.

_NAMES_COMPARED = 8  # of members, before whole definitions are compared
_MOST_COMPARED = 256  # definitions of one name, in whose units typedefs are looked for


def definition(types: TypeTable, type_id: TypeId) -> TypeId:
    """The one definition of the declared type; the declaration where there is none or several.

    Of several unlike ones it is that of the units which have the declaration's typedef, by file
    and line: they have read the same header, and C has no other tie between two units.
    """
    die = types.die(type_id)
    tags = CLASSES if die.tag in CLASSES else frozenset({die.tag})
    name = qualified_name(types.info, die)
    if not name:
        return type_id
    declared = declaration(types.info, die)
    plain = declared.string(DW_AT_name) or ""
    own = own_name(types.info, declared) or ""
    candidates: Iterable[Die] | None = indexed(types, own, tags)
    by_index = bool(candidates) if own != plain else candidates is not None
    if not by_index:
        candidates = types.info.find_named(plain, tags, definitions=True)
    assert candidates is not None
    same = [other for other in candidates if qualified_name(types.info, other) == name]
    found = distinct(types, same)
    if len(found) > 1 and len(same) <= _MOST_COMPARED:
        typedefs = _typedefs(types, die)
        found = distinct(types, [one for one in same if typedefs & _typedefs(types, one)]) or found
    if not by_index and found:
        # One within a function is another type, and the index has none of these.
        found = tuple([each for each in found if not _within_function(types, each)])
    return found[0] if len(found) == 1 else type_id


def _typedefs(types: TypeTable, die: Die) -> set[object]:
    # Names, files and lines of the typedefs that the unit of a type has for it.
    from fetchc.debuginfo.dwarf.line_tables import source_line

    own = [child for child in types.info.at_top(die.unit) if child.tag == DW_TAG_typedef]
    found: set[object] = set()
    for each in own:
        target = types.info.follow(each, DW_AT_type)
        line = source_line(types.info, each) if target and target.offset == die.offset else None
        if line is not None:
            found.add((each.string(DW_AT_name), line))
    return found


def indexed(types: TypeTable, name: str, tags: frozenset[int]) -> list[Die] | None:
    """The index's definitions of that name; None where there is no index."""
    # One is of one file.
    found = None if types.info.files.in_several_files else types.info.name_index.named(name, tags)
    return None if found is None else [types.info.die(offset) for offset in found]


def _within_function(types: TypeTable, type_id: TypeId) -> bool:
    around = types.info.ancestors(types.die(type_id))
    return any(die.tag == DW_TAG_subprogram for die in around)


def distinct(types: TypeTable, found: Iterable[Die]) -> tuple[TypeId, ...]:
    """The first of each kind of definition; equal ones in many units count as one."""
    # The cheap key comes first: a header's structure is in a thousand units, and comparing all
    # members of each would take seconds.
    keys: set[object] = set()
    shapes: dict[object, TypeId] = {}
    for die in found:
        key = _key(types, die)
        if key in keys:
            continue
        keys.add(key)
        shapes.setdefault(_shape(types, die), TypeId(die.offset))
    return tuple(shapes.values())


def _key(types: TypeTable, die: Die) -> object:
    # Same size, same line of its file, same names of the first members. One name is too few:
    # Redis 8 has two `struct dictEntry` of 24 bytes in lines 45, and both begin with `key`.
    first = islice(types.info.children(die), _NAMES_COMPARED)
    return (
        die.tag,
        types.size(die),
        die.unsigned(DW_AT_decl_line),
        tuple([child.string(DW_AT_name) for child in first]),
    )


def _shape(types: TypeTable, die: Die) -> object:
    bare = types.stripped(die)
    if bare is None:
        return "void"
    bare = types.resolved(bare)
    size = types.size(bare)
    if bare.tag in AGGREGATES:
        inside = tuple((m.name, m.offset, m.bits, _kind(types, m)) for m in members(types, bare))
        return AGGREGATES[bare.tag], size, inside
    return bare.tag, size, bare.unsigned(DW_AT_encoding), bare.string(DW_AT_name)


def _kind(types: TypeTable, member: Member) -> object:
    # Enough to tell an int from a float, without walking into what the member consists of.
    if member.type < 0:
        return types.type(member.type)
    bare = types.stripped(types.die(member.type))
    if bare is None:
        return None
    return bare.tag, types.size(bare), bare.unsigned(DW_AT_encoding)


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
    used_in: str | int = -1
    if origin is not None:
        used_in = _package(origin) if is_go(origin.unit) else origin.unit.offset
    found = types.named.get((name, used_in))
    if found is None:
        found = _types_named(types, name, origin)
        if len(types.named) < _MOST_KEPT:
            types.named[name, used_in] = found
    return found


def _package(function: Die) -> str:
    return go_name_lookup.package_of(function.string(DW_AT_name) or "")


def _types_named(types: TypeTable, name: str, origin: Die | None) -> tuple[TypeId, ...]:
    home = None if origin is None else origin.unit
    base = base_spelling(name)
    # Go's `int` is a word. Of a file without a unit at hand, the first one tells whose names count.
    unit = home or next(iter(types.info.units()), None)
    if base is not None and (unit is None or not is_go(unit)):
        return _base(types, base, home)
    words = unqualified(name)
    if len(words) > 1 and words[0] in TAGS_OF_KEYWORD:
        tags = TAGS_OF_KEYWORD[words[0]]
        return distinct(types, _search_imported(types, " ".join(words[1:]), tags, home))
    if home is None or is_go(home):
        found = _of_go(types, name, origin)
        if found or home is not None:
            return found
    return distinct(types, _preferred(_search_imported(types, " ".join(words), NAMED, home)))


def _of_go(types: TypeTable, name: str, home: Die | None) -> tuple[TypeId, ...]:
    for spellings in go_name_lookup.type_spellings(types.info, name, home):
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
    if types.info.files.in_several_files:
        return names_in_parts(types.info)
    return iter(dict.fromkeys(types.info.name_index.names()))


def _base(types: TypeTable, base: Base, home: Unit | None) -> tuple[TypeId, ...]:
    # A word of the language: any unit's will do, so the search stops early, and what no unit
    # uses is built from the name where the platform has one layout for it.
    for unit in _first_units(types, home):
        for child in types.info.at_top(unit):
            if child.tag == DW_TAG_base_type and child.string(DW_AT_name) in base.names:
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
            if child.tag in tags and child.string(DW_AT_name) == name
        ]
        own = [child for child in named if not child.flag(DW_AT_declaration)]
        if own:
            return own
        for declared in named:
            type_id = TypeId(declared.offset)
            completed = definition(types, type_id)
            if completed != type_id:
                return [types.die(completed)]
    if home is not None and home.is_split:
        # Its own file alone, before all others are opened.
        candidates = types.info.find_named(plain, tags, definitions=True, within=home.sections)
        own = [die for die in candidates if answers_to(types.info, die, name)]
        if own:
            return own
    # Of equal definitions the index has one, which may be another unit's: where there are unlike
    # ones, or none but within functions, all are looked at.
    listed = indexed(types, plain, tags) or ()
    found = [die for die in listed if answers_to(types.info, die, name)]
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


# ------------------------------------------------------------------------------
# Names of types of a program whose debug information is in several files: no index has them.


def names_in_parts(info: DebugInfo) -> Iterator[str]:
    """Names of the types that stand outside functions, each once; opens all files."""
    seen = set()
    for unit in info.all_units():
        for name in _of_unit(info, unit):
            if name not in seen:
                seen.add(name)
                yield name


def _of_unit(info: DebugInfo, unit: Unit) -> Iterator[str]:
    nested = has_namespaces(unit)
    keywords = is_c_family(unit) and not nested
    waiting: list[tuple[str, Iterator[Die]]] = [("", iter(info.children(unit.top)))]
    while waiting:
        scope, children = waiting[-1]
        die = next(children, None)
        if die is None:
            waiting.pop()
            continue
        # A class of a type unit is listed there, not where it is stood in for.
        if die.has(DW_AT_signature) or (die.tag not in NAMED and die.tag != DW_TAG_namespace):
            continue
        name = own_name(info, die) or ""
        if die.tag == DW_TAG_namespace:
            name = name or UNNAMED_NAMESPACE
        if not name:
            continue
        whole = qualified_name(info, die) if die.has(DW_AT_specification) else scope + name
        if die.has_children and die.tag in NESTING and nested:
            waiting.append((whole + "::", iter(info.children(die))))
        if die.tag == DW_TAG_namespace or die.flag(DW_AT_declaration):
            continue
        yield f"{KEYWORDS[die.tag]} {whole}" if keywords and die.tag in KEYWORDS else whole
