"""Units of .debug_info and .debug_types: headers, and the attributes of their top DIE.

Source: DWARF 5, section 7.5.1 (unit headers); DWARF 2 to 4, the same section.
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.byte_reader import record_layout
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.forms import Encoding, encoding
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.compiler import compiler_of
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dwarf.abbrev import AbbrevTable
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Marks
    from fetchc.debuginfo.dwarf.forms import IndexTables
    from fetchc.debuginfo.dwarf.line_tables import Header
    from fetchc.debuginfo.elf.headers import Section
    from fetchc.program.compiler import Compiler

    Opener = Callable[[str], Section | None]

__all__ = ["SectionSet", "Unit", "UnitSection", "read_unit", "signatures"]

_TYPE_KINDS = (c.DW_UT_type, c.DW_UT_split_type)
_WITH_DWO_ID = (c.DW_UT_skeleton, c.DW_UT_split_compile)
_KINDS = (c.DW_UT_compile, c.DW_UT_partial, *_TYPE_KINDS, *_WITH_DWO_ID)


class Unit:
    """A unit's header, decoded, and its contents on demand.

    ``offset``, ``end``, ``die_offset`` (the top DIE) and ``type_offset`` (the type of a type
    unit) are DieOffsets; within ``data`` positions count from the unit's start. ``kind`` is
    DW_UT_*, ``signature`` is a type unit's. ``base`` is the DieOffset of the section's start,
    ``sections`` are those that entries refer to.
    """

    __slots__ = (
        "_compiler",
        "_data",
        "_low_pc",
        "_marks",
        "_skeleton",
        "_stated_id",
        "_table",
        "_tables",
        "_top",
        "abbrev_offset",
        "address_size",
        "base",
        "die_offset",
        "encoding",
        "end",
        "functions",
        "functions_whole",
        "info",
        "kind",
        "line_header",
        "little",
        "offset",
        "offset_size",
        "searches",
        "section",
        "sections",
        "signature",
        "type_offset",
        "version",
    )

    def __init__(
        self,
        info: DebugInfo,
        unit_section: UnitSection,
        bounds: tuple[int, int, int],
        encoding: Encoding,
        kind: int,
        abbrev_offset: int,
        signature: int | None,
        type_offset: int | None,
        stated_id: int | None,
    ) -> None:
        start, first, end = bounds
        base = unit_section.base
        self.info = info
        self._compiler: Compiler | None = None
        self.section = unit_section.section
        self.sections = unit_section.sections
        self.base = base
        self.offset = DieOffset(base + start)
        self.die_offset = DieOffset(base + first)
        self.end = DieOffset(base + end)
        self.encoding = encoding
        self.version = encoding.version
        self.offset_size = encoding.offset_size
        self.address_size = encoding.address_size
        self.little = encoding.little
        self.kind = kind
        self.abbrev_offset = abbrev_offset
        self.signature = signature
        self.type_offset = None if type_offset is None else DieOffset(base + start + type_offset)
        self.line_header: tuple[Cursor, Header] | None = None  # of lines/header.py
        self.searches = 0  # for functions
        self.functions: dict[int, int] | None = None  # by address; see by_address.py
        self.functions_whole = False  # with those inside of functions
        self._data: bytes | None = None
        self._marks: Marks | None = None
        self._table: AbbrevTable | None = None
        self._top: Die | None = None
        self._tables: IndexTables | None = None
        self._low_pc: Address | None = None
        self._skeleton: Unit | None = None
        self._stated_id = stated_id

    @property
    def path(self) -> str:
        """File that the unit was read from."""
        return self.section.path

    @property
    def data(self) -> bytes:
        """The unit's bytes, header included; may be read anew after much else was read."""
        if self._data is None:
            start = self.offset - self.base
            self._data = self.section.bytes_between(start, self.end - self.base)
            self.info.keep(self)
        return self._data

    def forget(self) -> None:
        """Give up the bytes; they are read again when needed."""
        self._data = None
        self.line_header = None

    @property
    def marks(self) -> Marks:
        """Offsets at which entries start, for walks to begin."""
        if self._marks is None:
            self._marks = self.info.marks(self)
        return self._marks

    @property
    def table(self) -> AbbrevTable:
        """The unit's abbreviations."""
        if self._table is None:
            self._table = self.info.abbreviations(self)
        return self._table

    @property
    def tables(self) -> IndexTables:
        """What its entries refer to by numbers: addresses, strings, lists."""
        if self._tables is None:
            from fetchc.debuginfo.dwarf.forms import IndexTables

            self._tables = IndexTables(self)
        return self._tables

    def error(self, what: str, position: int, code: str = "FC0904") -> DebugInfoError:
        """A located error for ``raise``; ``position`` counts from the unit's start."""
        at = self.offset - self.base + position
        return DebugInfoError(code, self.path, what, self.section.name, at)

    @property
    def top(self) -> Die:
        """The unit's own DIE."""
        if self._top is None:
            self._top = Die(self, self.die_offset - self.offset)
        return self._top

    @property
    def dwo_id(self) -> int | None:
        """What a skeleton and its split unit have in common; None for other units."""
        if self._stated_id is None:
            return self.top.unsigned(c.DW_AT_GNU_dwo_id)
        return self._stated_id

    @property
    def is_split(self) -> bool:
        """Whether a skeleton in the program has the unit's addresses."""
        return self.sections.split

    @property
    def split_file(self) -> str | None:
        """The .dwo file that has the unit's entries (-gsplit-dwarf); None for a whole unit."""
        if not self._may_be_skeleton():
            return None
        return self.top.string(c.DW_AT_dwo_name) or self.top.string(c.DW_AT_GNU_dwo_name)

    def _may_be_skeleton(self) -> bool:
        # Without reading entries where the header tells. A program with skeletons has addresses
        # for the units that they stand for.
        if self.kind == c.DW_UT_skeleton:
            return True
        return (
            self.version == 4
            and not self.sections.split
            and self.sections.open_section(".debug_addr") is not None
        )

    @property
    def skeleton(self) -> Unit:
        """The unit that has the addresses and lines of this one: itself, unless it is split."""
        if not self.sections.split or self.kind in _TYPE_KINDS:
            return self
        if self._skeleton is None:
            self._skeleton = self.info.files.split.skeleton_of(self)
        return self._skeleton

    @property
    def low_pc(self) -> Address:
        """Base address of the unit's location and range lists; 0 where it has none."""
        if self._low_pc is None:
            self._low_pc = self.skeleton.top.address(c.DW_AT_low_pc) or Address(0)
        return self._low_pc

    @property
    def ranges_base(self) -> int:
        """What DW_AT_ranges of entries counts from in .debug_ranges.

        Source: https://gcc.gnu.org/wiki/DebugFission, DW_AT_GNU_ranges_base: of a skeleton, for
        the entries of its split unit alone.
        """
        if not self.sections.split:
            return 0
        stated = self.skeleton.top.raw(c.DW_AT_GNU_ranges_base)
        return stated if isinstance(stated, int) else 0

    @property
    def language(self) -> int | None:
        """DW_LANG_*. dwz leaves it out of partial units: there, that of a unit that imports it."""
        stated = self.top.unsigned(c.DW_AT_language)
        if stated is None and self.top.tag == c.DW_TAG_partial_unit:
            return self.info.files.imports.language(self)
        return stated

    @property
    def compiler(self) -> Compiler:
        """The compiler of the unit, by its DW_AT_producer."""
        if self._compiler is None:
            self._compiler = compiler_of(self.top.string(c.DW_AT_producer) or "")
        return self._compiler

    @property
    def comp_dir(self) -> str | None:
        """Directory of the compilation."""
        return self.top.string(c.DW_AT_comp_dir) or self.skeleton.top.string(c.DW_AT_comp_dir)

    @property
    def name(self) -> str | None:
        """Name of the source file; of a Go unit, its package path."""
        return self.top.string(c.DW_AT_name)


