"""Variables that the linker or the loader has put somewhere: by their symbols.

``extern char **environ`` is declared where it is used, and defined in another library (the
executable has a copy of it then, or the code reads its address from the global offset table), in
assembly, in a part without debug information, or as another name of a variable: there is no
location. And the location of what a shared library exports is stale where an executable has a copy.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import DW_AT_external, DW_AT_linkage_name
from fetchc.program.entities import AtAddress, Indirect
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.elf.file import Elf

__all__ = ["linked_place", "linked_symbol", "loaded_place"]

_STT_OBJECT = 1
_STB_LOCAL = 0


def linked_place(
    info: DebugInfo, elf: Elf, architecture: str, die: Die, name: str
) -> AtAddress | Indirect | None:
    """Where the variable ``name`` that ``die`` declares is; None if nothing in the file says so.

    None also where several symbols of that name are at different addresses.
    """
    external = info.inherited(die, DW_AT_external)
    if external is None or not external.flag(DW_AT_external):
        return None
    symbol = linked_symbol(info, die, name)
    found = {
        one.address
        for one in elf.symbols_named(symbol)
        if one.kind == _STT_OBJECT and one.binding != _STB_LOCAL
    }
    if not found:
        return loaded_place(elf, architecture, symbol)
    return AtAddress(found.pop()) if len(found) == 1 else None


def loaded_place(elf: Elf, architecture: str, symbol: str) -> Indirect | None:
    """The variable by the address that the loader gives the file; None where the file has none."""
    from fetchc.debuginfo.elf.relocations import address_word

    word = address_word(elf, architecture, symbol)
    return None if word is None else Indirect(AtAddress(word), ByteOffset(0))


def linked_symbol(info: DebugInfo, die: Die, name: str) -> str:
    """The symbol of the variable ``name``: of C++ it is another word."""
    linked = info.inherited(die, DW_AT_linkage_name)
    return (None if linked is None else linked.text(DW_AT_linkage_name)) or name
