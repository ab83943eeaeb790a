"""What lowering gives: fetches with what the reader makes of them."""

from __future__ import annotations

from fetchc.ir.decode import Decode
from fetchc.ir.nodes import Fetch
from fetchc.record import Record
from fetchc.units import TypeId

__all__ = ["Lowered"]


class Lowered(Record):
    """One fetch of an expression.

    ``suffix`` is empty for the value itself; ``len``, ``x``, ... for a companion or a
    leaf of a whole structure, to be joined to the argument's name. A ``companion`` is
    there for the reader and is no value of its own.
    """

    suffix: str
    fetch: Fetch
    decode: Decode
    type: TypeId
    companion: bool = False
