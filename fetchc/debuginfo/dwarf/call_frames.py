"""Call-frame information (CFI): finds the CFA and register rules at one address.

Source: DWARF 5, sections 6.4.2 and 6.4.3; GNU instructions: binutils' ``include/dwarf2.def``.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import Cursor, encode_number, record_layout
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, FrameRelative, Indirect, InMemory, InRegister
from fetchc.quantities import Address, ByteOffset, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from struct import Struct

    from fetchc.debuginfo.dwarf.expressions import Machine
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.elf.headers import Buffer
    from fetchc.program.entities import Place

__all__ = [
    "CfaRule",
    "Cie",
    "DW_EH_PE_absptr",
    "DW_EH_PE_omit",
    "Fde",
    "FrameSection",
    "Row",
    "cfa_at",
    "encoded_number",
    "encoded_pointer",
    "row",
    "row_at",
]

# ------------------------------------------------------------------------------
# Encoded pointers of .eh_frame and .eh_frame_hdr.
#
# Source: Linux Standard Base Core 5.0, section 10.5.1 (DW_EH_PE_*).

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


CfaRule = InMemory | Indirect | Absent
"""Where the CFA points: register + offset, offset from a word in memory, or unavailable."""

MAX_REGISTERS = 512
MAX_REMEMBERED = 512
MAX_BYTES = 1 << 20  # of one function's instructions, run in a second; real ones have some KB
"""Bounds for hostile programs: no machine has so many registers, no compiler nests so deep."""

DW_CFA_advance_loc = 0x40
DW_CFA_offset = 0x80
DW_CFA_restore = 0xC0
DW_CFA_set_loc = 0x01
_ADVANCES = {0x02: 1, 0x03: 2, 0x04: 4, 0x1D: 8}  # advance_loc1, 2, 4, MIPS_advance_loc8

_NO_FRAME = Absent("no address", "the call-frame information gives no rule for the frame address")
_UNDEFINED = Absent("no location", "the function does not keep the caller's value")
_COMPUTED = Absent("computed", "the caller's value is computed and not stored in memory")


class Row(Record):
    """The rules at one address.

    ``registers`` says where the caller's value of a register is, for those with a rule.
    """

    cfa: CfaRule
    registers: tuple[tuple[DwarfRegister, Place], ...]
    return_register: DwarfRegister
    signal_frame: bool


def row_at(
    entry: Fde, address: Address, cursor_at: Callable[[int], Cursor], section_address: Address
) -> Row:
    """The row of ``entry`` that holds at ``address``; FC0904 where the program is malformed.

    ``cursor_at`` gives a cursor on the entry's section, which is mapped at
    ``section_address``.
    """
    cie = entry.cie
    program = _Program(cie, entry.start, section_address)
    program.run(_between(cursor_at, cie.instructions), None)
    program.initial = dict(program.rules)
    program.run(_between(cursor_at, entry.instructions), address)
    registers = tuple(
        [(DwarfRegister(number), program.rules[number]) for number in sorted(program.rules)]
    )
    return Row(program.cfa, registers, cie.return_register, cie.signal_frame)


def _between(cursor_at: Callable[[int], Cursor], instructions: tuple[int, int]) -> Cursor:
    start, end = instructions
    cursor = cursor_at(start)
    if end - start > MAX_BYTES:
        raise cursor.error(f"{end - start} bytes of call-frame instructions")
    cursor.end = end
    return cursor


class _Program:
    # The state that instructions change.
    __slots__ = ("cfa", "cie", "initial", "location", "remembered", "rules", "section_address")

    def __init__(self, cie: Cie, location: Address, section_address: Address) -> None:
        self.cie = cie
        self.location: int = location
        self.section_address = section_address
        self.cfa: CfaRule = _NO_FRAME
        self.rules: dict[int, Place] = {}
        self.initial: dict[int, Place] = {}
        self.remembered: list[tuple[CfaRule, dict[int, Place]]] = []

    def run(self, cursor: Cursor, address: Address | None) -> None:
        """Up to the end, or to the first row after ``address``."""
        while not cursor.at_end():
            at = cursor.offset
            code = cursor.u8()
            advanced = self.advanced(code, cursor)
            if advanced is not None:
                if address is not None and advanced > address:
                    return
                self.location = advanced
                continue
            high, low = code & 0xC0, code & 0x3F
            if high == DW_CFA_offset:
                self.set_rule(low, self.saved(cursor.uleb()), cursor)
            elif high == DW_CFA_restore:
                self.restore(low)
            else:
                handler = _INSTRUCTIONS.get(code)
                if handler is None:
                    raise cursor.error(f"unknown call-frame instruction {code:#x}", at)
                handler(self, cursor)

    def advanced(self, code: int, cursor: Cursor) -> int | None:
        """The location after an instruction that starts a new row; None for all others."""
        if code & 0xC0 == DW_CFA_advance_loc:
            return self.location + (code & 0x3F) * self.cie.code_alignment
        if code in _ADVANCES:
            return self.location + cursor.unsigned(_ADVANCES[code]) * self.cie.code_alignment
        if code == DW_CFA_set_loc:
            cie = self.cie
            return encoded_pointer(cursor, cie.encoding, cie.address_size, self.section_address)
        return None

    def saved(self, factored: int) -> Place:
        """In the frame, ``factored`` data alignments from the CFA."""
        return FrameRelative(ByteOffset(factored * self.cie.data_alignment))

    def set_rule(self, register: int, place: Place, cursor: Cursor) -> None:
        """The caller's ``register`` is at ``place``."""
        if register not in self.rules and len(self.rules) >= MAX_REGISTERS:
            raise cursor.error(f"rules for more than {MAX_REGISTERS} registers")
        self.rules[register] = place

    def restore(self, register: int) -> None:
        """The rule of the CIE again."""
        if register in self.initial:
            self.rules[register] = self.initial[register]
        else:
            self.rules.pop(register, None)

    def based(self, cursor: Cursor) -> InMemory:
        """The CFA's register and offset, which an instruction is about to change."""
        if not isinstance(self.cfa, InMemory):
            raise cursor.error("a change to a frame address that is not register and offset")
        return self.cfa

    def machine(self) -> Machine:
        """What expressions know here: nothing of a unit (DWARF 5, section 6.4.2.2)."""
        from fetchc.debuginfo.dwarf.expressions import Machine

        return Machine(self.cie.address_size, 4)


