"""Entries of functions by name: those with code, and what code was made from.

A name stands with a function's first declaration, so that the name of a copy, or of a method, is
behind one or two references. All entries but mere declarations have rows: a function that was
inlined has one in each unit whose code has calls of it.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries import walk
from fetchc.debuginfo.dwarf.entries.attributes import is_go, language_key
from fetchc.debuginfo.dwarf.entries.die import Die
from fetchc.debuginfo.dwarf.entries.forms import (
    LOCAL_REFERENCE_FORMS,
    STRING_INDEX_FORMS,
    read_uleb,
)
from fetchc.debuginfo.dwarf.entries.scopes import declaration as first_declaration
from fetchc.debuginfo.index.table import KIND_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration, Getter
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.index.reading import Name

    # Start, first value and declaration of an entry.
    Entry = tuple[int, int, Declaration]

__all__ = ["CODE", "INLINED", "KNOWN_ALL", "KNOWN_NONE", "KNOWN_SOME", "Functions", "known"]

# Kinds: it has code of its own; its body was put into callers (DW_AT_inline). Neither: what a
# constructor's copies were made from, or a declaration in C whose symbol has another name.
CODE, INLINED = 1, 2
# What an index knows of a unit's functions: too little, all but those that stand within others, or
# all that such a language has. What gcc makes of a function within a function is not among them.
KNOWN_NONE, KNOWN_SOME, KNOWN_ALL = range(3)
_CODE = frozenset({c.DW_AT_low_pc, c.DW_AT_ranges, c.DW_AT_entry_pc})
_LINKAGE = frozenset({c.DW_AT_linkage_name, c.DW_AT_MIPS_linkage_name})
_MOST = 8  # references to a name; compilers use two


def known(unit: Unit, of_c: bool) -> int:
    """How much an index has of the functions of such a unit."""
    if of_c or is_go(unit):
        return KNOWN_ALL
    key = language_key(unit)
    if key == "asm":
        return KNOWN_ALL
    return KNOWN_SOME if key in ("c++", "rust") else KNOWN_NONE


def is_defined(declaration: Declaration, of_c: bool) -> bool:
    """Whether subprograms of that declaration have rows.

    A mere declaration leads to code where its linkage name is a symbol of another name; in C++
    all have one, and the definition has a row.
    """
    has = declaration.index
    return c.DW_AT_declaration not in has or (of_c and not _LINKAGE.isdisjoint(has))


class Functions:
    """How names of functions are found, by the declarations of their entries."""

    def __init__(self) -> None:
        self.rows: dict[Name, list[int]] = {}
        self._kinds: dict[Declaration, int] = {}
        self._getters: dict[Declaration, tuple[Getter | None, Getter | None]] = {}

    def add(self, unit: Unit, entries: list[Entry]) -> None:
        """Take note of those entries of a unit."""
        kinds, rows, base = self._kinds, self.rows, unit.offset
        names: dict[int, Name | None] = {}  # by where the entry is
        for start, at, declaration in entries:
            kind = kinds.get(declaration)
            if kind is None:
                kind = kinds[declaration] = _kind(declaration)
            name = self._name(unit, start, at, declaration, names)
            if name is not None:
                rows.setdefault(name, []).append(base + start << KIND_BITS | kind)

    def _name(
        self,
        unit: Unit,
        start: int,
        at: int,
        declaration: Declaration,
        names: dict[int, Name | None],
    ) -> Name | None:
        passed: list[int] = []
        while start not in names:
            getters = self._getters.get(declaration)
            if getters is None:
                getters = self._getters[declaration] = _getters(declaration)
            plain, reference = getters
            if plain is not None:
                names[start] = walk.value(unit, plain, start, at)
            elif reference is None or len(passed) == _MOST:
                names[start] = _read(unit, start)
            else:
                passed.append(start)
                target = walk.value(unit, reference, start, at)
                if not isinstance(target, int) or not 0 < target < len(unit.data):
                    raise unit.error(f"a function refers to {target!r}, outside its unit", start)
                start = target
                if start not in names:
                    code, at = read_uleb(unit.data, start)
                    declaration = walk.declared(unit, code, start)
        name = names[start]
        names.update(dict.fromkeys(passed, name))
        return name


def _kind(declaration: Declaration) -> int:
    has = declaration.index
    return CODE * (not _CODE.isdisjoint(has)) | INLINED * (c.DW_AT_inline in has)


def _getters(declaration: Declaration) -> tuple[Getter | None, Getter | None]:
    # Of the name, of the reference to who has it; none where it is not as simple.
    form = declaration.form(c.DW_AT_name)
    if form is not None:
        return declaration.getter(c.DW_AT_name) if form in _PLAIN else None, None
    for attribute in (c.DW_AT_specification, c.DW_AT_abstract_origin):
        form = declaration.form(attribute)
        if form is not None:
            return None, declaration.getter(attribute) if form in LOCAL_REFERENCE_FORMS else None
    return None, None


def _read(unit: Unit, start: int) -> Name | None:
    die = Die(unit, start)
    if die.form(c.DW_AT_name) in STRING_INDEX_FORMS:
        index = die.raw(c.DW_AT_name)
        return unit.tables.string_offset(index) if isinstance(index, int) else None
    return first_declaration(unit.info, die).text_bytes(c.DW_AT_name)


_PLAIN = frozenset({c.DW_FORM_strp, c.DW_FORM_string})
