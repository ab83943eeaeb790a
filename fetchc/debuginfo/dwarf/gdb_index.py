"""Reads gdb's index: .gdb_index (``gdb-add-index``).

It leads from qualified names to the units that define them, not to entries, so that those units
are walked. What linkers make (``--gdb-index``, version 7) is not used: they take the names from
.debug_gnu_pubnames, and list units that have none all the same. Source: gdb's manual, appendix
"Index Section Format", versions 8 and 9; binutils, gold/gdb-index.cc; lld, ELF/SyntheticSections.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number, record_layout
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.constants import DW_AT_declaration, DW_AT_name
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.debuginfo.elf.headers import Section

__all__ = ["GdbNames", "gdb_names"]

_VERSIONS = (8, 9)  # 9 has one more area, before the names
_HASH_FACTOR, _HASH_LESS, _HASH_STEP, _MASK = 67, 113, 17, 0xFFFFFFFF
_UNIT_BITS, _KIND_AT, _KIND_BITS, _TYPE = 0xFFFFFF, 28, 7, 1
_SCOPE = b"::"
_FIRST_REACH = 256  # bytes of a name looked at first


class GdbNames:
    """The table of names of a section, whose numbers are little-endian on every machine."""

    def __init__(self, info: DebugInfo, section: Section) -> None:
        self._info = info
        self._section = section
        areas = self._numbers(4, 6 if self._numbers(0, 1)[0] > 8 else 5)
        ends = [*areas[1:], section.size]
        if any(end < start for start, end in zip(areas, ends, strict=True)):
            raise section.error("areas of an index of gdb that are not in their order", 0)
        self._units, units_end = areas[0], areas[1]
        self.has_type_units = areas[2] > units_end
        self._count = (units_end - self._units) // 16
        self._slots, self._slot_count = areas[3], (areas[4] - areas[3]) // 8
        self._pool = areas[-1]
        self._units_by_offset: dict[DieOffset, Unit] = {}

    def covers_all(self) -> bool:
        """Whether every unit of the file is in its list."""
        return self._count == sum(1 for _ in self._info.units())

    def named(self, name: bytes, tags: frozenset[int]) -> list[DieOffset]:
        """Where definitions of that name without its scopes are, of those tags."""
        found: dict[DieOffset, None] = {}
        for unit in self._units_with(name):
            found.update(dict.fromkeys(_defined(unit, name, tags)))
        return list(found)

    def _units_with(self, name: bytes) -> Iterator[Unit]:
        seen = set()
        for qualified, at in self._qualified(name):
            vector = self._vector(qualified, at)
            if vector is None:
                continue
            count = self._numbers(vector, 1)[0]
            for value in self._numbers(vector + 4, count):
                number = value & _UNIT_BITS
                if value >> _KIND_AT & _KIND_BITS == _TYPE and number not in seen:
                    seen.add(number)
                    yield self._unit(number, vector)

    def _qualified(self, name: bytes) -> Iterator[tuple[bytes, int]]:
        # Names of the pool that are the name, or end in it after a scope; and where they begin.
        for at in self._section.find_all(name + b"\0"):
            if at < self._pool:
                continue
            start = self._start(at)
            whole = self._section.bytes_between(start, at + len(name))
            if whole == name or whole.endswith(_SCOPE + name):
                yield whole, start - self._pool

    def _start(self, at: int) -> int:
        # Where the string of the pool begins that goes on at ``at``.
        reach = _FIRST_REACH
        while True:
            low = max(self._pool, at - reach)
            found = self._section.bytes_between(low, at).rfind(b"\0")
            if found >= 0 or low == self._pool:
                return low + found + 1
            reach *= 8

    def _vector(self, name: bytes, at: int) -> int | None:
        # Where the list of units is of the name at ``at`` of the pool; open addressing.
        hashed = 0
        for byte in name.lower():
            hashed = hashed * _HASH_FACTOR + byte - _HASH_LESS & _MASK
        mask = self._slot_count - 1
        slot, step = hashed & mask, hashed * _HASH_STEP & mask | 1
        for _ in range(self._slot_count):
            string, vector = self._numbers(self._slots + 8 * slot, 2)
            if not string and not vector:
                return None
            if string == at:
                return self._pool + vector
            slot = slot + step & mask
        return None

    def _unit(self, number: int, at: int) -> Unit:
        if number >= self._count:
            raise self._section.error(f"unit {number} of {self._count} in an index of gdb", at)
        place = self._units + 16 * number
        start = decode_number(self._section.bytes_between(place, place + 8), True)
        if not self._units_by_offset:
            self._units_by_offset = {unit.offset: unit for unit in self._info.units()}
        if start not in self._units_by_offset:
            raise self._section.error("a unit of an index of gdb begins nowhere", place)
        return self._units_by_offset[DieOffset(start)]

    def _numbers(self, start: int, count: int) -> tuple[int, ...]:
        end = start + 4 * count
        if end > self._section.size:
            raise self._section.error("an index of gdb that ends too early", start)
        return record_layout(True, f"{count}I").unpack(self._section.bytes_between(start, end))


def gdb_names(info: DebugInfo) -> GdbNames | None:
    """The file's index by gdb; None where it has none, one of type units, or one without a unit.

    Also None for a version that is not supported, or an index that a linker wrote.
    """
    section = info.elf.open_section(".gdb_index")
    if section is None or info.elf.open_section(".debug_types") is not None:
        return None
    version = section.bytes_between(0, min(4, section.size))
    if decode_number(version, True) not in _VERSIONS:
        return None
    found = GdbNames(info, section)
    return found if not found.has_type_units and found.covers_all() else None


def _defined(unit: Unit, name: bytes, tags: frozenset[int]) -> Iterator[DieOffset]:
    for start, declaration, _ in dies.entries(unit):
        if declaration.tag in tags and DW_AT_declaration not in declaration.index:
            die = Die(unit, start)
            if die.string_bytes(DW_AT_name) == name:
                yield die.offset
