"""What lowering gives, fetches with what the reader makes of them, and where it finds bytes."""

from __future__ import annotations

from fetchc.ir.fetch import Decode, Fetch, Value
from fetchc.program.entities import Piece
from fetchc.quantities import TypeId
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Site

__all__ = ["InValue", "Known", "Lowered", "Memory", "Spread", "Where", "inside", "low_bits"]


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


class Memory(Record):
    """An object in memory, ``offset`` bytes from the address that is the value ``base``.

    ``user``: in the memory of the program that a probe of the kernel finds running.
    """

    base: Value
    offset: int
    user: bool = False


class InValue(Record):
    """Part of a register or another word that is not memory.

    The word's low ``size`` bytes are an object; wanted is what starts ``offset`` bytes into it.
    """

    base: Value
    offset: int
    size: int


class Known(Record):
    """A number known now. ``left`` is how many bytes of it there are, None for as many as asked."""

    value: int
    left: int | None = None


class Spread(Record):
    """The object of a variable in several places; the wanted part starts ``offset`` bytes in."""

    pieces: tuple[Piece, ...]
    offset: int
    name: str = ""


Where = Memory | InValue | Known | Spread


def inside(found: Where, offset: int) -> Where:
    """What starts ``offset`` bytes into ``found``."""
    match found:
        case Memory(base=base, offset=start, user=user):
            return Memory(base, start + offset, user)
        case InValue(base=base, offset=start, size=size):
            return InValue(base, start + offset, size)
        case Spread(pieces=pieces, offset=start, name=name):
            return Spread(pieces, start + offset, name)
        case Known(value=value, left=left):
            if offset < 0:
                return Known(0, -1)
            return Known(value >> (8 * offset), None if left is None else left - offset)
        case _:
            assert_never(found)


def low_bits(site: Site, found: InValue, size: int) -> int:
    """How many bits of the word are below ``size`` bytes of ``found``.

    A register holds an object as a load of it would: its first byte is the lowest one, or on a
    big-endian machine its last byte is.
    """
    if site.program.little_endian:
        return 8 * found.offset
    if found.offset == 0 and size > found.size:
        return 0  # more of the register than the object
    return 8 * (found.size - found.offset - size)
