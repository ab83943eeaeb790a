"""Addresses of code as the names of what is there."""

from __future__ import annotations

from fetchc.tracer.values.guards import PID, THREAD
from fetchc.tracer.values.kinds import CodeAddress, Hexadecimal, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.model import Value

    Symbol = Callable[[int, int], str | None]

__all__ = ["names"]


def names(
    unpack: Callable[[bytes, int], tuple[int, ...]], start: int, symbol: Symbol
) -> Callable[[bytes], list[Value]]:
    """The names of the addresses that stand at ``start`` of a record.

    NULL has none, and what ``symbol(thread, address)`` does not know is a plain number.
    """

    def name(thread: int, address: int) -> Value:
        if not address:
            return Hexadecimal(0)
        found = symbol(thread, address)
        return CodeAddress(address) if found is None else SymbolName(found)

    def named(data: bytes) -> list[Value]:
        (thread,) = THREAD(data, PID)
        return [name(thread, address) for address in unpack(data, start)]

    return named
