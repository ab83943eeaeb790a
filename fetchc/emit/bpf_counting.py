"""The part of an eBPF program that counts hits in a hash map of the kernel, by key."""

from __future__ import annotations

from fetchc.emit.bpf_assembler import FRAME, R0, R1, R2, R3, R4, R5, R7, R8, R9, Assembler
from fetchc.emit.bpf_layout import (
    ELAPSED,
    TEXT_ROOMS,
    WORD,
    TooLarge,
)
from fetchc.emit.bpf_steps import (
    Maps,
    StepEmitter,
    Target,
)
from fetchc.ir.steps import (
    CPU,
    HEADER,
    NUMBER,
    PROCESS,
    THREAD,
    Aggregate,
    Elapsed,
    EmitContents,
    EmitMemory,
    EmitNumber,
    EmitText,
    ReadEntry,
    ReadMemory,
)
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.emit.bpf_steps import Start
    from fetchc.ir.steps import Measured, Program, Step
    from fetchc.target.bpf_rules import BpfMachine, BpfRules

__all__ = ["Counted", "Counting", "Entry", "fits", "key_bytes", "keyed_record"]


class Counted(Record):
    """Steps that end with :class:`~fetchc.ir.steps.Aggregate`, and the hash map that they fill."""

    program: Program
    map: int


class Entry:
    """The offsets in the value of such a map, in bytes; all numbers have 64 bits.

    The numbers of a measure begin at :meth:`at`. Its sum is ``HIGH`` times 2**32, signed as the
    measure is, and ``LOW``. ``LARGEST`` is the largest number, with the sign bit turned over where
    it is signed, ``LEAST`` the complement of the smallest one: both are the largest of their kind,
    and 0 is less than all.
    """

    HITS, FIRST = 0, 8
    LOW, HIGH, LARGEST, LEAST = 0, 8, 16, 24

    @staticmethod
    def at(measure: int) -> int:
        """Where the numbers of a measure are."""
        return 16 + 32 * measure


# The kernel hashes and compares the key at each hit, so a key has nothing that is 0 in all of them.
# It is the fields of a record, and before them 32 bits for the plan's number and for each
# thing that is wanted of the task. The header's other words and the fault words are left out.

_TASK = {"thread": THREAD, "process": PROCESS, "cpu": CPU}


def key_bytes(program: Program) -> int:
    """The size of the keys that a program with an Aggregate has, in bytes."""
    return _end(program) - _begin(program)


def keyed_record(program: Program, key: bytes) -> bytes:
    """The record that ``key`` is made of; what the key does not have is 0."""
    header = bytearray(HEADER)
    header[NUMBER : NUMBER + 4] = key[:4]
    for position, name in enumerate(_aggregate(program).task, 1):
        header[_TASK[name] : _TASK[name] + 4] = key[4 * position : 4 * position + 4]
    fields = key[HEADER - _begin(program) :]
    return bytes(header) + fields.ljust(program.size - HEADER, b"\0")


# Where in the record the key begins and ends, in bytes.


def _begin(program: Program) -> int:
    return HEADER - 4 * (1 + len(_aggregate(program).task))


def _end(program: Program) -> int:
    texts = program.texts * TEXT_ROOMS[0]
    return program.size + texts if texts else program.faults_at


def _aggregate(program: Program) -> Aggregate:
    aggregate = program.steps[-1]
    assert isinstance(aggregate, Aggregate)
    return aggregate


def fits(program: Program, machine: BpfMachine, rules: BpfRules, noted: int = 0) -> bool:
    """Whether the stack of an eBPF program has room for a key, its entry and the numbers.

    ``noted``: and for so many words of the call's entry.
    """
    target = Target(machine, rules, Maps(-1, -1), None, False, False, None)
    try:
        Counting(Counted(program, -1), target, Assembler(), -ELAPSED + WORD * noted)
    except TooLarge:
        return False
    return True


