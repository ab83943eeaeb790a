"""The debug information of one file: units, entries, and the ways to find one."""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.dwarf.entries import by_address, references, walk
from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries.abbrev import AbbrevTable, DeclarationCache
from fetchc.debuginfo.dwarf.entries.addresses import AddressTable
from fetchc.debuginfo.dwarf.entries.die import Die
from fetchc.debuginfo.dwarf.entries.marks import Marks
from fetchc.debuginfo.dwarf.entries.ranges import ranges
from fetchc.debuginfo.dwarf.entries.stretches import SectionSet, Stretch, signatures
from fetchc.debuginfo.dwarf.entries.units import Unit, read_unit
from fetchc.diag.errors import DebugInfoError
from fetchc.units import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.alternate import Alternate
    from fetchc.debuginfo.dwarf.entries.imports import Imports
    from fetchc.debuginfo.dwarf.entries.split import SplitFiles
    from fetchc.debuginfo.dwarf.entries.stretches import Opener
    from fetchc.debuginfo.elf.file import Elf
    from fetchc.debuginfo.elf.sections import Section
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
        "_alternate",
        "_bases",
        "_declarations",
        "_imports",
        "_is_split",
        "_kept",
        "_kept_size",
        "_name_index",
        "_own",
        "_recent",
        "_signatures",
        "_split",
        "_stretches",
        "_tables",
        "_units",
        "elf",
    )

    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self._addresses = AddressTable(self)
        self._declarations = DeclarationCache()
        self._tables: dict[tuple[int, int, tuple[int, int, int, bool]], AbbrevTable] = {}
        self._units: dict[int, Unit] = {}
        self._recent: Unit | None = None
        self._kept: dict[int, Unit] = {}  # units with their bytes, oldest first
        self._kept_size = 0
        self._signatures: dict[int, DieOffset] | None = None
        self._name_index: NameIndex | None = None
        self._own: SectionSet | None = None
        # Of all section sets, in the order of their bases.
        self._stretches: list[Stretch] = []
        self._bases: list[int] = []
        self._split: SplitFiles | None = None
        self._is_split: bool | None = None
        self._alternate: Alternate | None = None
        self._imports: Imports | None = None

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

    @property
    def own(self) -> SectionSet:
        """The program's own sections; FC0903 where there is no .debug_info."""
        if self._own is None:
            info = self.elf.open_section(".debug_info")
            if info is None:
                notes, help = self.elf.finder.advice()
                raise DebugInfoError(
                    "FC0903", self.elf.path, "no debug information", help=help, notes=notes
                )
            types = self.elf.open_section(".debug_types")
            units = [(info, False)] if types is None else [(info, False), (types, True)]
            self._own = self._add(self.elf.path, self.elf.open_section, units, split=False)
        return self._own

    @property
    def section(self) -> Section:
        """The program's own .debug_info; FC0903 where there is none."""
        return self.own.stretches[0].section

    def sections(self) -> tuple[tuple[Section, int], ...]:
        """The program's own sections of units, each with the DieOffset of its start."""
        return tuple([(stretch.section, stretch.base) for stretch in self.own.stretches])

    def add(
        self, path: str, opener: Opener, units: list[tuple[Section, bool]], split: bool = False
    ) -> SectionSet:
        """Further sections, whose units get DieOffsets behind those of the program."""
        assert self.own.stretches
        return self._add(path, opener, units, split)

    def _add(
        self, path: str, opener: Opener, units: list[tuple[Section, bool]], split: bool
    ) -> SectionSet:
        base = self._stretches[-1].end if self._stretches else 0
        added = SectionSet(self, path, opener, units, base, split)
        self._stretches += added.stretches
        self._bases += [stretch.base for stretch in added.stretches]
        return added

    @property
    def split(self) -> SplitFiles:
        """The .dwo files and the package that skeleton units lead to."""
        if self._split is None:
            from fetchc.debuginfo.dwarf.entries.split import SplitFiles

            self._split = SplitFiles(self)
        return self._split

    @property
    def alternate(self) -> Alternate:
        """The file that dwz moved to what several programs share."""
        if self._alternate is None:
            from fetchc.debuginfo.dwarf.entries.alternate import Alternate

            self._alternate = Alternate(self)
        return self._alternate

    @property
    def imports(self) -> Imports:
        """Which units import which partial ones."""
        if self._imports is None:
            from fetchc.debuginfo.dwarf.entries.imports import Imports

            self._imports = Imports(self)
        return self._imports

    def section_sets(self) -> Iterator[SectionSet]:
        """Every set of sections that has units of the program; opens all files that are there."""
        yield self.own
        if self.shares:
            yield self.imports.shared()
        if self.is_split:
            yield from self.split.all()

    @property
    def shares(self) -> bool:
        """Whether entries may refer to a file that dwz made for several programs."""
        image = self.elf.debug_image
        return any(image.header(name) is not None for name in (".gnu_debugaltlink", ".debug_sup"))

    @property
    def is_split(self) -> bool:
        """Whether some units are elsewhere: addresses for them are here."""
        if self._is_split is None:
            self._is_split = self.own.open_section(".debug_addr") is not None and any(
                unit.split_file is not None for unit in self.own.units()
            )
        return self._is_split

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
            return self.unit_at(self._stretch_of(offset), offset)
        self._recent = found
        return found

    def _stretch_of(self, offset: int) -> Stretch:
        own = self.own
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            raise own.stretches[0].section.error("no unit has an entry at this offset", offset)
        return self._stretches[at]

    def units(self) -> Iterator[Unit]:
        """Every unit of the program in order, type units of .debug_types last.

        A split unit stands in the place of its skeleton, where its file is found.
        """
        for unit in self.own.units():
            yield unit if unit.split_file is None else self.split.unit_if_found(unit) or unit

    def all_units(self) -> Iterator[Unit]:
        """The same, with shared partial units and the type units of split files and packages."""
        for sections in self.section_sets():
            for unit in sections.units():
                if unit.split_file is None:
                    yield unit

    @property
    def in_parts(self) -> bool:
        """Whether some of the debug information is in files of its own (.dwo, .dwp, dwz)."""
        return self.shares or self.is_split

    def skeleton_of(self, unit: Unit) -> Unit:
        """The program's unit that has the addresses of a split unit."""
        return self.split.skeleton_of(unit)

    def unit_containing(self, offset: DieOffset) -> Unit:
        """The unit that holds the entry at ``offset``; FC0904 where none does."""
        found = self.unit_containing_byte(offset)
        if found is None:
            stretch = self._stretch_of(offset)
            where = offset - stretch.base
            raise stretch.section.error("no unit has an entry at this offset", where)
        return found

    def unit_containing_byte(self, offset: DieOffset) -> Unit | None:
        """The unit that has that byte among its entries, None for a header or no unit."""
        # A unit known from the address table spares the hops over all before it.
        recent = self._recent
        if recent is not None and recent.die_offset <= offset < recent.end:
            return recent
        stretch = self._stretch_of(offset)
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
        return self.split.unit(found)

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
        if unit.end - unit.offset < _BIG_UNIT or unit.sections is not self._own:
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

    def own_signature(self, signature: int) -> DieOffset | None:
        """Where the program's own type unit of that signature starts; None where there is none."""
        if self._signatures is None:
            self._signatures = signatures(self.own)
        return self._signatures.get(signature)

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
