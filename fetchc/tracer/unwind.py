"""Walks a copy of a thread's stack without frame pointers: registers, bytes and rules to callers.

Nothing here reads a file or a process: whatever took the copy, the result is the same. A rule is a
row of call-frame information (:class:`~fetchc.debuginfo.dwarf.call_frames.Row`), by whichever table
of its file it was found.

Source: DWARF 5, section 6.4 (what a row says of the caller's registers).
"""

from __future__ import annotations

import struct

from fetchc.debuginfo.dwarf.call_frames import Row
from fetchc.program.entities import Absent, FrameRelative, Indirect, InMemory, InRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from fetchc.program.entities import Place

    RuleAt = Callable[[int, bool], "Rule | str"]

__all__ = ["MOST_FRAMES", "MOST_STACK_BYTES", "STACK_BYTES", "Rule", "StackCopy", "unwound"]

MOST_FRAMES = 1024
"""Of one stack; what is above them is left out with a mark."""

STACK_BYTES = 16384
"""Of a copy, where nobody says how many."""

MOST_STACK_BYTES = 63 * 1024
"""Of a copy: a record of perf has less than 64 KiB, and the event's values are in it, too."""

_WORDS = {
    4: (struct.Struct("<I").unpack_from, (1 << 32) - 1),
    8: (struct.Struct("<Q").unpack_from, (1 << 64) - 1),
}
_DEPTH = 4  # of places that lead to places: compilers write one


class StackCopy:
    """Registers of a thread, by DWARF number, and the bytes from its stack pointer up.

    ``wanted`` is the number of bytes that was asked for: with less of them, the stack's memory ends
    there, or its next page was not touched yet, as in a big frame. ``process`` is the thread's
    process, ``time`` that of the trace in nanoseconds. ``abi`` says which machine the program is
    of, as a sample of perf does.
    """

    __slots__ = (
        "abi", "memory", "process", "registers", "stack_pointer", "time", "wanted", "word_bytes",
    )  # fmt: skip

    def __init__(
        self,
        process: int,
        time: int,
        abi: int,
        word_bytes: int,
        registers: Mapping[int, int],
        stack_pointer: int,
        memory: bytes,
        wanted: int,
    ) -> None:
        self.process = process
        self.time = time
        self.abi = abi
        self.word_bytes = word_bytes
        self.registers = registers
        self.stack_pointer = stack_pointer
        self.memory = memory
        self.wanted = wanted


class _Ended(Exception):
    """The walk ends here; the text says why."""


class Rule:
    """A row, arranged for the walk. ``guessed``: it holds where the caller turns out to be code.

    What is no row, or one with other contents than it should have, is a ValueError: rows come from
    a process that read a stranger's file.
    """

    __slots__ = (
        "cfa", "guessed", "lost", "offsets", "outermost", "return_register", "saved", "signal",
    )  # fmt: skip

    def __init__(self, row: object, guessed: bool = False) -> None:
        if not isinstance(row, Row) or not isinstance(row.registers, tuple):
            raise ValueError("no row of call-frame information")
        self.cfa = _checked(row.cfa)
        self.guessed = guessed
        self.signal = row.signal_frame is True
        self.return_register = int(row.return_register)
        saved: list[tuple[int, Place]] = []
        lost: list[int] = []
        self.outermost = False
        for register, place in row.registers:
            if not isinstance(register, int):
                raise ValueError("no number of a register")
            if not isinstance(place, Absent):
                saved.append((register, _checked(place)))
                continue
            lost.append(register)
            if register == self.return_register and place.kind == "no location":
                self.outermost = True
        self.saved = tuple(saved)
        self.lost = tuple(lost)
        # Of nearly all rules: each is that many bytes from the CFA.
        self.offsets: tuple[tuple[int, int], ...] | None = None
        plain = [(register, place.offset) for register, place in saved
                 if isinstance(place, FrameRelative)]  # fmt: skip
        stored = self.return_register in dict(plain)
        if isinstance(self.cfa, InMemory) and len(plain) == len(saved) and stored and not lost:
            self.offsets = tuple(plain)


def _checked(place: object, depth: int = 0) -> Place:
    match place:
        case InMemory(register=int(), offset=int()) | FrameRelative(offset=int()):
            return place
        case InRegister(register=int()):
            return place
        case Indirect(pointer=pointer, offset=int()) if depth < _DEPTH:
            _checked(pointer, depth + 1)
            return place
        case Absent():
            return place
        case _:
            raise ValueError("a place that call-frame information does not have")