class Counting(StepEmitter):
    """Counts a hit in a map, whose key is made in the program's stack as a record would be.

    It goes on after itself, to record the hit, where that cannot be. Programs of several
    processors, or tasks, count in one entry: all that changes it is atomic.
    """

    def __init__(self, counted: Counted, target: Target, asm: Assembler, used: int) -> None:
        program = counted.program
        super().__init__(program, target, asm, used=used)
        self._aggregate = _aggregate(program)
        self._map = counted.map
        self._room = TEXT_ROOMS[0]
        self._begin = _begin(program)
        self._end = _end(program)
        many = len(self._aggregate.measures)
        self._numbers = -self.stack_used - WORD * many
        self._entry = self._numbers - Entry.at(many)
        self._record = self._entry - self._end
        used = -self._record - self._begin // WORD * WORD
        if used > target.rules.stack_bytes:
            limit = f"and a program has {target.rules.stack_bytes}"
            raise TooLarge(f"the table's key needs {used} bytes of stack, {limit}")
        self.recorded = asm.fresh()
        """Where a hit is recorded that cannot be counted."""

    def count(self) -> list[Start]:
        """Add the instructions; the first one of each step, as in :class:`Code`."""
        asm = self._asm
        asm.move(R8, FRAME)
        asm.compute_with("add", R8, self._record)
        for at in range(self._begin // WORD * WORD, self._end, WORD):
            asm.store_constant(R8, at, 0, WORD)
        self._task()
        for position, step in enumerate(self._program.steps):
            self._starts.append((len(asm), self._program.fields[position], step))
            self.step(position, step)
        asm.end()
        asm.place(self.recorded)
        self._starts.append((len(asm), (), None))
        return self._starts

    def _task(self) -> None:
        asm = self._asm
        self._number(self._begin)
        for at, name in enumerate(self._aggregate.task, 1):
            self._read_task(name)
            asm.store(R8, self._begin + 4 * at, R0, 4)

    def step(self, position: int, step: Step) -> None:
        """Emit the step; a hit that cannot be counted goes on to be recorded."""
        asm = self._asm
        match step:
            case ReadMemory() | Elapsed() | ReadEntry():
                self.step_or(position, step, self.recorded)
            case EmitNumber(value=value, at=at, size=size):
                self.value(R1, value)
                asm.store(R8, at, R1, size)
            case EmitMemory(at=at, size=size, user=user):
                self._reading(user)
                self._address(step)
                self._read_block(at, size)
                asm.jump_if("ne", R0, 0, self.recorded)
            case EmitText():
                at, there = self._text_place(step), asm.fresh()
                self._address(step)
                self._text_to(at, step.user)
                asm.jump_if("sgt", R0, -1, there)
                asm.jump(self.recorded)
                asm.place(there)
                asm.jump_if("eq", R0, self._room, self.recorded)
                self._set_text(step, at)
            case EmitContents(user=user):
                self._reading(user)
                empty = asm.fresh()
                self._address_and_size(step, self.recorded)
                asm.jump_if("eq", R9, 0, empty)
                self._read_block(self._text_place(step))
                asm.jump_if("ne", R0, 0, self.recorded)
                asm.place(empty)
                self._set_contents(step)
            case Aggregate(measures=measures):
                for number, one in enumerate(measures):
                    self._bucket(number, one)
                self._find()
                for number, one in enumerate(measures):
                    self._ends(number, one)
                for number, one in enumerate(measures):
                    self._sum(number, one)
                asm.constant(R1, 1)
                asm.atomic_add(R7, Entry.HITS, R1)
            case _:
                super().step(position, step)

    def _bucket(self, number: int, one: Measured) -> None:
        # As `bucket` of fetchc.tracer.tables: 32 of one width between two powers of two.
        asm, positive, small, shifted, done = self._asm, *[self._asm.fresh() for _ in range(4)]
        self.value(R1, one.value)
        if one.size < WORD:
            asm.compute_with("lsh", R1, 64 - 8 * one.size)
            asm.compute_with("arsh" if one.signed else "rsh", R1, 64 - 8 * one.size)
        asm.store(FRAME, self._numbers + WORD * number, R1, WORD)
        bias = _BUCKET_BIAS
        if one.unit > 1:
            asm.compute_with("lsh", R1, _FRACTION_BITS)
            asm.compute_with("div", R1, one.unit)
            bias -= _FRACTION_BITS
        # What the verifier learns from comparing a copy it knows of the number, too, on each path:
        # of five numbers there are too many. It forgets that the copy is one.
        asm.move(R2, R1)
        asm.compute_with("xor", R2, 0)
        if one.signed:
            asm.constant(R5, 0)
            asm.jump_if("sgt", R2, -1, positive)
            asm.constant(R2, 0)
            asm.compute("sub", R2, R1)
            asm.constant(R5, 1)
            asm.place(positive)
        asm.constant(R0, 0)
        asm.jump_if("eq", R2, 0, done)
        # Shifted until its highest bit is that of 32, it says which part of its power it is in.
        asm.constant(R0, bias + _PART_BITS)
        asm.jump_if("lt", R2, 1 << _PART_BITS, small)
        for half in (32, 16, 8, 4, 2, 1):
            less, least = asm.fresh(), 1 << _PART_BITS + half
            if half < 32:
                asm.jump_if("lt", R2, least, less)
            else:
                asm.constant(R3, least)
                asm.jump_if_both("lt", R2, R3, less)
            asm.compute_with("rsh", R2, half)
            asm.compute_with("add", R0, half)
            asm.place(less)
        asm.jump(shifted)
        asm.place(small)
        for half in (4, 2, 1):
            more = asm.fresh()
            asm.jump_if("ge", R2, 1 << _PART_BITS + 1 - half, more)
            asm.compute_with("lsh", R2, half)
            asm.compute_with("add", R0, -half)
            asm.place(more)
        asm.place(shifted)
        asm.compute_with("lsh", R0, _PART_BITS)
        asm.compute("add", R0, R2)
        if one.signed:
            asm.jump_if("eq", R5, 0, done)
            asm.move(R2, R0)
            asm.constant(R0, 0)
            asm.compute("sub", R0, R2)
        asm.place(done)
        asm.store(R8, one.at, R0, 4)

    def _find(self) -> None:
        # The entry of the key to R7; a new one where it has none.
        asm, found = self._asm, self._asm.fresh()
        self._look_up_key()
        asm.jump_if("ne", R0, 0, found)
        for at in range(self._entry, self._numbers, WORD):
            asm.store_constant(FRAME, at, 0, WORD)
        asm.call(self._helpers["ktime_get_ns"])
        asm.store(FRAME, self._entry + Entry.FIRST, R0, 8)
        asm.map(R1, self._map)
        self._key()
        asm.move(R3, FRAME)
        asm.compute_with("add", R3, self._entry)
        asm.constant(R4, _NEW_ONE)
        asm.call(self._helpers["map_update_elem"])
        self._look_up_key()  # another task may have been first
        asm.jump_if("eq", R0, 0, self.recorded)
        asm.place(found)
        asm.move(R7, R0)

    def _look_up_key(self) -> None:
        asm = self._asm
        asm.map(R1, self._map)
        self._key()
        asm.call(self._helpers["map_lookup_elem"])

    def _key(self) -> None:
        self._asm.move(R2, R8)
        self._asm.compute_with("add", R2, self._begin)

    def _ends(self, number: int, one: Measured) -> None:
        asm, at = self._asm, Entry.at(number)
        asm.load(R9, FRAME, self._numbers + WORD * number, WORD)
        if one.signed:
            asm.constant(R1, 1 << 63)
            asm.compute("xor", R9, R1)
        self._raise(at + Entry.LARGEST)
        asm.compute_with("xor", R9, -1)
        self._raise(at + Entry.LEAST)

    def _raise(self, at: int) -> None:
        # At least R9. Others that raise it at the same time win a few times at most; where they do
        # not stop, the hit is recorded: nothing else of it is counted yet.
        asm, enough = self._asm, self._asm.fresh()
        for _ in range(_TRIES):
            asm.load(R0, R7, at, WORD)
            asm.jump_if_both("ge", R0, R9, enough)
            asm.compare_exchange(R7, at, R9)
        asm.load(R0, R7, at, WORD)
        asm.jump_if_both("ge", R0, R9, enough)
        asm.jump(self.recorded)
        asm.place(enough)

    def _sum(self, number: int, one: Measured) -> None:
        asm, at, small = self._asm, Entry.at(number), self._asm.fresh()
        asm.load(R1, FRAME, self._numbers + WORD * number, WORD)
        asm.move(R2, R1)
        asm.compute_with("lsh", R2, 32)
        asm.compute_with("rsh", R2, 32)
        asm.atomic_add(R7, at + Entry.LOW, R2)
        asm.compute_with("arsh" if one.signed else "rsh", R1, 32)
        asm.jump_if("eq", R1, 0, small)
        asm.atomic_add(R7, at + Entry.HIGH, R1)
        asm.place(small)


_PART_BITS, _BUCKET_BIAS = 5, 128  # of the buckets of fetchc.tracer.tables
_NEW_ONE = 1  # BPF_NOEXIST
# Of a number in parts of one the bucket is that of its fraction of so many bits: exact, since a
# bucket's ends have 6 bits, as long as the smallest part has as many there.
_FRACTION_BITS = 20
_TRIES = 8
