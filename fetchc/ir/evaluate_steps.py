"""Evaluates steps on given memory: what a record holds where an eBPF program runs them.

The oracle of the emitter, as :mod:`fetchc.ir.evaluate` is of fetch-args. It takes a step at a time
and knows nothing of instructions.
"""

from __future__ import annotations

from fetchc.ir.steps import (
    COMM_BYTES,
    PAGE_BYTES,
    Aggregate,
    Arithmetic,
    Constant,
    EmitComm,
    EmitMemory,
    EmitNumber,
    EmitText,
    LoadBias,
    ReadMemory,
    ReadRegister,
    faults_of,
)
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.evaluate import State
    from fetchc.ir.steps import Measured, Program

__all__ = ["Recorded", "record"]

_MASK = (1 << 64) - 1


class Recorded(Record):
    """The fixed part of a record, without its header and the words of texts, which are 0.

    ``faults`` are the fault bits that are set. ``texts`` are those behind the fixed part, in the
    order of their numbers, without their NUL; None is a fault. ``numbers`` are what an Aggregate
    adds up, None where it does not count the hit; the places of their buckets are 0.
    """

    fixed: bytes
    faults: frozenset[int]
    texts: tuple[bytes | None, ...]
    numbers: tuple[int, ...] | None = None


def record(program: Program, state: State, room: int) -> Recorded:
    """Run ``program`` on ``state``; a text has ``room`` bytes at most, with its NUL."""
    return _Run(program, state, room).recorded()


class _Run:
    def __init__(self, program: Program, state: State, room: int) -> None:
        self._program = program
        self._state = state
        self._room = room
        self._values: dict[int, int] = {}
        self._faults: set[int] = set()
        self._fixed = bytearray(program.size)
        self._texts: list[bytes | None] = [None] * program.texts
        self._numbers: tuple[int, ...] | None = None

    def recorded(self) -> Recorded:
        for position in range(len(self._program.steps)):
            self._step(position)
        faults, texts = frozenset(self._faults), tuple(self._texts)
        return Recorded(bytes(self._fixed), faults, texts, self._numbers)

    def _step(self, position: int) -> None:
        state = self._state
        match self._program.steps[position]:
            case ReadRegister(name=name):
                self._values[position] = state.registers[name]
            case Constant(value=number):
                self._values[position] = number
            case LoadBias():
                self._values[position] = state.bias
            case ReadMemory(base=base, offset=offset, size=size, fault=fault):
                raw = self._read(base, offset, size)
                if raw is None:
                    self._faults.add(fault)
                self._values[position] = state.number(raw or b"")
            case Arithmetic(operation=operation, left=left, right=right):
                one, other = self._values[left], self._values[right]
                self._values[position] = one >> other if operation == "rsh" else one & other
            case EmitNumber(value=value, at=at, size=size):
                number = 0 if self._failed(value) else self._values[value]
                self._put(at, (number & (1 << 8 * size) - 1).to_bytes(size, "little"))
            case EmitMemory(base=base, offset=offset, at=at, size=size, word=word):
                self._block(base, offset, at, size, word)
            case EmitText(base=base, offset=offset, number=number, fault=fault):
                self._texts[number] = self._text(base, offset)
                if self._texts[number] is None:
                    self._faults.add(fault)
            case EmitComm(at=at):
                self._put(at, state.comm[: COMM_BYTES - 1].ljust(COMM_BYTES, b"\0"))
            case Aggregate(measures=measures):
                whole = all(one is not None and len(one) < self._room - 1 for one in self._texts)
                if whole and not self._faults:
                    self._numbers = tuple([self._number(one) for one in measures])
            case step:
                assert_never(step)

    def _block(self, base: int, offset: int, at: int, size: int, word: int) -> None:
        low, high = 0, size
        raw = self._read(base, offset, size)
        if raw is None and not self._failed(base):
            # One of its two pages may be there.
            begin = self._values[base] + offset & _MASK
            cut = PAGE_BYTES - begin % PAGE_BYTES
            for part in ((0, cut), (cut, size)) if cut < size else ():
                raw = self._read(base, offset + part[0], part[1] - part[0])
                if raw is not None:
                    low, high = part
                    break
        if raw is not None:
            self._put(at + low, raw)
            self._put(word, (at + high << 16 | at + low).to_bytes(4, "little"))

    def _number(self, one: Measured) -> int:
        raw = (self._values[one.value] & (1 << 8 * one.size) - 1).to_bytes(one.size, "little")
        return int.from_bytes(raw, "little", signed=one.signed)

    def _failed(self, value: int) -> bool:
        return not self._faults.isdisjoint(faults_of(self._program.steps, value))

    def _put(self, at: int, raw: bytes) -> None:
        self._fixed[at : at + len(raw)] = raw

    def _read(self, base: int, offset: int, size: int) -> bytes | None:
        # All of the bytes, or none of them.
        if self._failed(base):
            return None
        raw = self._state.read(self._values[base] + offset & _MASK, size)
        return raw if raw is not None and len(raw) == size else None

    def _text(self, base: int, offset: int) -> bytes | None:
        found = b""
        while len(found) < self._room - 1:
            one = self._read(base, offset + len(found), 1)
            if one is None:
                return None
            if one == b"\0":
                break
            found += one
        return found
