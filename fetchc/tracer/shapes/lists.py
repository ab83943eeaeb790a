"""Several elements, and how many of them there are."""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.shape import Shape
    from fetchc.tracer.shapes.dynamic import OfType
    from fetchc.tracer.shapes.numbers import Between, Difference, Reckoned
    from fetchc.tracer.shapes.single import Bytes, Guard, Leaf, Row

__all__ = ["Grid", "Inside", "Items", "Ranged", "Sequence"]


class Items(Record):
    """A list whose elements are shapes of their own.

    ``text``: they are the characters of one, which ends at the first NUL or with them. ``parts``:
    they are those of a tuple.
    """

    items: tuple[Shape, ...]
    guards: tuple[Guard, ...] = ()
    total: int = 0
    text: bool = False
    parts: bool = False


class Sequence(Record):
    """A list of as many elements as ``length`` says, of which ``elements`` has the first.

    With ``start`` they are those of an array, of which the list has some: from that index on, and
    with ``around``, the number of all, from the first one behind the last. ``backwards``: from the
    one in front of that index on, down to the array's first.
    """

    length: Leaf | Between
    elements: Row | Items
    start: Leaf | None = None
    around: Leaf | None = None
    backwards: bool = False


class Ranged(Record):
    """The elements from ``low`` up to, not including, ``high``: a list, or the text of the bytes.

    ``elements`` begins with the one of the index ``start``. There are ``bound`` of them in all,
    None where nothing tells. ``to_nul``: of a text no more than up to its first NUL.
    """

    elements: Row | Items | Bytes
    start: int
    low: Leaf | Between | Difference | Reckoned | int
    high: Leaf | Between | Difference | Reckoned | int
    bound: Leaf | Between | Difference | Reckoned | int | None
    to_nul: bool = False


class Inside(Record):
    """A value that is there if ``number`` says that there are at least ``least`` elements."""

    number: Shape
    least: int
    inner: Shape


class Grid(Record):
    """The elements of an array of several dimensions, as ``flat`` has them side by side.

    ``lengths`` are those of the dimensions. With ``indices`` the value is that one element.
    """

    lengths: tuple[Leaf, ...]
    flat: Sequence | OfType
    indices: tuple[int, ...] = ()
