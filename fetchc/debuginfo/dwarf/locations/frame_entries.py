"""Entries of call-frame information, CIEs and FDEs, as .eh_frame and .debug_frame have them.

Source: DWARF 5, section 6.4.1; Linux Standard Base Core 5.0, section 10.6.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.locations.pointers import (
    DW_EH_PE_absptr,
    DW_EH_PE_omit,
    encoded_number,
    encoded_pointer,
)
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.elf.headers import Buffer

__all__ = ["Cie", "Fde", "FrameSection"]


class Cie(Record):
    """What several FDEs share. ``encoding`` is the DW_EH_PE_* of their addresses.

    ``instructions`` is the half-open range of the section that sets up the first row.
    ``augmented`` FDEs have data of their own between their addresses and instructions.
    """

    code_alignment: int
    data_alignment: int
    return_register: DwarfRegister
    address_size: int
    encoding: int
    augmented: bool
    signal_frame: bool
    instructions: tuple[int, int]


class Fde(Record):
    """The entry of the code in [start, end). ``instructions`` as in :class:`Cie`."""

    cie: Cie
    start: Address
    end: Address
    instructions: tuple[int, int]


class FrameSection:
    """One section of CIEs and FDEs. ``cies`` are those read for the question at hand.

    ``exception``: whether it is .eh_frame; ``address``: where it is mapped; ``from_zero``: whether
    code can be at address 0, which else is of what the linker left out.
    """

    __slots__ = (
        "address",
        "address_size",
        "cies",
        "data",
        "exception",
        "from_zero",
        "little",
        "name",
        "path",
    )

    def __init__(self, elf: Elf, name: str, data: Buffer) -> None:
        self.exception = name == ".eh_frame"
        self.path = elf.path if self.exception else elf.debug_path
        self.name = name
        self.data = data
        self.little = elf.little_endian
        self.address_size = elf.word_bytes
        self.address = elf.section_address(name) or Address(0)
        self.cies: dict[int, Cie] = {}
        self.from_zero = not elf.is_discarded(Address(0))

    def cursor(self, offset: int) -> Cursor:
        """A cursor on the section."""
        return Cursor(self.path, self.name, self.data, offset, None, self.little)

    def fde(self, offset: int) -> Fde:
        """The FDE at ``offset``."""
        cursor = self.cursor(offset)
        length, offset_size = cursor.initial_length()
        end = cursor.offset + length
        cie_offset = self.cie_offset(cursor, offset_size)
        if cie_offset is None:
            raise cursor.error("a CIE where an FDE is expected", offset)
        cie = self.cie(cie_offset)
        start, stop = self.addresses(cursor, cie)
        if cie.augmented:
            cursor.skip(cursor.uleb())
        if cursor.offset > end:
            raise cursor.error("an FDE longer than its length says")
        return Fde(cie, start, stop, (cursor.offset, end))

    def cie_offset(self, cursor: Cursor, offset_size: int) -> int | None:
        """Where the CIE of the entry is; None for a CIE. The cursor stands behind the length."""
        at = cursor.offset
        if self.exception:
            if offset_size != 4:
                raise DebugInfoError(
                    "FC0905", self.path, "64-bit lengths in .eh_frame", self.name, at
                )
            distance = cursor.u32()
            return None if distance == 0 else at - distance
        number = cursor.unsigned(offset_size)
        return None if number == (1 << 8 * offset_size) - 1 else number

    def addresses(self, cursor: Cursor, cie: Cie) -> tuple[Address, Address]:
        """The range of an FDE, which follows the reference to its CIE."""
        start = encoded_pointer(cursor, cie.encoding, cie.address_size, self.address)
        return start, Address(start + encoded_number(cursor, cie.encoding, cie.address_size))

    def cie(self, offset: int) -> Cie:
        """The CIE at ``offset``, read once."""
        known = self.cies.get(offset)
        if known is None:
            known = self.cies[offset] = self.read_cie(offset)
        return known

    def read_cie(self, offset: int) -> Cie:
        """The CIE at ``offset``: versions 1, 3 and 4, augmentations of letters known here."""
        cursor = self.cursor(offset)
        length, offset_size = cursor.initial_length()
        stop = cursor.offset + length
        cursor.end = stop
        if self.cie_offset(cursor, offset_size) is not None:
            raise cursor.error("an FDE where a CIE is expected", offset)
        version = cursor.u8()
        if version not in (1, 3, 4):
            raise self.unsupported(f"version {version} of a CIE", offset)
        augmentation = cursor.cstring()
        address_size = self.address_size
        if version == 4:
            address_size, segment_size = cursor.u8(), cursor.u8()
            if address_size != self.address_size or segment_size != 0:
                raise self.unsupported("addresses of another size or with segments", offset)
        code_alignment, data_alignment = cursor.uleb(), cursor.sleb()
        return_register = cursor.u8() if version == 1 else cursor.uleb()
        encoding = DW_EH_PE_absptr
        signal_frame = False
        if augmentation:
            # z: a length, so that unknown data can be left out; but an unknown letter may
            # change what the addresses or the instructions mean.
            if augmentation[:1] != b"z" or augmentation.strip(b"zRPLSB"):
                raise self.unsupported(f"CIE augmentation {ascii(augmentation)[2:-1]}", offset)
            size = cursor.uleb()
            behind = cursor.offset + size
            for letter in augmentation[1:]:
                if letter == ord("R"):
                    encoding = cursor.u8()
                elif letter == ord("L"):
                    cursor.u8()
                elif letter == ord("P"):
                    personality = cursor.u8()
                    if personality & 0x70 > 0x40:  # DW_EH_PE_aligned: padded by its address
                        raise self.unsupported(f"pointer encoding {personality:#x}", offset)
                    encoded_number(cursor, personality, address_size)
                elif letter == ord("S"):
                    signal_frame = True
            if cursor.offset > behind or behind > stop:
                raise cursor.error("CIE augmentation longer than its length says")
            cursor.offset = behind
        if encoding == DW_EH_PE_omit:
            raise cursor.error("FDE addresses are left out", offset)
        return Cie(
            code_alignment,
            data_alignment,
            DwarfRegister(return_register),
            address_size,
            encoding,
            bool(augmentation),
            signal_frame,
            (cursor.offset, stop),
        )

    def unsupported(self, what: str, offset: int) -> DebugInfoError:
        """A located FC0905 for ``raise``."""
        return DebugInfoError("FC0905", self.path, what, self.name, offset)
