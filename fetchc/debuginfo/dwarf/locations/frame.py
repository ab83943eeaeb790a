"""Call-frame information: the entry of an address, and where its frame is.

.eh_frame is asked first, by the sorted table of .eh_frame_hdr or, without one, entry by
entry; then .debug_frame, the only one of pure Go programs. Nothing is kept between questions.

Source: DWARF 5, section 6.4.1; Linux Standard Base Core 5.0, section 10.6.
"""

from __future__ import annotations

from struct import Struct

from fetchc.debuginfo.dwarf.entries.cursor import Cursor
from fetchc.debuginfo.dwarf.locations.cfi import Cie, Fde, row_at
from fetchc.debuginfo.dwarf.locations.pointers import (
    DW_EH_PE_absptr,
    DW_EH_PE_omit,
    encoded_number,
    encoded_pointer,
)
from fetchc.diag.errors import DebugInfoError
from fetchc.program.places import Absent
from fetchc.units import Address, DwarfRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.locations.cfi import CfaRule, Row
    from fetchc.debuginfo.elf.file import Elf
    from fetchc.debuginfo.elf.sections import Buffer

__all__ = ["cfa_at", "entry_at", "row"]

TABLE_ENCODING = 0x3B
"""DW_EH_PE_datarel | sdata4: the one that linkers write and that has a fixed size."""

_PLAIN_CIE_ID = 0xFFFFFFFF  # of 32-bit DWARF in .debug_frame


def cfa_at(elf: Elf, address: Address, function: Address | None = None) -> CfaRule:
    """Where the canonical frame address points when the program is at ``address``.

    ``function``, the first address of the function around it, makes the search in
    .debug_frame a search for bytes. Absent where nothing covers the address; raises
    DebugInfoError FC0904 or FC0905 where the information is malformed or of a kind that
    is not read.
    """
    found = row(elf, address, function)
    if found is None:
        return Absent("FC0401", f"the file has no call-frame information for {address:#x}")
    return found.cfa


def row(elf: Elf, address: Address, function: Address | None = None) -> Row | None:
    """The rules for the CFA and the caller's registers at ``address``; as :func:`cfa_at`."""
    for frames in _all_frames(elf):
        entry = frames.entry_at(elf, address, function)
        if entry is not None:
            return row_at(entry, address, frames.cursor, frames.address)
    return None


def entry_at(elf: Elf, address: Address, function: Address | None = None) -> Fde | None:
    """The entry whose range has ``address``, of the first section that has one."""
    for frames in _all_frames(elf):
        entry = frames.entry_at(elf, address, function)
        if entry is not None:
            return entry
    return None


def _all_frames(elf: Elf) -> Iterator[_Frames]:
    for name in (".eh_frame", ".debug_frame"):
        data = elf.section(name)
        if data is not None:
            yield _Frames(elf, name, data)


