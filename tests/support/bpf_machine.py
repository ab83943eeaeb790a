"""A machine that runs eBPF instructions: what the kernel does with them, written independently.

Only what fetchc's assembler can say; anything else is an error of the test. Sources: RFC 9669, and
bpf-helpers(7) for what the helper functions do.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fetchc.emit.bpf_assembler import Instruction
from fetchc.emit.bpf_calls import CALL_BYTES, open_bytes

MASK, MASK_48 = (1 << 64) - 1, (1 << 48) - 1
CONTEXT, STACK, RECORD, LOST, MAP, ENTRIES, THREADS, EMPTY = (
    number << 48 for number in range(0x1001, 0x1009)
)
SIZES = {0x10: 1, 0x08: 2, 0x00: 4, 0x18: 8}
MOST = 1_000_000


@dataclass
class BpfMachine:
    """The thread at a probe: its registers as in the context, and how its memory is read."""

    context: bytes
    read: Callable[[int, int], bytes | None]
    comm: bytes = b"task"
    thread: int = 12
    process: int = 11
    address: int = 0x401000
    cookie: int = 0
    task: int = 0
    cpu: int = 3
    following: int = -1  # the array with a byte for each thread
    wanted: bytearray = field(default_factory=lambda: bytearray(16))  # of the first ones
    full: bool = False
    resident: bool = True  # else pages are there once copy_from_user has brought them in
    brought: set[int] = field(default_factory=set)
    empty: int = 1  # what is said of the length of an empty text: 0 before Linux 6.18
    counting: int = -1  # the map with entries of the sizes below, and room for so many
    key_size: int = 0
    value_size: int = 0
    most: int = 1 << 30
    calling: int = -1  # the map of open calls, with room for so many
    most_open: int = 1 << 30
    noted: int = 0  # words that are noted of each of them
    empty_call: int = -1  # the array with an empty value of that map
    clock: int = 1_000_000_007
    buffer: int = -1  # the map in which a program of a sample makes its record, of so many bytes
    buffer_size: int = 0
    entries: dict[bytes, int] = field(default_factory=dict)  # the place of each value
    open: dict[bytes, int] = field(default_factory=dict)
    values: bytearray = field(default_factory=bytearray)
    others: Callable[[bytearray, int], None] = lambda memory, place: None
    submitted: list[bytes] = field(default_factory=list)
    discarded: int = 0
    lost: bytearray = field(default_factory=lambda: bytearray(24))
    calls: int = 0

    def run(self, instructions: Sequence[Instruction]) -> int:
        """Run a program to its end; the number of instructions that it took."""
        assert unreachable(instructions) == []  # the verifier refuses a program with some
        self._stack, self._record = bytearray(512), bytearray(b"\xa5" * self.buffer_size)
        self._instructions, self._taken, self._used = instructions, 0, 0
        self._function(0, CONTEXT, 0)
        return self._taken

    def _function(self, at: int, one: int, two: int) -> int:
        # Of 256 bytes of stack each; what the registers of the caller hold is its own.
        instructions = self._instructions
        registers = [0xBAD] * 11
        registers[1:3] = one, two
        registers[10] = STACK + 512 - self._used
        while True:
            self._taken += 1
            assert self._taken < MOST
            raw = instructions[at].bytes()
            operation, both, offset, immediate = struct.unpack("<BBhi", raw)
            target, source = both & 15, both >> 4
            kind, at = operation & 7, at + 1
            if operation == 0x95:
                return registers[0]
            if operation == 0x85:
                if source == 1:
                    registers[0] = self._nested(at + immediate, *registers[1:3])
                else:
                    registers[0] = self._call(immediate, registers) & MASK
                registers[1:6] = [0xBAD] * 5
            elif operation == 0x18:
                low, high = (
                    immediate & 0xFFFF_FFFF,
                    struct.unpack("<BBhi", instructions[at].bytes())[3],
                )
                here = at + immediate  # a function: from after the first half on
                at += 1
                value = {self.following: THREADS, self.empty_call: EMPTY}.get(low, LOST) + high
                wide = {0: (high & 0xFFFF_FFFF) << 32 | low, 1: MAP + low, 2: value, 4: here}
                registers[target] = wide[source]
            elif kind == 7:
                other = registers[source] if operation & 8 else immediate
                registers[target] = self._computed(operation & 0xF0, registers[target], other)
            elif kind == 5:
                other = registers[source] if operation & 8 else immediate
                if self._jumps(operation & 0xF0, registers[target], other):
                    at += offset
            elif kind == 1:
                size = SIZES[operation & 0x18]
                memory, place = self._memory(registers[source] + offset, size)
                registers[target] = int.from_bytes(memory[place : place + size], "little")
            elif kind in (2, 3):
                size = SIZES[operation & 0x18]
                memory, place = self._memory(registers[target] + offset, size)
                value = immediate if kind == 2 else registers[source]
                if operation & 0xE0 == 0xC0 and immediate:
                    assert immediate == 0xF1
                    self.others(memory, place)
                    there = int.from_bytes(memory[place : place + size], "little")
                    value = value if there == registers[0] else there
                    registers[0] = there
                elif operation & 0xE0 == 0xC0:
                    value += int.from_bytes(memory[place : place + size], "little")
                memory[place : place + size] = (value & (1 << 8 * size) - 1).to_bytes(
                    size, "little"
                )
            else:
                raise AssertionError(f"an unknown operation: {operation:#x}")

    def _nested(self, at: int, one: int, two: int) -> int:
        self._used += 256
        assert self._used < 512
        result = self._function(at, one, two)
        self._used -= 256
        return result

    def _rounds(self, most: int, at: int, words: int) -> int:
        for number in range(most):
            result = self._nested(at, number, words)
            assert result in (0, 1)
            if result:
                return number + 1
        return most

    def _memory(self, address: int, size: int) -> tuple[bytearray, int]:
        regions = {
            CONTEXT: bytearray(self.context), STACK: self._stack, RECORD: self._record,
            LOST: self.lost, ENTRIES: self.values, THREADS: self.wanted,
            EMPTY: bytearray(open_bytes(self.noted)),
        }  # fmt: skip
        region = address & ~((1 << 48) - 1)
        place = address - region
        assert place + size <= len(regions[region]), "out of what the verifier allows"
        return regions[region], place

    @staticmethod
    def _computed(operation: int, one: int, other: int) -> int:
        other &= MASK
        results: Mapping[int, Callable[[], int]] = {
            0x00: lambda: one + other, 0x10: lambda: one - other, 0x40: lambda: one | other,
            0x20: lambda: one * other, 0x30: lambda: one // other if other else 0,
            0x50: lambda: one & other, 0x60: lambda: one << (other & 63),
            0x70: lambda: one >> (other & 63), 0xB0: lambda: other, 0xA0: lambda: one ^ other,
            0xC0: lambda: (one - ((one & 1 << 63) << 1)) >> (other & 63),
        }  # fmt: skip
        return results[operation]() & MASK

    @staticmethod
    def _jumps(condition: int, one: int, immediate: int) -> bool:
        other = immediate & MASK
        signed = one - (1 << 64) if one >> 63 else one
        return {
            0x00: True, 0x10: one == other, 0x40: one & other != 0, 0x50: one != other,
            0x30: one >= other, 0x60: signed > immediate, 0xA0: one < other,
        }[condition]  # fmt: skip

    def _call(self, helper: int, registers: list[int]) -> int:
        self.calls += 1
        one, two, three = registers[1:4]
        match helper:
            case 1 | 2 | 3 if one in (MAP + self.counting, MAP + self.calling):
                return self._in_hash(helper, *registers[1:5])
            case 1 if one == MAP + self.buffer:
                memory, place = self._memory(two, 4)
                assert memory[place : place + 4] == bytes(4)
                return RECORD
            case 25:  # in a sample of this processor's event
                assert (one, three) == (CONTEXT, 0xFFFF_FFFF)
                memory, place = self._memory(registers[4], registers[5])
                self.submitted.append(bytes(memory[place : place + registers[5]]))
                return 0
            case 5:
                return self.clock
            case 8:
                return self.cpu
            case 14:
                return self.process << 32 | self.thread
            case 16:
                self._write(one, self.comm[: two - 1].ljust(two, b"\0"))
                return 0
            case 4 if three & ~MASK_48 == STACK:
                memory, place = self._memory(three, two)
                self._write(one, bytes(memory[place : place + two]))
                return 0
            case 112 if not self._present(three, two):
                self._write(one, bytes(two))
                return -14
            case 4 | 112 | 148:
                self.brought |= {three >> 12, three + two - 1 >> 12}
                raw = None if helper != 4 and self._of_kernel(three) else self._any(three, two)
                there = raw is not None and len(raw) == two
                self._write(one, raw if raw is not None and there else bytes(two))
                return 0 if there else -14
            case 35:
                return self.task
            case 45 | 114:
                return (
                    -14 if helper == 114 and self._of_kernel(three) else self._text(one, two, three)
                )
            case 131:
                if self.full:
                    return 0
                self._record = bytearray(b"\xa5" * two)
                return RECORD
            case 132:
                assert one == RECORD
                self.submitted.append(bytes(self._record))
                self._record = bytearray()
                return 0
            case 133:
                assert one == RECORD
                self.discarded += 1
                self._record = bytearray()
                return 0
            case 173:
                return self.address
            case 174:
                return self.cookie
            case 181:
                assert registers[4] == 0
                return self._rounds(one, two, three)
            case _:
                raise AssertionError(f"an unknown helper: {helper}")

    def _in_hash(self, helper: int, map: int, key_at: int, value_at: int, flags: int) -> int:
        counting = map == MAP + self.counting
        entries, most = (self.entries, self.most) if counting else (self.open, self.most_open)
        key_size, size = (
            (self.key_size, self.value_size) if counting else (CALL_BYTES, open_bytes(self.noted))
        )
        memory, place = self._memory(key_at, key_size)
        key = bytes(memory[place : place + key_size])
        if helper == 1:
            return ENTRIES + entries[key] if key in entries else 0
        if helper == 3:
            return 0 if entries.pop(key, None) is not None else -2
        assert flags in (0, 1)  # in any case, or a new one
        if key in entries and flags:
            return -17
        if key not in entries and len(entries) >= most:
            return -7
        memory, place = self._memory(value_at, size)
        entries[key] = len(self.values)
        self.values += memory[place : place + size]
        return 0

    def _present(self, address: int, size: int) -> bool:
        return self.resident or {address >> 12, address + size - 1 >> 12} <= self.brought

    @staticmethod
    def _of_kernel(address: int) -> bool:
        return bool(address >> 48)

    def _any(self, address: int, size: int) -> bytes | None:
        # What the kernel gave the program is memory of its own.
        if address & ~MASK_48 == CONTEXT:
            return self.context[address & MASK_48 :][:size]
        return self.read(address, size)

    def _write(self, address: int, raw: bytes) -> None:
        memory, place = self._memory(address, len(raw))
        memory[place : place + len(raw)] = raw

    def _text(self, to: int, size: int, start: int) -> int:
        found = b""
        while len(found) < size - 1:
            at = start + len(found) & MASK
            one = self._any(at, 1) if self._present(at, 1) else None
            if not one:
                return -14
            if one == b"\0":
                break
            found += one
        self._write(to, found + b"\0")
        return len(found) + 1 if found else self.empty


def unreachable(instructions: Sequence[Instruction]) -> list[int]:
    """The numbers of instructions that no way from the first one leads to."""
    seen: set[int] = set()
    waiting = [0]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        operation, both, offset, immediate = struct.unpack("<BBhi", instructions[at].bytes())
        following = at + 1
        if operation == 0x18:  # two halves
            seen.add(following)
            following += 1
            if both >> 4 == 4:
                waiting.append(at + 1 + immediate)  # a function that a helper calls
        elif operation == 0x85 and both >> 4 == 1:
            waiting.append(following + immediate)
        elif operation & 7 == 5 and operation not in (0x85, 0x95):
            waiting.append(following + offset)
        if operation not in (0x05, 0x95):
            waiting.append(following)
    return sorted(set(range(len(instructions))) - seen)
