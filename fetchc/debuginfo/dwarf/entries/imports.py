"""Partial units, and the units that import them.

dwz puts what several units have in common into partial units, without a language, and into a
file for several programs. An entry there belongs to the units that import it.
Source: DWARF 5, sections 3.1.1 and 3.2.5, appendix E.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.stretches import SectionSet
    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["Imports"]


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

    def shared(self) -> SectionSet:
        """The sections of the shared file, with the units that this program imports."""
        sections = self._info.files.alternate.sections
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
