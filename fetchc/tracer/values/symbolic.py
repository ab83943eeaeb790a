"""Addresses of code as the names of what is there."""

from __future__ import annotations

from fetchc.tracer.values.guards import PID, THREAD
from fetchc.tracer.values.kinds import CodeAddress, Hexadecimal, NoAddress, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.model import Value

    Symbol = Callable[[int, int], str | None]

__all__ = ["names"]


def names(
    unpack: Callable[[bytes, int], tuple[int, ...]],
    start: int,
    symbol: Symbol,
    pointer: Callable[[int], Hexadecimal],
) -> Callable[[bytes], list[Value]]:
    """The names of the addresses that stand at ``start`` of a record.

    NULL has none, and what ``symbol(thread, address)`` does not know is a plain number, which
    ``pointer`` makes of what is no address.
    """

    def name(thread: int, address: int) -> Value:
        if not address:
            return Hexadecimal(0)
        found = symbol(thread, address)
        if found is not None:
            return SymbolName(found)
        plain = pointer(address)
        return plain if isinstance(plain, NoAddress) else CodeAddress(address)

    def named(data: bytes) -> list[Value]:
        (thread,) = THREAD(data, PID)
        return [name(thread, address) for address in unpack(data, start)]

    return named
