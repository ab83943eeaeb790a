"""From steps to the instructions of an eBPF program.

One program makes one record for each hit: it reserves room in a ring buffer, runs the steps, and
submits. Nothing here needs a kernel. Registers: the context is ``pt_regs``, R8 the record, R7 the
address that a step reads from, R9 a number of bytes; values of steps are in the program's stack.

A walk is a function of the program (:class:`_Walk`), which the kernel calls once a round.

The verifier follows every path, and two paths are one again where they differ in nothing that
counts. So faults are kept in the record, whose bytes it does not track, and not in a register.
"""

from __future__ import annotations

from fetchc.emit.bpf_assembler import (
    CONTEXT,
    FRAME,
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R7,
    R8,
    R9,
    Assembler,
    Instruction,
)
from fetchc.ir.steps import (
    ADDRESS,
    CHANGED,
    COMM_BYTES,
    COUNT,
    CPU,
    ENDED,
    ENTRIES,
    FLAGS,
    HEADER,
    NUMBER,
    OWN,
    PAGE_BYTES,
    PROCESS,
    THREAD,
    TIME,
    UNREAD,
    Aggregate,
    Arithmetic,
    Constant,
    EmitComm,
    EmitMemory,
    EmitNumber,
    EmitText,
    LoadBias,
    Loop,
    ReadCursor,
    ReadMemory,
    ReadRegister,
    Select,
    faults_of,
    operands,
)
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fetchc.ir.steps import Measured, Program, Step
    from fetchc.target.bpf_rules import BpfMachine, BpfRules

__all__ = [
    "NOT_FOLLOWED",
    "Code",
    "Counted",
    "Entry",
    "Maps",
    "Point",
    "StackRoom",
    "TooLarge",
    "children_code",
    "ended_code",
    "key_bytes",
    "ring_record",
    "sampled_bytes",
    "sampled_record",
    "text_rooms",
]

_THIS_PROCESSOR = 0xFFFFFFFF  # BPF_F_CURRENT_CPU
_USER_STACK = 1 << 8  # BPF_F_USER_STACK
_NO_WAKE_UP = 1  # BPF_RB_NO_WAKEUP: the reader looks every few milliseconds
_WORD = 8
_PLAN_BITS = 16  # of a cookie; the file offset is above them
_NOWHERE = -1  # an address that no program can read


class TooLarge(Exception):
    """An event does not fit into a program or a record; the text says which limit, in words."""


class Point(Record):
    """Where a program is attached: the plan's number, and the offset in the probed file.

    ``returning``: where the function returns.
    """

    number: int
    offset: int
    returning: bool

    @property
    def cookie(self) -> int:
        """The 64 bits that the kernel hands back to the program at this point."""
        return self.offset << _PLAN_BITS | self.number


class Maps(Record):
    """File descriptors of maps: the ring buffer, the array whose number counts the lost records.

    ``threads`` is a set of the threads to record, None for all.
    """

    ring: int
    lost: int
    threads: int | None = None


class StackRoom(Record):
    """Room for the thread's stack, at the end of a record.

    ``copied`` bytes from the stack pointer up, behind the context of the program (``pt_regs``,
    ``context`` bytes) and the number of bytes that could be read, 64 bits. Where that is 0:
    ``walked`` return addresses, which the kernel finds by frame pointers, behind the number of
    their bytes.
    """

    copied: int
    context: int = 0
    walked: int = 0

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return self.context + _WORD + self.copied + _WORD * self.walked


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


class Code(Record):
    """A program. ``starts`` are, in rising order, the first instruction of each step.

    Each comes with the names of the fields that the step is for. ``functions`` are the first
    instructions of the functions that it has besides.
    """

    instructions: tuple[Instruction, ...]
    starts: tuple[tuple[int, tuple[str, ...]], ...]
    functions: tuple[int, ...] = ()

    def bytes(self) -> bytes:
        """What bpf(2) loads."""
        return b"".join([one.bytes() for one in self.instructions])

    def fields_at(self, instruction: int) -> tuple[str, ...]:
        """The fields that an instruction is for; empty where it is for all of them."""
        names: tuple[str, ...] = ()
        for start, listed in self.starts:
            if start > instruction:
                break
            names = listed
        return names


def text_rooms(program: Program, rules: BpfRules) -> tuple[int, ...]:
    """The rooms in bytes that each text of a record has, smallest first; none without texts.

    A record is of the first size in which no text fills its room, or of the last one. Raises
    TooLarge where there is none.
    """
    texts, size = program.texts, _record_bytes(program, 0)
    for loop in _loops(program):
        texts += loop.most * loop.entry.texts
    if size > rules.record_bytes:
        limit = f"and one has {rules.record_bytes}: ask for fewer of them"
        raise TooLarge(f"the entries need a record of {size} bytes, {limit}")
    if not texts:
        return ()
    most = (rules.record_bytes - size) // texts // _WORD * _WORD
    if most < _ROOMS[0]:
        raise TooLarge(f"a record has no room for {texts} texts")
    return tuple(dict.fromkeys([min(room, most) for room in _ROOMS]))


def _loops(program: Program) -> list[Loop]:
    return [step for step in program.steps if isinstance(step, Loop)]


def _record_bytes(program: Program, room: int) -> int:
    """The size of a record whose texts have ``room`` bytes each."""
    entries = [loop.most * _entry_bytes(loop, room) for loop in _loops(program)]
    return program.size + program.texts * room + sum(entries)


def _entry_bytes(loop: Loop, room: int) -> int:
    return _record_bytes(loop.entry, room) - HEADER


_ROOMS = (64, 512, 4096)
"""Bytes. Most texts are short; a fetch-arg's string has PATH_MAX at most."""


