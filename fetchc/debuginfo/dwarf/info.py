"""The debug information of one file: units, entries, and the ways to find one."""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import lookup, walk
from fetchc.debuginfo.dwarf.abbrev import AbbrevTable, DeclarationCache
from fetchc.debuginfo.dwarf.addresses import AddressTable
from fetchc.debuginfo.dwarf.die import Die
from fetchc.debuginfo.dwarf.forms import LOCAL_REFERENCE_FORMS, SUPPLEMENTARY_FORMS
from fetchc.debuginfo.dwarf.ranges import ranges
from fetchc.debuginfo.dwarf.units import Unit, read_unit
from fetchc.diag.errors import DebugInfoError
from fetchc.units import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.elf import Elf
    from fetchc.debuginfo.sections import Section

__all__ = ["DebugInfo"]

# Bytes of units kept for the next question. Most questions stay in one unit; the largest
# unit seen (10 MB, C++ with boost) is read from the mapped file in 2 ms.
_RESIDENT = 16 << 20
_NOT_PLAIN = 0xFFFFFFF0  # from here on, a unit's length is an escape (DWARF 5, 7.2.2)
_TABLES = 256  # abbreviation tables kept


class DebugInfo:
    """Lazy: constructing reads nothing; questions about a file without DWARF raise FC0903.

    A DieOffset counts from the start of .debug_info; entries of .debug_types (type units of
    DWARF 4) follow after its end, so that one number names an entry of either section.
    """

    __slots__ = (
        "_addresses",
        "_declarations",
        "_kept",
        "_kept_size",
        "_next",
        "_recent",
        "_signatures",
        "_starts",
        "_tables",
        "_units",
        "elf",
    )

    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self._addresses = AddressTable(self)
        self._declarations = DeclarationCache()
        self._tables: dict[tuple[int, tuple[int, int, int, bool]], AbbrevTable] = {}
        self._units: dict[int, Unit] = {}
        self._recent: Unit | None = None
        self._kept: dict[int, Unit] = {}  # units with their bytes, oldest first
        self._kept_size = 0
        self._signatures: dict[int, DieOffset] | None = None
        # Starts of the units found so far, and where the next one would be.
        self._starts: list[int] = []
        self._next = 0

    @property
    def present(self) -> bool:
        """Whether the file, or its separate debug file, has .debug_info at all."""
        return self.elf.open_section(".debug_info") is not None

    @property
    def section(self) -> Section:
        """.debug_info; FC0903 where there is none."""
        found = self.elf.open_section(".debug_info")
        if found is None:
            raise DebugInfoError(
                "FC0903",
                self.elf.path,
                "no debug information",
                help="build with -g, or install the file's debug package",
            )
        return found

    def sections(self) -> tuple[tuple[Section, int], ...]:
        """.debug_info and, where there is one, .debug_types, with the DieOffset of their starts."""
        info = self.section
        types = self.elf.open_section(".debug_types")
        return ((info, 0),) if types is None else ((info, 0), (types, info.size))

    def required_section(self, name: str, unit: Unit) -> Section:
        """A section that an entry of ``unit`` refers to; FC0904 where it is missing."""
        found = self.elf.open_section(name)
        if found is None:
            raise DebugInfoError("FC0904", unit.path, "missing, but entries refer to it", name)
        return found

    # Units

    def _extend(self, past: int) -> None:
        # Hop over unit headers until one starts behind ``past``, or the sections end.
        for section, base in self.sections():
            end = base + section.size
            length_at = Struct("<I" if section.little else ">I").unpack_from
            while base <= self._next < end and self._next <= past:
                start = self._next - base
                data = section.upto(start + 4)
                length = length_at(data, start)[0] if start + 4 <= len(data) else _NOT_PLAIN
                behind = start + 4 + length
                if length >= _NOT_PLAIN or behind > section.size:
                    # 64-bit DWARF, or damage that the cursor locates.
                    reader = section.cursor(start)
                    length = reader.initial_length()[0]
                    behind = reader.offset + length
                self._starts.append(self._next)
                self._next = base + behind

    def unit_starting(self, offset: DieOffset) -> Unit:
        """The unit whose header is at ``offset``, which must come from a table that says so."""
        found = self._units.get(offset)
        if found is None:
            for section, base in reversed(self.sections()):
                if offset >= base:
                    found = read_unit(self, section, base, offset - base, base != 0)
                    break
            else:
                raise self.section.error("no unit is at a negative offset")
            self._units[offset] = found
        self._recent = found
        return found

    def units(self) -> Iterator[Unit]:
        """Every unit in order, type units of .debug_types last."""
        at = 0
        while True:
            if at >= len(self._starts):
                self._extend(self._next)
                if at >= len(self._starts):
                    return
            yield self.unit_starting(DieOffset(self._starts[at]))
            at += 1

    def unit_containing(self, offset: DieOffset) -> Unit:
        """The unit that holds the entry at ``offset``; FC0904 where none does."""
        found = self.unit_containing_byte(offset)
        if found is None:
            raise self.section.error("no unit has an entry at this offset", offset)
        return found

    def unit_containing_byte(self, offset: DieOffset) -> Unit | None:
        """The unit that has that byte among its entries, None for a header or no unit."""
        # A unit known from the address table spares the hops over all before it.
        recent = self._recent
        if recent is not None and recent.die_offset <= offset < recent.end:
            return recent
        self._extend(offset)
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return None
        unit = self.unit_starting(DieOffset(self._starts[at]))
        return unit if unit.die_offset <= offset < unit.end else None

    def unit_of_address(self, address: Address) -> Unit | None:
        """The unit whose code is at ``address``."""
        return self._addresses.unit_of(address)

    def keep(self, unit: Unit) -> None:
        """Take note of a unit that has read its bytes, and let old ones go."""
        self._kept[unit.offset] = unit
        self._kept_size += unit.end - unit.offset
        while self._kept_size > _RESIDENT and len(self._kept) > 1:
            oldest = self._kept.pop(next(iter(self._kept)))
            oldest.forget()
            self._kept_size -= oldest.end - oldest.offset

    def abbreviations(self, unit: Unit) -> AbbrevTable:
        """The abbreviation table of a unit, shared by units that name the same one."""
        key = (unit.abbrev_offset, unit.encoding.key)
        found = self._tables.get(key)
        if found is None:
            if len(self._tables) >= _TABLES:
                self._tables.clear()
            section = self.required_section(".debug_abbrev", unit)
            found = AbbrevTable(section, unit.abbrev_offset, unit.encoding, self._declarations)
            self._tables[key] = found
        return found

    # Entries

    def die(self, offset: DieOffset) -> Die:
        """The entry that starts at ``offset``.

        That an entry starts there is the caller's knowledge (a reference, a symbol's lookup).
        """
        unit = self.unit_containing(offset)
        return Die(unit, offset - unit.offset)

    def top(self, unit: Unit) -> Die:
        """The unit's own entry."""
        return unit.top

    def children(self, die: Die) -> Iterator[Die]:
        """Direct children in order."""
        if not die.has_children:
            return
        unit = die.unit
        at = die.stop
        while True:
            data = unit.data
            if at >= len(data):
                raise unit.error("a list of children without an end", at)
            if data[at] == 0:
                return
            child = Die(unit, at)
            yield child
            if not child.has_children:
                at = child.stop
            else:
                target = walk.sibling(unit, child.declaration, at, child.values_at)
                at = walk.skip_subtree(unit, child.stop) if target is None else target

    def ancestors(self, die: Die) -> tuple[Die, ...]:
        """From the unit's top entry down to the parent; empty for the top entry itself."""
        unit = die.unit
        return tuple([Die(unit, at) for at in walk.ancestors(unit, die.position)])

    def function_at(self, address: Address) -> Die | None:
        """The concrete DW_TAG_subprogram one of whose ranges starts at ``address``."""
        unit = self.unit_of_address(address)
        return None if unit is None else lookup.function_at(unit, address)

    def find_named(
        self, name: str, tags: frozenset[int], *, definitions: bool = False
    ) -> Iterator[Die]:
        """Every entry of the file with that DW_AT_name and one of those tags.

        With ``definitions``, entries that have DW_AT_declaration are left out (cheaply).
        """
        return lookup.find_named(self, name, tags, definitions)

    def ranges(self, die: Die) -> tuple[tuple[Address, Address], ...]:
        """Half-open ranges of code, from low/high pc or a range list; empty ones left out."""
        return ranges(die)

    def follow(self, die: Die, attribute: int) -> Die | None:
        """The entry that a reference attribute names; None where the attribute is absent."""
        value = die.raw(attribute)
        if value is None:
            return None
        unit = die.unit
        form = die.form(attribute)
        if isinstance(value, int):
            if form in LOCAL_REFERENCE_FORMS:
                return Die(unit, value)
            if form == c.DW_FORM_ref_addr:
                return self.die(DieOffset(value))
            if form == c.DW_FORM_ref_sig8:
                return self._signed_type(die, value)
        if form in SUPPLEMENTARY_FORMS:
            raise unit.error(
                "refers to a supplementary debug file (dwz), which is not read",
                die.position,
                "FC0905",
            )
        raise unit.error(f"attribute {attribute:#x} is not a reference", die.position)

    def _signed_type(self, die: Die, signature: int) -> Die:
        if self._signatures is None:
            self._signatures = {
                unit.signature: unit.offset for unit in self.units() if unit.signature is not None
            }
        offset = self._signatures.get(signature)
        if offset is None:
            raise die.unit.error(f"no type unit has signature {signature:#018x}", die.position)
        unit = self.unit_starting(offset)
        if unit.type_offset is None or not unit.die_offset <= unit.type_offset < unit.end:
            raise unit.error("the type's offset is outside its unit", 0)
        return Die(unit, unit.type_offset - unit.offset)

    def inherited(self, die: Die, attribute: int) -> Die | None:
        """The first entry that has the attribute: ``die``, else along its origins.

        Origins are DW_AT_abstract_origin and DW_AT_specification, also into other units;
        ask the entry found for the value. None where none has it.
        """
        seen = set()
        current: Die | None = die
        while current is not None and current.offset not in seen:
            if current.has(attribute):
                return current
            seen.add(current.offset)
            origin = self.follow(current, c.DW_AT_abstract_origin)
            current = origin or self.follow(current, c.DW_AT_specification)
        return None