def read_unit(info: DebugInfo, unit_section: UnitSection, start: int) -> Unit:
    """Decode the header at ``start`` of the section of units."""
    section = unit_section.section
    reader = section.cursor(start)
    length, offset_size = reader.initial_length()
    end = reader.offset + length
    reader.end = end
    version = reader.u16()
    if not 2 <= version <= 5:
        raise DebugInfoError(
            "FC0905",
            section.path,
            f"DWARF version {version}; versions 2 to 5 are read",
            section.name,
            start,
        )
    kind = c.DW_UT_type if unit_section.types else c.DW_UT_compile
    if version == 5:
        kind = reader.u8()
        address_size = reader.u8()
        abbrev_offset = reader.unsigned(offset_size)
    else:
        abbrev_offset = reader.unsigned(offset_size)
        address_size = reader.u8()
    if kind not in _KINDS:
        raise DebugInfoError(
            "FC0905", section.path, f"unknown unit type {kind:#x}", section.name, start
        )
    if address_size not in (4, 8):
        raise DebugInfoError(
            "FC0905",
            section.path,
            f"addresses of {address_size} bytes; those of 4 and 8 are read",
            section.name,
            start,
        )
    signature = type_offset = stated_id = None
    if kind in _TYPE_KINDS:
        signature = reader.u64()
        type_offset = reader.unsigned(offset_size)
    elif kind in _WITH_DWO_ID:
        stated_id = reader.u64()
    return Unit(
        info,
        unit_section,
        (start, reader.offset, end),
        encoding(version, offset_size, address_size, section.little),
        kind,
        abbrev_offset,
        signature,
        type_offset,
        stated_id,
    )