class _Frames:
    # One section of CIEs and FDEs. ``cies`` are those read for the question at hand.
    # ``from_zero``: whether code can be at address 0, which else is of what the linker left out.
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

    def entry_at(self, elf: Elf, address: Address, function: Address | None) -> Fde | None:
        """The FDE whose range has ``address``."""
        if self.exception:
            offset = _by_header(elf, address, self.address)
            if offset is not None:
                entry = self.fde(offset) if offset >= 0 else None
                return entry if entry is not None and _covers(entry, address) else None
            return self.by_entries(address)
        offset = None if function is None else self.by_bytes(address, function)
        return self.by_entries(address) if offset is None else self.fde(offset)

    def by_entries(self, address: Address) -> Fde | None:
        """Entry by entry, each only as far as its addresses."""
        found, offset = (None, 0) if self.exception else self.by_plain_entries(address)
        while found is None and offset < len(self.data):
            start = offset
            cursor = self.cursor(start)
            length, offset_size = cursor.initial_length()
            offset = cursor.offset + length
            if length == 0:
                continue  # the terminator of one object file; the linker may put more behind
            cie_offset = self.cie_offset(cursor, offset_size)
            if cie_offset is not None:
                low, high = self.addresses(cursor, self.cie(cie_offset))
                if low <= address < high and (low or self.from_zero):
                    found = start
        return None if found is None else self.fde(found)

    def by_plain_entries(self, address: Address) -> tuple[int | None, int]:
        """The same at a fifth of the cost for 32-bit DWARF with plain addresses, all of Go's.

        Offset of the entry found, and where it stopped because of another kind of entry.
        """
        size = len(self.data)
        entry = self.plain_entry()
        unpack, step = entry.unpack_from, entry.size
        plain: set[int] = set()
        offset = 0
        while offset <= size - step:
            length, cie, start, count = unpack(self.data, offset)
            if length > size - offset - 4:
                break
            if cie != _PLAIN_CIE_ID:
                if cie not in plain:
                    if self.cie(cie).encoding != DW_EH_PE_absptr:
                        break
                    plain.add(cie)
                if start <= address < start + count and (start or self.from_zero):
                    return offset, offset
            offset += 4 + length
        return None, offset

    def plain_entry(self) -> Struct:
        """Length, CIE, address and size of code: how an FDE of 32-bit DWARF starts."""
        return Struct(
            ("<" if self.little else ">") + ("IIQQ" if self.address_size == 8 else "IIII")
        )

    def by_bytes(self, address: Address, function: Address) -> int | None:
        """Offset of the FDE that starts at ``function`` and has ``address``, in .debug_frame.

        The bytes of the address are searched; what stands around a hit must be a whole FDE
        of 32-bit DWARF that names a CIE. None leaves the answer to :meth:`by_entries`.
        """
        entry = self.plain_entry()
        data = bytes(self.data)
        needle = function.to_bytes(self.address_size, "little" if self.little else "big")
        at = data.find(needle)
        while at >= 0:
            offset = at - 8
            if 0 <= offset <= len(data) - entry.size:
                length, cie, start, size = entry.unpack_from(data, offset)
                whole = entry.size - 4 <= length <= len(data) - offset - 4
                names_cie = cie < offset and data[cie + 4 : cie + 8] == b"\xff\xff\xff\xff"
                if whole and names_cie and start <= address < start + size:
                    return offset
            at = data.find(needle, at + 1)
        return None

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


def _covers(entry: Fde, address: Address) -> bool:
    return entry.start <= address < entry.end


def _by_header(elf: Elf, address: Address, frames_address: Address) -> int | None:
    # Offset in .eh_frame of the last FDE that starts at or below ``address``, by the table of
    # .eh_frame_hdr. -1 where all start above it; None without a table that can be searched.
    name = ".eh_frame_hdr"
    data = elf.section(name)
    base = elf.section_address(name)
    if data is None or base is None:
        return None
    cursor = Cursor(elf.path, name, data, 0, None, elf.little_endian)
    version, frame_encoding = cursor.u8(), cursor.u8()
    count_encoding, table_encoding = cursor.u8(), cursor.u8()
    if version != 1 or table_encoding != TABLE_ENCODING or count_encoding == DW_EH_PE_omit:
        return None
    word = elf.word_bytes
    encoded_pointer(cursor, frame_encoding, word, base, base)
    count = encoded_pointer(cursor, count_encoding, word, base, base)
    if count > cursor.remaining() // 8:
        raise cursor.error(f"a table of {count} entries runs past the end of the section")
    pair = Struct("<ii" if elf.little_endian else ">ii")
    table = cursor.offset
    low, high = 0, int(count)
    while low < high:
        middle = (low + high) // 2
        if base + pair.unpack_from(data, table + 8 * middle)[0] <= address:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return -1
    entry = base + pair.unpack_from(data, table + 8 * (low - 1))[1]
    return int(entry - frames_address)
