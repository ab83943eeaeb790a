"""Types by name: as spelled by a person, and the definitions of what is only declared.

A name is looked for in the unit of the function at hand first, then in the whole file.
Equal definitions in many units (every C file that includes a header has its own) count
as one; unlike ones of one name are all handed back, for the caller to refuse.
"""

from __future__ import annotations

from fetchc.debuginfo.c_words import QUALIFIERS, base_spelling
from fetchc.debuginfo.dwarf.entries.attributes import has_namespaces, is_c_family, is_go
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_decl_line,
    DW_AT_declaration,
    DW_AT_encoding,
    DW_AT_name,
    DW_TAG_array_type,
    DW_TAG_base_type,
    DW_TAG_class_type,
    DW_TAG_enumeration_type,
    DW_TAG_namespace,
    DW_TAG_pointer_type,
    DW_TAG_structure_type,
    DW_TAG_subprogram,
    DW_TAG_subroutine_type,
    DW_TAG_template_alias,
    DW_TAG_typedef,
    DW_TAG_union_type,
    DW_TAG_unspecified_type,
)
from fetchc.debuginfo.dwarf.entries.scopes import (
    answers_to,
    declaration,
    last_part,
    own_name,
    parts,
    qualified_name,
)
from fetchc.debuginfo.dwarf.names import go_names
from fetchc.debuginfo.dwarf.types.aggregates import AGGREGATES, members
from fetchc.program.types import FloatType, IntType
from fetchc.units import ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.c_words import Base
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.dwarf.types.table import TypeTable
    from fetchc.program.types import Member

__all__ = ["definition", "type_names", "types_named"]

CLASSES = frozenset({DW_TAG_structure_type, DW_TAG_class_type})
TAGS_OF_KEYWORD = {
    "struct": CLASSES,
    "class": CLASSES,
    "union": frozenset({DW_TAG_union_type}),
    "enum": frozenset({DW_TAG_enumeration_type}),
}
TAGGED = CLASSES | {DW_TAG_union_type, DW_TAG_enumeration_type}
# What a bare name means first in C, where `struct s` and `s` are two name spaces.
ORDINARY = frozenset(
    {DW_TAG_base_type, DW_TAG_typedef, DW_TAG_template_alias, DW_TAG_unspecified_type}
)
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
NAMED = ORDINARY | TAGGED
NESTING = CLASSES | {DW_TAG_union_type, DW_TAG_namespace}
KEYWORDS = {**AGGREGATES, DW_TAG_enumeration_type: "enum"}
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
        return _ids(types, _search(types, " ".join(words[1:]), TAGS_OF_KEYWORD[words[0]], home))
    if home is None or is_go(home):
        function = None if origin is None else origin.text(DW_AT_name)
        package = go_names.package_of(function or "")
        for spelling in go_names.type_spellings(types.info, name, package):
            candidates = types.info.find_named(spelling, GO_TAGS, definitions=True)
            found = _preferred([die for die in candidates if is_go(die.unit)])
            if found:
                return _ids(types, found)
        if home is not None:
            return ()
    found = _preferred(list(_search(types, " ".join(words), ORDINARY | TAGGED, home)))
    return _ids(types, found)


def definition(types: TypeTable, type_id: TypeId) -> TypeId:
    """The one definition of the declared type; the declaration where there is none or several."""
    die = types.die(type_id)
    tags = CLASSES if die.tag in CLASSES else frozenset({die.tag})
    name = qualified_name(types.info, die)
    if not name:
        return type_id
    declared = declaration(types.info, die)
    plain = declared.text(DW_AT_name) or ""
    own = own_name(types.info, declared) or ""
    candidates: Iterable[Die] | None = _indexed(types, own, tags)
    indexed = bool(candidates) if own != plain else candidates is not None
    if not indexed:
        candidates = types.info.find_named(plain, tags, definitions=True)
    assert candidates is not None
    same = (other for other in candidates if qualified_name(types.info, other) == name)
    found = _ids(types, same)
    if not indexed and found:
        # One within a function is another type, and the index has none of these.
        found = tuple([known for known in found if not _within_function(types, known)])
    return found[0] if len(found) == 1 else type_id


def _indexed(types: TypeTable, name: str, tags: frozenset[int]) -> list[Die] | None:
    # An index is of one file.
    found = None if types.info.in_parts else types.info.name_index.named(name, tags)
    return None if found is None else [types.info.die(offset) for offset in found]


def _within_function(types: TypeTable, type_id: TypeId) -> bool:
    around = types.info.ancestors(types.die(type_id))
    return any(die.tag == DW_TAG_subprogram for die in around)


def type_names(types: TypeTable) -> Iterator[str]:
    """Names of the types that are defined outside functions, each once."""
    if types.info.in_parts:
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


def _search(types: TypeTable, name: str, tags: frozenset[int], home: Unit | None) -> Iterable[Die]:
    plain = last_part(name)
    if home is not None and not has_namespaces(home):
        own = [
            child
            for child in types.info.at_top(home)
            if child.tag in tags
            and child.text(DW_AT_name) == name
            and not child.flag(DW_AT_declaration)
        ]
        if own:
            return own
    if home is not None and home.is_split:
        # Its own file alone, before all others are opened.
        candidates = types.info.find_named(plain, tags, definitions=True, within=home.sections)
        own = [die for die in candidates if answers_to(types.info, die, name)]
        if own:
            return own
    # Of equal definitions the index has one, which may be another unit's: where there are unlike
    # ones, or none but within functions, all are looked at.
    known = _indexed(types, plain, tags) or ()
    found = [die for die in known if answers_to(types.info, die, name)]
    if found and len(_ids(types, found)) == 1:
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


def _ids(types: TypeTable, found: Iterable[Die]) -> tuple[TypeId, ...]:
    # The first of each kind of definition. The cheap key comes first: a header's structure is
    # in a thousand units, and comparing all members of each would take seconds.
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
    # Same size, same line of its file, same first member.
    first = next(iter(types.info.children(die)), None)
    return (
        die.tag,
        types.size(die),
        die.unsigned(DW_AT_decl_line),
        None if first is None else first.text(DW_AT_name),
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
    return bare.tag, size, bare.unsigned(DW_AT_encoding), bare.text(DW_AT_name)


def _kind(types: TypeTable, member: Member) -> object:
    # Enough to tell an int from a float, without walking into what the member consists of.
    if member.type < 0:
        return types.type(member.type)
    bare = types.stripped(types.die(member.type))
    if bare is None:
        return None
    return bare.tag, types.size(bare), bare.unsigned(DW_AT_encoding)
