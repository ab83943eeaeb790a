"""The debug information of one file: units, entries, and the ways to find one."""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.abbrev import AbbrevTable, DeclarationCache
from fetchc.debuginfo.dwarf.address_ranges import AddressTable, function_at, ranges
from fetchc.debuginfo.dwarf.dies import Die, Marks
from fetchc.debuginfo.dwarf.forms import LOCAL_REFERENCE_FORMS, SUPPLEMENTARY_REFERENCE_FORMS
from fetchc.debuginfo.dwarf.units import SectionSet, Unit, UnitSection, read_unit, signatures
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.name_index import NameIndex
    from fetchc.debuginfo.dwarf.split_units import SplitFiles
    from fetchc.debuginfo.dwarf.units import Opener
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.elf.headers import Section
    from fetchc.debuginfo.elf.thread_storage import ThreadStorage
    from fetchc.program.entities import ThreadLocal

__all__ = ["DebugFiles", "DebugInfo", "Imports", "SupplementaryFile", "target"]

# ------------------------------------------------------------------------------
# Where the debug information of a program is: its own sections, and those of further files.
#
# Source: DWARF 5, sections 7.3.2 (split units) and 7.3.6 (supplementary files).


class DebugFiles:
    """Lazy: files are opened where an entry, or a question about all of them, leads there.

    They share one space of DieOffsets: those of further files follow after the program's own.
    """

    __slots__ = (
        "_bases",
        "_imports",
        "_info",
        "_is_split",
        "_own",
        "_signatures",
        "_split",
        "_stretches",
        "_supplementary",
    )

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._signatures: dict[int, DieOffset] | None = None
        self._own: SectionSet | None = None
        # Of all section sets, in the order of their bases.
        self._stretches: list[UnitSection] = []
        self._bases: list[int] = []
        self._split: SplitFiles | None = None
        self._is_split: bool | None = None
        self._supplementary: SupplementaryFile | None = None
        self._imports: Imports | None = None

    @property
    def own(self) -> SectionSet:
        """The program's own sections; FC0903 where there is no .debug_info."""
        if self._own is None:
            elf = self._info.elf
            info = elf.open_section(".debug_info")
            if info is None:
                notes, help = elf.finder.advice()
                raise DebugInfoError(
                    "FC0903", elf.path, "no debug information", help=help, notes=notes
                )
            types = elf.open_section(".debug_types")
            units = [(info, False)] if types is None else [(info, False), (types, True)]
            self._own = self._add(elf.path, elf.open_section, units, split=False)
        return self._own

    @property
    def section(self) -> Section:
        """The program's own .debug_info; FC0903 where there is none."""
        return self.own.unit_sections[0].section

    def sections(self) -> tuple[tuple[Section, int], ...]:
        """The program's own sections of units, each with the DieOffset of its start."""
        return tuple(
            [(unit_section.section, unit_section.base) for unit_section in self.own.unit_sections]
        )

    def add(
        self, path: str, opener: Opener, units: list[tuple[Section, bool]], split: bool = False
    ) -> SectionSet:
        """Add sections, whose units get DieOffsets after those of the program."""
        assert self.own.unit_sections
        return self._add(path, opener, units, split)

    def _add(
        self, path: str, opener: Opener, units: list[tuple[Section, bool]], split: bool
    ) -> SectionSet:
        base = self._stretches[-1].end if self._stretches else 0
        added = SectionSet(self._info, path, opener, units, base, split)
        self._stretches += added.unit_sections
        self._bases += [unit_section.base for unit_section in added.unit_sections]
        return added

    @property
    def split(self) -> SplitFiles:
        """The .dwo files and the package that skeleton units lead to."""
        if self._split is None:
            from fetchc.debuginfo.dwarf.split_units import SplitFiles

            self._split = SplitFiles(self._info)
        return self._split

    @property
    def supplementary(self) -> SupplementaryFile:
        """The supplementary file that dwz wrote for several programs."""
        if self._supplementary is None:
            self._supplementary = SupplementaryFile(self._info)
        return self._supplementary

    @property
    def imports(self) -> Imports:
        """Which units import which partial ones."""
        if self._imports is None:
            self._imports = Imports(self._info)
        return self._imports

    def all(self) -> Iterator[SectionSet]:
        """Every set of sections that has units of the program; opens all files that are there."""
        yield self.own
        if self.has_supplementary:
            yield self.imports.supplementary_units()
        if self.is_split:
            yield from self.split.all()

    @property
    def has_supplementary(self) -> bool:
        """Whether entries may refer to a file that dwz wrote for several programs."""
        image = self._info.elf.debug_image
        return any(image.header(name) is not None for name in (".gnu_debugaltlink", ".debug_sup"))

    @property
    def is_split(self) -> bool:
        """Whether some units are elsewhere: addresses for them are here."""
        if self._is_split is None:
            self._is_split = self.own.open_section(".debug_addr") is not None and any(
                unit.split_file is not None for unit in self.own.units()
            )
        return self._is_split

    @property
    def in_several_files(self) -> bool:
        """Whether some of the debug information is in files of its own (.dwo, .dwp, dwz)."""
        return self.has_supplementary or self.is_split

    def own_signature(self, signature: int) -> DieOffset | None:
        """Where the program's own type unit of that signature starts; None where there is none."""
        if self._signatures is None:
            self._signatures = signatures(self.own)
        return self._signatures.get(signature)

    def unit_section_of(self, offset: int) -> UnitSection:
        """The section of units that has the DieOffset; FC0904 where none does."""
        own = self.own
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            raise own.unit_sections[0].section.error("no unit has an entry at this offset", offset)
        return self._stretches[at]


