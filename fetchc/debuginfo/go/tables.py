"""The run time's types of a program, and which of them it converts to which interfaces.

Source: Go 1.15 to 1.27, src/runtime/symtab.go (moduledata.itablinks; 1.27: itaboffset).
"""

from __future__ import annotations

from fetchc.debuginfo.go.descriptors import Descriptors
from fetchc.debuginfo.go.functable import function_table
from fetchc.debuginfo.go.memory import Memory
from fetchc.debuginfo.go.module import known_version, module
from fetchc.debuginfo.go.shapes import linker_name
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.file import Elf

__all__ = ["descriptors_of", "interface_tables"]


def descriptors_of(elf: Elf, architecture: str) -> Descriptors | None:
    """The descriptors of a program's types; None where Go did not link it.

    Raises DebugInfoError where the program's tables are damaged, or of an unknown version.
    """
    memory = Memory(elf, architecture)
    functions = function_table(memory)
    if functions is None:
        return None
    return Descriptors(memory, module(functions), known_version(memory))


def interface_tables(elf: Elf, architecture: str) -> tuple[tuple[str, str], ...]:
    """Names of interfaces, each with that of a type that is converted to it, as the linker writes.

    None of a program whose tables are damaged, or of a version that is not known.
    """
    try:
        known = descriptors_of(elf, architecture)
        if known is None:
            return ()
        return tuple(
            [
                (linker_name(known, known.at(interface)), linker_name(known, known.at(holder)))
                for interface, holder in known.interface_tables()
            ]
        )
    except DebugInfoError:
        return ()
