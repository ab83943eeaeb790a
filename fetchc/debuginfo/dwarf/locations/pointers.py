"""Encoded pointers of .eh_frame and .eh_frame_hdr.

Source: Linux Standard Base Core 5.0, section 10.5.1 (DW_EH_PE_*).
"""

from __future__ import annotations

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.byte_reader import Cursor

__all__ = ["DW_EH_PE_absptr", "DW_EH_PE_omit", "encoded_number", "encoded_pointer"]

DW_EH_PE_absptr = 0x00
DW_EH_PE_omit = 0xFF
_ULEB128 = 0x01
_SLEB128 = 0x09
_UNSIGNED_SIZES = {0x02: 2, 0x03: 4, 0x04: 8}
_SIGNED_SIZES = {0x0A: 2, 0x0B: 4, 0x0C: 8}
_PCREL = 0x10
_DATAREL = 0x30


def encoded_number(cursor: Cursor, encoding: int, address_size: int) -> int:
    """The number that the low four bits of ``encoding`` describe, with nothing added to it."""
    kind = encoding & 0x0F
    if kind == DW_EH_PE_absptr:
        return cursor.address(address_size)
    if kind == _ULEB128:
        return cursor.uleb()
    if kind == _SLEB128:
        return cursor.sleb()
    if kind in _UNSIGNED_SIZES:
        return cursor.unsigned(_UNSIGNED_SIZES[kind])
    if kind in _SIGNED_SIZES:
        return cursor.signed(_SIGNED_SIZES[kind])
    raise cursor.error(f"unknown pointer encoding {encoding:#x}")


def encoded_pointer(
    cursor: Cursor,
    encoding: int,
    address_size: int,
    section_address: Address,
    data_address: Address | None = None,
) -> Address:
    """The address that is encoded at the cursor.

    ``section_address`` is where the cursor's section is mapped, for pc-relative ones;
    ``data_address`` the base of data-relative ones. Other bases, and pointers that are in
    memory only at run time (DW_EH_PE_indirect), raise FC0905.
    """
    at = cursor.offset
    number = encoded_number(cursor, encoding, address_size)
    relative = encoding & 0xF0
    if relative == _PCREL:
        number += section_address + at
    elif relative == _DATAREL and data_address is not None:
        number += data_address
    elif relative != DW_EH_PE_absptr:
        raise DebugInfoError(
            "FC0905", cursor.path, f"pointer encoding {encoding:#x}", cursor.section, at
        )
    return Address(number % (1 << 8 * address_size))
