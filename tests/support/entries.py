"""Debug information of one unit for tests of entries: what is opened, and its first entry."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.elf.elf_file import Elf
from tests.support.dwarfwriter import Attr, Entry, Unit, program

__all__ = ["AT", "BASES", "SHAPES", "WIDTHS", "entry", "one", "opened"]

AT = 0x3E00  # an attribute that means nothing
WIDTHS = list(product((4, 8), (True, False)))
SHAPES = list(product((2, 3, 4, 5), (4, 8), (4, 8), (True, False)))
BASES = (
    Attr(c.DW_AT_str_offsets_base, c.DW_FORM_sec_offset, 8),
    Attr(c.DW_AT_addr_base, c.DW_FORM_sec_offset, 8),
)


def opened(path: Path, *units: Unit, **how: object) -> DebugInfo:
    """The debug information of a file with those units, written as ``program`` is told ``how``."""
    return DebugInfo(Elf(program(path / "program", units, **how)))  # type: ignore[arg-type]


def entry(info: DebugInfo) -> Die:
    """The first child of the first unit's top entry."""
    return next(info.children(next(info.units()).top))


def one(path: Path, *attributes: Attr, version: int = 5, **how: object) -> Die:
    """An entry with those attributes, which stands alone in its unit."""
    root = Entry(c.DW_TAG_compile_unit, BASES, (Entry(c.DW_TAG_variable, attributes, (), "it"),))
    return entry(opened(path, Unit(root, version), **how))