def ring_record(
    program: Program,
    machine: BpfMachine,
    rules: BpfRules,
    maps: Maps,
    point: Point | None,
    returning: bool,
    sleepable: bool,
    counted: Counted | None = None,
    stack: StackRoom | None = None,
) -> Code:
    """The program that records ``program`` at a hit.

    ``point`` is where it is attached; None: at several points, each of which has its cookie.
    ``counted``: a hit is counted where it can be, and recorded only where not: a load failed, a
    text is too long for a key, the map is full. ``stack``: a record has that, too. Raises TooLarge
    where the event does not fit.
    """
    asm, target = Assembler(), _Target(machine, rules, maps, point, returning, sleepable, stack)
    counting = None if counted is None else _Counting(counted, target, asm)
    return _Emitter(program, target, asm).code(counting)


def sampled_record(
    program: Program, machine: BpfMachine, rules: BpfRules, number: int, buffer: int, output: int
) -> Code:
    """The program of an event of perf that sends its record in a sample of another event.

    ``buffer`` is an array of one value for each processor, in which the record is made; ``output``
    has the event of each processor whose samples carry records. The program counter is the address.
    Raises TooLarge.
    """
    target = _Target(machine, rules, Maps(-1, -1), Point(number, 0, False), False, False, None)
    return _SampleEmitter(program, target, buffer, output).code(None)


def sampled_bytes(program: Program, rules: BpfRules) -> int:
    """The size of such a record, in bytes: each text has the largest room."""
    return program.size + program.texts * max(text_rooms(program, rules), default=0)


def key_bytes(program: Program) -> int:
    """The size of the keys that a program with an Aggregate has, in bytes."""
    return program.size + program.texts * _ROOMS[0]


class _Target(Record):
    """What a program is emitted for; see :func:`ring_record`."""

    machine: BpfMachine
    rules: BpfRules
    maps: Maps
    point: Point | None
    returning: bool
    sleepable: bool
    stack: StackRoom | None


