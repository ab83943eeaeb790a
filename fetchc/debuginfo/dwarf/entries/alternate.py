"""The file that dwz moved to what several programs share: strings, types, partial units.

Source: DWARF 5, section 7.3.6 (supplementary object files); the GNU forms and .gnu_debugaltlink
before it: the manual of dwz(1).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.stretches import SectionSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo

__all__ = ["Alternate"]


class Alternate:
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
