"""Functions that a file calls and another one has. Off the hot path: only refusals ask."""

from __future__ import annotations

import glob

from fetchc.debuginfo.dwarf.entries.cursor import Cursor
from fetchc.debuginfo.elf.file import Elf
from fetchc.debuginfo.finding.installed import libraries
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["imported"]

# Source: <elf.h>.
_DT_NULL = 0
_DT_NEEDED = 1


def imported(elf: Elf, name: str) -> tuple[tuple[str, ...], str] | None:
    """The libraries that the file loads, and the path of the first of them here that has ``name``.

    The path is empty where none is found; None where the file imports no such function.
    """
    if not elf.imports(name):
        return None
    needed = tuple(_needed(elf))
    for library in needed:
        for path in [library] if "/" in library else libraries(glob.escape(library)):
            if _has(path, elf, name):
                return needed, path
    return needed, ""


def _needed(elf: Elf) -> Iterator[str]:
    data, names = elf.section(".dynamic"), elf.section(".dynstr")
    if data is None or names is None:
        return
    cursor = Cursor(elf.path, ".dynamic", data, little=elf.little_endian)
    while not cursor.at_end():
        tag, value = cursor.unsigned(elf.word_bytes), cursor.unsigned(elf.word_bytes)
        if tag == _DT_NULL:
            return
        if tag == _DT_NEEDED:
            yield bytes(names[value : value + 4096]).partition(b"\0")[0].decode("utf-8", "replace")


def _has(path: str, elf: Elf, name: str) -> bool:
    try:
        other = Elf(path)
        return other.machine == elf.machine and bool(other.exported(name))
    except DebugInfoError:
        return False
