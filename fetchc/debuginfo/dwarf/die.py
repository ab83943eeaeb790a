"""A debugging information entry, decoded when an attribute is asked for."""

from __future__ import annotations

from fetchc.record import Record
from fetchc.units import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.units import Unit

__all__ = ["Die", "LocationListRef"]


class LocationListRef(Record):
    """A location list: ``offset`` in .debug_loc (version <= 4) or .debug_loclists."""

    offset: int


class Die:
    """One entry. Attribute readers give None where the attribute is absent or of another class."""

    __slots__ = ()

    unit: Unit
    offset: DieOffset
    tag: int
    has_children: bool

    def has(self, attribute: int) -> bool:
        """Whether the entry has the attribute, whatever its form."""
        raise NotImplementedError

    def form(self, attribute: int) -> int | None:
        """DW_FORM_* of the attribute."""
        raise NotImplementedError

    def attributes(self) -> tuple[tuple[int, int], ...]:
        """Attribute and form of every attribute, in order."""
        raise NotImplementedError

    def raw(self, attribute: int) -> int | bytes | None:
        """The value as it stands: a number, offset or index, or the bytes of a block or string."""
        raise NotImplementedError

    def text(self, attribute: int) -> str | None:
        """A string; bytes that are not UTF-8 become surrogates (surrogateescape)."""
        raise NotImplementedError

    def constant(self, attribute: int) -> int | None:
        """A constant as its form reads it: data1..16 and udata unsigned, sdata signed."""
        raise NotImplementedError

    def unsigned(self, attribute: int) -> int | None:
        """A constant that is not negative; None for a negative sdata or implicit_const."""
        raise NotImplementedError

    def signed(self, attribute: int) -> int | None:
        """A constant with data1..16 read as two's complement of their width."""
        raise NotImplementedError

    def flag(self, attribute: int) -> bool:
        """A flag; False where absent."""
        raise NotImplementedError

    def address(self, attribute: int) -> Address | None:
        """A target address, through .debug_addr where the form says so."""
        raise NotImplementedError

    def block(self, attribute: int) -> bytes | None:
        """Bytes of a block or expression."""
        raise NotImplementedError

    def location(self, attribute: int) -> bytes | LocationListRef | None:
        """A location description: an expression, or where its list is."""
        raise NotImplementedError