# ------------------------------------------------------------------------------
# Where units are, and the sections that their entries refer to.
#
# Most programs have one set of sections, their own. Split DWARF, packages and dwz keep parts of
# the debug information in further files, each with sections and offsets of its own. All of them
# share one space of DieOffsets, in which every section of units has a base.

_BIG = 4 << 20  # bytes of a section: hops over the units of so many take 1 ms
_NOT_PLAIN = 0xFFFFFFF0  # from here on, a unit's length is an escape (DWARF 5, 7.2.2)


class UnitSection:
    """A section of units: .debug_info or, with ``types``, .debug_types of one file.

    ``base`` is the DieOffset of its start, ``end`` that after it.
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
        self._looked = section.size < _BIG  # for cached ones

    def _extend(self, past: int) -> None:
        # Hop over unit headers until one starts after ``past``, or the section ends.
        if not self._looked:
            self._look()
        section, base = self.section, self.base
        length_at = record_layout(section.little, "I").unpack_from
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
        info = self.sections.info
        if info.elf.environment.cache is not None and self.sections is info.files.own:
            from fetchc.debuginfo.dwarf.cached_units import cached_unit_starts

            self._starts, self._next = cached_unit_starts(self)

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
        """The last header at or before ``offset``; None where the first is after it."""
        self._extend(offset)
        at = bisect_right(self._starts, offset) - 1
        return None if at < 0 else self._starts[at]


class SectionSet:
    """The sections that entries of some units refer to, by their plain names (``.debug_str``).

    ``base`` is the DieOffset of the first section of units, which DW_FORM_ref_addr counts from.
    ``split`` says whether skeleton units elsewhere have the addresses. ``visible`` are the
    offsets of the units that belong to the program, where others may be in the file, too.
    """

    __slots__ = ("_opener", "base", "end", "info", "path", "split", "unit_sections", "visible")

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
        unit_sections = []
        for section, types in units:
            unit_sections.append(UnitSection(self, section, self.end, types))
            self.end += section.size
        self.unit_sections = tuple(unit_sections)

    def open_section(self, name: str) -> Section | None:
        """The section of that plain name; None where there is none."""
        return self._opener(name)

    def units(self) -> Iterator[Unit]:
        """The units of the program, in order, type units of .debug_types last."""
        for unit_section in self.unit_sections:
            for start in unit_section.starts():
                if self.visible is None or start in self.visible:
                    yield self.info.unit_at(unit_section, start)


def signatures(sections: SectionSet) -> dict[int, DieOffset]:
    """Where the type unit of each signature starts."""
    return {unit.signature: unit.offset for unit in sections.units() if unit.signature is not None}
