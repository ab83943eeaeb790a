"""Variables without a location that the file has a symbol of.

``extern char **environ`` is declared where it is used, and defined in another library (the
executable has a copy of it then), in assembly, in a part without debug information, or as
another name of a variable: there is no location, but the linker has put it somewhere.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import DW_AT_external, DW_AT_linkage_name
from fetchc.program.places import AtAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.elf.file import Elf

__all__ = ["linked_place"]

_STT_OBJECT = 1
_STB_LOCAL = 0


def linked_place(info: DebugInfo, elf: Elf, die: Die, name: str) -> AtAddress | None:
    """Where the linker has put the variable ``name`` that ``die`` declares; None if it did not.

    None also where several symbols of that name are at different addresses.
    """
    external = info.inherited(die, DW_AT_external)
    if external is None or not external.flag(DW_AT_external):
        return None
    linked = info.inherited(die, DW_AT_linkage_name)
    symbol = None if linked is None else linked.text(DW_AT_linkage_name)
    found = {
        one.address
        for one in elf.symbols_named(symbol or name)
        if one.kind == _STT_OBJECT and one.binding != _STB_LOCAL
    }
    return AtAddress(found.pop()) if len(found) == 1 else None
