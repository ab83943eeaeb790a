"""From steps to a whole eBPF program: it makes one record for each hit, or counts it.

It reserves room in a ring buffer, runs the steps, and submits.
"""

from __future__ import annotations

from fetchc.emit.bpf_assembler import CONTEXT, FRAME, R0, R1, R2, R3, R4, R5, R7, R8, R9, Assembler
from fetchc.emit.bpf_calls import CallEmitter
from fetchc.emit.bpf_counting import Counting
from fetchc.emit.bpf_layout import (
    ELAPSED,
    WORD,
    record_bytes,
    text_rooms,
    walk_bytes,
)
from fetchc.emit.bpf_steps import (
    FOLLOWED,
    Code,
    Maps,
    Point,
    StepEmitter,
    Target,
    look_up,
    thread_byte,
)
from fetchc.emit.bpf_walks import Walk, followed_rounds
from fetchc.ir.steps import (
    ADDRESS,
    CPU,
    PAGE_BYTES,
    PROCESS,
    THREAD,
    TIME,
    Elapsed,
    Loop,
    ReadEntry,
    ReadMemory,
    Require,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.emit.bpf_calls import Call
    from fetchc.emit.bpf_counting import Counted
    from fetchc.emit.bpf_steps import StackRoom
    from fetchc.ir.steps import Program, Step
    from fetchc.target.bpf_rules import BpfMachine, BpfRules

__all__ = [
    "children_code",
    "ended_code",
    "executed_code",
    "ring_record",
    "sampled_bytes",
    "sampled_record",
]

_THIS_PROCESSOR = 0xFFFFFFFF  # BPF_F_CURRENT_CPU
_USER_STACK = 1 << 8  # BPF_F_USER_STACK
_NO_WAKE_UP = 1  # BPF_RB_NO_WAKEUP: the reader looks every few milliseconds


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
    call: Call | None = None,
    filter: Program | None = None,
    probed: str = "program",
    entering: bool = False,
) -> Code:
    """The program that records ``program`` at a hit.

    ``point`` is where it is attached; None: at several points, each of which has its cookie.
    ``counted``: a hit is counted where it can be, and recorded only where not: a load failed, a
    text is too long for a key, the map is full. ``stack``: a record has that, too.
    ``call``: at a return, which call it is of, for the time since the entry. ``entering``: at its
    entry, which is recorded only where numbers for the return cannot be noted. ``filter``: the hits
    that it lets pass. ``probed`` is one of :data:`PROBED`. Raises TooLarge where the event does not
    fit.
    """
    target = Target(machine, rules, maps, point, returning, sleepable, stack, probed)
    asm = Assembler()
    used = WORD if call is None else -ELAPSED + WORD * call.noted
    counting = None if counted is None else Counting(counted, target, asm, used)
    emitter = _RecordEmitter(program, target, asm)
    if filter is not None:
        emitter.filter = _FilterEmitter(filter, target, asm, used=used)
    return emitter.code(counting, call, entering)


def sampled_record(
    program: Program, machine: BpfMachine, rules: BpfRules, number: int, buffer: int, output: int
) -> Code:
    """The program of an event of perf that sends its record in a sample of another event.

    ``buffer`` is an array of one value for each processor, in which the record is made; ``output``
    has the event of each processor whose samples carry records. The program counter is the address.
    Raises TooLarge.
    """
    target = Target(machine, rules, Maps(-1, -1), Point(number, 0, False), False, False, None)
    return _SampleEmitter(program, target, buffer, output).code()


def sampled_bytes(program: Program, rules: BpfRules) -> int:
    """The size of such a record, in bytes: each text has the largest room."""
    return program.size + program.texts * max(text_rooms(program, rules), default=0)


