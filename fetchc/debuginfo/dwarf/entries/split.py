"""Units that are split off into .dwo files or a package of them (-gsplit-dwarf).

The program keeps skeleton units with addresses and the name of the file that has the rest. A
file is opened when something of its unit is asked for, and must have the unit's dwo_id.
Source: DWARF 5, sections 3.1.2, 3.1.3 and 7.3.2; for DWARF 4,
https://gcc.gnu.org/wiki/DebugFission.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries.stretches import signatures
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.package import Package
    from fetchc.debuginfo.dwarf.entries.stretches import SectionSet
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.elf.headers import Image, Section

__all__ = ["SplitFiles"]

# Split units refer to these sections of the program by offsets that its linker has written.
_IN_PROGRAM = (".debug_addr", ".debug_ranges")
_UNITS = {".debug_info.dwo": False, ".debug_types.dwo": True}
_NOT_THERE = ("FC0908", "FC0909")


class SplitFiles:
    """The split units of one program. ``missing`` is why the first one is not there, if any."""

    __slots__ = (
        "_files",
        "_info",
        "_package",
        "_package_known",
        "_signatures",
        "_skeletons",
        "_units",
        "missing",
    )

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._package: Package | None = None
        self._package_known = False
        self._files: dict[tuple[str, str], SectionSet] = {}
        self._units: dict[DieOffset, Unit] = {}  # by their skeletons
        self._skeletons: dict[DieOffset, Unit] = {}
        self._signatures: dict[int, dict[int, DieOffset]] = {}  # by the base of the section set
        self.missing: DebugInfoError | None = None

    @property
    def package(self) -> Package | None:
        """PROGRAM.dwp, None where there is none."""
        if not self._package_known:
            from fetchc.debuginfo.dwarf.entries.package import Package

            elf = self._info.elf
            image = elf.finder.package(elf.debug_image)
            self._package = None if image is None else Package(self._info, image)
            self._package_known = True
        return self._package

    def unit(self, skeleton: Unit) -> Unit:
        """The unit that ``skeleton`` stands for.

        FC0909 where its file is not found, FC0908 where only files of other builds are.
        """
        found = self._units.get(skeleton.offset)
        if found is None:
            found = self._units[skeleton.offset] = self._find(skeleton)
            self._skeletons[found.offset] = skeleton
        return found

    def unit_if_found(self, skeleton: Unit) -> Unit | None:
        """The same; None, and ``missing`` set, where it is not there."""
        try:
            return self.unit(skeleton)
        except DebugInfoError as absent:
            if absent.code not in _NOT_THERE:
                raise
            self.missing = self.missing or absent
            return None

    def skeleton_of(self, unit: Unit) -> Unit:
        """The skeleton that stands for ``unit`` in the program."""
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
