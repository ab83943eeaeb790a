"""Units of .debug_info and .debug_types: headers, and what their top DIE says."""

from __future__ import annotations

from fetchc.units import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.die import Die
    from fetchc.debuginfo.dwarf.info import DebugInfo

__all__ = ["Unit"]


class Unit:
    """A unit's header, decoded, and its contents on demand."""

    __slots__ = ()

    info: DebugInfo
    offset: DieOffset
    end: DieOffset
    die_offset: DieOffset  # of the top DIE
    version: int
    offset_size: int  # 4, or 8 for 64-bit DWARF
    address_size: int
    little: bool
    kind: int  # DW_UT_*
    signature: int | None  # of a type unit
    type_offset: DieOffset | None  # of a type unit's type

    @property
    def path(self) -> str:
        """File that the unit was read from."""
        raise NotImplementedError

    @property
    def top(self) -> Die:
        """The unit's own DIE."""
        raise NotImplementedError

    @property
    def low_pc(self) -> Address:
        """Base address of the unit's location and range lists; 0 where it has none."""
        raise NotImplementedError

    @property
    def addr_base(self) -> int:
        """Offset of the unit's addresses in .debug_addr."""
        raise NotImplementedError

    @property
    def str_offsets_base(self) -> int:
        """Offset of the unit's entries in .debug_str_offsets."""
        raise NotImplementedError

    @property
    def rnglists_base(self) -> int:
        """Offset of the unit's offset table in .debug_rnglists."""
        raise NotImplementedError

    @property
    def loclists_base(self) -> int:
        """Offset of the unit's offset table in .debug_loclists."""
        raise NotImplementedError

    @property
    def language(self) -> int | None:
        """DW_LANG_*."""
        raise NotImplementedError

    @property
    def producer(self) -> str:
        """The compiler's own words; empty where it has none."""
        raise NotImplementedError

    @property
    def comp_dir(self) -> str | None:
        """Directory of the compilation."""
        raise NotImplementedError

    @property
    def name(self) -> str | None:
        """Name of the source file; of a Go unit, its package path."""
        raise NotImplementedError

    def address_at(self, index: int) -> Address:
        """Entry ``index`` of the unit's part of .debug_addr (DW_OP_addrx, DW_FORM_addrx)."""
        raise NotImplementedError
