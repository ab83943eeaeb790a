"""Bytes that may be an entry, and the proof that they are one.

Searches run over the raw bytes first, since that goes at the speed of memory, and then prove that
what was found is an entry: bytes that merely look like one are frequent enough (a lexical block
has the function's address, too; ``Msg`` ends ``main.Msg``).
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import uleb_bytes
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.address_ranges import ranges
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.forms import ADDRESS_INDEX_FORMS
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.abbrev import Declaration
    from fetchc.debuginfo.dwarf.units import Unit

    Shape = tuple[bytes, int, Declaration]

__all__ = ["function_at", "functions", "is_entry", "starts_before"]


def starts_before(data: bytes, at: int, shapes: Iterable[Shape]) -> Iterator[int]:
    """Where an entry would start whose value, at a constant distance, is at ``at``."""
    for code, distance, _ in shapes:
        start = at - distance - len(code)
        if start > 0 and data.startswith(code, start):
            yield start


def is_entry(unit: Unit, start: int) -> bool:
    """Whether an entry starts there: only a walk from a known start can tell.

    That DW_AT_sibling is where the subtree ends proves nothing: bytes in front of an entry
    may look like the code of another declaration whose last attributes are the same. In
    Debian's libc, dlerror_run and flush_cleanup are such functions.
    """
    return dies.entry_covering(unit, start) == start


# ------------------------------------------------------------------------------
# Finding functions by address without reading the other entries; see :mod:`.candidates`.

_FUNCTIONS = frozenset((c.DW_TAG_subprogram,))
_ADDRESSES = frozenset((c.DW_FORM_addr,))
_LIST_OFFSETS = frozenset((c.DW_FORM_sec_offset, c.DW_FORM_data4, c.DW_FORM_data8))
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
# Searches of a unit for single functions, each through all of its bytes, before a table of all is
# made in one walk: who lists functions asks for all of them.
_SEARCHES = 3


def function_at(unit: Unit, address: Address) -> Die | None:
    """The concrete subprogram of ``unit`` one of whose ranges starts at ``address``."""
    kept = unit.marks.function(address)
    if kept is not None:
        return None if kept < 0 else Die(unit, kept)
    unit.searches += 1
    if unit.searches > _SEARCHES:
        if unit.functions is None:
            unit.functions = functions(unit, _SCOPES)
        start = unit.functions.get(address)
        if start is None and not unit.functions_whole:
            unit.functions = functions(unit, None) | unit.functions
            unit.functions_whole = True
            start = unit.functions.get(address)
        return None if start is None else Die(unit, start)
    found = _function_by_bytes(unit, address)
    if found is not None:
        return found
    # First without looking into functions, where nearly none are; then everywhere.
    for into in (_SCOPES, None):
        found = _function_by_walk(unit, address, into)
        if found is not None:
            return found
    return None


def functions(unit: Unit, into: frozenset[int] | None) -> dict[int, int]:
    """The subprogram at each address where one starts, by its place in the unit.

    ``into``: entries of other tags are hopped over, as in ``walk.entries``. Of several at one
    address it is the one that a search of the bytes finds first.
    """
    lows: dict[int, int] = {}
    others: dict[int, int] = {}
    for start, declaration, _ in dies.entries(unit, into):
        if declaration.tag != c.DW_TAG_subprogram:
            continue
        ranged = declaration.form(c.DW_AT_ranges) is not None or declaration.has_indirect
        if ranged or declaration.form(c.DW_AT_low_pc) is not None:
            die = Die(unit, start)
            low = die.address(c.DW_AT_low_pc)
            if low is not None:
                lows.setdefault(low, start)
            for begin, _ in ranges(die) if ranged else ():
                others.setdefault(begin, start)
    return others | lows


def _function_by_bytes(unit: Unit, address: Address) -> Die | None:
    size = unit.address_size
    if not 0 <= address < 1 << 8 * size:
        return None
    shapes = _function_shapes(unit, c.DW_AT_low_pc, _ADDRESSES)
    key = address.to_bytes(size, "little" if unit.little else "big")
    for start in _entries_at(unit, key, shapes):
        return Die(unit, start)
    shapes = _function_shapes(unit, c.DW_AT_ranges, _LIST_OFFSETS)
    if shapes:
        from fetchc.debuginfo.dwarf.address_ranges import lists_from

        for key in lists_from(unit, address):
            for start in _entries_at(unit, key, shapes):
                die = Die(unit, start)
                if any(low == address for low, _ in ranges(die)):
                    return die
    return None


def _function_shapes(unit: Unit, attribute: int, forms: frozenset[int]) -> list[Shape]:
    # Of the functions whose attribute has such a form, at a constant distance.
    shapes = []
    for code, declaration in unit.table.tagged(_FUNCTIONS):
        if declaration.form(attribute) in forms:
            distance = declaration.offset_of(attribute)
            if distance is not None:
                shapes.append((uleb_bytes(code), distance, declaration))
    return shapes


def _entries_at(unit: Unit, key: bytes, shapes: list[Shape]) -> Iterator[int]:
    # Where entries start that have the bytes at the distance of their shape.
    at = unit.data.find(key) if shapes else -1
    while at >= 0:
        for start in starts_before(unit.data, at, shapes):
            if is_entry(unit, start):
                yield start
        at = unit.data.find(key, at + 1)


def _function_by_walk(unit: Unit, address: Address, into: frozenset[int] | None) -> Die | None:
    indexes: set[int] | None = None
    for start, declaration, values_at in dies.entries(unit, into):
        if declaration.tag != c.DW_TAG_subprogram:
            continue
        low = declaration.getter(c.DW_AT_low_pc)
        if low is not None and not declaration.has_indirect:
            value = dies.value(unit, low, start, values_at)
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
    base = unit.tables.addr_base
    key = address.to_bytes(size, "little" if unit.little else "big")
    return {
        (at - base) // size
        for at in section.find_all(key)
        if at >= base and (at - base) % size == 0
    }
