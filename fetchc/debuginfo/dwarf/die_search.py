"""Finds entries by their name or their references without reading the others."""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import encode_number, uleb_bytes
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.constants import DW_FORM_ref4
from fetchc.debuginfo.dwarf.dies import Die, is_entry, starts_before
from fetchc.debuginfo.dwarf.forms import STRING_INDEX_FORMS
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.abbrev import AbbrevTable, Declaration
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Shape
    from fetchc.debuginfo.dwarf.units import SectionSet, Unit, UnitSection
    from fetchc.debuginfo.elf.headers import Section

__all__ = ["find_named", "referring"]

# Above this many places of a string, walking all entries (80 MB/s) is cheaper than searching
# .debug_info for each (1.7 GB/s).
_MANY_STRINGS = 20


def find_named(
    info: DebugInfo,
    name: str,
    tags: frozenset[int],
    definitions: bool,
    within: SectionSet | None = None,
) -> Iterator[Die]:
    """Every entry of the program with that DW_AT_name and one of the tags, each once.

    The order is that of the file for each way of storing a name: in line first, then by
    offset in a string section, then by index. Only the entries of ``within``, if given. Raises
    MissingDebugFile FC0908 or FC0909 where nothing has the name and a split file is missing.
    """
    try:
        key = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return
    if not key or b"\0" in key:
        return
    key += b"\0"
    wanted = _Wanted(tags, definitions)
    strings = _Strings(key)
    found = False
    for sections in info.files.all() if within is None else (within,):
        for die in _in_set(info, sections, strings, wanted):
            if sections.visible is None or die.unit.offset in sections.visible:
                found = True
                yield die
    if not found and within is None and info.files.is_split:
        missing = info.files.split.missing
        if missing is not None:
            raise missing