class _RecordEmitter(StepEmitter):
    """Emits a program that makes a record in the ring buffer."""

    filter: _FilterEmitter | None = None

    def code(
        self, counting: Counting | None = None, call: Call | None = None, entering: bool = False
    ) -> Code:
        asm = self._asm
        asm.move(CONTEXT, R1)
        self.only_recorded()
        if call is not None and entering:
            if not CallEmitter(call, self._target, asm).begin():
                return Code(asm.instructions(), ())
        elif call is not None:
            CallEmitter(call, self._target, asm).elapsed()
        unknown = asm.fresh() if counting is None else counting.recorded
        if self.filter is not None:
            self._starts.append((len(asm), (), self.filter.last))
            self.filter.emit(unknown)
            self._starts.append((len(asm), (), None))
        if counting is not None:
            self._starts += counting.count()
        else:
            asm.place(unknown)
        rooms = text_rooms(self._program, self._target.rules) or (0,)
        walks: list[Walk] = []
        for position, room in enumerate(rooms):
            self._room = room
            self._larger = asm.fresh() if position + 1 < len(rooms) else None
            walks += self._record(record_bytes(self._program, room))
            if self._larger is not None:
                asm.place(self._larger)
                self._starts.append((len(asm), (), None))
                asm.move(R1, R8)
                asm.constant(R2, _NO_WAKE_UP)
                asm.call(self._helpers["ringbuf_discard"])
        functions = [walk.function(self._starts) for walk in walks]
        return Code(asm.instructions(), tuple(self._starts), tuple(functions))

    def _record(self, size: int) -> list[Walk]:
        # The walks of which the functions are to follow.
        asm = self._asm
        self._reserve(size)
        self._header()
        self.no_faults()
        walks: list[Walk] = []
        place = self._program.size + self._program.texts * self._room
        rounds = followed_rounds(self._program)
        for position, step in enumerate(self._program.steps):
            self._starts.append((len(asm), self._program.fields[position], step))
            if isinstance(step, Loop):
                names = self._program.fields[position]
                walks.append(
                    Walk(step, names, place, self._room, self._target, asm, self.stack_used, rounds)
                )
                walks[-1].call(self._larger)
                place += walk_bytes(step, self._room)
            else:
                self.step(position, step)
        self._starts.append((len(asm), (), None))
        stack = self._target.stack
        if stack is not None:
            # It can be further into the record than an instruction's offset of 16 bits reaches.
            asm.compute_with("add", R8, size)
            if stack.copied:
                self._copy_stack(stack)
            else:
                self._walk_stack(stack)
            asm.compute_with("sub", R8, size)
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

    def _copy_stack(self, stack: StackRoom) -> None:
        # To R8, page by page: the last one that is there may not have all of the bytes.
        asm, ended = self._asm, self._asm.fresh()
        self._copy_registers(stack.context)
        self._reading(user=True)
        count, bytes_at = stack.context, stack.context + WORD
        pointer = self._target.machine.registers[self._target.machine.stack_pointer]
        for start in range(0, stack.copied, PAGE_BYTES):
            size, whole = min(PAGE_BYTES, stack.copied - start), asm.fresh()
            asm.store_constant(R8, count, start, WORD)
            asm.load(R7, R8, pointer, WORD)
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
            asm.store(R8, count, R9, WORD)
            asm.jump(ended)
            asm.place(whole)
        asm.store_constant(R8, count, stack.copied, WORD)
        asm.place(ended)

    def _copy_registers(self, size: int) -> None:
        asm = self._asm
        if self._target.probed == "program":
            for offset in range(0, size, WORD):
                asm.load(R1, CONTEXT, offset, WORD)
                asm.store(R8, offset, R1, WORD)
            return
        # The context is the kernel's: the program's registers are where it has called the kernel.
        asm.call(self._helpers["get_current_task_btf"])
        asm.move(R1, R0)
        asm.call(self._helpers["task_pt_regs"])
        asm.move(R3, R0)
        asm.move(R1, R8)
        asm.constant(R2, size)
        asm.call(self._helpers["probe_read"])

    def _walk_stack(self, stack: StackRoom) -> None:
        asm, found = self._asm, self._asm.fresh()
        asm.move(R1, CONTEXT)
        asm.move(R2, R8)
        asm.compute_with("add", R2, WORD)
        asm.constant(R3, WORD * stack.walked)
        asm.constant(R4, _USER_STACK)
        asm.call(self._helpers["get_stack"])
        asm.jump_if("sgt", R0, -1, found)
        asm.constant(R0, 0)
        asm.place(found)
        asm.store(R8, 0, R0, WORD)


