"""Where the debug information of a program is: its own sections, and those of further files.

Source: DWARF 5, sections 7.3.2 (split units) and 7.3.6 (supplementary files).
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.dwarf.entries.stretches import SectionSet, Stretch, signatures
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.alternate import Alternate
    from fetchc.debuginfo.dwarf.entries.imports import Imports
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.split import SplitFiles
    from fetchc.debuginfo.dwarf.entries.stretches import Opener
    from fetchc.debuginfo.elf.headers import Section

__all__ = ["DebugFiles"]


class DebugFiles:
    """Lazy: files are opened where an entry, or a question about all of them, leads there.

    They share one space of DieOffsets: those of further files follow behind the program's own.
    """

    __slots__ = (
        "_alternate",
        "_bases",
        "_imports",
        "_info",
        "_is_split",
        "_own",
        "_signatures",
        "_split",
        "_stretches",
    )

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._signatures: dict[int, DieOffset] | None = None
        self._own: SectionSet | None = None
        # Of all section sets, in the order of their bases.
        self._stretches: list[Stretch] = []
        self._bases: list[int] = []
        self._split: SplitFiles | None = None
        self._is_split: bool | None = None
        self._alternate: Alternate | None = None
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
        added = SectionSet(self._info, path, opener, units, base, split)
        self._stretches += added.stretches
        self._bases += [stretch.base for stretch in added.stretches]
        return added

    @property
    def split(self) -> SplitFiles:
        """The .dwo files and the package that skeleton units lead to."""
        if self._split is None:
            from fetchc.debuginfo.dwarf.entries.split import SplitFiles

            self._split = SplitFiles(self._info)
        return self._split

    @property
    def alternate(self) -> Alternate:
        """The file that dwz moved to what several programs share."""
        if self._alternate is None:
            from fetchc.debuginfo.dwarf.entries.alternate import Alternate

            self._alternate = Alternate(self._info)
        return self._alternate

    @property
    def imports(self) -> Imports:
        """Which units import which partial ones."""
        if self._imports is None:
            from fetchc.debuginfo.dwarf.entries.imports import Imports

            self._imports = Imports(self._info)
        return self._imports

    def all(self) -> Iterator[SectionSet]:
        """Every set of sections that has units of the program; opens all files that are there."""
        yield self.own
        if self.shares:
            yield self.imports.shared()
        if self.is_split:
            yield from self.split.all()

    @property
    def shares(self) -> bool:
        """Whether entries may refer to a file that dwz made for several programs."""
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
    def in_parts(self) -> bool:
        """Whether some of the debug information is in files of its own (.dwo, .dwp, dwz)."""
        return self.shares or self.is_split

    def own_signature(self, signature: int) -> DieOffset | None:
        """Where the program's own type unit of that signature starts; None where there is none."""
        if self._signatures is None:
            self._signatures = signatures(self.own)
        return self._signatures.get(signature)

    def stretch_of(self, offset: int) -> Stretch:
        """The section of units that has the DieOffset; FC0904 where none does."""
        own = self.own
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            raise own.stretches[0].section.error("no unit has an entry at this offset", offset)
        return self._stretches[at]