class _Strings:
    """Where a string is in each section of strings; all units of a package share one."""

    __slots__ = ("_positions", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key  # with the NUL after it
        self._positions: dict[int, tuple[Section, list[int]]] = {}

    def offsets(self, section: Section | None) -> list[int]:
        """Offsets of every occurrence, ends of longer strings among them."""
        if section is None:
            return []
        cached = self._positions.get(id(section))
        if cached is None:
            cached = self._positions[id(section)] = (section, list(section.find_all(self.key)))
        return cached[1]


def _in_set(
    info: DebugInfo, sections: SectionSet, strings: _Strings, wanted: _Wanted
) -> Iterator[Die]:
    for unit_section in sections.unit_sections:
        hits = unit_section.section.find_all(strings.key)
        yield from _at_hits(info, hits, unit_section, c.DW_FORM_string, None, wanted)
    forms = [
        (c.DW_FORM_strp, sections.open_section(".debug_str")),
        (c.DW_FORM_line_strp, sections.open_section(".debug_line_str")),
    ]
    if sections is info.files.own and info.files.has_supplementary:
        shared = info.files.supplementary.sections.open_section(".debug_str")
        forms += [(c.DW_FORM_GNU_strp_alt, shared), (c.DW_FORM_strp_sup, shared)]
    for form, section in forms:
        offsets = strings.offsets(section)
        if len(offsets) > _MANY_STRINGS:
            yield from _by_walk(sections.units(), form, frozenset(offsets), wanted)
        elif offsets:
            yield from _by_offsets(info, sections, form, offsets, wanted)
        if offsets and form == c.DW_FORM_strp:
            yield from _by_indexes(sections, frozenset(offsets), wanted)


class _Wanted:
    # Which declarations are looked for, remembered for each table.
    __slots__ = ("_definitions", "_shapes", "_tags")

    def __init__(self, tags: frozenset[int], definitions: bool) -> None:
        self._tags = tags
        self._definitions = definitions
        self._shapes: dict[tuple[AbbrevTable, int], tuple[list[Shape], bool]] = {}

    def takes(self, declaration: Declaration) -> bool:
        """Tag and, for definitions, no DW_AT_declaration."""
        return declaration.tag in self._tags and not (
            self._definitions and c.DW_AT_declaration in declaration.index
        )

    def shapes(self, unit: Unit, form: int) -> tuple[list[Shape], bool]:
        """Code bytes and distance of the name, and whether some have no constant distance."""
        key = (unit.table, form)
        found = self._shapes.get(key)
        if found is None:
            fixed, others = [], False
            for code, declaration in unit.table.tagged(self._tags):
                declared = declaration.form(c.DW_AT_name)
                if declared == c.DW_FORM_indirect and self.takes(declaration):
                    others = True
                if declared != form or not self.takes(declaration):
                    continue
                distance = declaration.offset_of(c.DW_AT_name)
                if distance is None:
                    others = True
                else:
                    fixed.append((uleb_bytes(code), distance, declaration))
            found = self._shapes[key] = (fixed, others)
        return found


def _by_offsets(
    info: DebugInfo, sections: SectionSet, form: int, offsets: list[int], wanted: _Wanted
) -> Iterator[Die]:
    for offset in offsets:
        if offset >= 1 << 32:
            continue  # 64-bit DWARF with more than 4 GiB of strings does not fit the search
        for unit_section in sections.unit_sections:
            section = unit_section.section
            key = encode_number(offset, 4, section.little)
            yield from _at_hits(info, section.find_all(key), unit_section, form, offset, wanted)


def _at_hits(
    info: DebugInfo,
    hits: Iterator[int],
    unit_section: UnitSection,
    form: int,
    value: int | None,
    wanted: _Wanted,
) -> Iterator[Die]:
    # The entries whose name is at one of the hits; ``value`` is what the form must read there.
    last = -1
    for hit in hits:
        unit = info.unit_containing_byte(DieOffset(unit_section.base + hit))
        if unit is None:
            continue
        at = unit_section.base + hit - unit.offset
        if value is not None and unit.offset_size == 8 and not unit.little:
            at -= 4  # the search found the low half of a big-endian offset
        for start in _named_at(unit, at, form, wanted):
            die = Die(unit, start)
            if (value is None or die.raw(c.DW_AT_name) == value) and die.offset != last:
                last = die.offset
                yield die


def _named_at(unit: Unit, at: int, form: int, wanted: _Wanted) -> Iterator[int]:
    # The start of the entry whose DW_AT_name, of that form, is exactly at ``at``.
    fixed, others = wanted.shapes(unit, form)
    for start in starts_before(unit.data, at, fixed):
        if is_entry(unit, start):
            yield start
            return
    if not others:
        return
    start = dies.entry_covering(unit, at) or 0
    if not start:
        return
    die = Die(unit, start)
    if (
        wanted.takes(die.declaration)
        and die.form(c.DW_AT_name) == form
        and _name_position(die) == at
    ):
        yield start


def _name_position(die: Die) -> int:
    # Guarded by die.form, which has read every value.
    return die.declaration.position_of(c.DW_AT_name, die.unit.data, die.values_at)


def _by_walk(
    units: Iterable[Unit], form: int, values: frozenset[int], wanted: _Wanted
) -> Iterator[Die]:
    for unit in units:
        fixed, others = wanted.shapes(unit, form)
        if fixed or others:
            yield from _named_in_unit(unit, frozenset((form,)), values, wanted)


def _named_in_unit(
    unit: Unit, forms: frozenset[int], values: frozenset[int], wanted: _Wanted
) -> Iterator[Die]:
    for start, declaration, values_at in dies.entries(unit):
        if not wanted.takes(declaration):
            continue
        getter = declaration.getter(c.DW_AT_name)
        if getter is None or dies.value(unit, getter, start, values_at) not in values:
            continue
        die = Die(unit, start)
        form = die.form(c.DW_AT_name)
        if form is not None and form in forms:
            yield die


def _by_indexes(sections: SectionSet, offsets: frozenset[int], wanted: _Wanted) -> Iterator[Die]:
    # Names through .debug_str_offsets: the indexes of a unit that stand for the string.
    section = sections.open_section(".debug_str_offsets")
    if section is None:
        return
    places: dict[int, list[int]] = {4: [], 8: []}
    for size, found in places.items():
        for offset in offsets:
            if offset < 1 << 8 * size:
                raw = encode_number(offset, size, section.little)
                found.extend(section.find_all(raw))
    for unit in sections.units():
        base, size = unit.tables.str_offsets_base, unit.offset_size
        indexes = frozenset(
            [(at - base) // size for at in places[size] if at >= base and (at - base) % size == 0]
        )
        if indexes:
            yield from _named_in_unit(unit, STRING_INDEX_FORMS, indexes, wanted)


# ------------------------------------------------------------------------------
# Finding entries by what they refer to.


def referring(
    unit: Unit, targets: Iterable[int], tags: frozenset[int], attributes: tuple[int, ...]
) -> list[int] | None:
    """Starts of the entries of those tags that refer to one of the targets, in the unit's order.

    All are positions in the unit. None where a reference has no constant place and size, so that
    it cannot be searched for, or may be to another unit.
    """
    shapes = []
    for code, declaration in unit.table.tagged(tags):
        for attribute in attributes:
            form = declaration.form(attribute)
            distance = declaration.offset_of(attribute)
            if form == DW_FORM_ref4 and distance is not None:
                shapes.append((uleb_bytes(code), distance, declaration))
            elif form is not None or declaration.has_indirect:
                return None
    data = unit.data
    starts: set[int] = set()
    for target in targets:
        key = encode_number(target, 4, unit.little)
        at = data.find(key)
        while at >= 0:
            starts.update(starts_before(data, at, shapes))
            at = data.find(key, at + 1)
    return [start for start in sorted(starts) if is_entry(unit, start)]
