"""How the fields of a record make one value."""

from __future__ import annotations

from fetchc.ir.decode import Decode
from fetchc.record import Record

__all__ = ["Leaf", "Members", "Shape"]


class Leaf(Record):
    """A value of its own: the field, what to make of it, the field that holds a text's length.

    ``guards`` are fields that hold the pointers on the way to it, outermost first: where one
    is no address of a program, the value could not be read.
    """

    field: str
    decode: Decode
    length: str | None = None
    guards: tuple[str, ...] = ()


class Members(Record):
    """A structure: its members by name, in order."""

    members: tuple[tuple[str, Shape], ...]


Shape = Leaf | Members
