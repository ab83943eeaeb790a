"""What the fields of a record hold by themselves: numbers, texts, rows; the pointers on the way."""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.fetch import Decode
    from fetchc.tracer.shape import Shape

__all__ = ["Bytes", "Guard", "Leaf", "Row", "Sized"]


class Guard(Record):
    """A pointer on the way to a value: the word at ``offset`` bytes into ``field``.

    What is loaded next stands ``moved`` bytes from where it leads. ``empty``: NULL is no fault
    there but stands for a thing without entries (a nil map of Go), or for no text. ``kernel``:
    it leads to memory of the kernel, not of the program.

    ``told`` are texts that are there where eight bytes could be read, from so many bytes behind
    where the pointer leads on: a probe of the kernel reads the memory of programs if it is in RAM,
    and else leaves in the record what was there before.
    """

    field: str
    offset: int = 0
    moved: int = 0
    empty: bool = False
    kernel: bool = False
    told: tuple[tuple[str, int], ...] = ()


class Leaf(Record):
    """A number, or a text that the kernel fetched up to its NUL (``decode.kind`` text).

    ``size`` are the bytes of the number, 0 where the field holds nothing else (only then a
    filter of the kernel can have it). Of them ``decode.bits`` bits count, from bit ``shift`` on.
    A text with ``decode.count`` is a list of that many, whose pointers are side by side from
    ``offset`` bytes into ``pointers`` on. ``total`` is the number of elements of the source where
    not all were fetched.

    ``guards`` are the pointers on the way, outermost first: where one is no address of a
    program, the value could not be read. The other shapes have them too.
    """

    field: str
    decode: Decode
    offset: int = 0
    size: int = 0
    shift: int = 0
    guards: tuple[Guard, ...] = ()
    total: int = 0
    pointers: str = ""


class Bytes(Record):
    """A text in ``size`` bytes that were fetched.

    It ends where ``length``, a number, says (bytes of ``text``, units of ``utf-16``); without
    one at the first NUL or, where the object has no more than ``limit`` bytes, there.
    ``kind`` is that of :class:`~fetchc.ir.fetch.Decode`, or utf-32 (units of four bytes).
    """

    field: str
    size: int
    kind: str = "text"
    offset: int = 0
    length: Leaf | None = None
    limit: int | None = None
    guards: tuple[Guard, ...] = ()


class Sized(Record):
    """A text that the kernel fetched up to its NUL, of an object that has ``length`` bytes.

    Where these are more, the text is its beginning alone: a NUL is a character of it, or the event
    had no room.
    """

    inner: Shape
    length: Shape


class Row(Record):
    """A list: ``count`` numbers of ``size`` bytes side by side, each as ``decode`` says."""

    field: str
    decode: Decode
    count: int
    size: int
    offset: int = 0
    guards: tuple[Guard, ...] = ()
    total: int = 0
