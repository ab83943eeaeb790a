"""Call-frame instructions: the rules of a frame at one address.

Source: DWARF 5, sections 6.4.2 and 6.4.3; GNU instructions: binutils' ``include/dwarf2.def``.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.locations.pointers import encoded_pointer
from fetchc.program.entities import Absent, FrameRelative, Indirect, InMemory, InRegister
from fetchc.quantities import Address, ByteOffset, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.locations.evaluation import Machine
    from fetchc.debuginfo.dwarf.locations.frame_entries import Cie, Fde
    from fetchc.program.entities import Place

__all__ = ["CfaRule", "Row", "row_at"]

CfaRule = InMemory | Indirect | Absent
"""Where the CFA points: register + offset, offset from a word in memory, or not to be had."""

MAX_REGISTERS = 512
MAX_REMEMBERED = 512
MAX_BYTES = 1 << 20  # of one function's instructions, run in a second; real ones have some KB
"""Bounds for hostile programs: no machine has so many registers, no compiler nests so deep."""

DW_CFA_advance_loc = 0x40
DW_CFA_offset = 0x80
DW_CFA_restore = 0xC0
DW_CFA_set_loc = 0x01
_ADVANCES = {0x02: 1, 0x03: 2, 0x04: 4, 0x1D: 8}  # advance_loc1, 2, 4, MIPS_advance_loc8

_NO_FRAME = Absent("FC0405", "the call-frame information gives no rule for the frame address")
_UNDEFINED = Absent("FC0401", "the function does not keep the caller's value")
_COMPUTED = Absent("FC0406", "the caller's value is computed and kept in no memory")


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
        """Up to the end, or to the first row behind ``address``."""
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
        from fetchc.debuginfo.dwarf.locations.evaluation import Machine

        return Machine(self.cie.address_size, 4)


def _block(cursor: Cursor) -> Cursor:
    # A cursor on the expression that follows; the instruction's own goes behind it.
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
    from fetchc.debuginfo.dwarf.locations.expr import evaluate

    at = evaluate(_block(cursor), program.machine())
    if isinstance(at, InMemory | Indirect | Absent):
        program.cfa = at
    else:
        program.cfa = Absent("FC0405", "the frame address is computed at run time")


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
    from fetchc.debuginfo.dwarf.locations.expr import evaluate

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
