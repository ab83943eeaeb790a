"""Functions that a linker folded into one: they begin at one address, and each has its own types.

``ld.gold --icf=all`` keeps one of several functions with the same code. All their symbols and
entries have its address then, and the first entry there may be another function's.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_linkage_name,
    DW_AT_low_pc,
    DW_AT_MIPS_linkage_name,
    DW_AT_name,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.entries.scopes import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.elf.file import Elf, Symbol

__all__ = ["own_entry"]


def own_entry(elf: Elf, info: DebugInfo, symbol: Symbol, die: Die) -> Die:
    """Of the functions that begin where ``die`` does, the one that the symbol names.

    ``die`` itself where none has the name: the symbol is another name of it.
    """
    wanted = _of_any_kind(symbol.name)
    if _names(info, die, wanted) or len(elf.symbols_at(symbol.address)) == 1:
        return die
    for other in info.children(die.unit.top):
        there = other.tag == DW_TAG_subprogram and other.address(DW_AT_low_pc) == symbol.address
        if there and _names(info, other, wanted):
            return other
    return die


def _names(info: DebugInfo, die: Die, symbol: str) -> bool:
    origin = declaration(info, die)
    for attribute in (DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name):
        name = _of_any_kind(die.text(attribute) or origin.text(attribute) or "")
        if name and (symbol == name or symbol.startswith((name + ".", name + "@"))):
            return True  # or the name of a clone, or with a version
    return False


def _of_any_kind(name: str) -> str:
    # A constructor's declaration says C4, its symbols C1 and C2; destructors likewise.
    if name.startswith("_Z"):
        for kind in "CD":
            for number in "0125":
                name = name.replace(f"{kind}{number}E", f"{kind}4E")
    return name
