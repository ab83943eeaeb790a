"""Code by address: the ranges of an entry, the unit and the function at an address.

An entry has low and high pc, or a range list of either generation.

Source: DWARF 5, sections 2.17 and 7.25 (range lists); DWARF 4, section 2.17.3.
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.byte_reader import encode_number, record_layout, uleb_bytes
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.dies import Die, is_entry, starts_before
from fetchc.debuginfo.dwarf.forms import ADDRESS_FORMS, ADDRESS_INDEX_FORMS
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Shape
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.debuginfo.elf.headers import Section

    Range = tuple[Address, Address]

__all__ = ["AddressTable", "aranges", "function_at", "functions", "lists_from", "ranges"]


def ranges(die: Die) -> tuple[Range, ...]:
    """Half-open address ranges in the file's order, without those that the linker left out."""
    if die.has(c.DW_AT_high_pc):
        low = die.address(c.DW_AT_low_pc)
        if low is None:
            return ()
        # Since DWARF 4 a constant is a length.
        if die.form(c.DW_AT_high_pc) in ADDRESS_FORMS:
            high = die.address(c.DW_AT_high_pc)
        else:
            length = die.unsigned(c.DW_AT_high_pc)
            high = None if length is None else Address(low + length)
        if high is None:
            raise die.unit.error("DW_AT_high_pc is neither address nor length", die.position)
        return ((low, high),) if low < high and (low or _has_zero(die.unit)) else ()
    offset = die.raw(c.DW_AT_ranges)
    if offset is None:
        return ()
    unit = die.unit
    if isinstance(offset, bytes):
        raise unit.error("DW_AT_ranges is no offset", die.position)
    if unit.version < 5:
        listed = _range_list(unit, unit.ranges_base + offset)
    else:
        if die.form(c.DW_AT_ranges) == c.DW_FORM_rnglistx:
            offset = unit.tables.list_offset(".debug_rnglists", offset)
        listed = _rnglist(unit, offset)
    return tuple([one for one in listed if one[0] < one[1] and (one[0] or _has_zero(unit))])


def _has_zero(unit: Unit) -> bool:
    # Whether there can be code at address 0; else it is of what the linker left out.
    return not unit.info.elf.is_discarded(Address(0))


def _range_list(unit: Unit, offset: int) -> Iterator[Range]:
    # .debug_ranges: pairs relative to a base, (-1, base) chooses another, (0, 0) ends.
    reader = unit.info.required_section(".debug_ranges", unit).cursor(offset)
    size = unit.address_size
    choose = (1 << 8 * size) - 1
    base = unit.low_pc
    while True:
        low, high = reader.address(size), reader.address(size)
        if low == choose:
            base = Address(high)
        elif low == 0 and high == 0:
            return
        else:
            yield Address((base + low) & choose), Address((base + high) & choose)


def _rnglist(unit: Unit, offset: int) -> Iterator[Range]:
    reader = unit.info.required_section(".debug_rnglists", unit).cursor(offset)
    size = unit.address_size
    highest = (1 << 8 * size) - 1
    base = unit.low_pc
    while True:
        kind = reader.u8()
        if kind == c.DW_RLE_end_of_list:
            return
        if kind == c.DW_RLE_base_addressx:
            base = unit.tables.address_at(reader.uleb())
        elif kind == c.DW_RLE_base_address:
            base = Address(reader.address(size))
        elif kind == c.DW_RLE_startx_endx:
            yield unit.tables.address_at(reader.uleb()), unit.tables.address_at(reader.uleb())
        elif kind == c.DW_RLE_startx_length:
            start = unit.tables.address_at(reader.uleb())
            yield start, Address(start + reader.uleb())
        elif kind == c.DW_RLE_offset_pair:
            # Go writes what lies before the base as a distance that wraps.
            low, high = reader.uleb(), reader.uleb()
            yield Address((base + low) & highest), Address((base + high) & highest)
        elif kind == c.DW_RLE_start_end:
            yield Address(reader.address(size)), Address(reader.address(size))
        elif kind == c.DW_RLE_start_length:
            start = Address(reader.address(size))
            yield start, Address(start + reader.uleb())
        else:
            raise reader.error(f"unknown range list entry {kind:#x}", reader.offset - 1)


# ------------------------------------------------------------------------------
# Which unit has the code at an address.
#
# .debug_aranges says it where there is one (gcc, rustc); Go and clang write none, there the top
# entries of the units are read, as far as needed, and cached. Source: DWARF 5, section 6.1.2
# (unchanged since version 2).

