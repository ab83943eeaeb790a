"""The typed tree: what an expression means, with no name left to look up.

Six shapes carry every language: a place that a name holds, a constant, a part of an
object, the object a pointer leads to, an address moved by a constant, an address of
an object. Slices, strings, promoted fields and the like are spelled out in them by
the checker; a range of elements is a shape for readers. Every node has the type of its
value and the span that it came from.
"""

from __future__ import annotations

from fetchc.program.entities import Place, RuntimeType
from fetchc.program.types import BitField, Variant
from fetchc.quantities import ByteOffset, TypeId
from fetchc.record import Record
from fetchc.source import Span

__all__ = [
    "Address",
    "Asserted",
    "Computed",
    "Constant",
    "Convert",
    "Counted",
    "Described",
    "Dispatched",
    "Either",
    "Follow",
    "Granted",
    "Held",
    "Part",
    "Present",
    "Ranged",
    "Shift",
    "Special",
    "Term",
    "Typed",
]


class Held(Record):
    """The object of a variable: ``place`` at the probe point, the frame taken apart."""

    place: Place
    name: str
    type: TypeId
    span: Span


class Special(Record):
    """A base that the kernel names itself: ``%ax`` (kind register), ``$stack``, ``$stackN``
    (kind entry), ``$comm``, ``$retval`` (kind result), an event's text field (kind text).
    """

    kind: str
    text: str
    type: TypeId
    span: Span


class Constant(Record):
    """A number known now."""

    value: int
    type: TypeId
    span: Span


class Part(Record):
    """The sub-object ``offset`` bytes into ``base``; ``bits`` where it is a bit field of it."""

    base: Typed
    offset: ByteOffset
    bits: BitField | None
    type: TypeId
    span: Span


class Follow(Record):
    """The object that the pointer ``base`` leads to."""

    base: Typed
    type: TypeId
    span: Span


class Shift(Record):
    """The pointer ``base`` moved by ``offset`` bytes."""

    base: Typed
    offset: ByteOffset
    type: TypeId
    span: Span


class Address(Record):
    """The address of the object ``base``."""

    base: Typed
    type: TypeId
    span: Span


class Convert(Record):
    """The value of ``base`` read as ``type``: its low bytes where that is smaller."""

    base: Typed
    type: TypeId
    span: Span


class Asserted(Record):
    """What a type assertion takes for granted, for the reader to see to.

    ``word`` is the interface's dynamic type, ``start`` the address that the run-time counts its
    types from: the word has to be ``wanted.offset`` bytes behind it. ``empty``: the interface
    has no methods, and the word is its first one.
    """

    word: Typed
    start: Typed
    wanted: RuntimeType
    empty: bool
    span: Span


class Present(Record):
    """What a field of a variant takes for granted: that it is the one that ``tag`` tells.

    ``variants`` are all of the enum, ``wanted`` is the name of one. ``told_by`` is what a lone
    fetch-arg can fetch beside it.
    """

    tag: Typed
    variants: tuple[Variant, ...]
    wanted: str
    holder: TypeId
    told_by: str
    span: Span


class Described(Record):
    """What a cast of .NET takes for granted: the object of ``reference`` is of type ``wanted``."""

    reference: Typed
    wanted: TypeId
    span: Span


class Counted(Record):
    """What an index takes for granted: that ``holder`` has at least ``least`` elements.

    ``most``: or has room for them, where it has more room than elements.
    """

    holder: Typed
    least: int
    most: bool
    span: Span


class Ranged(Record):
    """The elements from the index ``low`` up to, not including, ``high``; not both known now.

    ``first`` is the element of the index ``start``, which no wanted one is in front of. ``bound``
    is the number of elements that there are, None where no type tells. Type: a ``RangeType``.
    """

    first: Typed
    start: int
    low: Typed | int
    high: Typed | int
    bound: Typed | int | None
    type: TypeId
    span: Span


class Term(Record):
    """A part of a number that a reader makes: ``number``, less ``less``, by ``each``, ``times``.

    With ``times`` 0 it adds nothing: what was assumed of the object is that it is ``each``.
    """

    number: Typed
    less: Typed | None
    each: int
    times: int


class Computed(Record):
    """A number that a reader makes of others: the sum of the terms and a constant.

    With ``is_none`` it is the truth value that this sum is 0.
    """

    terms: tuple[Term, ...]
    constant: int
    is_none: bool
    type: TypeId
    span: Span


class Either(Record):
    """One of two objects: ``at_none`` where the number is 0, else ``other``.

    ``side_by_side``: of the objects that there are, those behind one pointer are elements of one
    array, and can be read all at once. ``given``: what each of the two takes for granted.
    """

    number: Computed
    at_none: Typed
    other: Typed
    type: TypeId
    span: Span
    side_by_side: bool = False
    given: tuple[tuple[Granted, ...], tuple[Granted, ...]] = ((), ())


Granted = Asserted | Present | Described | Counted


class Dispatched(Record):
    """One of several objects: that of the first of the cases whose assertion holds."""

    cases: tuple[tuple[Asserted, Typed], ...]
    type: TypeId
    span: Span


Typed = (
    Held
    | Special
    | Constant
    | Part
    | Follow
    | Shift
    | Address
    | Convert
    | Ranged
    | Computed
    | Either
    | Dispatched
)
