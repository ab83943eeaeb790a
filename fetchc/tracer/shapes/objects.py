"""Members of a structure, and one of several shapes."""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.shape import Shape
    from fetchc.tracer.shapes.numbers import Reckoned
    from fetchc.tracer.shapes.single import Guard, Leaf

__all__ = [
    "Called",
    "Case",
    "Choice",
    "Either",
    "Kept",
    "Members",
    "Noted",
    "OfVariant",
    "Referred",
    "Spelled",
    "Variants",
]


class Members(Record):
    """A structure: its members by name, in order. ``left`` are those that cannot be fetched."""

    members: tuple[tuple[str, Shape], ...]
    guards: tuple[Guard, ...] = ()
    left: tuple[str, ...] = ()


class Noted(Record):
    """A structure in a form of its own, of its members' numbers.

    See :mod:`fetchc.tracer.values.notations`.
    """

    notation: str
    members: tuple[tuple[str, Leaf], ...]
    guards: tuple[Guard, ...] = ()


class Spelled(Record):
    """A value in the form that its language prints it in, of its parts.

    ``beside`` are values of other places that the form takes. See
    :mod:`fetchc.tracer.values.spellings`.
    """

    form: str
    parts: tuple[tuple[str, Shape], ...]
    beside: tuple[tuple[str, Shape], ...] = ()


class Either(Record):
    """One of two shapes, by whether a number is 0."""

    number: Reckoned
    at_none: Shape
    other: Shape


class Choice(Record):
    """One of several shapes, by the number ``tag``; nothing where it is none of ``cases``."""

    tag: Leaf
    cases: tuple[tuple[int, Shape], ...]


class Case(Record):
    """A variant: its name, and what it holds; None of one without fields.

    It is there where the enum's tag is ``value``, with None where it is none of the others'.
    ``single``: it holds one value without a name, which ``fields`` is. ``left`` is the number of
    its fields where they are not fetched.
    """

    value: int | None
    name: str
    fields: Shape | None
    single: bool = False
    left: int = 0


class Variants(Record):
    """The variant of an enum that is there, by the number ``tag``; without one the only variant."""

    tag: Leaf | None
    cases: tuple[Case, ...]


class Kept(Record):
    """A value that is there unless ``word`` is the address so far from the probed instruction.

    Then the call lost it.
    """

    word: Leaf
    distance: int
    inner: Shape


class OfVariant(Record):
    """A value that is there if the number ``tag`` tells the variant ``wanted``.

    Else it is ``{"variant": ...}``, the name of the one that is. ``names`` are all, by number.
    """

    tag: Leaf
    names: tuple[tuple[int | None, str], ...]
    wanted: str
    inner: Shape


class Called(Record):
    """One of several shapes, by the call that the function was entered by.

    ``returned`` is the address that the function returns to. ``cases`` have how far it is from the
    probed instruction; of other calls, ``{"caller": ...}``, nothing is known.
    """

    returned: Leaf
    cases: tuple[tuple[int, Shape], ...]


class Referred(Record):
    """A value behind a reference: none, and no fault, where that is NULL (null of .NET).

    Of a ``Nullable`` the truth value in front of it is what says whether there is one.
    """

    reference: Leaf
    inner: Shape
