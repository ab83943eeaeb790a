"""Where a value is when the probe fires, as data; nothing here touches a process."""

from __future__ import annotations

from fetchc.record import Record
from fetchc.units import Address, ByteOffset, ByteSize, DwarfRegister

__all__ = [
    "Absent",
    "AtAddress",
    "Constant",
    "FrameRelative",
    "InMemory",
    "InRegister",
    "Indirect",
    "Piece",
    "Pieces",
    "Place",
]


class InRegister(Record):
    """The value is the register's content (its low bytes, if it is smaller)."""

    register: DwarfRegister


class InMemory(Record):
    """The object starts ``offset`` bytes from the address in ``register``."""

    register: DwarfRegister
    offset: ByteOffset


class FrameRelative(Record):
    """The object starts ``offset`` bytes from the canonical frame address (CFA)."""

    offset: ByteOffset


class AtAddress(Record):
    """The object is at a fixed address of the file (before the load bias)."""

    address: Address


class Indirect(Record):
    """The object starts ``offset`` bytes from the address held by the word at ``pointer``."""

    pointer: Place
    offset: ByteOffset


class Constant(Record):
    """The value is known and in no memory."""

    value: int


class Piece(Record):
    """Part of a value: bytes [offset, offset+size) of the object are at ``place``."""

    offset: ByteOffset
    size: ByteSize
    place: Place


class Pieces(Record):
    """A value spread over several places, or a part of one whole register."""

    pieces: tuple[Piece, ...]


class Absent(Record):
    """The value cannot be had here. ``code`` is the diagnostic's, ``reason`` its words.

    ``reason`` completes "because ...".
    """

    code: str
    reason: str


Place = InRegister | InMemory | FrameRelative | AtAddress | Indirect | Constant | Pieces | Absent