def _block(cursor: Cursor) -> Cursor:
    # A cursor on the expression that follows; the instruction's own goes after it.
    size = cursor.uleb()
    start = cursor.offset
    cursor.skip(size)
    return Cursor(cursor.path, cursor.section, cursor.data, start, start + size, cursor.little)


def _def_cfa(program: _Program, cursor: Cursor) -> None:
    program.cfa = InMemory(DwarfRegister(cursor.uleb()), ByteOffset(cursor.uleb()))


def _def_cfa_sf(program: _Program, cursor: Cursor) -> None:
    register = DwarfRegister(cursor.uleb())
    program.cfa = InMemory(register, ByteOffset(cursor.sleb() * program.cie.data_alignment))


def _def_cfa_register(program: _Program, cursor: Cursor) -> None:
    register = DwarfRegister(cursor.uleb())
    if program.cfa is _NO_FRAME:
        # Binutils write it so for RISC-V, where the offset is 0 at first: gas, tc-riscv.c.
        program.cfa = InMemory(register, ByteOffset(0))
        return
    program.cfa = InMemory(register, program.based(cursor).offset)


def _def_cfa_offset(program: _Program, cursor: Cursor) -> None:
    offset = ByteOffset(cursor.uleb())
    program.cfa = InMemory(program.based(cursor).register, offset)


def _def_cfa_offset_sf(program: _Program, cursor: Cursor) -> None:
    offset = ByteOffset(cursor.sleb() * program.cie.data_alignment)
    program.cfa = InMemory(program.based(cursor).register, offset)


def _def_cfa_expression(program: _Program, cursor: Cursor) -> None:
    from fetchc.debuginfo.dwarf.expressions import evaluate

    at = evaluate(_block(cursor), program.machine())
    if isinstance(at, InMemory | Indirect | Absent):
        program.cfa = at
    else:
        program.cfa = Absent("no address", "the frame address is computed at run time")


def _remember_state(program: _Program, cursor: Cursor) -> None:
    if len(program.remembered) >= MAX_REMEMBERED:
        raise cursor.error(f"more than {MAX_REMEMBERED} remembered states")
    program.remembered.append((program.cfa, dict(program.rules)))


def _restore_state(program: _Program, cursor: Cursor) -> None:
    if not program.remembered:
        raise cursor.error("a state is restored that was not remembered")
    program.cfa, program.rules = program.remembered.pop()


