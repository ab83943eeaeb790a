"""An assembler of eBPF instructions, with labels.

Source: RFC 9669. An instruction is 8 bytes: operation, registers (destination in the low half),
offset of 16 bits, immediate of 32 bits, which is sign-extended. A number of 64 bits takes two.
"""

from __future__ import annotations

import struct

from fetchc.emit.bpf_layout import TooLarge
from fetchc.record import Record

__all__ = [
    "CONTEXT",
    "FRAME",
    "R0",
    "R1",
    "R2",
    "R3",
    "R4",
    "R5",
    "R7",
    "R8",
    "R9",
    "Assembler",
    "Instruction",
]

R0, R1, R2, R3, R4, R5, CONTEXT, R7, R8, R9, FRAME = range(11)
"""R0 is what a call returns, R1 to R5 are its arguments and lost by it; the others are kept."""

_SIZES = {1: 0x10, 2: 0x08, 4: 0x00, 8: 0x18}  # BPF_B, BPF_H, BPF_W, BPF_DW
_LOAD, _STORE_CONSTANT, _STORE = 0x61, 0x62, 0x63  # BPF_MEM of BPF_LDX, BPF_ST, BPF_STX
_ATOMIC = 0xC3  # BPF_STX | BPF_ATOMIC; an immediate of 0 adds
_EXCHANGE = 0xF1  # BPF_CMPXCHG: R0 has what is expected, and then what was there
_WIDE = 0x18  # BPF_LD | BPF_IMM | BPF_DW
_ALU = 0x07  # BPF_ALU64
_JUMP = 0x05  # BPF_JMP
_BY_REGISTER = 0x08  # BPF_X
_CALL, _EXIT = 0x85, 0x95
_OPERATIONS = {
    "add": 0x00,
    "sub": 0x10,
    "mul": 0x20,
    "div": 0x30,
    "or": 0x40,
    "and": 0x50,
    "lsh": 0x60,
    "rsh": 0x70,
    "xor": 0xA0,
    "arsh": 0xC0,
    "mov": 0xB0,
}
_CONDITIONS = {
    "always": 0x00, "eq": 0x10, "ge": 0x30, "set": 0x40, "ne": 0x50, "sgt": 0x60, "lt": 0xA0,
}  # fmt: skip
# Source registers that mark a wide immediate as a map, a place in one, a function of the program.
_MAP, _MAP_VALUE, _FUNCTION = 1, 2, 4
_OWN_FUNCTION = 1  # source register of a call to a function of the program
_PACK = struct.Struct("<BBhi").pack
_SIGN = 1 << 31
_FAR = 1 << 15  # the offset of an instruction has 16 bits


class Instruction(Record):
    """One instruction, or a half of a wide one."""

    operation: int
    destination: int = 0
    source: int = 0
    offset: int = 0
    immediate: int = 0

    def bytes(self) -> bytes:
        """Its 8 bytes."""
        registers = self.destination | self.source << 4
        return _PACK(self.operation, registers, self.offset, self.immediate)


