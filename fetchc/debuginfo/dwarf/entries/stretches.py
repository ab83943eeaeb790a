"""Where units are, and the sections that their entries refer to.

Most programs have one set of sections, their own. Split DWARF, packages and dwz keep parts of
the debug information in further files, each with sections and offsets of its own. All of them
share one space of DieOffsets, in which every section of units has a base.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct

from fetchc.debuginfo.elf.headers import Image
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.elf.headers import Section

    Opener = Callable[[str], Section | None]

__all__ = ["SectionSet", "Stretch", "signatures"]

_BIG = 4 << 20  # bytes of a section: hops over the units of so many take 1 ms
_NOT_PLAIN = 0xFFFFFFF0  # from here on, a unit's length is an escape (DWARF 5, 7.2.2)


class Stretch:
    """A section of units: .debug_info or, with ``types``, .debug_types of one file.

    ``base`` is the DieOffset of its start, ``end`` that behind it.
    """

    __slots__ = ("_looked", "_next", "_starts", "base", "end", "section", "sections", "types")

    def __init__(self, sections: SectionSet, section: Section, base: int, types: bool) -> None:
        self.sections = sections
        self.section = section
        self.base = base
        self.end = base + section.size
        self.types = types
        self._starts: list[int] = []  # of the units found so far
        self._next = base  # where the next one would be
        self._looked = section.size < _BIG  # for what is kept of them

    def _extend(self, past: int) -> None:
        # Hop over unit headers until one starts behind ``past``, or the section ends.
        if not self._looked:
            self._look()
        section, base = self.section, self.base
        length_at = Struct("<I" if section.little else ">I").unpack_from
        while self._next < self.end and self._next <= past:
            start = self._next - base
            length = _NOT_PLAIN
            if start + 4 <= section.size:
                length = length_at(section.reaching(start, start + 4), start)[0]
            behind = start + 4 + length
            if length >= _NOT_PLAIN or behind > section.size:
                # 64-bit DWARF, or damage that the cursor locates.
                reader = section.cursor(start)
                length = reader.initial_length()[0]
                behind = reader.offset + length
            self._starts.append(self._next)
            self._next = base + behind

    def _look(self) -> None:
        self._looked = True
        if Image.cache_folder and self.sections is self.sections.info.files.own:
            from fetchc.debuginfo.index.starts import known_starts

            self._starts, self._next = known_starts(self)

    def found(self) -> tuple[list[int], int]:
        """The DieOffsets of the headers found so far, and where the next one would be."""
        return self._starts, self._next

    def starts(self) -> Iterator[int]:
        """DieOffsets of the unit headers, in order."""
        at = 0
        while True:
            if at >= len(self._starts):
                self._extend(self._next)
                if at >= len(self._starts):
                    return
            yield self._starts[at]
            at += 1

    def start_before(self, offset: int) -> int | None:
        """The last header at or in front of ``offset``; None where the first is behind it."""
        self._extend(offset)
        at = bisect_right(self._starts, offset) - 1
        return None if at < 0 else self._starts[at]


class SectionSet:
    """The sections that entries of some units refer to, by their plain names (``.debug_str``).

    ``base`` is the DieOffset of the first section of units, which DW_FORM_ref_addr counts from.
    ``split`` says whether skeleton units elsewhere have the addresses. ``visible`` are the
    offsets of the units that belong to the program, where others may be in the file, too.
    """

    __slots__ = ("_opener", "base", "end", "info", "path", "split", "stretches", "visible")

    def __init__(
        self,
        info: DebugInfo,
        path: str,
        opener: Opener,
        units: Iterable[tuple[Section, bool]],
        base: int = 0,
        split: bool = False,
    ) -> None:
        self.info = info
        self.path = path
        self._opener = opener
        self.base = self.end = base
        self.split = split
        self.visible: frozenset[int] | None = None
        stretches = []
        for section, types in units:
            stretches.append(Stretch(self, section, self.end, types))
            self.end += section.size
        self.stretches = tuple(stretches)

    def open_section(self, name: str) -> Section | None:
        """The section of that plain name; None where there is none."""
        return self._opener(name)

    def units(self) -> Iterator[Unit]:
        """The units of the program, in order, type units of .debug_types last."""
        for stretch in self.stretches:
            for start in stretch.starts():
                if self.visible is None or start in self.visible:
                    yield self.info.unit_at(stretch, start)


def signatures(sections: SectionSet) -> dict[int, DieOffset]:
    """Where the type unit of each signature starts."""
    return {unit.signature: unit.offset for unit in sections.units() if unit.signature is not None}