_ESCAPE = b"\xff\xff\xff\xff"  # the length that announces 64-bit DWARF
_BIG = 4 << 20  # bytes of .debug_info: to read the top entries of its units takes 5 ms
_FEW = 3  # questions that a pass over the section answers
_WITH_CODE = (c.DW_UT_compile, c.DW_UT_partial, c.DW_UT_skeleton)


def aranges(section: Section) -> Iterator[tuple[Address, Address, DieOffset]]:
    """(start, end, unit offset) of every range in .debug_aranges."""
    for unit, pairs in _sets(section):
        for low, length in pairs:
            if length:
                yield Address(low), Address(low + length), unit


def _sets(section: Section) -> Iterator[tuple[DieOffset, Iterable[tuple[int, int]]]]:
    # Of each unit its pairs of address and length. A library has thousands of them, so the
    # usual header is read at once.
    data = section.bytes_between(0, section.size)
    little = section.little
    header = record_layout(little, "IHIBB").unpack_from
    layouts = {4: record_layout(little, "II"), 8: record_layout(little, "QQ")}
    size = len(data)
    at = 0
    while at < size:
        if at + 12 > size or data.startswith(_ESCAPE, at):
            start, end, version, unit, address_size, segment_size = _header(section, at)
        else:
            length, version, unit, address_size, segment_size = header(data, at)
            start, end = at + 12, at + 4 + length
        if end > size or end < start:
            raise section.error(f"address ranges of {end - at} bytes", at)
        layout = layouts.get(address_size)
        if layout is None or version != 2 or segment_size:
            raise section.error(
                f"address ranges of version {version}, address size {address_size}, "
                f"segment size {segment_size}",
                at,
            )
        # The first pair is aligned to the size of a pair, counted from the set's own start.
        pair = layout.size
        start += (at - start) % pair
        yield DieOffset(unit), layout.iter_unpack(data[start : end - (end - start) % pair])
        at = end


def _header(section: Section, at: int) -> tuple[int, int, int, int, int, int]:
    # The header of a set in 64-bit DWARF, or a truncated one.
    reader = section.cursor(at)
    length, offset_size = reader.initial_length()
    end = reader.offset + length
    version = reader.u16()
    unit = reader.unsigned(offset_size)
    address_size, segment_size = reader.u8(), reader.u8()
    return reader.offset, end, version, unit, address_size, segment_size


class AddressTable:
    """Answers for one file; grows as far as the questions need."""

    __slots__ = ("_info", "_last", "_pending", "_questions", "_scanned", "_sorted", "_starts")

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._questions = 0
        self._sorted: list[tuple[Address, Address, DieOffset]] | None = None
        self._starts: list[int] = []
        self._scanned: list[tuple[Address, Address, DieOffset]] = []
        self._last = DieOffset(-1)  # the last unit that was read
        self._pending: Iterator[Unit] | None = None

    def unit_of(self, address: Address) -> Unit | None:
        """The unit, None where no unit claims the address."""
        offset = self._from_aranges(address)
        if offset is not None:
            return self._info.unit_starting(offset)
        if self._pending is None:
            self._pending = self._begin()
        for low, high, offset in self._scanned:
            if low <= address < high:
                return self._info.unit_starting(offset)
        try:
            return self._scan(self._pending, address)
        except DebugInfoError:
            # The next question must meet the damage again, not the end of the iterator.
            self._pending = None
            self._scanned.clear()
            raise

    def is_listed(self, address: Address) -> bool:
        """Whether .debug_aranges lists the address, so that no unit is read to find it."""
        return self._from_aranges(address) is not None

    def _begin(self) -> Iterator[Unit]:
        # The units that are still to be read; of a big file, the ranges of others are cached.
        self._last = DieOffset(-1)
        if self._info.elf.environment.cache is not None and self._info.files.section.size >= _BIG:
            from fetchc.debuginfo.dwarf.cached_units import cached_ranges

            self._scanned, self._last = cached_ranges(self._info, self.found)
        last = self._last
        return (unit for unit in self._info.files.own.units() if unit.offset > last)

    def found(self) -> tuple[list[tuple[Address, Address, DieOffset]], DieOffset]:
        """Start, end and unit of what was read of the units' ranges, and the last one read."""
        return self._scanned, self._last

    def _scan(self, pending: Iterator[Unit], address: Address) -> Unit | None:
        for unit in pending:
            if unit.kind not in _WITH_CODE:
                continue
            covered = ranges(unit.top)
            if not covered and unit.version == 2:
                covered = tuple(self._of_functions(unit))
            self._scanned.extend([(low, high, unit.offset) for low, high in covered])
            self._last = unit.offset
            if any(low <= address < high for low, high in covered):
                return unit
        return None

    def _of_functions(self, unit: Unit) -> Iterator[tuple[Address, Address]]:
        # DWARF 2 has no DW_AT_ranges: a unit with several ranges of code may say nothing of
        # them (clang -gdwarf-2 -gstrict-dwarf), and only its functions know.
        scopes = [unit.top]
        while scopes:
            for child in self._info.children(scopes.pop()):
                if child.tag == c.DW_TAG_subprogram:
                    yield from ranges(child)
                elif child.tag == c.DW_TAG_namespace:
                    scopes.append(child)

    def _from_aranges(self, address: Address) -> DieOffset | None:
        section = self._info.elf.open_section(".debug_aranges")
        if section is None:
            return None
        if self._questions < _FEW:
            # Sorting pays from a few questions on.
            self._questions += 1
            return _in_one_pass(section, address)
        if self._sorted is None:
            self._sorted = sorted(aranges(section))
            self._starts = [start for start, _, _ in self._sorted]
        # Ranges should not overlap; where they do, the one that starts last holds.
        at = bisect_right(self._starts, address)
        for _, end, offset in reversed(self._sorted[:at]):
            if address < end:
                return offset
        return None


