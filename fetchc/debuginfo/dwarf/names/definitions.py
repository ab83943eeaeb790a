"""Definitions of types: which of them are equal, and that of what is only declared.

Every C file that includes a header has a definition of its own; equal ones count as one.
"""

from __future__ import annotations

from itertools import islice

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_decl_line,
    DW_AT_encoding,
    DW_AT_name,
    DW_AT_type,
    DW_TAG_subprogram,
    DW_TAG_typedef,
)
from fetchc.debuginfo.dwarf.entries.scopes import declaration, own_name, qualified_name
from fetchc.debuginfo.dwarf.names.tags import CLASSES
from fetchc.debuginfo.dwarf.types.aggregates import AGGREGATES, members
from fetchc.quantities import TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.types.table import TypeTable
    from fetchc.program.types import Member

__all__ = ["definition", "distinct", "indexed"]

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
    plain = declared.text(DW_AT_name) or ""
    own = own_name(types.info, declared) or ""
    candidates: Iterable[Die] | None = indexed(types, own, tags)
    by_index = bool(candidates) if own != plain else candidates is not None
    if not by_index:
        candidates = types.info.find_named(plain, tags, definitions=True)
    assert candidates is not None
    same = [other for other in candidates if qualified_name(types.info, other) == name]
    found = distinct(types, same)
    if len(found) > 1 and len(same) <= _MOST_COMPARED:
        known_as = _typedefs(types, die)
        found = distinct(types, [one for one in same if known_as & _typedefs(types, one)]) or found
    if not by_index and found:
        # One within a function is another type, and the index has none of these.
        found = tuple([known for known in found if not _within_function(types, known)])
    return found[0] if len(found) == 1 else type_id


def _typedefs(types: TypeTable, die: Die) -> set[object]:
    # Names, files and lines of the typedefs that the unit of a type has for it.
    from fetchc.debuginfo.dwarf.lines.of_function import source_line

    own = [child for child in types.info.at_top(die.unit) if child.tag == DW_TAG_typedef]
    found: set[object] = set()
    for each in own:
        target = types.info.follow(each, DW_AT_type)
        line = source_line(types.info, each) if target and target.offset == die.offset else None
        if line is not None:
            found.add((each.text(DW_AT_name), line))
    return found


def indexed(types: TypeTable, name: str, tags: frozenset[int]) -> list[Die] | None:
    """The definitions that the index has of that name; None where there is no index."""
    # One is of one file.
    found = None if types.info.files.in_parts else types.info.name_index.named(name, tags)
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
        tuple([child.text(DW_AT_name) for child in first]),
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
