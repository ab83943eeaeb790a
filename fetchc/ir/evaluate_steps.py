"""Evaluates steps on given memory: what a record holds where an eBPF program runs them.

The oracle of the emitter, as :mod:`fetchc.ir.evaluate` is of fetch-args. It takes a step at a time
and knows nothing of instructions.
"""

from __future__ import annotations

from fetchc.ir.steps import (
    CHANGED,
    COMM_BYTES,
    ENDED,
    PAGE_BYTES,
    TASK_NAME_WORDS,
    TIMED_BITS,
    UNREAD,
    Aggregate,
    Arithmetic,
    Constant,
    ContextAddress,
    Elapsed,
    EmitComm,
    EmitContents,
    EmitMemory,
    EmitNumber,
    EmitText,
    Identify,
    LoadBias,
    Loop,
    Note,
    ReadCursor,
    ReadEntry,
    ReadMemory,
    ReadRegister,
    ReadTask,
    Require,
    Select,
    faults_of,
)
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.ir.evaluate import State
    from fetchc.ir.steps import Measured, Program, Step

__all__ = ["Entries", "Recorded", "calculated", "record"]

_MASK = (1 << 64) - 1
_SIGN = 1 << 63


class Recorded(Record):
    """The fixed part of a record, without its header and the words of ``texts``, which are 0.

    ``faults`` are the fault bits that are set. ``texts`` are those after the fixed part, in the
    order of their numbers, without their NUL; None is a fault. Of contents they have what could be
    read. ``numbers`` are what an Aggregate adds up, or the one that a Require tests, None where a
    load failed or a string is too long; the places of their buckets are 0. ``walks`` are in the
    order of their places, whose words are 0 in ``fixed``.
    """

    fixed: bytes
    faults: frozenset[int]
    texts: tuple[bytes | None, ...]
    numbers: tuple[int, ...] | None = None
    walks: tuple[Entries, ...] = ()


class Entries(Record):
    """What a walk records: its entries, its flags, the number of all."""

    entries: tuple[Recorded, ...]
    flags: int
    count: int


def record(program: Program, state: State, room: int) -> Recorded:
    """Run ``program`` on ``state``; a string has ``room`` bytes at most, with its NUL."""
    return _Run(program, state, room).recorded()


