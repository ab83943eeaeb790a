"""Tables of what the entries of a unit refer to by numbers: addresses, strings, lists.

Source: DWARF 5, sections 7.26 to 7.29; of DWARF 4 https://gcc.gnu.org/wiki/DebugFission, whose
tables have no headers.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["IndexTables"]


class IndexTables:
    """A unit's parts of the sections of tables.

    Without an attribute that says where, the first part of a section is meant, which is behind the
    header. Source: DWARF 5, section 7.3.5 defines that for split units; the same header sizes.
    """

    __slots__ = ("_addr_base", "_str_offsets_base", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._addr_base: int | None = None
        self._str_offsets_base: int | None = None

    @property
    def addr_base(self) -> int:
        """Offset of the unit's addresses in .debug_addr."""
        if self._addr_base is None:
            top = self._unit.skeleton.top
            stated = top.raw(c.DW_AT_addr_base)
            if stated is None:
                stated = top.raw(c.DW_AT_GNU_addr_base)
            self._addr_base = stated if isinstance(stated, int) else self._behind_header()
        return self._addr_base

    @property
    def str_offsets_base(self) -> int:
        """Offset of the unit's entries in .debug_str_offsets."""
        if self._str_offsets_base is None:
            stated = self._unit.top.raw(c.DW_AT_str_offsets_base)
            self._str_offsets_base = stated if isinstance(stated, int) else self._behind_header()
        return self._str_offsets_base

    def _behind_header(self) -> int:
        if self._unit.version < 5:
            return 0
        return 8 if self._unit.offset_size == 4 else 16

    def address_at(self, index: int) -> Address:
        """Entry ``index`` of .debug_addr (DW_OP_addrx, DW_FORM_addrx)."""
        return Address(self._entry(".debug_addr", self.addr_base, index, self._unit.address_size))

    def string_offset(self, index: int) -> int:
        """Entry ``index`` of .debug_str_offsets: an offset in .debug_str."""
        base = self.str_offsets_base
        return self._entry(".debug_str_offsets", base, index, self._unit.offset_size)

    def list_offset(self, name: str, index: int) -> int:
        """Where list ``index`` of .debug_loclists or .debug_rnglists starts in that section.

        Source: DWARF 5, section 7.28: the table holds distances from the table's own start.
        """
        unit = self._unit
        lists = name == ".debug_loclists"
        stated = unit.top.raw(c.DW_AT_loclists_base if lists else c.DW_AT_rnglists_base)
        header = 12 if unit.offset_size == 4 else 20
        base = stated if isinstance(stated, int) else header
        return base + self._entry(name, base, index, unit.offset_size)

    def _entry(self, name: str, base: int, index: int, size: int) -> int:
        section = self._unit.info.required_section(name, self._unit)
        start = base + index * size
        raw = section.bytes_between(start, start + size)
        return int.from_bytes(raw, "little" if self._unit.little else "big")
