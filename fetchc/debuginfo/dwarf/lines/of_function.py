"""What the line table and the declaration say of one function: its body, its source."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import DW_AT_decl_file, DW_AT_decl_line
from fetchc.debuginfo.dwarf.lines.header import file_name
from fetchc.debuginfo.dwarf.lines.rows import raw_rows
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo

__all__ = ["body_address", "source_line"]


def body_address(info: DebugInfo, die: Die, start: Address) -> Address:
    """The first instruction behind the prologue of a function that starts at ``start``.

    Marked by prologue_end; else the next statement after the first row. That GCC's
    second row is where unoptimised code has stored its parameters was measured, not
    promised by anyone. The function's start where the line table says neither.
    """
    end = next((high for low, high in info.ranges(die) if low <= start < high), start)
    second: Address | None = None
    inside = False
    for address, _, _, is_stmt, prologue_end, _ in raw_rows(info, die.unit):
        if not start <= address < end:
            if inside and address >= end:
                break  # the addresses of a sequence rise, and the function is in one of them
            continue
        inside = True
        if prologue_end:
            return Address(address)
        if second is None and is_stmt and address > start:
            second = Address(address)
    return start if second is None else second


def source_line(info: DebugInfo, die: Die) -> str | None:
    """``file.c:17`` of the declaration, None where unknown."""
    lined, filed = info.inherited(die, DW_AT_decl_line), info.inherited(die, DW_AT_decl_file)
    if lined is None or filed is None:
        return None
    number, index = lined.unsigned(DW_AT_decl_line), filed.unsigned(DW_AT_decl_file)
    name = None if index is None else file_name(info, filed.unit, index)
    if not number or name is None:
        return None
    return f"{name.rpartition('/')[2]}:{number}"
