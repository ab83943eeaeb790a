"""The instructions of an eBPF program's steps, and what such a program is emitted for.

Nothing here needs a kernel. Registers: the context is ``pt_regs``, or for a tracepoint its
arguments or its record; R8 the record, R7 the address
that a step reads from, R9 a number of bytes; values of steps are in the program's stack.

The verifier follows every path, and two paths are one again where they differ in nothing that
counts. So faults are kept in the record, whose bytes it does not track, and not in a register.
"""

from __future__ import annotations

from fetchc.emit.bpf_assembler import CONTEXT, FRAME, R0, R1, R2, R3, R4, R7, R8, R9
from fetchc.emit.bpf_layout import (
    ELAPSED,
    WORD,
    noted_place,
    value_places,
)
from fetchc.ir.step_support import THREAD_POINTER
from fetchc.ir.steps import (
    COMM_BYTES,
    NUMBER,
    PAGE_BYTES,
    TASK_NAME_WORDS,
    TIMED_BITS,
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
    from collections.abc import Callable, Mapping

    from fetchc.emit.bpf_assembler import Assembler, Instruction
    from fetchc.ir.steps import Program, Step
    from fetchc.target.bpf_rules import BpfMachine, BpfRules

    Start = tuple[int, tuple[str, ...], Step | None]

__all__ = [
    "FOLLOWED",
    "NOWHERE",
    "PROBED",
    "STOPPED",
    "THREADS",
    "WAITING",
    "Code",
    "Maps",
    "Point",
    "StackRoom",
    "StepEmitter",
    "Target",
    "look_up",
    "purpose",
    "thread_byte",
]

NOWHERE = -1
"""An address that no program can read."""

_TASK_HELPERS = {"cpu": "get_smp_processor_id", "task": "get_current_task"}
_PLAN_BITS = 16  # of a cookie; the file offset is above them


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

    In that array :data:`STOPPED` says whether hits are recorded. ``threads`` is an array of one
    value, which has :data:`THREADS` bytes: that of a thread's number is :data:`FOLLOWED` where it
    is to be recorded, :data:`WAITING` where it is to be once it executes a program. None: all are.
    """

    ring: int
    lost: int
    threads: int | None = None


STOPPED = 16
"""Where in the array of counters the 64 bits are that are 0 while the session runs."""

THREADS = 1 << 22
"""PID_MAX_LIMIT of a kernel of 64 bits: more than any thread's number."""


FOLLOWED, WAITING = 1, 2


class StackRoom(Record):
    """Room for the thread's stack, at the end of a record.

    ``copied`` bytes from the stack pointer up, after the context of the program (``pt_regs``,
    ``context`` bytes) and the number of bytes that could be read, 64 bits. Where that is 0:
    ``walked`` return addresses, which the kernel finds by frame pointers, after the number of
    their bytes.
    """

    copied: int
    context: int = 0
    walked: int = 0

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return self.context + WORD + self.copied + WORD * self.walked


class Code(Record):
    """A program. ``starts`` are, in rising order, the first instruction of each step.

    Each comes with the names of the fields that the step is for, and with the step; None: what
    every record has. ``functions`` are the first instructions of the functions that it has besides.
    """

    instructions: tuple[Instruction, ...]
    starts: tuple[Start, ...]
    functions: tuple[int, ...] = ()

    def bytes(self) -> bytes:
        """What bpf(2) loads."""
        return b"".join([one.bytes() for one in self.instructions])

    def step_at(self, instruction: int) -> tuple[tuple[str, ...], Step | None]:
        """The step that an instruction is of, and the fields it is for; none: of all of them."""
        found: tuple[tuple[str, ...], Step | None] = ((), None)
        for start, names, step in self.starts:
            if start > instruction:
                break
            found = names, step
        return found


def purpose(step: Step | None) -> str:
    """What the program does there, in words that complete "where the program": for messages."""
    match step:
        case None:
            return "prepares or sends the record"
        case ReadMemory():
            return "reads a number from memory"
        case EmitMemory():
            return "reads memory into the record"
        case EmitText():
            return "reads a string into the record"
        case EmitContents():
            return "reads a string or a slice into the record"
        case EmitNumber():
            return "writes a number into the record"
        case EmitComm():
            return "writes the name of the task into the record"
        case LoadBias():
            return "computes where the file is loaded"
        case Arithmetic() | Select() | Elapsed():
            return "computes a number"
        case ReadRegister() | Constant() | ContextAddress() | ReadTask() | ReadCursor():
            return "takes a number"
        case ReadEntry():
            return "takes a number of the entry"
        case Loop():
            return "walks a container"
        case Aggregate():
            return "counts the hit"
        case Identify():
            return "identifies the call"
        case Note():
            return "notes numbers of the entry"
        case Require():
            return "applies the filter"
        case _:
            assert_never(step)


class Target(Record):
    """What a program is emitted for; see :func:`ring_record`. ``probed``: see :data:`PROBED`."""

    machine: BpfMachine
    rules: BpfRules
    maps: Maps
    point: Point | None
    returning: bool
    sleepable: bool
    stack: StackRoom | None
    probed: str = "program"


PROBED = ("program", "function", "trampoline", "tracepoint")
"""What is probed: code of a program, a function of the kernel with a breakpoint or without one, a
tracepoint or its event.

Where a program is probed, all memory is its own.
"""


class StepEmitter:
    """Emits steps, one by one; values are in the program's stack, R8 is the record."""

    def __init__(
        self,
        program: Program,
        target: Target,
        asm: Assembler,
        cursors: tuple[int, int] = (FRAME, 0),
        used: int = WORD,
    ) -> None:
        """``cursors``: the register and offset where those are; ``used`` bytes of stack are."""
        self._program = program
        self._steps = program.steps
        self._cursors = cursors
        self._target = target
        self._helpers = target.rules.helpers
        self._read = self._reader(user=target.probed == "program")
        self._room = 0  # of the strings in the record that is being written
        self._larger: str | None = None  # where a larger record is begun
        self._asm = asm
        self._starts: list[Start] = []
        limit = target.rules.stack_bytes
        for step in program.steps:
            if isinstance(step, Elapsed):
                used = max(used, -ELAPSED)
            elif isinstance(step, ReadEntry):
                used = max(used, -noted_place(step.number))
        if any(isinstance(one, ReadTask) and one.name in TASK_NAME_WORDS for one in program.steps):
            used += COMM_BYTES
        self._task_name = -used
        self._places, self.stack_used = value_places(program.steps, limit, used, ())

    def _reader(self, user: bool) -> int:
        # The helper that reads memory: of the process alone, or of whom the address is.
        if user:
            return self._helpers["copy_from_user" if self._target.sleepable else "probe_read_user"]
        return self._helpers["probe_read"]

    def _reading(self, user: bool) -> None:
        # Have what is emitted next read so; in a program's probe all memory is of the process.
        self._read = self._reader(user or self._target.probed == "program")

    @property
    def _waits(self) -> bool:
        # Whether what is read next is brought in where it is not there.
        return self._read == self._helpers.get("copy_from_user")

    def no_faults(self) -> None:
        """Begin the record with no fault."""
        for word in range(-(-self._program.faults // 64)):
            self._asm.store_constant(R8, self._program.faults_at + WORD * word, 0, WORD)

    def only_recorded(self) -> None:
        """End the program where the session does not run, or does not follow the thread.

        So all probes of a session begin and stop at once. Links do so one after the other: entries
        would be noted without their returns, and a return whose entry is no longer noted could find
        that of an older call, which had none.
        """
        asm, running, known = self._asm, self._asm.fresh(), self._asm.fresh()
        asm.map_value(R1, self._target.maps.lost, STOPPED)
        asm.load(R1, R1, 0, WORD)
        asm.jump_if("eq", R1, 0, running)
        asm.end()
        asm.place(running)
        threads = self._target.maps.threads
        if threads is None:
            return
        asm.call(self._helpers["get_current_pid_tgid"])
        thread_byte(asm, threads, R0)
        asm.load(R0, R1, 0, 1)
        asm.jump_if("eq", R0, FOLLOWED, known)
        asm.end()
        asm.place(known)

    def _number(self, at: int = NUMBER) -> None:
        # Of the plan.
        asm = self._asm
        if self._target.point is None:
            self._cookie()
            asm.compute_with("and", R0, (1 << _PLAN_BITS) - 1)
            asm.store(R8, at, R0, 4)
        else:
            asm.store_constant(R8, at, self._target.point.number, 4)

    def _cookie(self) -> None:
        self._asm.move(R1, CONTEXT)
        self._asm.call(self._helpers["get_attach_cookie"])

    def _probed_address(self, register: int) -> None:
        asm = self._asm
        machine, at_return = self._target.machine, self._target.returning
        known = self._target.probed == "program" and not at_return
        without = self._target.probed == "trampoline" and "get_func_ip" not in self._helpers
        if self._target.probed == "tracepoint" or without:
            asm.constant(register, 0)
        elif "get_func_ip" in self._helpers and not known:
            asm.move(R1, CONTEXT)
            asm.call(self._helpers["get_func_ip"])
            asm.move(register, R0)
        elif at_return:  # where the thread is by then
            asm.constant(register, 0)
        else:
            asm.load(register, CONTEXT, machine.registers[machine.program_counter], 8)
            if self._target.probed == "function" and machine.behind_kprobe:
                asm.compute_with("add", register, -machine.behind_kprobe)

    def step(self, position: int, step: Step) -> None:
        """Emit the step at that position."""
        asm, place = self._asm, self._places.get(position, 0)
        match step:
            case ReadRegister() | ReadCursor() | Constant() | Elapsed() | ReadEntry():
                pass  # taken from where it is by each step that uses it
            case LoadBias():
                self._load_bias()
                asm.store(FRAME, place, R0, 8)
            case ContextAddress():
                self._context_address(place)
            case ReadTask(name=name) if name == THREAD_POINTER:
                self._thread_pointer(place)
            case ReadTask(name=name):
                self._read_task(name)
                asm.store(FRAME, place, R0, 8)
            case ReadMemory(base=base, fault=fault, user=user):
                self._reading(user)
                failed, done = asm.fresh(), asm.fresh()
                self._only_when(step, place, done)
                self.unless_fault(base, failed)
                self.load(step, place)
                asm.jump_if("ne", R0, 0, failed)
                asm.jump(done)
                asm.place(failed)
                self._set_fault(fault)
                asm.store_constant(FRAME, place, 0, WORD)
                asm.place(done)
            case Arithmetic(operation=operation, left=left, right=right):
                self.value(R1, left)
                self.value(R2, right)
                self._arithmetic(operation)
                asm.store(FRAME, place, R1, 8)
            case Select(condition=condition, nonzero=nonzero, zero=zero):
                self.value(R1, condition)
                self._nonzero()
                asm.constant(R1, 0)
                asm.compute("sub", R1, R3)
                self.value(R2, nonzero)
                self.value(R3, zero)
                asm.compute("xor", R2, R3)
                asm.compute("and", R2, R1)
                asm.compute("xor", R2, R3)
                asm.store(FRAME, place, R2, 8)
            case EmitNumber(value=value, at=at, size=size):
                failed, done = asm.fresh(), asm.fresh()
                self.unless_fault(value, failed)
                self.value(R1, value)
                asm.store(R8, at, R1, size)
                if faults_of(self._program.steps, value):
                    asm.jump(done)
                    asm.place(failed)
                    asm.store_constant(R8, at, 0, size)
                    asm.place(done)
            case EmitMemory(user=user):
                self._reading(user)
                self._memory(step)
            case EmitText(user=user):
                self._reading(user)
                self._text(step)
            case EmitContents(user=user):
                self._reading(user)
                self._contents(step)
            case EmitComm(word=word, at=at):
                asm.store_constant(R8, word, COMM_BYTES << 16 | at, 4)
                asm.move(R1, R8)
                asm.compute_with("add", R1, at)
                asm.constant(R2, COMM_BYTES)
                asm.call(self._helpers["get_current_comm"])
            case Aggregate() | Identify() | Note() | Require() | Loop():
                raise AssertionError("a record is not counted, and an entry has no walks")
            case _:
                assert_never(step)

    def step_or(self, position: int, step: ReadMemory | Elapsed | ReadEntry, unknown: str) -> None:
        """Emit the step; go on at ``unknown`` where there is no such number."""
        asm = self._asm
        if not isinstance(step, ReadMemory):
            asm.load(R1, FRAME, ELAPSED, WORD)
            asm.compute_with("rsh", R1, TIMED_BITS)
            asm.jump_if("ne", R1, 0, unknown)
            return
        self._reading(step.user)
        place, done = self._places[position], asm.fresh()
        self._only_when(step, place, done)
        self.load(step, place)
        asm.jump_if("ne", R0, 0, unknown)
        asm.place(done)

    def _thread_pointer(self, place: int) -> None:
        asm = self._asm
        asm.call(self._helpers["get_current_task"])
        asm.move(R3, R0)
        asm.compute_with("add", R3, self._target.machine.thread_pointer)
        asm.move(R1, FRAME)
        asm.compute_with("add", R1, place)
        asm.constant(R2, WORD)
        asm.call(self._helpers["probe_read"])

    def _read_task(self, name: str) -> None:
        # To R0.
        asm = self._asm
        if name in TASK_NAME_WORDS:
            asm.move(R1, FRAME)
            asm.compute_with("add", R1, self._task_name)
            asm.constant(R2, COMM_BYTES)
            asm.call(self._helpers["get_current_comm"])
            asm.load(R0, FRAME, self._task_name + WORD * TASK_NAME_WORDS.index(name), WORD)
            return
        asm.call(self._helpers[_TASK_HELPERS.get(name, "get_current_pid_tgid")])
        if name == "thread":
            asm.compute_with("lsh", R0, 32)
        if name not in _TASK_HELPERS:
            asm.compute_with("rsh", R0, 32)

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

    def _context_address(self, place: int) -> None:
        # The verifier allows no arithmetic on it. What is read from memory is a number.
        asm = self._asm
        asm.store(FRAME, -WORD, CONTEXT, WORD)
        asm.move(R1, FRAME)
        asm.compute_with("add", R1, place)
        asm.constant(R2, WORD)
        asm.move(R3, FRAME)
        asm.compute_with("add", R3, -WORD)
        asm.call(self._helpers["probe_read"])

    def _only_when(self, step: ReadMemory, place: int, done: str) -> None:
        # A number that is not read is 0.
        if step.when is not None:
            self._asm.store_constant(FRAME, place, 0, WORD)
            self.value(R1, step.when)
            self._asm.jump_if("eq", R1, 0, done)

    def load(self, step: ReadMemory, place: int, unless: int | None = None) -> None:
        """Load into the stack, at ``place``; R0 is 0 where the memory could be read.

        From nowhere, and R0 is 0, too, where the register ``unless`` has all bits.
        """
        asm = self._asm
        if step.size < WORD:
            asm.store_constant(FRAME, place, 0, WORD)

        def arguments() -> None:
            self.value(R3, step.base)
            asm.add(R3, step.offset, R1)
            if unless is not None:
                asm.compute("or", R3, unless)
            asm.move(R1, FRAME)
            asm.compute_with("add", R1, place)
            asm.constant(R2, step.size)

        self._read_resident(arguments)

    def _read_resident(self, arguments: Callable[[], None]) -> None:
        # copy_from_user checks where in the kernel the bytes go, and looks for that under a lock: a
        # sixth of all that a hit takes. So it is for pages that have to be brought in.
        asm, there = self._asm, self._asm.fresh()
        if self._waits:
            arguments()
            asm.call(self._helpers["probe_read_user"])
            asm.jump_if("eq", R0, 0, there)
        arguments()
        asm.call(self._read)
        asm.place(there)

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

    def value(self, register: int, value: int) -> None:
        """Have the value of the step at that position in a register."""
        match self._steps[value]:
            case ReadRegister(name=name):
                self._asm.load(register, CONTEXT, self._target.machine.registers[name], 8)
            case Constant(value=number):
                self._asm.constant(register, number)
            case Elapsed():
                self._asm.load(register, FRAME, ELAPSED, WORD)
            case ReadEntry(number=number):
                self._asm.load(register, FRAME, noted_place(number), WORD)
            case ReadCursor(number=number):
                start, offset = self._cursors
                self._asm.load(register, start, offset + WORD * number, 8)
            case _:
                self._asm.load(register, FRAME, self._places[value], 8)

    def unless_fault(self, value: int, label: str) -> None:
        """Jump to ``label`` where a load that the value depends on has failed."""
        for fault in faults_of(self._program.steps, value):
            self._asm.load(R1, R8, self._program.faults_at + fault // 32 * 4, 4)
            self._asm.jump_if("set", R1, _bit(fault), label)

    def _set_fault(self, fault: int) -> None:
        at = self._program.faults_at + fault // 32 * 4
        self._asm.load(R1, R8, at, 4)
        self._asm.compute_with("or", R1, _bit(fault))
        self._asm.store(R8, at, R1, 4)

    def _memory(self, step: EmitMemory) -> None:
        asm, at, size, word = self._asm, step.at, step.size, step.word
        assert word is not None, "of a key"
        failed, first, end, done = asm.fresh(), asm.fresh(), asm.fresh(), asm.fresh()
        self.unless_fault(step.base, failed)
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
        asm.constant(R7, NOWHERE)
        self._read_block(at, size)
        asm.store_constant(R8, word, 0, 4)
        asm.jump(done)
        asm.place(end)
        asm.constant(R1, at + size << 16)
        asm.compute_with("add", R9, at)
        asm.compute("or", R9, R1)
        asm.store(R8, word, R9, 4)
        asm.jump(done)
        asm.place(first)
        asm.compute_with("add", R9, at)
        asm.compute_with("lsh", R9, 16)
        asm.compute_with("or", R9, at)
        asm.store(R8, word, R9, 4)
        asm.place(done)

    def _read_block(self, at: int, size: int | None = None) -> None:
        # From R7 into the record, R9 bytes without a size; R0 is 0 where all could be read.
        asm = self._asm

        def arguments() -> None:
            asm.move(R1, R8)
            asm.compute_with("add", R1, at)
            if size is None:
                asm.move(R2, R9)
            else:
                asm.constant(R2, size)
            asm.move(R3, R7)

        self._read_resident(arguments)

    def _text(self, step: EmitText) -> None:
        asm, at = self._asm, self._text_place(step)
        failed, there, done = asm.fresh(), asm.fresh(), asm.fresh()
        self.unless_fault(step.base, failed)
        self._address(step)
        self._text_to(at, step.user)
        asm.jump_if("sgt", R0, -1, there)
        if self._waits:
            # No helper waits for a string's pages: they are brought in, and it is read
            # again.
            for offset in (*range(0, self._room, PAGE_BYTES), self._room - 1):
                self._touch(offset)
            self._text_to(at, step.user)
            asm.jump_if("sgt", R0, -1, there)
        if step.limit is not None and step.limit < self._room:
            asm.constant(R9, step.limit)
            self._read_block(at)
            asm.jump_if("ne", R0, 0, failed)
            asm.store_constant(R8, at + step.limit, 0, 1)
            asm.constant(R0, step.limit + 1)
            asm.jump(there)
        asm.place(failed)
        self._set_fault(step.fault)
        asm.store_constant(R8, step.word, 0, 4)
        asm.jump(done)
        asm.place(there)
        if self._larger is not None:
            asm.jump_if("eq", R0, self._room, self._larger)
        self._set_text(step, at)
        asm.place(done)

    def _contents(self, step: EmitContents) -> None:
        asm, most = self._asm, self._most(step)
        failed, longer, fits, partly, done = [asm.fresh() for _ in range(5)]
        self.unless_fault(step.base, failed)
        self.unless_fault(step.size, failed)
        if self._larger is not None and most < step.most:
            self._address_and_size(step, self._larger)
        else:
            self._address_and_size(step, longer)
            asm.jump(fits)
            asm.place(longer)
            asm.constant(R9, most)
        asm.place(fits)
        asm.jump_if("eq", R9, 0, done)  # wherever it leads
        self._read_block(self._text_place(step))
        asm.jump_if("eq", R0, 0, done)
        for _ in range(-(-(most - 1) // PAGE_BYTES)):  # before the page with the last byte
            asm.move(R1, R7)
            asm.compute("add", R1, R9)
            asm.compute_with("add", R1, -1)
            asm.compute_with("and", R1, -PAGE_BYTES)
            asm.jump_if_both("ge", R7, R1, failed)
            asm.move(R9, R1)
            asm.compute("sub", R9, R7)
            asm.jump_if("ge", R9, most + 1, failed)  # it never is: for the verifier
            self._read_block(self._text_place(step))
            asm.jump_if("eq", R0, 0, partly)
        asm.place(failed)
        asm.constant(R9, 0)
        asm.place(partly)
        self._set_fault(step.fault)
        asm.place(done)
        self._set_contents(step)

    def _address_and_size(self, step: EmitContents, longer: str) -> None:
        # The address to R7, the number of bytes to R9; to ``longer`` where they are too many.
        self._address(step)
        self.value(R9, step.size)
        self._asm.jump_if("ge", R9, self._most(step) + 1, longer)

    def _set_contents(self, step: EmitContents) -> None:
        asm = self._asm
        asm.compute_with("lsh", R9, 16)
        asm.compute_with("or", R9, self._text_place(step))
        asm.store(R8, step.word, R9, 4)

    def _most(self, step: EmitContents) -> int:
        return step.most if step.at is not None else min(step.most, self._room)

    def _text_place(self, step: EmitText | EmitContents) -> int:
        if isinstance(step, EmitContents) and step.at is not None:
            return step.at
        return self._program.size + step.number * self._room

    def _address(self, step: EmitMemory | EmitText | EmitContents) -> None:
        # To R7.
        self.value(R7, step.base)
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

    def _text_to(self, at: int, user: bool) -> None:
        asm, of_user = self._asm, user or self._target.probed == "program"
        asm.move(R1, R8)
        asm.compute_with("add", R1, at)
        asm.constant(R2, self._room)
        asm.move(R3, R7)
        asm.call(self._helpers["probe_read_user_str" if of_user else "probe_read_str"])

    def _touch(self, offset: int) -> None:
        # Read the byte at `offset` after R7, for its page to be there.
        asm = self._asm
        asm.move(R3, R7)
        asm.add(R3, offset, R1)
        asm.move(R1, FRAME)
        asm.compute_with("add", R1, -WORD)
        asm.constant(R2, 1)
        asm.call(self._helpers["copy_from_user"])


def _bit(fault: int) -> int:
    bit = fault % 32
    return 1 << bit if bit < 31 else -(1 << 31)  # sign-extended; the upper half is 0 there


def thread_byte(asm: Assembler, threads: int, number: int) -> None:
    """R1 is the address of a thread's byte (see :class:`Maps`); its number is in a register."""
    asm.compute_with("and", number, THREADS - 1)
    asm.map_value(R1, threads, 0)
    asm.compute("add", R1, number)


def look_up(asm: Assembler, helpers: Mapping[str, int], map: int) -> None:
    """R0 is the address of a map's value, or 0; the key is the last word of the stack."""
    asm.map(R1, map)
    asm.move(R2, FRAME)
    asm.compute_with("add", R2, -4)
    asm.call(helpers["map_lookup_elem"])
