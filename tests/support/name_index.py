"""What an index of names answers, and what a search of the bytes finds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fetchc.debuginfo.dwarf.constants import NAMED
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.quantities import DieOffset

__all__ = ["indexed", "searched"]


def indexed(path: Path, names: Iterable[str]) -> dict[str, list[DieOffset] | None]:
    """Definitions of each name by the file's index, None where it has none."""
    index = DwarfProgram(str(path))._info.name_index
    return {name: index.named(name, NAMED) for name in names}


def searched(path: Path, names: Iterable[str]) -> dict[str, list[DieOffset]]:
    """Definitions of each name by a search."""
    info = DwarfProgram(str(path))._info
    return {
        name: [die.offset for die in info.find_named(name, NAMED, definitions=True)]
        for name in names
    }
