"""ABI wrappers of Go: one function, called by two conventions, has code for each of them.

What is written in assembly lists no parameters. Its Go declaration is compiled to a wrapper, from
Go 1.17 on, and linked where a function value needs it: calls by name go straight to assembly. The
linker gives both the name of the function, and the one by the stack convention ``.abi0`` behind it.

Source: Go, src/cmd/compile/internal/ssagen/abi.go (makeABIWrapper); src/cmd/link/internal/ld
(symtab.go, mangleABIName).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.names.function_symbols import ABI0
from fetchc.program.entities import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.elf.file import Elf
    from fetchc.program.entities import Function

__all__ = ["declared_by_twin"]


def declared_by_twin(elf: Elf, info: DebugInfo, function: Function) -> tuple[Variable, ...]:
    """What the function's other code declares: its parameters, then its results.

    Nothing where there is no other code. The variables are ``elsewhere``.
    """
    from fetchc.debuginfo.dwarf.locations.variables import parameters
    from fetchc.debuginfo.dwarf.names.functions import function_at

    plain = function.symbol.removesuffix(ABI0)
    other = plain if plain != function.symbol else plain + ABI0
    twins = {symbol.address for symbol in elf.symbols_named(other)} - {function.address}
    if len(twins) != 1:
        return ()
    twin = function_at(elf, info, twins.pop())
    if twin is None or twin.die is None or twin.name != function.name:
        return ()
    return tuple(
        [
            Variable(one.name, one.type, one.kind, one.die, one.line, elsewhere=True)
            for one in parameters(info, info.die(twin.die))
        ]
    )
