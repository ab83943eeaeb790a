"""Unwinding: the frames around a probed instruction, in terms of the registers that are there.

What a caller's register holds is where the unwind tables of all frames within it say; memory of
other frames may have changed since, so that what lies there is nowhere.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.call_frames import cfa_at
from fetchc.debuginfo.dwarf.symbolic_values import moved, pointer_to
from fetchc.program.entities import (
    Absent,
    Arithmetic,
    AtAddress,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    OnEntry,
    Pieces,
    PointerTo,
    is_on_entry,
)
from fetchc.quantities import ByteOffset, DwarfRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.call_frames import Row
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Function, Place
    from fetchc.quantities import Address
    from fetchc.target.machines import CallRules

__all__ = ["Frame", "entered_with", "is_own_frame_base", "outer_frame", "outermost"]

_LOST = Absent("computed", "the register is not kept")


class Frame:
    """One frame: its unwind rules, and where its CFA is in terms of the probed one's registers."""

    __slots__ = ("_callee", "_calls", "_rules", "cfa")

    def __init__(self, rules: Row, calls: CallRules, callee: Frame | None) -> None:
        self._rules = rules
        self._calls = calls
        self._callee = callee
        rule = rules.cfa
        self.cfa: Place = rule
        if callee is not None:
            self.cfa = _LOST
            if isinstance(rule, InMemory):
                self.cfa = _at(self.register_value(rule.register), rule.offset)

    def return_address(self) -> Place:
        """Where the address is that the function returns to."""
        return self._saved(self._rules.return_register)

    def register_value(self, register: DwarfRegister) -> Place:
        """The place of the register's value in this frame (for a caller: its value at the call)."""
        return (
            InRegister(register) if self._callee is None else self._callee.caller_register(register)
        )

    def caller_register(self, register: DwarfRegister) -> Place:
        """The place of the value that the caller's register had at the call."""
        if register == self._calls.stack_pointer:
            return _value(self.cfa, 0)  # as it was before the call pushed
        rules = dict(self._rules.registers)
        if register in rules or register in self._calls.preserved:
            return self._saved(register)
        return _LOST

    def _saved(self, register: DwarfRegister) -> Place:
        match dict(self._rules.registers).get(register):
            case None:
                return self.register_value(register)
            case InRegister(register=other):
                return self.register_value(other)
            case FrameRelative(offset=offset):
                return moved(self.cfa, offset)
            case _:
                return _LOST

    def place(self, value: Place) -> Place:
        """``value``, of what holds at the call in this frame, for the probed instruction."""
        match value:
            case Constant() | OnEntry() | PointerTo(target=AtAddress()):
                return value
            case InRegister(register=register):
                return self.register_value(register)
            case PointerTo(target=InMemory(register=register, offset=start), offset=offset):
                return _value(_at(self.register_value(register), start), offset)
            case PointerTo(target=FrameRelative(offset=start), offset=offset):
                return _value(self.cfa, start + offset)
            case PointerTo(target=Indirect(pointer=OnEntry())) if is_on_entry(value):
                return value
            case _:
                return _LOST


def outermost(rules: Row, calls: CallRules) -> Frame:
    """The frame of the probed function."""
    return Frame(rules, calls, None)


def outer_frame(callee: Frame, rules: Row) -> Frame:
    """The frame of its caller, whose ``rules`` hold at the call."""
    return Frame(rules, callee._calls, callee)


def _at(value: Place, offset: int) -> Place:
    # The memory that starts ``offset`` bytes from the address ``value``.
    match value:
        case InRegister(register=register):
            return InMemory(register, ByteOffset(offset))
        case InMemory() | Indirect():
            return Indirect(value, ByteOffset(offset))
        case PointerTo(target=target, offset=start):
            return moved(target, start + offset)
        case _:
            return _LOST


def _value(memory: Place, offset: int) -> Place:
    # The address ``offset`` bytes into ``memory``.
    match moved(memory, offset):
        case Indirect(pointer=pointer, offset=0):
            return pointer
        case other:
            return pointer_to(other, ByteOffset(0))


def entered_with(at: Place, values: dict[DwarfRegister, Place]) -> Place | None:
    """``at`` where ``values`` are the registers' values on entry; None where one is missing."""
    match at:
        case OnEntry(register=register):
            return values.get(register)
        case Indirect(pointer=pointer, offset=offset):
            inner = entered_with(pointer, values)
            if isinstance(inner, OnEntry):
                return Indirect(inner, offset)
            memory = _LOST if inner is None else _at(inner, offset)
            return None if isinstance(memory, Absent) else memory
        case PointerTo(target=Indirect(pointer=OnEntry(register=register), offset=start)) if (
            isinstance(value := values.get(register), Constant)
        ):
            return Constant((value.value + start + at.offset) % (1 << 64))
        case PointerTo(target=target, offset=offset):
            inner = entered_with(target, values)
            return None if inner is None else _value(inner, offset)
        case Pieces() | Arithmetic():
            return None
        case _:
            return at


# ------------------------------------------------------------------------------
# Whether the frame is set up at an address, as a function's debug information assumes.


def is_own_frame_base(
    elf: Elf,
    base: Place | None,
    body_address: Callable[[], Address],
    function: Function,
    address: Address,
) -> bool:
    """Whether ``base``, what DW_AT_frame_base describes, is the function's own at ``address``.

    A base that is a register (LLVM's) is the caller's before the body of the function, and
    again where the frame is taken down: there the call-frame information has another rule than in
    the body. Where it has none, the body's beginning counts. Where the body begins is read out of
    the whole line table: only bases that are registers have it asked for.
    """
    if base is None or isinstance(base, FrameRelative):
        return True
    start, body = function.address, body_address()
    if start <= address < body:
        return False
    rule = cfa_at(elf, body, start)
    return isinstance(rule, Absent) or cfa_at(elf, address, start) == rule
