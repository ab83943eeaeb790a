"""What the reader of an event makes of a fetched value; the kernel knows none of it."""

from __future__ import annotations

from fetchc.record import Record

__all__ = ["Decode"]


class Decode(Record):
    """How to turn the fetched number, text or list into the value of the source.

    ``kind``: integer, bool, char, enum, float, pointer, reference (a pointer that is null where it
    is 0), symbol, text, address (a number that people read in hexadecimal), utf-16 (a text in
    units of two bytes), bytes (as a text with a length, of any bytes), turned (an integer whose
    bytes are in the order of the network, for a trace alone).
    ``bits`` is the width of the value (a signed bit field is extended from it),
    ``signed`` whether it is. ``enumerators`` for enums. ``count`` for lists: the kernel
    prints a list of that many. ``limit`` is a text's greatest length in bytes, where the type
    bounds it (a full ``char[4]`` has no NUL, and the kernel reads on to the next one).
    ``flags``: a value of the enum is a set of enumerators. ``otherwise`` is the name of every
    value that no enumerator has.
    """

    kind: str
    bits: int | None = None
    signed: bool = False
    count: int | None = None
    enumerators: tuple[tuple[str, int], ...] = ()
    limit: int | None = None
    flags: bool = False
    otherwise: str = ""
