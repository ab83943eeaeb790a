"""Split DWARF: units in .dwo files or in a package of them (-gsplit-dwarf).

The program keeps skeleton units with addresses and the name of the file that has the rest. A
file is opened when something of its unit is asked for, and must have the unit's dwo_id.
Source: DWARF 5, sections 3.1.2, 3.1.3 and 7.3.2; for DWARF 4,
https://gcc.gnu.org/wiki/DebugFission.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.units import signatures
from fetchc.debuginfo.separate.build_id import MissingDebugFile
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.units import SectionSet, Unit
    from fetchc.debuginfo.elf.headers import Image, Section

    Contributions = dict[str, tuple[int, int]]

__all__ = ["Package", "PackageIndex", "SplitFiles"]

# Split units refer to these sections of the program by offsets that its linker has written.
_IN_PROGRAM = (".debug_addr", ".debug_ranges")
_UNITS = {".debug_info.dwo": False, ".debug_types.dwo": True}


class SplitFiles:
    """The split units of one program. ``missing`` is why the first one is not there, if any."""

    __slots__ = (
        "_files",
        "_info",
        "_package",
        "_package_sought",
        "_signatures",
        "_skeletons",
        "_units",
        "missing",
    )

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._package: Package | None = None
        self._package_sought = False
        self._files: dict[tuple[str, str], SectionSet] = {}
        self._units: dict[DieOffset, Unit] = {}  # by their skeletons
        self._skeletons: dict[DieOffset, Unit] = {}
        self._signatures: dict[int, dict[int, DieOffset]] = {}  # by the base of the section set
        self.missing: DebugInfoError | None = None

    @property
    def package(self) -> Package | None:
        """PROGRAM.dwp, None where there is none."""
        if not self._package_sought:
            elf = self._info.elf
            image = elf.finder.package(elf.debug_image)
            self._package = None if image is None else Package(self._info, image)
            self._package_sought = True
        return self._package

    def unit(self, skeleton: Unit) -> Unit:
        """The split unit of ``skeleton``.

        Raises MissingDebugFile FC0909 where its file is not found, FC0908 where only files of other
        builds are.
        """
        found = self._units.get(skeleton.offset)
        if found is None:
            found = self._units[skeleton.offset] = self._find(skeleton)
            self._skeletons[found.offset] = skeleton
        return found

    def unit_if_found(self, skeleton: Unit) -> Unit | None:
        """The split unit of ``skeleton``; None, with ``missing`` set, if its file is not found."""
        try:
            return self.unit(skeleton)
        except MissingDebugFile as absent:
            self.missing = self.missing or absent
            return None

    def skeleton_of(self, unit: Unit) -> Unit:
        """The skeleton of ``unit`` in the program."""
        found = self._skeletons.get(unit.offset)
        if found is not None:
            return found
        for own in self._info.files.own.units():
            if own.split_file is not None and own.dwo_id == unit.dwo_id:
                return own
        raise unit.error("no unit of the program has its dwo_id", 0)

    def all(self) -> Iterator[SectionSet]:
        """The sections of every split unit that is there, each set once, then those of types."""
        seen = set()
        for own in self._info.files.own.units():
            unit = None if own.split_file is None else self.unit_if_found(own)
            if unit is not None and unit.sections.base not in seen:
                seen.add(unit.sections.base)
                yield unit.sections
        if self._package is not None:
            yield from self._package.all_types()

    def type_unit(self, unit: Unit, signature: int) -> DieOffset | None:
        """Where the type unit starts that ``unit`` means by ``signature``; None if nowhere."""
        if self._package is not None:
            found = self._package.types(signature)
            if found is not None:
                return next((each.offset for each in found.units()), None)
        base = unit.sections.base
        if base not in self._signatures:
            self._signatures[base] = signatures(unit.sections)
        return self._signatures[base].get(signature)

    def _find(self, skeleton: Unit) -> Unit:
        wanted = skeleton.dwo_id
        name = skeleton.split_file
        if wanted is None or name is None:
            raise skeleton.error("a skeleton unit without a dwo_id", 0)
        packed = None if self.package is None else self.package.unit(wanted)
        if packed is not None:
            return packed
        key = (name, skeleton.comp_dir or "")
        sections = self._files.get(key)
        found = None if sections is None else _with_id(sections, wanted)
        if found is not None:
            return found

        def fits(image: Image) -> str:
            there = self._sections(image)
            if _with_id(there, wanted) is None:
                return f"no unit of it has the dwo_id {wanted:#018x}"
            self._files[key] = there
            return ""

        self._info.elf.finder.split(name, key[1], fits)
        found = _with_id(self._files[key], wanted)
        assert found is not None
        return found

    def _sections(self, image: Image) -> SectionSet:
        # Each type unit may have a section of its own, all of one name.
        units = []
        for header in image.headers:
            name = header.name.replace(".zdebug_", ".debug_", 1)
            if name in _UNITS:
                units.append((image.content(header), _UNITS[name]))

        def opener(name: str) -> Section | None:
            if name in _IN_PROGRAM:
                return self._info.files.own.open_section(name)
            return image.open_section(name + ".dwo")

        return self._info.files.add(image.path, opener, units, split=True)


def _with_id(sections: SectionSet, wanted: int) -> Unit | None:
    for unit in sections.units():
        if unit.kind not in (c.DW_UT_type, c.DW_UT_split_type) and unit.dwo_id == wanted:
            return unit
    return None


# ------------------------------------------------------------------------------
# Packages of .dwo files (.dwp): where the parts of one unit are in the joined sections.
#
# Two hash tables, of dwo_ids and of type signatures, lead to rows of offsets and sizes. Source:
# DWARF 5, section 7.3.5.3; version 2, of DWARF 4: https://gcc.gnu.org/wiki/DebugFissionDWP.

# DW_SECT_*: what a column is of.
_COLUMNS = {
    2: {
        1: ".debug_info",
        2: ".debug_types",
        3: ".debug_abbrev",
        4: ".debug_line",
        5: ".debug_loc",
        6: ".debug_str_offsets",
        7: ".debug_macinfo",
        8: ".debug_macro",
    },
    5: {
        1: ".debug_info",
        3: ".debug_abbrev",
        4: ".debug_line",
        5: ".debug_loclists",
        6: ".debug_str_offsets",
        7: ".debug_macro",
        8: ".debug_rnglists",
    },
}


class PackageIndex:
    """One of the two tables: ``contributions`` of a row, by its dwo_id or signature."""

    __slots__ = ("_columns", "_hashes", "_rows", "_section", "_slots", "_units")

    def __init__(self, section: Section) -> None:
        self._section = section
        reader = section.cursor(0)
        # Version 2 has four bytes for it, version 5 two, and two of padding.
        first, second = reader.u16(), reader.u16()
        version = first or second
        columns, self._units, self._slots = reader.u32(), reader.u32(), reader.u32()
        names = _COLUMNS.get(version)
        if names is None:
            raise section.error(f"version {version} of the index of a package", 0)
        if self._slots & (self._slots - 1) or self._units > self._slots:
            raise section.error(f"{self._slots} slots for {self._units} units", 12)
        self._hashes = reader.offset
        self._rows = self._hashes + 12 * self._slots
        reader.offset = self._rows
        if 4 * columns * (1 + 2 * self._units) > reader.remaining():
            raise section.error("the index runs past the end of its section", self._rows)
        self._columns = tuple([names.get(reader.u32(), "") for _ in range(columns)])
        self._rows = reader.offset

    def contributions(self, key: int) -> Contributions | None:
        """Offset and size in each section; None where the package has no such unit."""
        mask = self._slots - 1
        slot = key & mask
        step = key >> 32 & mask | 1
        for _ in range(self._slots):
            row = self._section.unsigned(self._hashes + 8 * self._slots + 4 * slot, 4)
            if not row:
                return None
            if self._section.unsigned(self._hashes + 8 * slot, 8) == key:
                return self._row(row)
            slot = slot + step & mask
        return None

    def keys(self) -> Iterator[int]:
        """Every dwo_id or signature."""
        for slot in range(self._slots):
            if self._section.unsigned(self._hashes + 8 * self._slots + 4 * slot, 4):
                yield self._section.unsigned(self._hashes + 8 * slot, 8)

    def _row(self, row: int) -> Contributions:
        if row > self._units:
            raise self._section.error(f"row {row} of {self._units}", self._hashes)
        width = len(self._columns)
        offsets = self._rows + 4 * width * (row - 1)
        sizes = offsets + 4 * width * self._units
        return {
            name: (
                self._section.unsigned(offsets + 4 * at, 4),
                self._section.unsigned(sizes + 4 * at, 4),
            )
            for at, name in enumerate(self._columns)
            if name
        }


class Package:
    """The split units and type units of one .dwp file; the sections of each are windows."""

    __slots__ = ("_image", "_info", "_sets", "_types", "_units")

    def __init__(self, info: DebugInfo, image: Image) -> None:
        self._info = info
        self._image = image
        self._units = _index(image, ".debug_cu_index")
        self._types = _index(image, ".debug_tu_index")
        self._sets: dict[tuple[bool, int], SectionSet] = {}

    def unit(self, dwo_id: int) -> Unit | None:
        """The unit with that dwo_id; None where the package has none."""
        sections = self._sections(self._units, dwo_id, False)
        if sections is None:
            return None
        for unit in sections.units():
            if unit.dwo_id == dwo_id:
                return unit
        raise sections.unit_sections[0].section.error(f"no unit with the dwo_id {dwo_id:#018x}", 0)

    def types(self, signature: int) -> SectionSet | None:
        """The sections of the type unit with that signature; None where there is none."""
        return self._sections(self._types, signature, True)

    def all_types(self) -> Iterator[SectionSet]:
        """The sections of every type unit."""
        for signature in () if self._types is None else self._types.keys():
            found = self.types(signature)
            if found is not None:
                yield found

    def _sections(self, index: PackageIndex | None, key: int, types: bool) -> SectionSet | None:
        found = self._sets.get((types, key))
        if found is None:
            contributions = None if index is None else index.contributions(key)
            if contributions is None:
                return None
            found = self._sets[types, key] = self._windows(contributions)
        return found

    def _windows(self, contributions: Contributions) -> SectionSet:
        opened: dict[str, Section | None] = {}

        def opener(name: str) -> Section | None:
            if name in _IN_PROGRAM:
                return self._info.files.own.open_section(name)
            if name not in opened:
                whole = self._image.open_section(name + ".dwo")
                bounds = contributions.get(name)
                opened[name] = whole if whole is None or bounds is None else whole.window(*bounds)
            return opened[name]

        units = []
        for name, types in ((".debug_info", False), (".debug_types", True)):
            section = opener(name) if name in contributions else None
            if section is not None and section.size:
                units.append((section, types))
        if not units:
            raise _malformed(self._image, "a row of the index without a unit")
        return self._info.files.add(self._image.path, opener, units, split=True)


def _index(image: Image, name: str) -> PackageIndex | None:
    section = image.open_section(name)
    return None if section is None or not section.size else PackageIndex(section)


def _malformed(image: Image, what: str) -> Exception:
    from fetchc.diag.diagnostic import DebugInfoError

    return DebugInfoError("FC0904", image.path, what, ".debug_cu_index")