class Assembler:
    """Collects instructions; jumps lead to labels, which :meth:`instructions` resolves."""

    def __init__(self) -> None:
        self._listed: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []
        self._functions: list[tuple[int, str]] = []
        self._fresh = 0

    def __len__(self) -> int:
        return len(self._listed)

    def instructions(self) -> tuple[Instruction, ...]:
        """All of them; raises TooLarge where a jump leads further than one can."""
        listed = list(self._listed)
        for position, label in self._jumps:
            distance = self._labels[label] - position - 1
            if not -_FAR <= distance < _FAR:
                raise TooLarge(
                    f"the program has {len(listed)} instructions, and a jump leads over {_FAR - 1} "
                    "at most: ask for fewer values"
                )
            listed[position] = listed[position].replaced(offset=distance)
        for position, label in self._functions:
            distance = self._labels[label] - position - 1
            listed[position] = listed[position].replaced(immediate=distance)
        return tuple(listed)

    def fresh(self) -> str:
        """A new label, for :meth:`place`."""
        self._fresh += 1
        return f".{self._fresh}"

    def place(self, label: str) -> None:
        """The next instruction has that label."""
        self._labels[label] = len(self._listed)

    def leads_to(self, label: str) -> bool:
        """Whether a jump leads to the label; the kernel refuses what none does."""
        return any(wanted == label for _, wanted in self._jumps)

    def branches(self) -> int:
        """How many jumps there are that a number decides."""
        return sum([self._listed[at].operation != _JUMP for at, _ in self._jumps])

    def _add(
        self,
        operation: int,
        destination: int = 0,
        source: int = 0,
        offset: int = 0,
        immediate: int = 0,
    ) -> None:
        self._listed.append(Instruction(operation, destination, source, offset, immediate))

    def move(self, destination: int, source: int) -> None:
        """Copy a register."""
        self.compute("mov", destination, source)

    def constant(self, destination: int, value: int) -> None:
        """A number of 64 bits, signed or not."""
        value &= (1 << 64) - 1
        signed = value - (1 << 64) if value >> 63 else value
        if -_SIGN <= signed < _SIGN:
            self._add(_ALU | _OPERATIONS["mov"], destination, immediate=signed)
        else:
            self._wide(destination, 0, value & 0xFFFF_FFFF, value >> 32)

    def map(self, destination: int, file: int) -> None:
        """The map of that file descriptor."""
        self._wide(destination, _MAP, file, 0)

    def map_value(self, destination: int, file: int, offset: int) -> None:
        """The address of byte ``offset`` of the value of an array of one element."""
        self._wide(destination, _MAP_VALUE, file, offset)

    def function(self, destination: int, label: str) -> None:
        """The address of a function of the program, which begins at the label."""
        self._functions.append((len(self._listed), label))
        self._wide(destination, _FUNCTION, 0, 0)

    def _wide(self, destination: int, kind: int, low: int, high: int) -> None:
        self._add(_WIDE, destination, kind, immediate=_signed(low))
        self._add(0, immediate=_signed(high))

    def compute(self, operation: str, destination: int, source: int) -> None:
        """An operation of two registers, of 64 bits."""
        self._add(_ALU | _BY_REGISTER | _OPERATIONS[operation], destination, source)

    def compute_with(self, operation: str, destination: int, immediate: int) -> None:
        """An operation of a register and a constant of 32 bits, sign-extended."""
        self._add(_ALU | _OPERATIONS[operation], destination, immediate=immediate)

    def add(self, destination: int, number: int, scratch: int) -> None:
        """Add a number of 64 bits; one that needs it is in ``scratch`` first."""
        if not number:
            return
        if -_SIGN <= number < _SIGN:
            self.compute_with("add", destination, number)
        else:
            self.constant(scratch, number)
            self.compute("add", destination, scratch)

    def load(self, destination: int, source: int, offset: int, size: int) -> None:
        """``size`` bytes of memory, as an unsigned number."""
        self._add(_LOAD | _SIZES[size], destination, source, offset)

    def store(self, destination: int, offset: int, source: int, size: int) -> None:
        """The low bytes of a register to memory."""
        self._add(_STORE | _SIZES[size], destination, source, offset)

    def store_constant(self, destination: int, offset: int, value: int, size: int) -> None:
        """A constant of 32 bits, sign-extended, to memory."""
        self._add(_STORE_CONSTANT | _SIZES[size], destination, 0, offset, value)

    def atomic_add(self, destination: int, offset: int, source: int) -> None:
        """Add a register to 64 bits of memory."""
        self._add(_ATOMIC | _SIZES[8], destination, source, offset)

    def compare_exchange(self, destination: int, offset: int, source: int) -> None:
        """Set 64 bits of memory to a register where they are equal to R0; R0 is what was there."""
        self._add(_ATOMIC | _SIZES[8], destination, source, offset, _EXCHANGE)

    def call(self, helper: int) -> None:
        """Call a helper function by its number."""
        self._add(_CALL, immediate=helper)

    def call_function(self, label: str) -> None:
        """Call the function of the program that begins at the label."""
        self._functions.append((len(self._listed), label))
        self._add(_CALL, 0, _OWN_FUNCTION)

    def end(self, result: int = 0) -> None:
        """Return from the program."""
        self.constant(R0, result)
        self._add(_EXIT)

    def jump(self, label: str) -> None:
        """Jump always."""
        self._jump("always", 0, 0, label)

    def jump_if(self, condition: str, register: int, immediate: int, label: str) -> None:
        """Jump where ``register`` compares so with a constant of 32 bits, sign-extended."""
        self._jump(condition, register, immediate, label)

    def jump_if_both(self, condition: str, register: int, other: int, label: str) -> None:
        """Jump where ``register`` compares so with another one."""
        self._jumps.append((len(self._listed), label))
        self._add(_JUMP | _BY_REGISTER | _CONDITIONS[condition], register, other)

    def _jump(self, condition: str, register: int, immediate: int, label: str) -> None:
        self._jumps.append((len(self._listed), label))
        self._add(_JUMP | _CONDITIONS[condition], register, immediate=immediate)


def _signed(half: int) -> int:
    return half - (1 << 32) if half >> 31 else half
