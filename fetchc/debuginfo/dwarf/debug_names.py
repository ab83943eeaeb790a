"""Reads a compiler's name index: .debug_names (``clang -gpubnames``).

It is used where it covers every unit of the file; linkers only join what compilers wrote, so that
units of other compilers may be missing. What gdb makes (``gdb-add-index -dwarf-5``) is not used:
up to version 14 its entries lead to units alone, by names with their scopes. Source: DWARF 5,
section 6.1.1; tables 6.1 and 7.23; gdb's manual, "Extensions to .debug_names".
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.forms import DAMAGED, encoding
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.elf.headers import Section

    # Tag, and (DW_IDX_*, form) of each value.
    Abbreviation = tuple[int, tuple[tuple[int, int], ...]]

__all__ = ["StandardNames", "standard_names"]

_VERSION = 5
_COMPILE_UNIT, _TYPE_UNIT, _DIE_OFFSET = 1, 2, 3  # DW_IDX_*
_GDB = b"GDB"  # its augmentations, with a version after it
_LONGEST = 16  # bytes of a value: a signature has 8
_HASH_START, _HASH_FACTOR, _HASH_MASK = 5381, 33, 0xFFFFFFFF


class StandardNames:
    """All name tables of a section; ``units`` are the offsets of the units that they cover."""

    def __init__(self, info: DebugInfo, section: Section) -> None:
        self._tables: list[_Table] = []
        at = 0
        while at < section.size:
            table = _Table(info, section, at)
            self._tables.append(table)
            at = table.end
        self.units = frozenset(unit for table in self._tables for unit in table.units)
        self.foreign = any(table.foreign for table in self._tables)
        self.of_gdb = any(table.of_gdb for table in self._tables)

    def named(self, name: bytes, tags: frozenset[int]) -> list[DieOffset]:
        """Where definitions of that name without its scopes are, of those tags."""
        return [found for table in self._tables for found in table.named(name, tags)]


def standard_names(info: DebugInfo) -> StandardNames | None:
    """The file's own index; None where it has none, one of gdb's, or one that lacks a unit."""
    section = info.elf.open_section(".debug_names")
    if section is None or info.elf.open_section(".debug_types") is not None:
        return None
    found = StandardNames(info, section)
    lacking = found.foreign or found.of_gdb
    if lacking or any(unit.offset not in found.units for unit in info.units()):
        return None
    return found


class _Table:
    """One name table, of one or several units."""

    def __init__(self, info: DebugInfo, section: Section, start: int) -> None:
        self._info = info
        self._section = section
        cursor = section.cursor(start)
        length, self._width = cursor.initial_length()
        self.end = cursor.offset + length
        version = cursor.u16()
        if version != _VERSION or self.end > section.size:
            raise section.error(f"version {version} of a name table, or one without an end", start)
        cursor.skip(2)
        counts = [cursor.u32() for _ in range(7)]
        units, own_types, foreign, self._buckets, self._names, abbreviations, augmentation = counts
        augmented = cursor.offset
        cursor.skip(augmentation + 3 & -4)
        self.of_gdb = section.bytes_between(augmented, cursor.offset).startswith(_GDB)
        self.units = tuple([cursor.unsigned(self._width) for _ in range(units + own_types)])
        self._compile_units = units
        self.foreign = foreign > 0
        cursor.skip(8 * foreign)
        self._bucket_at = cursor.offset
        self._hash_at = self._bucket_at + 4 * self._buckets
        self._string_at = self._hash_at + (4 * self._names if self._buckets else 0)
        self._entry_at = self._string_at + self._width * self._names
        self._abbreviation_at = self._entry_at + self._width * self._names
        self._pool_at = self._abbreviation_at + abbreviations
        self._encoding = encoding(_VERSION, self._width, 8, section.little)
        self._declarations: dict[int, Abbreviation] | None = None

    def named(self, name: bytes, tags: frozenset[int]) -> Iterator[DieOffset]:
        """Entries of that name and those tags."""
        for index in self._indexes(name):
            string = self._number(self._string_at, index, self._width)
            strings = self._info.elf.open_section(".debug_str")
            if strings is not None and strings.cstring(string) == name:
                entry = self._pool_at + self._number(self._entry_at, index, self._width)
                yield from self._entries(self._section.cursor(entry, self.end), tags)

    def _indexes(self, name: bytes) -> Iterator[int]:
        if not self._buckets:
            yield from range(self._names)
            return
        wanted = _HASH_START
        for byte in name.lower():
            wanted = wanted * _HASH_FACTOR + byte & _HASH_MASK
        bucket = wanted % self._buckets
        index = self._number(self._bucket_at, bucket, 4) - 1
        while 0 <= index < self._names:
            found = self._number(self._hash_at, index, 4)
            if found % self._buckets != bucket:
                return
            if found == wanted:
                yield index
            index += 1

    def _number(self, start: int, index: int, width: int) -> int:
        return self._section.cursor(start + width * index, self.end).unsigned(width)

    def _entries(self, cursor: Cursor, tags: frozenset[int]) -> Iterator[DieOffset]:
        while code := cursor.uleb():
            at = cursor.offset
            abbreviation = self._abbreviations().get(code)
            if abbreviation is None:
                raise self._section.error(f"abbreviation {code} is not in the name table", at)
            tag, attributes = abbreviation
            values: dict[int, int] = {}
            for attribute, form in attributes:
                reader = self._encoding.readers.get(form)
                if reader is None:
                    raise self._section.error(f"form {form:#x} in a name table", at)
                start = cursor.offset
                raw = self._section.bytes_between(start, min(start + _LONGEST, self.end))
                try:
                    value, size = reader(raw, 0)
                except DAMAGED:
                    raise self._section.error("a name table ends within an entry", at) from None
                cursor.offset = start + size
                if isinstance(value, int):
                    values[attribute] = value
            if tag in tags:
                yield self._place(values, at)

    def _abbreviations(self) -> dict[int, Abbreviation]:
        if self._declarations is None:
            self._declarations = {}
            cursor = self._section.cursor(self._abbreviation_at, self._pool_at)
            while code := cursor.uleb():
                tag, attributes = cursor.uleb(), []
                while (pair := (cursor.uleb(), cursor.uleb())) != (0, 0):
                    attributes.append(pair)
                self._declarations[code] = tag, tuple(attributes)
        return self._declarations

    def _place(self, values: dict[int, int], at: int) -> DieOffset:
        unit = values.get(_COMPILE_UNIT, 0)
        if _TYPE_UNIT in values:
            unit = self._compile_units + values[_TYPE_UNIT]
        offset = values.get(_DIE_OFFSET)
        if offset is None or not 0 <= unit < len(self.units):
            raise self._section.error("an entry of a name table refers to no unit or entry", at)
        return DieOffset(self.units[unit] + offset)
