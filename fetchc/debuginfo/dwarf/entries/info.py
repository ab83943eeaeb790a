"""The debug information of one file: units, entries, and the ways to find one."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import by_address, references, walk
from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries.abbrev import AbbrevTable, DeclarationCache
from fetchc.debuginfo.dwarf.entries.addresses import AddressTable
from fetchc.debuginfo.dwarf.entries.debug_files import DebugFiles
from fetchc.debuginfo.dwarf.entries.die import Die
from fetchc.debuginfo.dwarf.entries.marks import Marks
from fetchc.debuginfo.dwarf.entries.ranges import ranges
from fetchc.debuginfo.dwarf.entries.units import Unit, read_unit
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.stretches import SectionSet, Stretch
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.elf.headers import Section
    from fetchc.debuginfo.index.lookup import NameIndex

__all__ = ["DebugInfo"]

# Bytes of units kept for the next question. Most questions stay in one unit; the largest
# unit seen (10 MB, C++ with boost) is read from the mapped file in 2 ms.
_RESIDENT = 16 << 20
_BIG_UNIT = 1 << 20  # bytes: to walk over so many takes 5 ms and more
_TABLES = 256  # abbreviation tables kept


class DebugInfo:
    """Lazy: constructing reads nothing; questions about a file without DWARF raise FC0903.

    A DieOffset counts from the start of .debug_info; entries of further sections and files
    follow after its end, so that one number names an entry of any of them.
    """

    __slots__ = (
        "_addresses",
        "_declarations",
        "_kept",
        "_kept_size",
        "_name_index",
        "_recent",
        "_tables",
        "_units",
        "elf",
        "files",
    )

    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self.files = DebugFiles(self)
        self._addresses = AddressTable(self)
        self._declarations = DeclarationCache()
        self._tables: dict[tuple[int, int, tuple[int, int, int, bool]], AbbrevTable] = {}
        self._units: dict[int, Unit] = {}
        self._recent: Unit | None = None
        self._kept: dict[int, Unit] = {}  # units with their bytes, oldest first
        self._kept_size = 0
        self._name_index: NameIndex | None = None

    @property
    def name_index(self) -> NameIndex:
        """Types, variables and functions by name, for what would read all units."""
        if self._name_index is None:
            from fetchc.debuginfo.index.lookup import NameIndex

            self._name_index = NameIndex(self)
        return self._name_index

    @property
    def present(self) -> bool:
        """Whether the file, or its separate debug file, has .debug_info at all."""
        return self.elf.open_section(".debug_info") is not None

    def open_section(self, name: str, unit: Unit) -> Section | None:
        """The section that an entry of ``unit`` means by that name; None where it is missing."""
        return unit.sections.open_section(name)

    def required_section(self, name: str, unit: Unit) -> Section:
        """A section that an entry of ``unit`` refers to; FC0904 where it is missing."""
        found = self.open_section(name, unit)
        if found is None:
            raise DebugInfoError("FC0904", unit.path, "missing, but entries refer to it", name)
        return found

    # Units

    def unit_at(self, stretch: Stretch, offset: int) -> Unit:
        """The unit of ``stretch`` whose header is at the DieOffset ``offset``."""
        found = self._units.get(offset)
        if found is None:
            found = self._units[offset] = read_unit(self, stretch, offset - stretch.base)
        self._recent = found
        return found

    def unit_starting(self, offset: DieOffset) -> Unit:
        """The unit whose header is at ``offset``, which must come from a table that says so."""
        found = self._units.get(offset)
        if found is None:
            return self.unit_at(self.files.stretch_of(offset), offset)
        self._recent = found
        return found

    def units(self) -> Iterator[Unit]:
        """Every unit of the program in order, type units of .debug_types last.

        A split unit stands in the place of its skeleton, where its file is found.
        """
        for unit in self.files.own.units():
            yield unit if unit.split_file is None else self.files.split.unit_if_found(unit) or unit

    def all_units(self) -> Iterator[Unit]:
        """The same, with shared partial units and the type units of split files and packages."""
        for sections in self.files.all():
            for unit in sections.units():
                if unit.split_file is None:
                    yield unit

    def unit_containing(self, offset: DieOffset) -> Unit:
        """The unit that holds the entry at ``offset``; FC0904 where none does."""
        found = self.unit_containing_byte(offset)
        if found is None:
            stretch = self.files.stretch_of(offset)
            where = offset - stretch.base
            raise stretch.section.error("no unit has an entry at this offset", where)
        return found

    def unit_containing_byte(self, offset: DieOffset) -> Unit | None:
        """The unit that has that byte among its entries, None for a header or no unit."""
        # A unit known from the address table spares the hops over all before it.
        recent = self._recent
        if recent is not None and recent.die_offset <= offset < recent.end:
            return recent
        stretch = self.files.stretch_of(offset)
        start = stretch.start_before(offset)
        if start is None:
            return None
        unit = self.unit_at(stretch, start)
        return unit if unit.die_offset <= offset < unit.end else None

    def unit_of_address(self, address: Address) -> Unit | None:
        """The unit whose code is at ``address``; FC0909 where it is split off and not found."""
        found = self._addresses.unit_of(address)
        if found is None or found.split_file is None:
            return found
        return self.files.split.unit(found)

    def keep(self, unit: Unit) -> None:
        """Take note of a unit that has read its bytes, and let old ones go."""
        self._kept[unit.offset] = unit
        self._kept_size += unit.end - unit.offset
        while self._kept_size > _RESIDENT and len(self._kept) > 1:
            oldest = self._kept.pop(next(iter(self._kept)))
            oldest.forget()
            self._kept_size -= oldest.end - oldest.offset

    def marks(self, unit: Unit) -> Marks:
        """Where entries of the unit are known to start: of a big one, what is kept of it."""
        if unit.end - unit.offset < _BIG_UNIT or unit.sections is not self.files.own:
            return Marks(unit.die_offset - unit.offset)
        from fetchc.debuginfo.index.outline import marks

        return marks(unit)

    def abbreviations(self, unit: Unit) -> AbbrevTable:
        """The abbreviation table of a unit, shared by units that name the same one."""
        key = (unit.sections.base, unit.abbrev_offset, unit.encoding.key)
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

    def at_top(self, unit: Unit) -> Iterator[Die]:
        """Entries right below the unit's top one, those of partial units that it imports last."""
        waiting, seen = [unit], {unit.offset}
        for each in waiting:  # grows
            for child in self.children(each.top):
                if child.tag != c.DW_TAG_imported_unit:
                    yield child
                    continue
                target = self.follow(child, c.DW_AT_import)
                if target is not None and target.unit.offset not in seen:
                    seen.add(target.unit.offset)
                    waiting.append(target.unit)

    def ancestors(self, die: Die) -> tuple[Die, ...]:
        """From the unit's top entry down to the parent; empty for the top entry itself."""
        unit = die.unit
        return tuple([Die(unit, at) for at in walk.ancestors(unit, die.position)])

    def function_at(self, address: Address) -> Die | None:
        """The concrete DW_TAG_subprogram one of whose ranges starts at ``address``."""
        unit = self.unit_of_address(address)
        return None if unit is None else by_address.function_at(unit, address)

    def find_named(
        self,
        name: str,
        tags: frozenset[int],
        *,
        definitions: bool = False,
        within: SectionSet | None = None,
    ) -> Iterator[Die]:
        """Every entry of the program with that DW_AT_name and one of those tags.

        With ``definitions``, entries that have DW_AT_declaration are left out (cheaply);
        ``within`` are the sections to look in, all of them by default.
        """
        from fetchc.debuginfo.dwarf.entries.by_name import find_named

        return find_named(self, name, tags, definitions, within)

    def ranges(self, die: Die) -> tuple[tuple[Address, Address], ...]:
        """Half-open ranges of code, from low/high pc or a range list; empty ones left out."""
        return ranges(die)

    def follow(self, die: Die, attribute: int) -> Die | None:
        """The entry that a reference attribute names; None where the attribute is absent."""
        return None if die.raw(attribute) is None else references.target(self, die, attribute)

    def origins(self, die: Die) -> Iterator[Die]:
        """What the entry is a copy or a completion of, then what that is, to the end.

        By DW_AT_abstract_origin and DW_AT_specification, also into other units; without the entry
        itself, and each once where a hostile file has a circle.
        """
        seen = {die.offset}
        while True:
            origin = self.follow(die, c.DW_AT_abstract_origin)
            further = origin or self.follow(die, c.DW_AT_specification)
            if further is None or further.offset in seen:
                return
            seen.add(further.offset)
            yield further
            die = further

    def inherited(self, die: Die, attribute: int) -> Die | None:
        """The first entry that has the attribute: ``die``, else along its origins.

        Ask the entry found for the value. None where none has it.
        """
        if die.has(attribute):
            return die
        return next((one for one in self.origins(die) if one.has(attribute)), None)