def _offset_extended(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    program.set_rule(register, program.saved(cursor.uleb()), cursor)


def _offset_extended_sf(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    program.set_rule(register, program.saved(cursor.sleb()), cursor)


def _negative_offset_extended(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    program.set_rule(register, program.saved(-cursor.uleb()), cursor)


def _restore_extended(program: _Program, cursor: Cursor) -> None:
    program.restore(cursor.uleb())


def _undefined(program: _Program, cursor: Cursor) -> None:
    program.set_rule(cursor.uleb(), _UNDEFINED, cursor)


def _same_value(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    program.set_rule(register, InRegister(DwarfRegister(register)), cursor)


def _register(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    program.set_rule(register, InRegister(DwarfRegister(cursor.uleb())), cursor)


def _val_offset(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    cursor.uleb()
    program.set_rule(register, _COMPUTED, cursor)


def _val_offset_sf(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    cursor.sleb()
    program.set_rule(register, _COMPUTED, cursor)


def _expression(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    cfa = FrameRelative(ByteOffset(0))
    from fetchc.debuginfo.dwarf.expressions import evaluate

    program.set_rule(register, evaluate(_block(cursor), program.machine(), cfa), cursor)


def _val_expression(program: _Program, cursor: Cursor) -> None:
    register = cursor.uleb()
    _block(cursor)
    program.set_rule(register, _COMPUTED, cursor)


def _nothing(program: _Program, cursor: Cursor) -> None:
    pass


def _ignored_number(program: _Program, cursor: Cursor) -> None:
    cursor.uleb()


_INSTRUCTIONS: dict[int, Callable[[_Program, Cursor], None]] = {
    0x00: _nothing,  # nop
    0x05: _offset_extended,
    0x06: _restore_extended,
    0x07: _undefined,
    0x08: _same_value,
    0x09: _register,
    0x0A: _remember_state,
    0x0B: _restore_state,
    0x0C: _def_cfa,
    0x0D: _def_cfa_register,
    0x0E: _def_cfa_offset,
    0x0F: _def_cfa_expression,
    0x10: _expression,
    0x11: _offset_extended_sf,
    0x12: _def_cfa_sf,
    0x13: _def_cfa_offset_sf,
    0x14: _val_offset,
    0x15: _val_offset_sf,
    0x16: _val_expression,
    0x2D: _nothing,  # GNU_window_save, AARCH64_negate_ra_state: neither changes the CFA
    0x2E: _ignored_number,  # GNU_args_size: for exception handling only
    0x2F: _negative_offset_extended,  # GNU_negative_offset_extended
}
"""DW_CFA_* without those that advance the location or have an operand in their code."""


# ------------------------------------------------------------------------------
# Entries of call-frame information, CIEs and FDEs, as .eh_frame and .debug_frame have them.
#
# Source: DWARF 5, section 6.4.1; Linux Standard Base Core 5.0, section 10.6.


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
        """Where the CIE of the entry is; None for a CIE. The cursor is after the length."""
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
        cie = self.cies.get(offset)
        if cie is None:
            cie = self.cies[offset] = self.read_cie(offset)
        return cie

    def read_cie(self, offset: int) -> Cie:
        """The CIE at ``offset``: version 1, 3 or 4, with supported augmentation letters."""
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


# ------------------------------------------------------------------------------
# Call-frame information: the entry of an address, and where its frame is.
#
# .eh_frame is asked first, by the sorted table of .eh_frame_hdr or, without one, entry by entry;
# then .debug_frame, the only one of pure Go programs. Nothing is cached between requests.
#
# Source: DWARF 5, section 6.4.1; Linux Standard Base Core 5.0, section 10.6.

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
        return Absent("no location", f"the file has no call-frame information for {address:#x}")
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
            continue  # the terminator of one object file; the linker may put more after
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
    return record_layout(frames.little, "IIQQ" if frames.address_size == 8 else "IIII")


def _by_bytes(frames: FrameSection, address: Address, function: Address) -> int | None:
    # Offset of the FDE that starts at ``function`` and has ``address``, in .debug_frame. The bytes
    # of the address are searched; the bytes around a hit must be a whole FDE of 32-bit DWARF
    # that names a CIE. None leaves the answer to _by_entries.
    entry = _plain_entry(frames)
    data = bytes(frames.data)
    needle = encode_number(function, frames.address_size, frames.little)
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
    pair = record_layout(elf.little_endian, "ii")
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
