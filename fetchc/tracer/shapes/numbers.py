"""Numbers that are made of others."""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.fetch import Decode
    from fetchc.tracer.shapes.single import Leaf

__all__ = ["Between", "Difference", "Reckoned", "Sum", "Term"]


class Between(Record):
    """How many objects of ``each`` bytes lie between two addresses: from ``start`` to ``end``."""

    start: Leaf
    end: Leaf
    each: int


class Difference(Record):
    """One number less another one, or less a constant."""

    minuend: Leaf
    subtrahend: Leaf | int


class Term(Record):
    """A part of a number: ``number``, less ``less``, by ``each``, ``times``.

    With ``times`` 0 it adds nothing, and has to be ``each`` or 0 before it is divided.
    """

    number: Leaf
    less: Leaf | None
    each: int
    times: int


class Reckoned(Record):
    """The sum of terms and a constant; with ``is_none`` whether that is 0."""

    terms: tuple[Term, ...]
    constant: int
    is_none: bool


class Sum(Record):
    """A number that is in no place: the low ``size`` bytes of a word and a constant.

    Without ``word`` it is the constant.
    """

    word: Leaf | None
    addend: int
    size: int
    decode: Decode