class _Run:
    def __init__(
        self, program: Program, state: State, room: int, cursors: Sequence[int] = ()
    ) -> None:
        self._program = program
        self._steps = program.steps
        self._state = state
        self._room = room
        self._cursors = cursors
        self._walks: dict[int, Entries] = {}
        self._values: dict[int, int] = {}
        self._faults: set[int] = set()
        self._fixed = bytearray(program.size)
        self._texts: list[bytes | None] = [None] * program.texts
        self._numbers: tuple[int, ...] | None = None

    def recorded(self) -> Recorded:
        for position in range(len(self._steps)):
            self._step(position)
        faults, texts = frozenset(self._faults), tuple(self._texts)
        walks = tuple([self._walks[at] for at in sorted(self._walks)])
        return Recorded(bytes(self._fixed), faults, texts, self._numbers, walks)

    def _values_of(self, steps: Sequence[Step], cursors: Sequence[int]) -> _Run:
        # The steps of a round, none of which records anything.
        run = _Run(self._program, self._state, self._room, cursors)
        run._steps = tuple(steps)
        return run

    def _evaluated(self, low: int, high: int) -> bool:
        # Whether all loads of these steps could be read; nothing is evaluated after one that fails.
        for position in range(low, high):
            self._step(position)
            if self._faults:
                return False
        return True

    def _walked(self, loop: Loop) -> Entries:
        found: list[Recorded] = []
        cursors = self._begun(loop)
        before = None if cursors is None else self._checked(loop, cursors)
        if cursors is None or before is None:
            return Entries((), UNREAD, 0)
        flags, many = self._rounds(loop, list(cursors), found)
        after = self._checked(loop, cursors)
        if after is None:
            flags |= UNREAD
        else:
            changed = after != before or before[2] or after[2]
            if changed or (loop.twice and not self._same_again(loop, flags, many, found)):
                flags |= CHANGED
        return Entries(tuple(found), flags, many if loop.count is None else before[0])

    def _begun(self, loop: Loop) -> list[int] | None:
        run = self._values_of(loop.begin, ())
        if not run._evaluated(0, len(loop.begin)):
            return None
        return [0 for _ in loop.places] + [run._values[one] for one in loop.start]

    def _same_again(self, loop: Loop, flags: int, many: int, found: list[Recorded]) -> bool:
        cursors, again = self._begun(loop), list[Recorded]()
        if cursors is None:
            return False
        return self._rounds(loop, cursors, again) == (flags, many) and again == found

    def _checked(self, loop: Loop, cursors: Sequence[int]) -> tuple[int, int, int] | None:
        run = self._values_of(loop.check, cursors)
        if not run._evaluated(0, len(loop.check)):
            return None
        count, version, writing = (
            0 if one is None else run._values[one]
            for one in (loop.count, loop.version, loop.writing)
        )
        return count, version, writing

    def _rounds(self, loop: Loop, cursors: list[int], found: list[Recorded]) -> tuple[int, int]:
        many = 0
        for _ in range(loop.rounds):
            run = self._values_of(loop.body, cursors)
            if not run._evaluated(0, loop.tested):
                return UNREAD, many
            if run._values[loop.end]:
                return ENDED, many
            if not run._evaluated(loop.tested, len(loop.body)):
                return UNREAD, many
            values = run._values
            if values[loop.found]:
                many += 1
                if many <= loop.most:
                    at = [*[values[one] for one in loop.places], *cursors[len(loop.places) :]]
                    room = loop.text_room(self._room)
                    found.append(_Run(loop.entry, self._state, room, at).recorded())
                elif loop.count is not None:
                    return 0, many
            cursors[len(loop.places) :] = [values[one] for one in loop.next]
        return 0, many

    def _step(self, position: int) -> None:
        state = self._state
        match self._steps[position]:
            case ReadRegister(name=name):
                self._values[position] = state.registers[name]
            case Constant(value=number):
                self._values[position] = number
            case LoadBias():
                self._values[position] = state.bias
            case Elapsed():
                self._values[position] = _MASK if state.elapsed is None else state.elapsed
            case ContextAddress():
                self._values[position] = state.context
            case ReadEntry(number=number):
                self._values[position] = state.noted[number]
            case ReadTask(name=name) if name in TASK_NAME_WORDS:
                at = 8 * TASK_NAME_WORDS.index(name)
                word = state.comm[: COMM_BYTES - 1].ljust(COMM_BYTES, b"\0")[at : at + 8]
                self._values[position] = state.number(word)
            case ReadTask(name=name):
                self._values[position] = getattr(state, name)
            case ReadCursor(number=number):
                self._values[position] = self._cursors[number]
            case ReadMemory(when=int() as when) if not self._values[when]:
                self._values[position] = 0
            case ReadMemory(base=base, offset=offset, size=size, fault=fault):
                raw = self._read(base, offset, size)
                if raw is None:
                    self._faults.add(fault)
                self._values[position] = state.number(raw or b"")
            case Arithmetic(operation=operation, left=left, right=right):
                one, other = self._values[left], self._values[right]
                self._values[position] = calculated(operation, one, other)
            case Select(condition=condition, nonzero=nonzero, zero=zero):
                self._values[position] = self._values[nonzero if self._values[condition] else zero]
            case Loop() as loop:
                self._walks[loop.at] = self._walked(loop)
            case EmitNumber(value=value, at=at, size=size):
                number = 0 if self._failed(value) else self._values[value]
                self._put(at, (number & (1 << 8 * size) - 1).to_bytes(size, "little"))
            case EmitMemory(base=base, offset=offset, at=at, size=size, word=int() as word):
                self._block(base, offset, at, size, word)
            case EmitMemory(base=base, offset=offset, at=at, size=size):
                self._put(at, self._read(base, offset, size) or b"")
            case EmitText(base=base, offset=offset, number=number, fault=fault, limit=limit):
                text = self._text(base, offset)
                if text is None and limit is not None and limit < self._room:
                    text = self._read(base, offset, limit)
                self._texts[number] = text
                if self._texts[number] is None:
                    self._faults.add(fault)
            case EmitContents(number=number, fault=fault, word=word, at=at) as step:
                raw, whole = self._contents(step)
                if at is None:
                    self._texts[number] = raw
                else:
                    self._put(at, raw)
                    self._put(word, (len(raw) << 16 | at).to_bytes(4, "little"))
                if not whole:
                    self._faults.add(fault)
            case EmitComm(at=at):
                self._put(at, state.comm[: COMM_BYTES - 1].ljust(COMM_BYTES, b"\0"))
            case Aggregate(measures=measures):
                whole = all(self._is_whole(step) for step in self._steps)
                if whole and self._is_timed() and not self._faults:
                    self._numbers = tuple([self._number(one) for one in measures])
            case Require(value=value):
                known = self._is_timed() and not self._faults
                self._numbers = (self._values[value],) if known else None
            case Identify() | Note():
                raise AssertionError("nothing is recorded of it")
            case step:
                assert_never(step)

    def _is_timed(self) -> bool:
        # Whether there is what the steps ask for of the call's entry.
        needed = any(isinstance(step, Elapsed | ReadEntry) for step in self._steps)
        elapsed = self._state.elapsed
        return not needed or (elapsed is not None and elapsed >> TIMED_BITS == 0)

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

    def _is_whole(self, step: Step) -> bool:
        match step:
            case EmitText(number=number):
                text = self._texts[number]
                return text is not None and len(text) < self._room - 1
            case EmitContents(size=size, most=most):
                return self._values[size] <= min(most, self._room)
            case EmitMemory(base=base, offset=offset, size=size):
                return self._read(base, offset, size) is not None
            case _:
                return True

    def _number(self, one: Measured) -> int:
        raw = (self._values[one.value] & (1 << 8 * one.size) - 1).to_bytes(one.size, "little")
        return int.from_bytes(raw, "little", signed=one.signed)

    def _failed(self, value: int) -> bool:
        return not self._faults.isdisjoint(faults_of(self._steps, value))

    def _put(self, at: int, raw: bytes) -> None:
        self._fixed[at : at + len(raw)] = raw

    def _read(self, base: int, offset: int, size: int) -> bytes | None:
        # All of the bytes, or none of them.
        if self._failed(base):
            return None
        raw = self._state.read(self._values[base] + offset & _MASK, size)
        return raw if raw is not None and len(raw) == size else None

    def _contents(self, step: EmitContents) -> tuple[bytes, bool]:
        # What could be read, and whether it is all that there is room for.
        if self._failed(step.size):
            return b"", False
        most = step.most if step.at is not None else min(step.most, self._room)
        wanted = min(self._values[step.size], most)
        size, begin = wanted, self._values[step.base] + step.offset & _MASK
        while size > 0:
            raw = self._read(step.base, step.offset, size)
            if raw is not None:
                return raw, size == wanted
            size = (begin + size - 1) // PAGE_BYTES * PAGE_BYTES - begin
        return b"", not wanted and not self._failed(step.base)

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


def calculated(operation: str, one: int, other: int) -> int:
    """What one of :data:`~fetchc.ir.steps.OPERATIONS` gives for two numbers of 64 bits."""
    return _exact(operation, one, other) & _MASK


def _exact(operation: str, one: int, other: int) -> int:
    match operation:
        case "add":
            return one + other
        case "sub":
            return one - other
        case "mul":
            return one * other
        case "div":
            return one // other if other else 0
        case "and":
            return one & other
        case "or":
            return one | other
        case "xor":
            return one ^ other
        case "arsh":
            return (one ^ _SIGN) - _SIGN >> (other & 63)
        case "lsh":
            return one << (other & 63)
        case "rsh":
            return one >> (other & 63)
        case "eq":
            return int(one == other)
        case _:
            return int(one < other)
