"""Registers of a caller, in terms of the probed instruction."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.dwarf.call_frames import Row
from fetchc.debuginfo.dwarf.enclosing_frames import Frame, entered_with, outer_frame, outermost
from fetchc.program.entities import (
    Absent,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    OnEntry,
    Place,
    PointerTo,
)
from fetchc.quantities import ByteOffset, DwarfRegister
from fetchc.target.machines import CallRules

BX, BP, DI, SP, R12, RETURN = map(DwarfRegister, (3, 6, 5, 7, 12, 16))
RULES = CallRules(b"\xe8", (), frozenset({BX, BP, R12}), SP)


def memory(register: int, offset: int) -> InMemory:
    return InMemory(DwarfRegister(register), ByteOffset(offset))


def frame(offset: int) -> FrameRelative:
    return FrameRelative(ByteOffset(offset))


def pointer_to(target: Place) -> PointerTo:
    return PointerTo(target, ByteOffset(0))


def row(cfa: InMemory, **saved: int) -> Row:
    numbers = {"bx": BX, "bp": BP, "r12": R12}
    rules = [(numbers[name], frame(offset)) for name, offset in saved.items()]
    return Row(cfa, (*rules, (RETURN, frame(-8))), RETURN, False)


@pytest.fixture(name="callee")
def callee_() -> Frame:
    # push rbx; sub $16,%rsp: the CFA is 32 above the stack pointer.
    return outermost(row(memory(SP, 32), bx=-16), RULES)


def test_a_register_is_where_the_callee_saved_it_or_still_there(callee: Frame) -> None:
    assert callee.return_address() == memory(SP, 24)
    assert callee.caller_register(BX) == memory(SP, 16)
    assert callee.caller_register(R12) == InRegister(R12)
    assert callee.caller_register(SP) == pointer_to(memory(SP, 32))
    assert isinstance(callee.caller_register(DI), Absent)  # the callee may have used it


def test_what_a_caller_passes(callee: Frame) -> None:
    caller = outer_frame(callee, row(memory(SP, 48)))
    assert caller.place(InRegister(BX)) == memory(SP, 16)
    assert caller.place(pointer_to(memory(BX, 8))) == pointer_to(
        Indirect(memory(SP, 16), ByteOffset(8))
    )
    assert caller.place(pointer_to(memory(R12, 8))) == pointer_to(memory(R12, 8))
    assert caller.place(pointer_to(memory(SP, 4))) == pointer_to(memory(SP, 36))
    assert caller.place(pointer_to(frame(-20))) == pointer_to(memory(SP, 60))
    assert caller.return_address() == memory(SP, 72)
    # Its memory may have changed since, and is no place of what was passed.
    assert isinstance(caller.place(memory(SP, 4)), Absent)
    assert isinstance(caller.place(InRegister(DI)), Absent)


def test_a_frame_by_the_frame_pointer(callee: Frame) -> None:
    caller = outer_frame(callee, row(memory(BP, 16), bp=-16))
    assert caller.return_address() == memory(BP, 8)  # the callee left rbp alone
    assert caller.caller_register(BP) == memory(BP, 0)
    assert caller.caller_register(BX) == memory(SP, 16)


def test_a_place_of_the_entry_is_filled_in() -> None:
    held = OnEntry(DI)
    pointed = Indirect(held, ByteOffset(8))
    values: dict[DwarfRegister, Place] = {DI: pointer_to(memory(SP, 40))}
    assert entered_with(held, values) == pointer_to(memory(SP, 40))
    assert entered_with(pointed, values) == memory(SP, 48)
    assert entered_with(held, {}) is None
    assert entered_with(pointed, {DI: Constant(0)}) is None
    assert entered_with(pointer_to(pointed), {DI: Constant(-9)}) == Constant((1 << 64) - 1)
    assert entered_with(pointed, {DI: held}) == pointed
