"""Values whose type is only known when they are read: what Go's interfaces hold."""

from __future__ import annotations

from fetchc.tracer.kinds import Hexadecimal, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.program.protocol import RuntimeTypes
    from fetchc.tracer.model import Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]

__all__ = ["NIL", "asserted", "type_name"]

NIL = SymbolName("nil")
"""The dynamic type of an interface that holds nothing."""

_MASK = (1 << 64) - 1


def type_name(word: Make, start: Make, types: RuntimeTypes) -> Make:
    """The name of a dynamic type; its address where the program's own types have none there.

    ``word`` makes the address of its descriptor, ``start`` that of the beginning of them all.
    """

    def make(data: bytes, faults: Faults) -> Value:
        address, first = word(data, faults), start(data, faults)
        if not isinstance(address, int) or not isinstance(first, int):
            return None
        if address == 0:
            return NIL
        found = types.at(address - first & _MASK)
        return Hexadecimal(address) if found is None else SymbolName(found.name)

    return make


def asserted(word: Make, start: Make, name: Make, wanted: int, inner: Make) -> Make:
    """``inner`` where the dynamic type is ``wanted`` bytes from ``start``, else that type's name.

    The other value is not read: its bytes mean something else.
    """

    def make(data: bytes, faults: Faults) -> Value:
        address, first = word(data, faults), start(data, faults)
        if not isinstance(address, int) or not isinstance(first, int):
            return None
        if address - first & _MASK == wanted and address:
            return inner(data, faults)
        return {"type": name(data, faults)}

    return make
