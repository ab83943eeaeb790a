"""Finding entries by address or by name without reading the others.

Both search the raw bytes first, since that runs at the speed of memory, and then prove
that what was found is an entry: bytes that merely look like one are frequent enough
(a lexical block has the function's address, too; ``Msg`` ends ``main.Msg``).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import walk
from fetchc.debuginfo.dwarf.die import Die
from fetchc.debuginfo.dwarf.forms import (
    ADDRESS_INDEX_FORMS,
    STRING_INDEX_FORMS,
)
from fetchc.debuginfo.dwarf.ranges import ranges
from fetchc.units import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.abbrev import AbbrevTable, Declaration
    from fetchc.debuginfo.dwarf.info import DebugInfo
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.debuginfo.sections import Section

    # The bytes of a code, the distance of the value searched for, what the code declares.
    Shape = tuple[bytes, int, Declaration]

__all__ = ["find_named", "function_at"]

_FUNCTIONS = frozenset((c.DW_TAG_subprogram,))
# Entries that may have functions among their children; other subtrees are hopped over first.
_SCOPES = frozenset(
    (
        c.DW_TAG_compile_unit,
        c.DW_TAG_partial_unit,
        c.DW_TAG_skeleton_unit,
        c.DW_TAG_namespace,
        c.DW_TAG_module,
        c.DW_TAG_structure_type,
        c.DW_TAG_class_type,
        c.DW_TAG_union_type,
        c.DW_TAG_interface_type,
    )
)
# Above this many places of a string, walking all entries (80 MB/s) is cheaper than searching
# .debug_info for each (1.7 GB/s).
_MANY_STRINGS = 20
# Walks of a unit in search of single functions, before a table of all is made in one.
_WALKS = 4


def _code_bytes(code: int) -> bytes:
    # The shortest ULEB128, which is what every producer writes for abbreviation codes.
    out = bytearray()
    while code > 0x7F:
        out.append(code & 0x7F | 0x80)
        code >>= 7
    out.append(code)
    return bytes(out)


def _starts_before(data: bytes, at: int, shapes: Iterable[Shape]) -> Iterator[int]:
    # Where an entry would start whose value, at a constant distance, is at ``at``.
    for code, distance, _ in shapes:
        start = at - distance - len(code)
        if start > 0 and data.startswith(code, start):
            yield start


def function_at(unit: Unit, address: Address) -> Die | None:
    """The concrete subprogram of ``unit`` one of whose ranges starts at ``address``."""
    found = _function_by_bytes(unit, address)
    if found is not None:
        return found
    unit.walks += 1
    if unit.walks > _WALKS:
        if unit.functions is None:
            unit.functions = _functions(unit)
        start = unit.functions.get(address)
        return None if start is None else Die(unit, start)
    # First without looking into functions, where nearly none are; then everywhere.
    for into in (_SCOPES, None):
        found = _function_by_walk(unit, address, into)
        if found is not None:
            return found
    return None


def _functions(unit: Unit) -> dict[int, int]:
    """The subprogram at each address where one starts, by its place in the unit."""
    found: dict[int, int] = {}
    for into in (_SCOPES, None):
        for start, declaration, _ in walk.entries(unit, into):
            if declaration.tag != c.DW_TAG_subprogram:
                continue
            ranged = declaration.form(c.DW_AT_ranges) is not None or declaration.has_indirect
            if ranged or declaration.form(c.DW_AT_low_pc) is not None:
                die = Die(unit, start)
                low = die.address(c.DW_AT_low_pc)
                if low is not None:
                    found.setdefault(low, start)
                for begin, _ in ranges(die) if ranged else ():
                    found.setdefault(begin, start)
    return found


def _function_by_bytes(unit: Unit, address: Address) -> Die | None:
    size = unit.address_size
    if not 0 <= address < 1 << 8 * size:
        return None
    shapes = []
    for code, declaration in unit.table.tagged(_FUNCTIONS):
        if declaration.form(c.DW_AT_low_pc) == c.DW_FORM_addr:
            distance = declaration.offset_of(c.DW_AT_low_pc)
            if distance is not None:
                shapes.append((_code_bytes(code), distance, declaration))
    if not shapes:
        return None
    data = unit.data
    key = address.to_bytes(size, "little" if unit.little else "big")
    at = data.find(key)
    while at >= 0:
        for start in _starts_before(data, at, shapes):
            if _is_entry(unit, start):
                return Die(unit, start)
        at = data.find(key, at + 1)
    return None


def _is_entry(unit: Unit, start: int) -> bool:
    """Whether an entry starts there: only a walk from a known start can tell.

    That DW_AT_sibling is where the subtree ends proves nothing: bytes in front of an entry
    may look like the code of another declaration whose last attributes are the same. In
    Debian's libc, dlerror_run and flush_cleanup are such functions.
    """
    return walk.covering(unit, start) == start


def _function_by_walk(unit: Unit, address: Address, into: frozenset[int] | None) -> Die | None:
    indexes: set[int] | None = None
    for start, declaration, values_at in walk.entries(unit, into):
        if declaration.tag != c.DW_TAG_subprogram:
            continue
        low = declaration.getter(c.DW_AT_low_pc)
        if low is not None and not declaration.has_indirect:
            value = walk.value(unit, low, start, values_at)
            form = declaration.form(c.DW_AT_low_pc)
            if form in ADDRESS_INDEX_FORMS:
                if indexes is None:
                    indexes = _address_indexes(unit, address)
                matches = value in indexes
            else:
                matches = value == address
            if matches:
                return Die(unit, start)
        if declaration.form(c.DW_AT_ranges) is not None or declaration.has_indirect:
            die = Die(unit, start)
            if any(low == address for low, _ in ranges(die)):
                return die
    return None


def _address_indexes(unit: Unit, address: Address) -> set[int]:
    # Every index of the unit's part of .debug_addr that stands for the address.
    section = unit.info.required_section(".debug_addr", unit)
    size = unit.address_size
    base = unit.addr_base
    key = address.to_bytes(size, "little" if unit.little else "big")
    return {
        (at - base) // size
        for at in section.find_all(key)
        if at >= base and (at - base) % size == 0
    }


def find_named(
    info: DebugInfo, name: str, tags: frozenset[int], definitions: bool
) -> Iterator[Die]:
    """Every entry of the file with that DW_AT_name and one of the tags, each once.

    The order is that of the file for each way of storing a name: in line first, then by
    offset in a string section, then by index.
    """
    try:
        key = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return
    if not key or b"\0" in key:
        return
    key += b"\0"
    wanted = _Wanted(tags, definitions)
    for section, base in info.sections():
        hits = section.find_all(key)
        yield from _at_hits(info, hits, base, c.DW_FORM_string, None, wanted)
    for form, strings in ((c.DW_FORM_strp, ".debug_str"), (c.DW_FORM_line_strp, ".debug_line_str")):
        found = info.elf.open_section(strings)
        offsets = [] if found is None else list(found.find_all(key))
        if len(offsets) > _MANY_STRINGS:
            yield from _by_walk(info.units(), form, frozenset(offsets), wanted)
        elif offsets:
            yield from _by_offsets(info, form, offsets, wanted)
        if offsets and form == c.DW_FORM_strp:
            yield from _by_indexes(info, frozenset(offsets), wanted)


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
                    fixed.append((_code_bytes(code), distance, declaration))
            found = self._shapes[key] = (fixed, others)
        return found


def _by_offsets(info: DebugInfo, form: int, offsets: list[int], wanted: _Wanted) -> Iterator[Die]:
    for offset in offsets:
        if offset >= 1 << 32:
            continue  # 64-bit DWARF with more than 4 GiB of strings does not fit the search
        for section, base in info.sections():
            key = offset.to_bytes(4, "little" if section.little else "big")
            yield from _at_hits(info, section.find_all(key), base, form, offset, wanted)


def _at_hits(
    info: DebugInfo,
    hits: Iterator[int],
    base: int,
    form: int,
    value: int | None,
    wanted: _Wanted,
) -> Iterator[Die]:
    # The entries whose name is at one of the hits; ``value`` is what the form must read there.
    last = -1
    for hit in hits:
        unit = info.unit_containing_byte(DieOffset(base + hit))
        if unit is None:
            continue
        at = base + hit - unit.offset
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
    for start in _starts_before(unit.data, at, fixed):
        if _is_entry(unit, start):
            yield start
            return
    if not others:
        return
    start = walk.covering(unit, at) or 0
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
    for start, declaration, values_at in walk.entries(unit):
        if not wanted.takes(declaration):
            continue
        getter = declaration.getter(c.DW_AT_name)
        if getter is None or walk.value(unit, getter, start, values_at) not in values:
            continue
        die = Die(unit, start)
        form = die.form(c.DW_AT_name)
        if form is not None and form in forms:
            yield die


def _by_indexes(info: DebugInfo, offsets: frozenset[int], wanted: _Wanted) -> Iterator[Die]:
    # Names through .debug_str_offsets: the indexes of a unit that stand for the string.
    section: Section | None = info.elf.open_section(".debug_str_offsets")
    if section is None:
        return
    order = "little" if section.little else "big"
    places: dict[int, list[int]] = {4: [], 8: []}
    for size, found in places.items():
        for offset in offsets:
            if offset < 1 << 8 * size:
                raw = offset.to_bytes(size, "little" if order == "little" else "big")
                found.extend(section.find_all(raw))
    for unit in info.units():
        base, size = unit.str_offsets_base, unit.offset_size
        indexes = frozenset(
            [(at - base) // size for at in places[size] if at >= base and (at - base) % size == 0]
        )
        if indexes:
            yield from _named_in_unit(unit, STRING_INDEX_FORMS, indexes, wanted)