def unwound(
    copy: StackCopy, rule_at: RuleAt, stack_pointer: int, program_counter: int, is_call: bool
) -> tuple[list[tuple[int, bool]], str | None]:
    """The addresses of the frames, innermost first, and why there is not a frame more.

    Each comes with whether it is a return address, which is after the call it stands for. The
    second is None where the outermost function of the thread was reached. ``rule_at(address,
    is_call)`` has the rule of a frame or, in words, why there is none. ``stack_pointer`` is the
    DWARF number of that register; ``program_counter`` the innermost address, which ``is_call``
    says the same of.
    """
    registers = dict(copy.registers)
    frames = [(program_counter, is_call)]
    address = program_counter
    guessed = False
    while True:
        rule = rule_at(address, is_call)
        if isinstance(rule, str):
            if guessed:  # the caller that a frame pointer led to is no code
                frames.pop()
                return frames, "no unwind information"
            return frames, rule
        if rule.outermost:
            return frames, None
        try:
            caller, inner = _caller(copy, rule, registers, stack_pointer)
        except _Ended as ended:
            return frames, str(ended)
        outer = caller[stack_pointer]
        if outer <= inner and not rule.signal:
            return frames, "the stack does not go on upwards"
        address = caller[rule.return_register]
        if not address:
            return frames, None  # how the first frame of a thread is marked, where nothing else is
        if len(frames) == MOST_FRAMES:
            return frames, f"more than {MOST_FRAMES} frames"
        registers, guessed = caller, rule.guessed
        is_call = not rule.signal
        frames.append((address, is_call))


def _caller(
    copy: StackCopy, rule: Rule, registers: dict[int, int], stack_pointer: int
) -> tuple[dict[int, int], int]:
    # The caller's registers, and the stack pointer before.
    memory = _Memory(copy)
    cfa_rule = rule.cfa
    if rule.offsets is not None and isinstance(cfa_rule, InMemory):
        return _plain_caller(memory, rule.offsets, cfa_rule, rule, registers, stack_pointer)
    if isinstance(cfa_rule, Absent):
        _end(f"the frame's address is not known: {cfa_rule.reason}")
    cfa = _address(cfa_rule, registers, 0, memory)
    caller = dict(registers)
    for register in rule.lost:
        caller.pop(register, None)
    caller[stack_pointer] = cfa
    found = False
    for register, place in rule.saved:
        if isinstance(place, InRegister):
            value = registers.get(place.register)
            if value is None:
                caller.pop(register, None)
                continue
        elif register == rule.return_register:
            value = memory.word(_address(place, registers, cfa, memory))
        else:
            try:
                value = memory.word(_address(place, registers, cfa, memory))
            except _Ended:  # which only matters to frames that need the register
                caller.pop(register, None)
                continue
        caller[register] = value
        found |= register == rule.return_register
    if not found:
        _end("the return address is not stored")
    return caller, registers.get(stack_pointer, 0)


def _plain_caller(
    memory: _Memory,
    offsets: tuple[tuple[int, int], ...],
    cfa_rule: InMemory,
    rule: Rule,
    registers: dict[int, int],
    stack_pointer: int,
) -> tuple[dict[int, int], int]:
    # The same at a third of the cost.
    base = registers.get(cfa_rule.register)
    if base is None:
        _end(f"the caller's value of register {cfa_rule.register} is not known")
    cfa = (base + cfa_rule.offset) & memory.mask
    caller = dict(registers)
    caller[stack_pointer] = cfa
    start, last, unpack, data = cfa - memory.start, memory.last, memory.unpack, memory.data
    for register, offset in offsets:
        at = start + offset
        if 0 <= at <= last:
            (caller[register],) = unpack(data, at)
        elif register == rule.return_register:
            memory.word(cfa + offset)  # which says why it cannot be read
        else:
            del caller[register]
    return caller, registers[stack_pointer]


def _address(place: Place, registers: Mapping[int, int], cfa: int, memory: _Memory) -> int:
    match place:
        case FrameRelative(offset=offset):
            return (cfa + offset) & memory.mask
        case InMemory(register=register, offset=offset):
            value = registers.get(register)
            if value is None:
                _end(f"the caller's value of register {register} is not known")
            return (value + offset) & memory.mask
        case Indirect(pointer=pointer, offset=offset):
            return (memory.word(_address(pointer, registers, cfa, memory)) + offset) & memory.mask
        case _:
            _end("the frame's address is not known")


def _end(why: str) -> NoReturn:
    raise _Ended(why)


class _Memory:
    """Words of the copy."""

    __slots__ = ("_wanted", "data", "last", "mask", "start", "unpack")

    def __init__(self, copy: StackCopy) -> None:
        self._wanted = copy.wanted
        self.data = copy.memory
        self.start = copy.stack_pointer
        self.last = len(copy.memory) - copy.word_bytes
        self.unpack, self.mask = _WORDS[copy.word_bytes]

    def word(self, address: int) -> int:
        """The word at ``address``; _Ended where it was not copied."""
        at = address - self.start
        if 0 <= at <= self.last:
            (word,) = self.unpack(self.data, at)
            return int(word)
        size = len(self.data)
        if at < 0:
            _end("a frame below the stack pointer")
        if size < self._wanted:
            _end(f"the kernel could copy only {size} bytes of the stack")
        _end(f"stack copy ended after {size} bytes")
