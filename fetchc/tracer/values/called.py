"""Values that the caller knows: which one is there, by the address that the function returns to."""

from __future__ import annotations

import struct
import sys

from fetchc.tracer.values.guards import PID, THREAD
from fetchc.tracer.values.kinds import CodeAddress, ReturnAddress, SymbolName
from fetchc.tracer.values.scalars import meaning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fetchc.tracer.model import Value
    from fetchc.tracer.shape import Sum

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]
    Symbol = Callable[[int, int], str | None]

__all__ = ["called", "kept", "summed"]

_PROBED = 8
"""Offset of the probed address in a record: kernel/trace/trace_probe.h, uprobe_trace_entry_head."""
_WORD = struct.Struct("=Q")
_MASK = (1 << 64) - 1


def called(returned: Make, cases: Mapping[int, Make], symbol: Symbol | None) -> Make:
    """What the case of the distance from the probe to the address ``returned`` makes.

    Of a call that none knows ``{"caller": ...}``: the function that made it, or the address.
    """
    known = {distance & _MASK: one for distance, one in cases.items()}

    def make(data: bytes, faults: Faults) -> Value:
        address = returned(data, faults)
        if not isinstance(address, int):
            return None
        one = known.get(address - _WORD.unpack_from(data, _PROBED)[0] & _MASK)
        if one is not None:
            return one(data, faults)
        (thread,) = THREAD(data, PID)
        # The byte in front is of the call; behind one that never returns is another function.
        name = None if symbol is None else symbol(thread, address - 1)
        return {"caller": ReturnAddress(address) if name is None else SymbolName(name)}

    return make


def kept(word: Make, distance: int, inner: Make, path: str) -> Make:
    """What ``inner`` makes; a fault where the word is the address so far from the probe."""
    lost = distance & _MASK

    def make(data: bytes, faults: Faults) -> Value:
        address = word(data, faults)
        if isinstance(address, int):
            if address - _WORD.unpack_from(data, _PROBED)[0] & _MASK != lost:
                return inner(data, faults)
            faults.append(path)
        return None

    return make


def summed(shape: Sum, word: Make | None, symbol: Symbol | None) -> Make:
    """The low bytes of a word and a constant, as the number that they are."""
    code, then = meaning(shape.decode, shape.size)
    unpack = struct.Struct("=" + code).unpack
    named = shape.decode.kind == "symbol"
    low = (1 << 8 * shape.size) - 1

    def make(data: bytes, faults: Faults) -> Value:
        first = 0 if word is None else word(data, faults)
        if not isinstance(first, int):
            return None
        total = first + shape.addend & low
        if named and total:
            name = None if symbol is None else symbol(THREAD(data, PID)[0], total)
            return CodeAddress(total) if name is None else SymbolName(name)
        number: int = unpack(total.to_bytes(shape.size, sys.byteorder))[0]
        return number if then is None else then(number)

    return make