# ------------------------------------------------------------------------------
# From an attribute to the entry that it names, in whatever unit or file that is.
#
# Source: DWARF 5, section 7.5.5.9 (reference) and 7.3.6 (supplementary files).


def target(info: DebugInfo, die: Die, attribute: int) -> Die:
    """The entry that ``attribute`` of ``die``, which has it, names; FC0904 where it names none."""
    value, form = die.raw(attribute), die.form(attribute)
    unit = die.unit
    if isinstance(value, int):
        if form in LOCAL_REFERENCE_FORMS:
            return Die(unit, value)
        if form == c.DW_FORM_ref_addr:
            return info.die(DieOffset(unit.sections.base + value))
        if form == c.DW_FORM_ref_sig8:
            return _signed_type(info, die, value)
        if form in SUPPLEMENTARY_REFERENCE_FORMS:
            return info.die(DieOffset(info.files.supplementary.sections.base + value))
    raise unit.error(f"attribute {attribute:#x} is not a reference", die.position)


def _signed_type(info: DebugInfo, die: Die, signature: int) -> Die:
    offset = info.files.split.type_unit(die.unit, signature) if die.unit.is_split else None
    if offset is None:
        offset = info.files.own_signature(signature)
    if offset is None:
        raise die.unit.error(f"no type unit has signature {signature:#018x}", die.position)
    unit = info.unit_starting(offset)
    if unit.type_offset is None or not unit.die_offset <= unit.type_offset < unit.end:
        raise unit.error("the type's offset is outside its unit", 0)
    return Die(unit, unit.type_offset - unit.offset)


# Bytes of units cached for the next question. Most questions stay in one unit; the largest
# unit seen (10 MB, C++ with boost) is read from the mapped file in 2 ms.
_RESIDENT = 16 << 20
_BIG_UNIT = 1 << 20  # bytes: to walk over so many takes 5 ms and more
_TABLES = 256  # abbreviation tables cached
_MOST_ORIGINS = 64  # of one entry; a copy of an inlined one of a member function has three


