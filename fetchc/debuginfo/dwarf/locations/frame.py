"""Call-frame information: the entry of an address, and where its frame is.

.eh_frame is asked first, by the sorted table of .eh_frame_hdr or, without one, entry by
entry; then .debug_frame, the only one of pure Go programs. Nothing is kept between questions.

Source: DWARF 5, section 6.4.1; Linux Standard Base Core 5.0, section 10.6.
"""

from __future__ import annotations

from struct import Struct

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.locations.cfi import row_at
from fetchc.debuginfo.dwarf.locations.frame_entries import FrameSection
from fetchc.debuginfo.dwarf.locations.pointers import (
    DW_EH_PE_absptr,
    DW_EH_PE_omit,
    encoded_pointer,
)
from fetchc.program.entities import Absent
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.locations.cfi import CfaRule, Row
    from fetchc.debuginfo.dwarf.locations.frame_entries import Fde
    from fetchc.debuginfo.elf.elf_file import Elf

__all__ = ["cfa_at", "row"]

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
        entry = _entry_at(frames, elf, address, function)
        if entry is not None:
            return row_at(entry, address, frames.cursor, frames.address)
    return None


def _all_frames(elf: Elf) -> Iterator[FrameSection]:
    for name in (".eh_frame", ".debug_frame"):
        data = elf.section(name)
        if data is not None:
            yield FrameSection(elf, name, data)


def _entry_at(
    frames: FrameSection, elf: Elf, address: Address, function: Address | None
) -> Fde | None:
    # The entry whose range has ``address``.
    if frames.exception:
        offset = _by_header(elf, address, frames.address)
        if offset is not None:
            entry = frames.fde(offset) if offset >= 0 else None
            return entry if entry is not None and _covers(entry, address) else None
        return _by_entries(frames, address)
    offset = None if function is None else _by_bytes(frames, address, function)
    return _by_entries(frames, address) if offset is None else frames.fde(offset)


def _by_entries(frames: FrameSection, address: Address) -> Fde | None:
    # Entry by entry, each only as far as its addresses.
    found, offset = (None, 0) if frames.exception else _by_plain_entries(frames, address)
    while found is None and offset < len(frames.data):
        start = offset
        cursor = frames.cursor(start)
        length, offset_size = cursor.initial_length()
        offset = cursor.offset + length
        if length == 0:
            continue  # the terminator of one object file; the linker may put more behind
        cie_offset = frames.cie_offset(cursor, offset_size)
        if cie_offset is not None:
            low, high = frames.addresses(cursor, frames.cie(cie_offset))
            if low <= address < high and (low or frames.from_zero):
                found = start
    return None if found is None else frames.fde(found)


def _by_plain_entries(frames: FrameSection, address: Address) -> tuple[int | None, int]:
    # The same at a fifth of the cost for 32-bit DWARF with plain addresses, all of Go's: offset of
    # the entry found, and where it stopped because of another kind of entry.
    size = len(frames.data)
    entry = _plain_entry(frames)
    unpack, step = entry.unpack_from, entry.size
    plain: set[int] = set()
    offset = 0
    while offset <= size - step:
        length, cie, start, count = unpack(frames.data, offset)
        if length > size - offset - 4:
            break
        if cie != _PLAIN_CIE_ID:
            if cie not in plain:
                if frames.cie(cie).encoding != DW_EH_PE_absptr:
                    break
                plain.add(cie)
            if start <= address < start + count and (start or frames.from_zero):
                return offset, offset
        offset += 4 + length
    return None, offset


def _plain_entry(frames: FrameSection) -> Struct:
    # Length, CIE, address and size of code: how an FDE of 32-bit DWARF starts.
    return Struct(
        ("<" if frames.little else ">") + ("IIQQ" if frames.address_size == 8 else "IIII")
    )


def _by_bytes(frames: FrameSection, address: Address, function: Address) -> int | None:
    # Offset of the FDE that starts at ``function`` and has ``address``, in .debug_frame. The bytes
    # of the address are searched; what stands around a hit must be a whole FDE of 32-bit DWARF
    # that names a CIE. None leaves the answer to _by_entries.
    entry = _plain_entry(frames)
    data = bytes(frames.data)
    needle = function.to_bytes(frames.address_size, "little" if frames.little else "big")
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
