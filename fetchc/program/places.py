"""Where a value is when the probe fires, as data; nothing here touches a process."""

from __future__ import annotations

from fetchc.record import Record
from fetchc.units import Address, ByteOffset, ByteSize, DwarfRegister

__all__ = [
    "Absent",
    "AtAddress",
    "AtSymbol",
    "Constant",
    "FrameRelative",
    "InMemory",
    "InRegister",
    "Indirect",
    "Named",
    "OnEntry",
    "Piece",
    "Pieces",
    "Place",
    "PointerTo",
    "is_frame_relative",
    "is_on_entry",
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


class AtSymbol(Record):
    """The object is where the running kernel has its symbol of that name.

    ``known``: it is known to have one.
    """

    symbol: str
    known: bool = True


class Named(Record):
    """The value is a word that the kernel gives by a name of its own: ``$arg2``, ``$prev_pid``.

    ``rule`` is its key among the bases of ``targets/kernel``. ``text``: the word stands for a text.
    """

    rule: str
    name: str
    text: bool = False


class Indirect(Record):
    """The object starts ``offset`` bytes from the address held by the word at ``pointer``."""

    pointer: Place
    offset: ByteOffset


class Constant(Record):
    """The value is known and in no memory. ``size`` is its bytes, None where its type says it."""

    value: int
    size: ByteSize | None = None


class Piece(Record):
    """Part of a value: bytes [offset, offset+size) of the object are at ``place``."""

    offset: ByteOffset
    size: ByteSize
    place: Place


class Pieces(Record):
    """A value spread over several places, or a part of one whole register."""

    pieces: tuple[Piece, ...]


class PointerTo(Record):
    """The value is the address of what is ``offset`` bytes into ``target``, and in no memory.

    ``target`` may be in no memory either: then there is no address, but what the pointer leads to
    can be had.
    """

    target: Place
    offset: ByteOffset


class OnEntry(Record):
    """The value is what the register held when the function was entered, and has lost since.

    No place in the function has it; its caller may know (``Program.callers``).
    """

    register: DwarfRegister


class Absent(Record):
    """The value cannot be had here. ``code`` is the diagnostic's, ``reason`` its words.

    ``reason`` completes "because ...".
    """

    code: str
    reason: str


Place = (
    InRegister
    | InMemory
    | FrameRelative
    | AtAddress
    | AtSymbol
    | Named
    | Indirect
    | Constant
    | Pieces
    | PointerTo
    | OnEntry
    | Absent
)


def is_frame_relative(place: Place) -> bool:
    """Whether a part of the place counts from the canonical frame address."""
    match place:
        case FrameRelative():
            return True
        case Indirect(pointer):
            return is_frame_relative(pointer)
        case PointerTo(target):
            return is_frame_relative(target)
        case Pieces(pieces):
            return any(is_frame_relative(piece.place) for piece in pieces)
        case _:
            return False


def is_on_entry(place: Place) -> bool:
    """Whether a part of the place is what a register held on entry."""
    match place:
        case OnEntry():
            return True
        case Indirect(pointer):
            return is_on_entry(pointer)
        case PointerTo(target):
            return is_on_entry(target)
        case Pieces(pieces):
            return any(is_on_entry(piece.place) for piece in pieces)
        case _:
            return False