class _Emitter:
    def __init__(
        self,
        program: Program,
        target: _Target,
        asm: Assembler,
        cursors: tuple[int, int] = (FRAME, 0),
        used: int = _WORD,
    ) -> None:
        """``cursors``: the register and offset where those are; ``used`` bytes of stack are."""
        self._program = program
        self._steps = program.steps
        self._cursors = cursors
        self._target = target
        self._helpers = target.rules.helpers
        self._read = self._helpers["copy_from_user" if target.sleepable else "probe_read_user"]
        self._room = 0  # of the texts in the record that is being written
        self._larger: str | None = None  # where a larger record is begun
        self._asm = asm
        self._starts: list[tuple[int, tuple[str, ...]]] = []
        self._functions: list[int] = []
        limit = target.rules.stack_bytes
        self._places, self._end = _places(program.steps, limit, used, ())

    def code(self, counting: _Counting | None) -> Code:
        asm = self._asm
        asm.move(CONTEXT, R1)
        if self._target.maps.threads is not None:
            self._only_threads(self._target.maps.threads)
        if counting is not None:
            self._starts += counting.count()
        rooms = text_rooms(self._program, self._target.rules) or (0,)
        walks: list[_Walk] = []
        for position, room in enumerate(rooms):
            self._room = room
            self._larger = asm.fresh() if position + 1 < len(rooms) else None
            walks += self._record(_record_bytes(self._program, room))
            if self._larger is not None:
                asm.place(self._larger)
                self._starts.append((len(asm), ()))
                asm.move(R1, R8)
                asm.constant(R2, _NO_WAKE_UP)
                asm.call(self._helpers["ringbuf_discard"])
        functions = [walk.function(self._starts) for walk in walks]
        return Code(asm.instructions(), tuple(self._starts), tuple(functions))

    def _only_threads(self, threads: int) -> None:
        asm, known = self._asm, self._asm.fresh()
        asm.call(self._helpers["get_current_pid_tgid"])
        asm.store(FRAME, -4, R0, 4)
        _look_up(asm, self._helpers, threads)
        asm.jump_if("ne", R0, 0, known)
        asm.end()
        asm.place(known)

    def _record(self, size: int) -> list[_Walk]:
        # The walks of which the functions are to follow.
        asm = self._asm
        self._reserve(size)
        self._header()
        self._no_faults()
        walks: list[_Walk] = []
        place = self._program.size + self._program.texts * self._room
        for position, step in enumerate(self._program.steps):
            self._starts.append((len(asm), self._program.fields[position]))
            if isinstance(step, Loop):
                names = self._program.fields[position]
                walks.append(_Walk(step, names, place, self._room, self._target, asm, self._end))
                walks[-1].call(self, self._larger)
                place += step.most * _entry_bytes(step, self._room)
            else:
                self._step(position, step)
        self._starts.append((len(asm), ()))
        stack = self._target.stack
        if stack is not None and stack.copied:
            self._copy_stack(size, stack)
        elif stack is not None:
            self._walk_stack(size, stack)
        self._submit(size)
        asm.end()
        return walks

    def _reserve(self, size: int) -> None:
        # Room for a record, to R8.
        asm, reserved = self._asm, self._asm.fresh()
        stack = self._target.stack
        asm.map(R1, self._target.maps.ring)
        asm.constant(R2, size + (0 if stack is None else stack.size))
        asm.constant(R3, 0)
        asm.call(self._helpers["ringbuf_reserve"])
        asm.jump_if("ne", R0, 0, reserved)
        asm.map_value(R1, self._target.maps.lost, 0)
        asm.constant(R2, 1)
        asm.atomic_add(R1, 0, R2)
        asm.end()
        asm.place(reserved)
        asm.move(R8, R0)

    def _submit(self, size: int) -> None:
        self._asm.move(R1, R8)
        self._asm.constant(R2, _NO_WAKE_UP)
        self._asm.call(self._helpers["ringbuf_submit"])

    def _no_faults(self) -> None:
        for word in range(-(-self._program.faults // 64)):
            self._asm.store_constant(R8, self._program.faults_at + _WORD * word, 0, _WORD)

    def _header(self) -> None:
        asm, helpers = self._asm, self._helpers
        asm.call(helpers["ktime_get_ns"])
        asm.store(R8, TIME, R0, 8)
        asm.call(helpers["get_smp_processor_id"])
        asm.store(R8, CPU, R0, 4)
        asm.call(helpers["get_current_pid_tgid"])
        asm.store(R8, THREAD, R0, 4)
        asm.compute_with("rsh", R0, 32)
        asm.store(R8, PROCESS, R0, 4)
        self._probed_address(R0)
        asm.store(R8, ADDRESS, R0, 8)
        self._number()

    def _number(self) -> None:
        # Of the plan.
        asm = self._asm
        if self._target.point is None:
            self._cookie()
            asm.compute_with("and", R0, (1 << _PLAN_BITS) - 1)
            asm.store(R8, NUMBER, R0, 4)
        else:
            asm.store_constant(R8, NUMBER, self._target.point.number, 4)

    def _cookie(self) -> None:
        self._asm.move(R1, CONTEXT)
        self._asm.call(self._helpers["get_attach_cookie"])

    def _probed_address(self, register: int) -> None:
        asm = self._asm
        if "get_func_ip" in self._helpers:
            asm.move(R1, CONTEXT)
            asm.call(self._helpers["get_func_ip"])
            asm.move(register, R0)
        elif self._target.returning:  # where the thread is by then
            asm.constant(register, 0)
        else:
            asm.load(
                register,
                CONTEXT,
                self._target.machine.registers[self._target.machine.program_counter],
                8,
            )

    def _copy_stack(self, at: int, stack: StackRoom) -> None:
        # Page by page: the last one that is there may not have all of the bytes.
        asm, ended = self._asm, self._asm.fresh()
        for offset in range(0, stack.context, _WORD):
            asm.load(R1, CONTEXT, offset, _WORD)
            asm.store(R8, at + offset, R1, _WORD)
        count, bytes_at = at + stack.context, at + stack.context + _WORD
        pointer = self._target.machine.registers[self._target.machine.stack_pointer]
        for start in range(0, stack.copied, PAGE_BYTES):
            size, whole = min(PAGE_BYTES, stack.copied - start), asm.fresh()
            asm.store_constant(R8, count, start, _WORD)
            asm.load(R7, CONTEXT, pointer, _WORD)
            asm.compute_with("add", R7, start)
            self._read_block(bytes_at + start, size)
            asm.jump_if("eq", R0, 0, whole)
            asm.move(R1, R7)
            asm.compute_with("and", R1, PAGE_BYTES - 1)
            asm.constant(R9, PAGE_BYTES)
            asm.compute("sub", R9, R1)
            asm.jump_if("ge", R9, size, ended)
            asm.move(R1, R8)
            asm.compute_with("add", R1, bytes_at + start)
            asm.move(R2, R9)
            asm.move(R3, R7)
            asm.call(self._read)
            asm.jump_if("ne", R0, 0, ended)
            asm.compute_with("add", R9, start)
            asm.store(R8, count, R9, _WORD)
            asm.jump(ended)
            asm.place(whole)
        asm.store_constant(R8, count, stack.copied, _WORD)
        asm.place(ended)

    def _walk_stack(self, at: int, stack: StackRoom) -> None:
        asm, found = self._asm, self._asm.fresh()
        asm.move(R1, CONTEXT)
        asm.move(R2, R8)
        asm.compute_with("add", R2, at + _WORD)
        asm.constant(R3, _WORD * stack.walked)
        asm.constant(R4, _USER_STACK)
        asm.call(self._helpers["get_stack"])
        asm.jump_if("sgt", R0, -1, found)
        asm.constant(R0, 0)
        asm.place(found)
        asm.store(R8, at, R0, _WORD)

    # -- steps

    def _step(self, position: int, step: Step) -> None:
        asm, place = self._asm, self._places.get(position, 0)
        match step:
            case ReadRegister() | ReadCursor() | Constant():
                pass  # taken from where it is by each step that uses it
            case LoadBias():
                self._load_bias()
                asm.store(FRAME, place, R0, 8)
            case ReadMemory(base=base, fault=fault):
                failed, done = asm.fresh(), asm.fresh()
                self._only_when(step, place, done)
                self._unless_fault(base, failed)
                self._load(step, place)
                asm.jump_if("eq", R0, 0, done)
                asm.place(failed)
                self._set_fault(fault)
                asm.store_constant(FRAME, place, 0, _WORD)
                asm.place(done)
            case Arithmetic(operation=operation, left=left, right=right):
                self._value(R1, left)
                self._value(R2, right)
                self._arithmetic(operation)
                asm.store(FRAME, place, R1, 8)
            case Select(condition=condition, nonzero=nonzero, zero=zero):
                self._value(R1, condition)
                self._nonzero()
                asm.constant(R1, 0)
                asm.compute("sub", R1, R3)
                self._value(R2, nonzero)
                self._value(R3, zero)
                asm.compute("xor", R2, R3)
                asm.compute("and", R2, R1)
                asm.compute("xor", R2, R3)
                asm.store(FRAME, place, R2, 8)
            case EmitNumber(value=value, at=at, size=size):
                failed, done = asm.fresh(), asm.fresh()
                self._unless_fault(value, failed)
                self._value(R1, value)
                asm.store(R8, at, R1, size)
                if faults_of(self._program.steps, value):
                    asm.jump(done)
                    asm.place(failed)
                    asm.store_constant(R8, at, 0, size)
                    asm.place(done)
            case EmitMemory():
                self._memory(step)
            case EmitText():
                self._text(step)
            case EmitComm(word=word, at=at):
                asm.store_constant(R8, word, COMM_BYTES << 16 | at, 4)
                asm.move(R1, R8)
                asm.compute_with("add", R1, at)
                asm.constant(R2, COMM_BYTES)
                asm.call(self._helpers["get_current_comm"])
            case Aggregate() | Loop():
                raise AssertionError("a record is not counted, and an entry has no walks")
            case _:
                assert_never(step)

    def _arithmetic(self, operation: str) -> None:
        # Of R1 and R2, to R1. Without jumps: the verifier would follow both ways of each of them.
        asm = self._asm
        match operation:
            case "eq":
                asm.compute("xor", R1, R2)
                self._nonzero()
                asm.compute_with("xor", R3, 1)
                asm.move(R1, R3)
            case "lt":  # the borrow of R1 - R2
                asm.move(R3, R1)
                asm.compute_with("xor", R3, -1)
                asm.move(R4, R3)
                asm.compute("and", R4, R2)
                asm.compute("or", R3, R2)
                asm.compute("sub", R1, R2)
                asm.compute("and", R1, R3)
                asm.compute("or", R1, R4)
                asm.compute_with("rsh", R1, 63)
            case _:
                asm.compute(operation, R1, R2)

    def _nonzero(self) -> None:
        # R3 is 1 where R1 is not 0, else 0.
        asm = self._asm
        asm.constant(R3, 0)
        asm.compute("sub", R3, R1)
        asm.compute("or", R3, R1)
        asm.compute_with("rsh", R3, 63)

    def _only_when(self, step: ReadMemory, place: int, done: str) -> None:
        # A number that is not read is 0.
        if step.when is not None:
            self._asm.store_constant(FRAME, place, 0, _WORD)
            self._value(R1, step.when)
            self._asm.jump_if("eq", R1, 0, done)

    def _load(self, step: ReadMemory, place: int, unless: int | None = None) -> None:
        # Into the stack; R0 is 0 where the memory could be read. From nowhere, and R0 is 0, too,
        # where the register `unless` has all bits.
        asm = self._asm
        if step.size < _WORD:
            asm.store_constant(FRAME, place, 0, _WORD)
        self._value(R3, step.base)
        asm.add(R3, step.offset, R1)
        if unless is not None:
            asm.compute("or", R3, unless)
        asm.move(R1, FRAME)
        asm.compute_with("add", R1, place)
        asm.constant(R2, step.size)
        asm.call(self._read)

    def _load_bias(self) -> None:
        asm = self._asm
        if self._target.point is None:
            self._cookie()
            asm.compute_with("rsh", R0, _PLAN_BITS)
            asm.move(R7, R0)
        else:
            asm.constant(R7, self._target.point.offset)
        self._probed_address(R1)
        asm.move(R0, R1)
        asm.compute("sub", R0, R7)

    def _value(self, register: int, value: int) -> None:
        match self._steps[value]:
            case ReadRegister(name=name):
                self._asm.load(register, CONTEXT, self._target.machine.registers[name], 8)
            case Constant(value=number):
                self._asm.constant(register, number)
            case ReadCursor(number=number):
                start, offset = self._cursors
                self._asm.load(register, start, offset + _WORD * number, 8)
            case _:
                self._asm.load(register, FRAME, self._places[value], 8)

    def _unless_fault(self, value: int, label: str) -> None:
        # Jump to `label` where a load that the value depends on has failed.
        for fault in faults_of(self._program.steps, value):
            self._asm.load(R1, R8, self._program.faults_at + fault // 32 * 4, 4)
            self._asm.jump_if("set", R1, _bit(fault), label)

    def _set_fault(self, fault: int) -> None:
        at = self._program.faults_at + fault // 32 * 4
        self._asm.load(R1, R8, at, 4)
        self._asm.compute_with("or", R1, _bit(fault))
        self._asm.store(R8, at, R1, 4)

    def _memory(self, step: EmitMemory) -> None:
        asm, at, size = self._asm, step.at, step.size
        failed, first, end, done = asm.fresh(), asm.fresh(), asm.fresh(), asm.fresh()
        self._unless_fault(step.base, failed)
        self._address(step)
        self._read_block(at, size)
        asm.constant(R9, size)
        asm.jump_if("eq", R0, 0, first)
        # What cannot be read is 0 in the record. The bytes up to the page's end, or those after it:
        asm.move(R1, R7)
        asm.compute_with("and", R1, PAGE_BYTES - 1)
        asm.constant(R9, PAGE_BYTES)
        asm.compute("sub", R9, R1)
        asm.jump_if("ge", R9, size, failed)
        asm.move(R1, R8)
        asm.compute_with("add", R1, at)
        asm.move(R2, R9)
        asm.move(R3, R7)
        asm.call(self._read)
        asm.jump_if("eq", R0, 0, first)
        asm.move(R1, R8)
        asm.compute_with("add", R1, at)
        asm.compute("add", R1, R9)
        asm.constant(R2, size)
        asm.compute("sub", R2, R9)
        asm.move(R3, R7)
        asm.compute("add", R3, R9)
        asm.call(self._read)
        asm.jump_if("eq", R0, 0, end)
        asm.place(failed)
        asm.constant(R7, _NOWHERE)
        self._read_block(at, size)
        asm.store_constant(R8, step.word, 0, 4)
        asm.jump(done)
        asm.place(end)
        asm.constant(R1, at + size << 16)
        asm.compute_with("add", R9, at)
        asm.compute("or", R9, R1)
        asm.store(R8, step.word, R9, 4)
        asm.jump(done)
        asm.place(first)
        asm.compute_with("add", R9, at)
        asm.compute_with("lsh", R9, 16)
        asm.compute_with("or", R9, at)
        asm.store(R8, step.word, R9, 4)
        asm.place(done)

    def _read_block(self, at: int, size: int) -> None:
        # From R7 into the record; R0 is 0 where all of it could be read.
        asm = self._asm
        asm.move(R1, R8)
        asm.compute_with("add", R1, at)
        asm.constant(R2, size)
        asm.move(R3, R7)
        asm.call(self._read)

    def _text(self, step: EmitText) -> None:
        asm, at = self._asm, self._text_place(step)
        failed, there, done = asm.fresh(), asm.fresh(), asm.fresh()
        self._unless_fault(step.base, failed)
        self._address(step)
        self._text_to(at)
        asm.jump_if("sgt", R0, -1, there)
        if self._target.sleepable:
            # There is no helper that waits for a text's pages: they are brought in, and it is read
            # again. It is in two pages at most.
            self._touch(0)
            self._touch(self._room - 1)
            self._text_to(at)
            asm.jump_if("sgt", R0, -1, there)
        asm.place(failed)
        self._set_fault(step.fault)
        asm.store_constant(R8, step.word, 0, 4)
        asm.jump(done)
        asm.place(there)
        if self._larger is not None:
            asm.jump_if("eq", R0, self._room, self._larger)
        self._set_text(step, at)
        asm.place(done)

    def _text_place(self, step: EmitText) -> int:
        return self._program.size + step.number * self._room

    def _address(self, step: EmitMemory | EmitText) -> None:
        # To R7.
        self._value(R7, step.base)
        self._asm.add(R7, step.offset, R1)

    def _set_text(self, step: EmitText, at: int) -> None:
        # R0 has the length, with the NUL. Of an empty text it is 0 on kernels up to 6.12 at least
        # (strncpy_from_user_nofault, mm/maccess.c), and 1 on 6.18.
        asm, counted = self._asm, self._asm.fresh()
        asm.jump_if("ne", R0, 0, counted)
        asm.constant(R0, 1)
        asm.place(counted)
        asm.compute_with("lsh", R0, 16)
        asm.compute_with("or", R0, at)
        asm.store(R8, step.word, R0, 4)

    def _text_to(self, at: int) -> None:
        asm = self._asm
        asm.move(R1, R8)
        asm.compute_with("add", R1, at)
        asm.constant(R2, self._room)
        asm.move(R3, R7)
        asm.call(self._helpers["probe_read_user_str"])

    def _touch(self, offset: int) -> None:
        # Read the byte at `offset` behind R7, for its page to be there.
        asm = self._asm
        asm.move(R3, R7)
        asm.add(R3, offset, R1)
        asm.move(R1, FRAME)
        asm.compute_with("add", R1, -_WORD)
        asm.constant(R2, 1)
        asm.call(self._helpers["copy_from_user"])


class _SampleEmitter(_Emitter):
    """Makes the record in a buffer of the processor, and sends it with a sample."""

    def __init__(self, program: Program, target: _Target, buffer: int, output: int) -> None:
        super().__init__(program, target, Assembler())
        self._buffer = buffer
        self._output = output

    def code(self, counting: _Counting | None) -> Code:
        self._asm.move(CONTEXT, R1)
        self._room = max(text_rooms(self._program, self._target.rules), default=0)
        self._record(sampled_bytes(self._program, self._target.rules))
        return Code(self._asm.instructions(), tuple(self._starts))

    def _reserve(self, size: int) -> None:
        asm, there = self._asm, self._asm.fresh()
        asm.store_constant(FRAME, -4, 0, 4)
        _look_up(asm, self._helpers, self._buffer)
        asm.jump_if("ne", R0, 0, there)
        asm.end()
        asm.place(there)
        asm.move(R8, R0)

    def _submit(self, size: int) -> None:
        asm = self._asm
        asm.move(R1, CONTEXT)
        asm.map(R2, self._output)
        asm.constant(R3, _THIS_PROCESSOR)
        asm.move(R4, R8)
        asm.constant(R5, size)
        asm.call(self._helpers["perf_event_output"])

    def _probed_address(self, register: int) -> None:
        machine = self._target.machine
        self._asm.load(register, CONTEXT, machine.registers[machine.program_counter], 8)


class _Straight(_Emitter):
    """Steps of a walk that record nothing; a load that fails leads to the label ``failed``.

    All values stay, below the ``used`` bytes of the stack.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        kept: Collection[int],
        loop: Loop,
        target: _Target,
        asm: Assembler,
        cursors: tuple[int, int],
        used: int,
    ) -> None:
        super().__init__(loop.entry, target, asm, cursors)
        self._steps = tuple(steps)
        self._places, self._end = _places(steps, target.rules.stack_bytes, used, kept)

    def emit(self, low: int, high: int, failed: str) -> None:
        """The steps ``low`` to ``high``."""
        asm = self._asm
        for position in range(low, high):
            step, place = self._steps[position], self._places.get(position, 0)
            assert not isinstance(step, LoadBias | ReadRegister), "a walk has cursors alone"
            if not isinstance(step, ReadMemory):
                self._step(position, step)
                continue
            if step.when is None:
                self._load(step, place)
            else:  # without a jump, as above
                self._value(R1, step.when)
                self._nonzero()
                asm.move(R9, R3)
                asm.compute_with("add", R9, _NOWHERE)
                self._load(step, place, R9)
                asm.compute_with("xor", R9, -1)
                asm.compute("and", R0, R9)
            asm.jump_if("ne", R0, 0, failed)


class _Walk:
    """A walk: what calls its rounds, and the function that does one of them.

    The words that a round finds are in the stack of the program, below its own values: the address
    of the record, the cursors, the version. How many entries there are is in the record, whose
    bytes the verifier does not track.
    """

    def __init__(
        self,
        loop: Loop,
        names: tuple[str, ...],
        place: int,
        room: int,
        target: _Target,
        asm: Assembler,
        used: int,
    ) -> None:
        """``place`` is that of the first entry in the record, ``room`` that of its texts."""
        self._loop = loop
        self._names = names
        self._place = place
        self._room = room
        self._target = target
        self._asm = asm
        self._label = asm.fresh()
        cursors = len(loop.start) + len(loop.places)
        self._words = -used - _WORD * (cursors + 2)
        self._used = -self._words

    def call(self, emitter: _Emitter, larger: str | None) -> None:
        """Walk, in the program itself; to ``larger`` where a text of an entry fills its room."""
        loop, asm, at = self._loop, self._asm, self._loop.at
        failed, done = asm.fresh(), asm.fresh()
        stride = _entry_bytes(loop, self._room)
        asm.constant(R1, stride << 16 | self._place)
        asm.store(R8, at, R1, 4)
        asm.store_constant(R8, at + ENTRIES, 0, 4)
        asm.store_constant(R8, at + COUNT, 0, 8)
        for value in loop.start:
            emitter._unless_fault(value, failed)
        for number, value in enumerate(loop.start, 1 + len(loop.places)):
            emitter._value(R1, value)
            self._forget(R1)
            asm.store(FRAME, self._words + _WORD * number, R1, 8)
        asm.store(FRAME, self._words, R8, 8)
        cursors = FRAME, self._words + _WORD
        kept = [one for one in (loop.count, loop.version) if one is not None]
        check = _Straight(loop.check, kept, loop, self._target, asm, cursors, self._used)
        self._stack = check._end
        check.emit(0, len(loop.check), failed)
        version = self._words + _WORD * (len(loop.start) + len(loop.places) + 1)
        if loop.count is not None:
            check._value(R1, loop.count)
            asm.store(R8, at + COUNT, R1, 8)
        if loop.version is not None:
            check._value(R1, loop.version)
            asm.store(FRAME, version, R1, 8)
        self._rounds()
        if larger is not None:
            asm.load(R1, R8, at + FLAGS, 2)
            asm.jump_if("set", R1, _LARGER, larger)
        check.emit(0, len(loop.check), failed)
        changed = asm.fresh()
        compared = ((loop.count, R8, at + COUNT), (loop.version, FRAME, version))
        for result, base, offset in compared:
            if result is not None:
                check._value(R1, result)
                asm.load(R2, base, offset, 8)
                asm.jump_if_both("ne", R1, R2, changed)
        for label, flag in ((changed, CHANGED), (failed, UNREAD)):
            if asm.leads_to(label):
                asm.jump(done)
                asm.place(label)
                self._flag(flag)
        asm.place(done)

    def _rounds(self) -> None:
        asm, loop, helpers = self._asm, self._loop, self._target.rules.helpers
        if "loop" in helpers:
            asm.constant(R1, loop.rounds)
            asm.function(R2, self._label)
            asm.move(R3, FRAME)
            asm.compute_with("add", R3, self._words)
            asm.constant(R4, 0)
            asm.call(helpers["loop"])
            return
        # The verifier follows each round.
        again, done = asm.fresh(), asm.fresh()
        asm.constant(R9, min(loop.rounds, _FOLLOWED_ROUNDS))
        asm.place(again)
        asm.constant(R1, 0)
        asm.move(R2, FRAME)
        asm.compute_with("add", R2, self._words)
        asm.call_function(self._label)
        asm.jump_if("ne", R0, 0, done)
        asm.compute_with("add", R9, -1)
        asm.jump_if("ne", R9, 0, again)
        asm.place(done)

    def _forget(self, register: int) -> None:
        # The verifier then knows nothing of the number: one round is to it as another.
        self._asm.store(R8, self._loop.at + OWN, register, 8)
        self._asm.load(register, R8, self._loop.at + OWN, 8)

    def _flag(self, flag: int) -> None:
        at = self._loop.at + FLAGS
        self._asm.load(R1, R8, at, 2)
        self._asm.compute_with("or", R1, flag)
        self._asm.store(R8, at, R1, 2)

    def function(self, starts: list[tuple[int, tuple[str, ...]]]) -> int:
        """The function of a round; its first instruction. It returns 1 where it is the last one."""
        loop, asm = self._loop, self._asm
        first = len(asm)
        starts.append((first, self._names))
        asm.place(self._label)
        asm.move(CONTEXT, R2)
        ended, failed, larger, next, stop = [asm.fresh() for _ in range(5)]
        kept = {loop.end, loop.found, *loop.places, *loop.next}
        cursors = CONTEXT, _WORD
        body = _Straight(loop.body, kept, loop, self._target, asm, cursors, _WORD)
        moved = body._end + _WORD * len(loop.next)
        entry = _EntryEmitter(loop.entry, self._target, asm, cursors, moved)
        if self._stack + entry._end > self._target.rules.stack_bytes - _ROUNDED:
            raise TooLarge(f"a walk needs {self._stack + entry._end} bytes of stack")
        body.emit(0, loop.tested, failed)
        body._value(R1, loop.end)
        asm.jump_if("ne", R1, 0, ended)
        body.emit(loop.tested, len(loop.body), failed)
        for number, value in enumerate(loop.places, 1):
            body._value(R1, value)
            asm.store(CONTEXT, _WORD * number, R1, 8)
        body._value(R1, loop.found)
        asm.jump_if("eq", R1, 0, next)
        asm.load(R8, CONTEXT, 0, 8)
        if loop.count is None:
            asm.load(R1, R8, loop.at + COUNT, 8)
            asm.compute_with("add", R1, 1)
            asm.store(R8, loop.at + COUNT, R1, 8)
        asm.load(R1, R8, loop.at + ENTRIES, 2)
        asm.jump_if("ge", R1, loop.most, next if loop.count is None else stop)
        asm.move(R2, R1)
        asm.compute_with("add", R2, 1)
        asm.store(R8, loop.at + ENTRIES, R2, 2)
        asm.compute_with("mul", R1, _entry_bytes(loop, self._room))
        asm.compute_with("add", R1, self._place - HEADER)
        asm.compute("add", R8, R1)
        entry.entry(self._room, larger)
        asm.place(next)
        places = [-moved + _WORD * number for number in range(len(loop.next))]
        for place, value in zip(places, loop.next, strict=True):
            body._value(R1, value)
            asm.store(FRAME, place, R1, 8)
        asm.load(R8, CONTEXT, 0, 8)
        for number, place in enumerate(places, 1 + len(loop.places)):
            asm.load(R1, FRAME, place, 8)
            self._forget(R1)
            asm.store(CONTEXT, _WORD * number, R1, 8)
        asm.end()
        for label, flag in ((ended, ENDED), (failed, UNREAD), (larger, _LARGER), (stop, 0)):
            if asm.leads_to(label):
                asm.place(label)
                asm.load(R8, CONTEXT, 0, 8)
                self._flag(flag)
                asm.end(1)
        return first


class _EntryEmitter(_Emitter):
    """What is recorded of an entry: R8 is where its header would be."""

    def entry(self, room: int, larger: str) -> None:
        """All steps; to ``larger`` where a text fills its room."""
        self._room, self._larger = room, larger
        self._no_faults()
        for position, step in enumerate(self._steps):
            self._step(position, step)


_LARGER = 8  # a flag that no record is submitted with: a text of an entry has filled its room
_FOLLOWED_ROUNDS = 48  # where the verifier follows each of them
_ROUNDED = 64  # bytes that the kernel may round the two stacks up by


class _Counting(_Emitter):
    """Counts a hit in a map, whose key is made in the program's stack as a record would be.

    It goes on behind itself, to record the hit, where that cannot be. Programs of several
    processors, or tasks, count in one entry: all that changes it is atomic.
    """

    def __init__(self, counted: Counted, target: _Target, asm: Assembler) -> None:
        program = counted.program
        super().__init__(program, target, asm)
        aggregate = program.steps[-1]
        assert isinstance(aggregate, Aggregate)
        self._aggregate = aggregate
        self._map = counted.map
        self._room = _ROOMS[0]
        self._size = key_bytes(program)
        many = len(aggregate.measures)
        self._numbers = -self._end - _WORD * many
        self._entry = self._numbers - Entry.at(many)
        self._key = self._entry - self._size
        if -self._key > target.rules.stack_bytes:
            limit = f"and a program has {target.rules.stack_bytes}"
            raise TooLarge(f"the table's key needs {-self._key} bytes of stack, {limit}")
        self._recorded = asm.fresh()

    def count(self) -> list[tuple[int, tuple[str, ...]]]:
        """Add the instructions; the first one of each step, as in :class:`Code`."""
        asm = self._asm
        asm.move(R8, FRAME)
        asm.compute_with("add", R8, self._key)
        for at in range(self._key, self._numbers, _WORD):
            asm.store_constant(FRAME, at, 0, _WORD)
        self._task()
        for position, step in enumerate(self._program.steps):
            self._starts.append((len(asm), self._program.fields[position]))
            self._step(position, step)
        asm.end()
        asm.place(self._recorded)
        self._starts.append((len(asm), ()))
        return self._starts

    def _task(self) -> None:
        asm, wanted = self._asm, self._aggregate.task
        self._number()
        if "cpu" in wanted:
            asm.call(self._helpers["get_smp_processor_id"])
            asm.store(R8, CPU, R0, 4)
        if "process" in wanted or "thread" in wanted:
            asm.call(self._helpers["get_current_pid_tgid"])
            if "thread" in wanted:
                asm.store(R8, THREAD, R0, 4)
            asm.compute_with("rsh", R0, 32)
            if "process" in wanted:
                asm.store(R8, PROCESS, R0, 4)

    def _step(self, position: int, step: Step) -> None:
        asm, place = self._asm, self._places.get(position, 0)
        match step:
            case ReadMemory():
                self._load(step, place)
                asm.jump_if("ne", R0, 0, self._recorded)
            case EmitNumber(value=value, at=at, size=size):
                self._value(R1, value)
                asm.store(R8, at, R1, size)
            case EmitText():
                at, there = self._text_place(step), asm.fresh()
                self._address(step)
                self._text_to(at)
                asm.jump_if("sgt", R0, -1, there)
                asm.jump(self._recorded)
                asm.place(there)
                asm.jump_if("eq", R0, self._room, self._recorded)
                self._set_text(step, at)
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
                super()._step(position, step)

    def _bucket(self, number: int, one: Measured) -> None:
        # As `bucket` of fetchc.tracer.tables: 32 of one width between two powers of two.
        asm, positive, small, shifted, done = self._asm, *[self._asm.fresh() for _ in range(4)]
        self._value(R1, one.value)
        if one.size < _WORD:
            asm.compute_with("lsh", R1, 64 - 8 * one.size)
            asm.compute_with("arsh" if one.signed else "rsh", R1, 64 - 8 * one.size)
        asm.store(FRAME, self._numbers + _WORD * number, R1, _WORD)
        asm.constant(R5, 0)
        asm.move(R2, R1)
        if one.signed:
            asm.jump_if("sgt", R1, -1, positive)
            asm.constant(R2, 0)
            asm.compute("sub", R2, R1)
            asm.constant(R5, 1)
            asm.place(positive)
        asm.constant(R0, 0)
        asm.jump_if("eq", R2, 0, done)
        asm.move(R3, R2)
        asm.constant(R4, 0)  # the highest bit that is set
        for half in (32, 16, 8, 4, 2, 1):
            less = asm.fresh()
            asm.move(R0, R3)
            asm.compute_with("rsh", R0, half)
            asm.jump_if("eq", R0, 0, less)
            asm.move(R3, R0)
            asm.compute_with("add", R4, half)
            asm.place(less)
        asm.move(R0, R4)
        asm.compute_with("lsh", R0, _PART_BITS)
        asm.compute_with("add", R0, _BUCKET_BIAS << _PART_BITS)
        asm.jump_if("ge", R4, _PART_BITS, small)
        asm.constant(R3, _PART_BITS)
        asm.compute("sub", R3, R4)
        asm.compute("lsh", R2, R3)
        asm.jump(shifted)
        asm.place(small)
        asm.compute_with("add", R4, -_PART_BITS)
        asm.compute("rsh", R2, R4)
        asm.place(shifted)
        asm.compute("add", R0, R2)
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
        asm.call(self._helpers["ktime_get_ns"])
        asm.store(FRAME, self._entry + Entry.FIRST, R0, 8)
        asm.map(R1, self._map)
        asm.move(R2, R8)
        asm.move(R3, FRAME)
        asm.compute_with("add", R3, self._entry)
        asm.constant(R4, _NEW_ONE)
        asm.call(self._helpers["map_update_elem"])
        self._look_up_key()  # another task may have been first
        asm.jump_if("eq", R0, 0, self._recorded)
        asm.place(found)
        asm.move(R7, R0)

    def _look_up_key(self) -> None:
        asm = self._asm
        asm.map(R1, self._map)
        asm.move(R2, R8)
        asm.call(self._helpers["map_lookup_elem"])

    def _ends(self, number: int, one: Measured) -> None:
        asm, at = self._asm, Entry.at(number)
        asm.load(R9, FRAME, self._numbers + _WORD * number, _WORD)
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
            asm.load(R0, R7, at, _WORD)
            asm.jump_if_both("ge", R0, R9, enough)
            asm.compare_exchange(R7, at, R9)
        asm.load(R0, R7, at, _WORD)
        asm.jump_if_both("ge", R0, R9, enough)
        asm.jump(self._recorded)
        asm.place(enough)

    def _sum(self, number: int, one: Measured) -> None:
        asm, at = self._asm, Entry.at(number)
        asm.load(R1, FRAME, self._numbers + _WORD * number, _WORD)
        asm.move(R2, R1)
        asm.compute_with("lsh", R2, 32)
        asm.compute_with("rsh", R2, 32)
        asm.atomic_add(R7, at + Entry.LOW, R2)
        asm.compute_with("arsh" if one.signed else "rsh", R1, 32)
        asm.atomic_add(R7, at + Entry.HIGH, R1)


_PART_BITS, _BUCKET_BIAS = 5, 128  # of the buckets of fetchc.tracer.tables
_NEW_ONE = 1  # BPF_NOEXIST
_TRIES = 8


def _bit(fault: int) -> int:
    bit = fault % 32
    return 1 << bit if bit < 31 else -(1 << 31)  # sign-extended; the upper half is 0 there


def _places(
    steps: Sequence[Step], stack_bytes: int, used: int, kept: Collection[int]
) -> tuple[dict[int, int], int]:
    """Where each value is, from the frame pointer, and the bytes of stack that are used then.

    A place is free after the value's last use, unless it is ``kept``. The first word is for what
    lasts no longer than a call.
    """
    last = dict.fromkeys(kept, len(steps))
    for position, step in enumerate(steps):
        for value in operands(step):
            last[value] = max(position, last.get(value, 0))
    places: dict[int, int] = {}
    free: list[int] = []
    end = used
    ending: dict[int, list[int]] = {}
    for position, step in enumerate(steps):
        if isinstance(step, LoadBias | ReadMemory | Arithmetic | Select):
            if not free:
                end += _WORD
                free.append(-end)
            places[position] = free.pop()
            ending.setdefault(last.get(position, position), []).append(places[position])
        free += ending.pop(position, [])
    if end > stack_bytes:
        raise TooLarge(f"the event needs {end} bytes of stack, and a program has {stack_bytes}")
    return places, end


# ------------------------------------------------------------------------------
# The set of threads to record: it grows with each thread that one of them starts, and shrinks with
# each that ends, so that no number is in it when another process gets that.

NOT_FOLLOWED = 8
"""Where in the array of counters the number of threads is that the set had no room for."""


def children_code(rules: BpfRules, maps: Maps, child: int) -> Code:
    """The program of the tracepoint ``sched_process_fork``.

    ``child`` is the offset of the new thread's number in the tracepoint's record.
    """
    assert maps.threads is not None
    asm = Assembler()
    end = asm.fresh()
    asm.move(CONTEXT, R1)
    asm.call(rules.helpers["get_current_pid_tgid"])
    asm.store(FRAME, -4, R0, 4)
    _look_up(asm, rules.helpers, maps.threads)
    asm.jump_if("eq", R0, 0, end)
    asm.load(R1, CONTEXT, child, 4)
    asm.store(FRAME, -4, R1, 4)
    asm.store_constant(FRAME, -8, 1, 4)
    asm.map(R1, maps.threads)
    asm.move(R2, FRAME)
    asm.compute_with("add", R2, -4)
    asm.move(R3, FRAME)
    asm.compute_with("add", R3, -8)
    asm.constant(R4, 0)
    asm.call(rules.helpers["map_update_elem"])
    asm.jump_if("eq", R0, 0, end)
    asm.map_value(R1, maps.lost, NOT_FOLLOWED)
    asm.constant(R2, 1)
    asm.atomic_add(R1, 0, R2)
    asm.place(end)
    asm.end()
    return Code(asm.instructions(), ())


def ended_code(rules: BpfRules, maps: Maps) -> Code:
    """The program of the tracepoint ``sched_process_exit``, which the ending thread runs."""
    assert maps.threads is not None
    asm = Assembler()
    asm.call(rules.helpers["get_current_pid_tgid"])
    asm.store(FRAME, -4, R0, 4)
    asm.map(R1, maps.threads)
    asm.move(R2, FRAME)
    asm.compute_with("add", R2, -4)
    asm.call(rules.helpers["map_delete_elem"])
    asm.end()
    return Code(asm.instructions(), ())


def _look_up(asm: Assembler, helpers: Mapping[str, int], map: int) -> None:
    # The key is the last word of the stack.
    asm.map(R1, map)
    asm.move(R2, FRAME)
    asm.compute_with("add", R2, -4)
    asm.call(helpers["map_lookup_elem"])