class _FilterEmitter(StepEmitter):
    """Ends the program where the filter does not let the hit pass."""

    @property
    def last(self) -> Step:
        """The step that lets a hit pass or not."""
        return self._steps[-1]

    def emit(self, unknown: str) -> None:
        """Go on below, or at ``unknown`` where a load failed."""
        asm, passes = self._asm, self._asm.fresh()
        for position, step in enumerate(self._steps):
            match step:
                case ReadMemory() | Elapsed() | ReadEntry():
                    self.step_or(position, step, unknown)
                case Require(value=value):
                    self.value(R1, value)
                    asm.jump_if("ne", R1, 0, passes)
                case _:
                    self.step(position, step)
        asm.end()
        asm.place(passes)


class _SampleEmitter(_RecordEmitter):
    """Makes the record in a buffer of the processor, and sends it with a sample."""

    def __init__(self, program: Program, target: Target, buffer: int, output: int) -> None:
        super().__init__(program, target, Assembler())
        self._buffer = buffer
        self._output = output

    def code(
        self, counting: Counting | None = None, call: Call | None = None, entering: bool = False
    ) -> Code:
        self._asm.move(CONTEXT, R1)
        self._room = max(text_rooms(self._program, self._target.rules), default=0)
        self._record(sampled_bytes(self._program, self._target.rules))
        return Code(self._asm.instructions(), tuple(self._starts))

    def _reserve(self, size: int) -> None:
        asm, there = self._asm, self._asm.fresh()
        asm.store_constant(FRAME, -4, 0, 4)
        look_up(asm, self._helpers, self._buffer)
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


# ------------------------------------------------------------------------------
# The set of threads to record: it grows with each thread that one of them starts, and shrinks with
# each that ends, so that no number is in it when another process gets that.


def children_code(rules: BpfRules, maps: Maps, child: int, of_task: bool) -> Code:
    """The program of the tracepoint ``sched_process_fork``, or of the raw one (``of_task``).

    ``child`` is the offset of the new thread's number in the tracepoint's record, or in the new
    thread's task, which the raw one has as its second argument.
    """
    assert maps.threads is not None
    asm = Assembler()
    end = asm.fresh()
    asm.move(CONTEXT, R1)
    asm.call(rules.helpers["get_current_pid_tgid"])
    thread_byte(asm, maps.threads, R0)
    asm.load(R7, R1, 0, 1)
    asm.jump_if("eq", R7, 0, end)
    if of_task:
        asm.load(R3, CONTEXT, 8, 8)
        asm.compute_with("add", R3, child)
        asm.move(R1, FRAME)
        asm.compute_with("add", R1, -8)
        asm.constant(R2, 4)
        asm.call(rules.helpers["probe_read"])
        asm.jump_if("ne", R0, 0, end)
        asm.load(R0, FRAME, -8, 4)
    else:
        asm.load(R0, CONTEXT, child, 4)
    thread_byte(asm, maps.threads, R0)
    asm.store(R1, 0, R7, 1)
    asm.place(end)
    asm.end()
    return Code(asm.instructions(), ())


def executed_code(rules: BpfRules, maps: Maps) -> Code:
    """The program of the raw tracepoint ``sched_process_exec``: who waits for that is followed.

    A thread that executes a program has the number of its process from then on. Its former number,
    the second argument, is free for others.
    """
    assert maps.threads is not None
    asm = Assembler()
    end = asm.fresh()
    asm.load(R7, R1, 8, 8)
    thread_byte(asm, maps.threads, R7)
    asm.load(R0, R1, 0, 1)
    asm.jump_if("eq", R0, 0, end)
    asm.store_constant(R1, 0, 0, 1)
    asm.call(rules.helpers["get_current_pid_tgid"])
    thread_byte(asm, maps.threads, R0)
    asm.store_constant(R1, 0, FOLLOWED, 1)
    asm.place(end)
    asm.end()
    return Code(asm.instructions(), ())


def ended_code(rules: BpfRules, maps: Maps) -> Code:
    """The program of the tracepoint ``sched_process_exit``, which the ending thread runs."""
    assert maps.threads is not None
    asm = Assembler()
    asm.call(rules.helpers["get_current_pid_tgid"])
    thread_byte(asm, maps.threads, R0)
    asm.store_constant(R1, 0, 0, 1)
    asm.end()
    return Code(asm.instructions(), ())