def _in_one_pass(section: Section, address: Address) -> DieOffset | None:
    found: tuple[int, int, DieOffset] | None = None
    for unit, pairs in _sets(section):
        for low, length in pairs:
            if low <= address < low + length:
                covering = (low, low + length, unit)
                if found is None or covering > found:
                    found = covering
    return None if found is None else found[2]


# ------------------------------------------------------------------------------
# Functions whose code is in several ranges, by the bytes of their lists.
#
# GCC gives a function whose rarely run part is elsewhere DW_AT_ranges and no DW_AT_low_pc.
# Its list begins with the function's address, and the entry holds where the list is: two searches
# at the speed of memory in place of a walk over the unit, which takes 0.4 s on one of 10 MB.

# Kinds of entry of .debug_rnglists that contain an address itself.
_WITH_ADDRESS = frozenset((c.DW_RLE_base_address, c.DW_RLE_start_end, c.DW_RLE_start_length))


def lists_from(unit: Unit, address: Address) -> Iterator[bytes]:
    """Values of DW_AT_ranges, as the unit stores them, of lists that may begin with the address."""
    for offset in _new(unit, address) if unit.version >= 5 else _old(unit, address):
        if 0 <= offset < 1 << 8 * unit.offset_size:
            yield encode_number(offset, unit.offset_size, unit.little)


def _new(unit: Unit, address: Address) -> Iterator[int]:
    section = unit.info.open_section(".debug_rnglists", unit)
    if section is None:
        return
    for at in section.find_all(encode_number(address, unit.address_size, unit.little)):
        if at and section.bytes_between(at - 1, at)[0] in _WITH_ADDRESS:
            yield at - 1


def _old(unit: Unit, address: Address) -> Iterator[int]:
    section = unit.info.open_section(".debug_ranges", unit)
    low = address - unit.low_pc
    if section is None or low <= 0:
        return
    for at in section.find_all(encode_number(low, unit.address_size, unit.little)):
        yield at - unit.ranges_base


# ------------------------------------------------------------------------------
# The function at an address, found without reading the other entries.

_FUNCTIONS = frozenset((c.DW_TAG_subprogram,))
_ADDRESSES = frozenset((c.DW_FORM_addr,))
_LIST_OFFSETS = frozenset((c.DW_FORM_sec_offset, c.DW_FORM_data4, c.DW_FORM_data8))
# Entries that may have functions among their children; other subtrees are hopped over first.
_WITH_FUNCTIONS = frozenset(
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
# Searches of a unit for single functions, each through all of its bytes, before one walk
# builds a table of all: a listing asks for all functions.
_SEARCHES = 3


def function_at(unit: Unit, address: Address) -> Die | None:
    """The concrete subprogram of ``unit`` with a range that starts at ``address``."""
    cached = unit.marks.function(address)
    if cached is not None:
        return None if cached < 0 else Die(unit, cached)
    unit.searches += 1
    if unit.searches > _SEARCHES:
        if unit.functions is None:
            unit.functions = functions(unit, _WITH_FUNCTIONS)
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
    for into in (_WITH_FUNCTIONS, None):
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
    key = encode_number(address, size, unit.little)
    for start in _entries_at(unit, key, shapes):
        return Die(unit, start)
    shapes = _function_shapes(unit, c.DW_AT_ranges, _LIST_OFFSETS)
    if shapes:
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
    # Every index of the unit's part of .debug_addr at which the address is.
    section = unit.info.required_section(".debug_addr", unit)
    size = unit.address_size
    base = unit.tables.addr_base
    key = encode_number(address, size, unit.little)
    return {
        (at - base) // size
        for at in section.find_all(key)
        if at >= base and (at - base) % size == 0
    }
