"""Values that are shown in a way of their own: each is a plain value to a program, and to JSON."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.model import Value

__all__ = [
    "Character",
    "CodeAddress",
    "CutList",
    "CutStructure",
    "CutText",
    "Enumerator",
    "Hexadecimal",
    "Nanoseconds",
    "NoAddress",
    "ReturnAddress",
    "SymbolName",
    "Tuple",
    "Variant",
]


class Hexadecimal(int):
    """A number that people read in hexadecimal: an address."""

    __slots__ = ()


class NoAddress(Hexadecimal):
    """The bits of a pointer that can lead nowhere: garbage, poison, an error number."""

    __slots__ = ()


class CodeAddress(Hexadecimal):
    """The address of a function whose name is not known (yet)."""

    __slots__ = ()


class ReturnAddress(CodeAddress):
    """The address behind a call, of a function whose name is not known (yet)."""

    __slots__ = ()


class Nanoseconds(int):
    """A length of time, which people read in the unit in which it is 1 or more."""

    __slots__ = ()


class SymbolName(str):
    """The name of what stands at an address, shown without quotes."""

    __slots__ = ()


class Character(str):
    """One character; ``number`` is its code, as signed as its type."""

    number: int

    def __new__(cls, text: str, number: int) -> Character:
        """The text that people read, and the code."""
        made = super().__new__(cls, text)
        made.number = number
        return made


class Enumerator(dict[str, "Value"]):
    """``{"name": ..., "value": ...}`` of an enumeration; the name is None for other numbers."""

    __slots__ = ()


class Tuple(list["Value"]):
    """The parts of a tuple, which people write in parentheses."""

    __slots__ = ()


class Variant(dict[str, "Value"]):
    """A variant of an enum by its name, with the list or the object of its fields.

    ``single``: what it has is no list of fields but its one field.
    """

    single: bool

    def __init__(self, name: str, fields: Value, single: bool) -> None:
        super().__init__({name: fields})
        self.single = single


class CutText(str):
    """The beginning of a text; ``length`` is that of all of it in bytes, None if unknown."""

    length: int | None

    def __new__(cls, text: str, length: int | None) -> CutText:
        """The text that is left, and the length of the whole one."""
        made = super().__new__(cls, text)
        made.length = length
        return made


class CutStructure(dict[str, "Value"]):
    """A structure without the members ``left``, which no probe fetches."""

    left: tuple[str, ...]

    def __init__(self, members: dict[str, Value], left: tuple[str, ...]) -> None:
        super().__init__(members)
        self.left = left


class CutList(list["Value"]):
    """The first elements of a list; ``length`` is the number of all.

    ``last``: the last ones, as of a stack, whose newest element is behind all others.
    """

    length: int
    last: bool

    def __init__(self, values: list[Value], length: int, last: bool = False) -> None:
        super().__init__(values)
        self.length = length
        self.last = last