class DebugInfo:
    """Lazy: constructing reads nothing; questions about a file without DWARF raise FC0903.

    A DieOffset counts from the start of .debug_info; entries of further sections and files
    follow after its end, so that one number names an entry of any of them.
    """

    __slots__ = (
        "_addresses",
        "_declarations",
        "_name_index",
        "_recent",
        "_resident",
        "_resident_size",
        "_tables",
        "_thread_storage",
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
        self._resident: dict[int, Unit] = {}  # units with their bytes, oldest first
        self._resident_size = 0
        self._name_index: NameIndex | None = None
        self._thread_storage: ThreadStorage | None = None

    def thread_local(self, offset: int) -> ThreadLocal | str:
        """Where what is ``offset`` bytes into the program's thread-local storage is, or why not."""
        if self._thread_storage is None:
            from fetchc.debuginfo.elf.thread_storage import thread_storage

            self._thread_storage = thread_storage(self.elf)
        return self._thread_storage.at(offset)

    @property
    def name_index(self) -> NameIndex:
        """The index of types, variables and functions by name, which saves reading all units."""
        if self._name_index is None:
            from fetchc.debuginfo.dwarf.name_index import NameIndex

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

    def unit_at(self, unit_section: UnitSection, offset: int) -> Unit:
        """The unit of ``unit_section`` whose header is at the DieOffset ``offset``."""
        found = self._units.get(offset)
        if found is None:
            found = self._units[offset] = read_unit(self, unit_section, offset - unit_section.base)
        self._recent = found
        return found

    def unit_starting(self, offset: DieOffset) -> Unit:
        """The unit whose header is at ``offset``, which must come from a table that says so."""
        found = self._units.get(offset)
        if found is None:
            return self.unit_at(self.files.unit_section_of(offset), offset)
        self._recent = found
        return found

    def units(self) -> Iterator[Unit]:
        """Every unit of the program in order, type units of .debug_types last.

        A split unit replaces its skeleton, where its file is found.
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
            unit_section = self.files.unit_section_of(offset)
            where = offset - unit_section.base
            raise unit_section.section.error("no unit has an entry at this offset", where)
        return found

    def unit_containing_byte(self, offset: DieOffset) -> Unit | None:
        """The unit that has that byte among its entries, None for a header or no unit."""
        # A unit of the address table saves the hops over all before it.
        recent = self._recent
        if recent is not None and recent.die_offset <= offset < recent.end:
            return recent
        unit_section = self.files.unit_section_of(offset)
        start = unit_section.start_before(offset)
        if start is None:
            return None
        unit = self.unit_at(unit_section, start)
        return unit if unit.die_offset <= offset < unit.end else None

    def is_in_address_table(self, address: Address) -> bool:
        """Whether .debug_aranges says which unit has the address."""
        return self._addresses.is_listed(address)

    def unit_of_address(self, address: Address) -> Unit | None:
        """The unit whose code is at ``address``; FC0909 where it is split off and not found."""
        found = self._addresses.unit_of(address)
        if found is None or found.split_file is None:
            return found
        return self.files.split.unit(found)

    def keep(self, unit: Unit) -> None:
        """Take note of a unit that has read its bytes, and let old ones go."""
        self._resident[unit.offset] = unit
        self._resident_size += unit.end - unit.offset
        while self._resident_size > _RESIDENT and len(self._resident) > 1:
            oldest = self._resident.pop(next(iter(self._resident)))
            oldest.forget()
            self._resident_size -= oldest.end - oldest.offset

    def marks(self, unit: Unit) -> Marks:
        """The unit's marks, where walks can start; of a big unit, the cached ones."""
        if unit.end - unit.offset < _BIG_UNIT or unit.sections is not self.files.own:
            return Marks(unit.die_offset - unit.offset)
        from fetchc.debuginfo.dwarf.cached_die_parents import marks

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
                target = dies.sibling(unit, child.declaration, at, child.values_at)
                at = dies.skip_subtree(unit, child.stop) if target is None else target

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
        return tuple([Die(unit, at) for at in dies.ancestors(unit, die.position)])

    def function_at(self, address: Address) -> Die | None:
        """The concrete DW_TAG_subprogram with a range that starts at ``address``, or None."""
        unit = self.unit_of_address(address)
        return None if unit is None else function_at(unit, address)

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
        from fetchc.debuginfo.dwarf.die_search import find_named

        return find_named(self, name, tags, definitions, within)

    def ranges(self, die: Die) -> tuple[tuple[Address, Address], ...]:
        """Half-open ranges of code, from low/high pc or a range list; empty ones left out."""
        return ranges(die)

    def follow(self, die: Die, attribute: int) -> Die | None:
        """The entry that a reference attribute names; None where the attribute is absent."""
        return None if die.raw(attribute) is None else target(self, die, attribute)

    def subprograms(self, unit: Unit) -> Iterator[Die]:
        """Those at the top of a unit, where concrete instances stand."""
        return (die for die in self.children(unit.top) if die.tag == c.DW_TAG_subprogram)

    def is_instance_of(self, die: Die, abstract: Die) -> bool:
        """Whether ``abstract`` is ``die`` itself or one of its origins and specifications."""
        return die.offset == abstract.offset or any(
            origin.offset == abstract.offset for origin in self.origins(die)
        )

    def instance_name(self, die: Die) -> str:
        """The name with template arguments of an instance whose DW_AT_name has none."""
        from fetchc.debuginfo.dwarf.template_names import instance_name

        return instance_name(self, die)

    def origins(self, die: Die) -> Iterator[Die]:
        """The entries that ``die`` is a copy or completion of, nearest first.

        By DW_AT_abstract_origin and DW_AT_specification, also into other units; without the entry
        itself, each once where a hostile file has a circle, and no more than compilers write: of
        a chain of all entries each would be walked from each.
        """
        seen = {die.offset}
        for _ in range(_MOST_ORIGINS):
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


# ------------------------------------------------------------------------------
# The file that dwz moved to what several programs share: strings, types, partial units.
#
# Source: DWARF 5, section 7.3.6 (supplementary object files); the GNU forms and .gnu_debugaltlink
# before it: the manual of dwz(1).


class SupplementaryFile:
    """Opened when the first entry refers to it; FC0908 or FC0909 where it is not there."""

    __slots__ = ("_info", "_sections")

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._sections: SectionSet | None = None

    @property
    def sections(self) -> SectionSet:
        """Its sections; units of other programs are among its units."""
        if self._sections is None:
            elf = self._info.elf
            image = elf.finder.alternate(elf.debug_image)
            section = image.open_section(".debug_info")
            units = [] if section is None else [(section, False)]
            self._sections = self._info.files.add(image.path, image.open_section, units)
        return self._sections

    def string(self, die: Die, offset: int) -> bytes:
        """A string that ``die`` has by its offset in the .debug_str of the file."""
        strings = self.sections.open_section(".debug_str")
        if strings is None:
            raise die.unit.error("a string in a file without .debug_str", die.position)
        return strings.cstring(offset)


# ------------------------------------------------------------------------------
# Partial units, and the units that import them.
#
# dwz puts what several units have in common into partial units, without a language, and into a
# file for several programs. An entry there belongs to the units that import it. Source: DWARF 5,
# sections 3.1.1 and 3.2.5, appendix E.


class Imports:
    """Who imports whom. Made once for a program, by the first entries of all its units."""

    __slots__ = ("_importers", "_info")

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._importers: dict[int, Unit] = {}  # the first one of each imported unit
        waiting = [*info.files.own.units()]
        for unit in waiting:  # grows
            for target in imported(info, unit):
                if target.offset not in self._importers:
                    self._importers[target.offset] = unit
                    if target.sections is not info.files.own:
                        waiting.append(target)

    def supplementary_units(self) -> SectionSet:
        """The sections of the shared file, with the units that this program imports."""
        sections = self._info.files.supplementary.sections
        sections.visible = frozenset(self._importers)
        return sections

    def language(self, unit: Unit) -> int | None:
        """DW_LANG_* of the units that import a partial one.

        dwz leaves out imports that only look-ups by name would need: of a unit that none imports,
        the language that all of the program's units have, None where they differ.
        """
        seen = {unit.offset}
        importer = self._importers.get(unit.offset)
        while importer is not None and importer.offset not in seen:
            one = importer.top.unsigned(c.DW_AT_language)
            if one is not None:
                return one
            seen.add(importer.offset)
            importer = self._importers.get(importer.offset)
        units = self._info.files.own.units()
        stated = {own.top.unsigned(c.DW_AT_language) for own in units} - {None}
        return stated.pop() if len(stated) == 1 else None


def imported(info: DebugInfo, unit: Unit) -> list[Unit]:
    """The units that ``unit`` imports: its first entries say so, before all others."""
    found = []
    for die in info.children(unit.top):
        if die.tag != c.DW_TAG_imported_unit:
            break
        target = info.follow(die, c.DW_AT_import)
        if target is not None:
            found.append(target.unit)
    return found
