"""Values whose type is told by the object."""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import ObjectTypes, RuntimeTypes
    from fetchc.quantities import TypeId
    from fetchc.tracer.shape import Shape
    from fetchc.tracer.shapes.single import Leaf

__all__ = ["Asserted", "Dispatched", "Identity", "Known", "OfType", "TypeName", "Worded"]


class TypeName(Record):
    """The name of the dynamic type of a Go interface.

    ``word`` is the address of its descriptor, ``start`` the address that ``types`` count from.
    """

    word: Leaf
    start: Leaf
    types: RuntimeTypes


class Known(Record):
    """What is said of a value whose descriptor is ``wanted`` bytes from the start of all.

    ``parts`` are words and values; one alone is the value itself. ``numbered``: a number among
    them is a system's error number.
    """

    wanted: int
    parts: tuple[str | Shape, ...]
    numbered: bool


class Worded(Record):
    """A Go interface, with what is said of its value where the dynamic type is a known one.

    The others are ``plain``. ``inner``: the words alone, as they are part of others.
    """

    dynamic: TypeName
    plain: Shape
    known: tuple[Known, ...]
    inner: bool


class Asserted(Record):
    """A value that is there if the dynamic type is the one ``wanted`` bytes from the start.

    Else it is ``{"type": ...}``, that type's name.
    """

    dynamic: TypeName
    wanted: int
    inner: Shape


class Dispatched(Record):
    """One of several values, by the dynamic type: each of a type so far from the start.

    Of no such type it is ``{"type": ...}``, as :class:`Asserted`.
    """

    dynamic: TypeName
    cases: tuple[tuple[int, Shape], ...]


class Identity(Record):
    """What a type is known by: the assembly's name, and a number that has its row in ``row``."""

    row: Leaf
    assembly: Leaf


class OfType(Record):
    """A value that is there if the object of ``reference`` is of the type ``wanted``.

    Else it is ``{"type": ...}``, the name of the object's own type. ``element`` is that of an
    array's elements, None where no array is wanted, ``rank`` a number that tells arrays of
    several dimensions apart. Of null there is nothing to compare. ``otherwise`` is what else the
    value is.
    """

    reference: Leaf
    own: Identity
    element: Identity | None
    rank: Leaf
    types: ObjectTypes
    wanted: TypeId
    inner: Shape
    otherwise: OfType | None = None
