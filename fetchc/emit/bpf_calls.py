"""The part of an eBPF program that times calls: from the entry to the return of the same one.

A hash map has the calls that were entered and have not returned. What identifies a call is as in
:class:`fetchc.tracer.events.OpenCalls`: the process, and where the frame is. A frame that longjmp,
an exception or the end of its thread has left gives its place to the next call there.

The time from one function to another is that of a process: the entry of a process stays in the map,
as several threads may look at it, and its begin is 0 where no time goes on.
"""

from __future__ import annotations

from fetchc.emit.bpf_assembler import CONTEXT, FRAME, R0, R1, R2, R3, R4, R7, R9, Assembler
from fetchc.emit.bpf_layout import (
    ELAPSED,
    WORD,
    TooLarge,
    noted_place,
)
from fetchc.emit.bpf_steps import (
    Code,
    StepEmitter,
)
from fetchc.ir.steps import Identify, Note, ReadMemory
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.emit.bpf_steps import Target
    from fetchc.ir.steps import Program, Step

__all__ = ["CALL_BYTES", "FORGOTTEN", "Call", "CallEmitter", "entry_code", "open_bytes"]

_PROCESS, _STACK, _PLACE = 0, 8, 16  # in the key: numbers of 64 bits
CALL_BYTES = 24
"""The size of the keys of the map of open calls."""

_NESTED = 7


def open_bytes(noted: int) -> int:
    """The size of its values: how many calls are open in one frame, and what is noted of each.

    That is when it began, and so many words of its entry. A call that is recorded began at 0.
    They are one but for tail calls, which begin where the frame of the caller was and return with
    it.
    """
    return WORD + _NESTED * WORD * (1 + noted)


_ANY, _NEW = 0, 1  # BPF_ANY, BPF_NOEXIST


class Call(Record):
    """Steps that identify a call, and maybe note so many words; and the map of open calls.

    ``empty`` is an array with one value of that map, which is 0: of a frame without an open call.
    """

    program: Program
    map: int
    empty: int
    noted: int = 0


class CallEmitter(StepEmitter):
    """Notes the begin of a call, or takes the note and has the time since then."""

    def __init__(self, call: Call, target: Target, asm: Assembler) -> None:
        super().__init__(call.program, target, asm, used=-ELAPSED + WORD * call.noted)
        self._map = call.map
        self._noted = [noted_place(number) for number in range(call.noted)]
        self._slot = WORD * (1 + call.noted)
        self._open = open_bytes(call.noted)
        self._empty = call.empty
        self._key = -self.stack_used - CALL_BYTES
        if -self._key > target.rules.stack_bytes:
            raise TooLarge(f"what identifies a call needs {-self._key} bytes of stack")
        self._unknown = asm.fresh()
        self._unread = asm.fresh()
        self._in_goroutine = self._in_process = self._is_identified = False

    def begin(self) -> bool:
        """Note the time, and end; a call that the map has no room for is counted.

        Whether the program goes on: where the entry is to be recorded, as something that is
        to be noted could not be read.
        """
        asm, helpers = self._asm, self._helpers
        fresh, full, room, lost, done, began, record, known = [asm.fresh() for _ in range(8)]
        for place in self._noted:
            asm.store_constant(FRAME, place, 0, WORD)
        self._identify()
        asm.call(helpers["ktime_get_ns"])
        asm.move(R9, R0)
        if asm.leads_to(self._unread):
            asm.jump(began)
            asm.place(self._unread)
            asm.constant(R9, 0)
            asm.place(began)
        if self._in_process:
            self._look_up()
            asm.jump_if("ne", R0, 0, known)
        elif not self._in_goroutine:  # there a panic has left what is open in the frame
            self._look_up()
            asm.jump_if("eq", R0, 0, fresh)
            asm.load(R1, R0, 0, WORD)
            asm.jump_if("ge", R1, _NESTED, full)
            asm.jump(room)
            asm.place(full)  # the oldest one gives room
            self._forget()
            for at in range(WORD, self._open - self._slot, WORD):
                asm.load(R1, R0, at + self._slot, WORD)
                asm.store(R0, at, R1, WORD)
            asm.constant(R1, _NESTED - 1)
            asm.jump(room)
            asm.place(fresh)
        asm.map(R1, self._map)
        asm.move(R2, FRAME)
        asm.compute_with("add", R2, self._key)
        asm.map_value(R3, self._empty, 0)
        asm.constant(R4, _NEW if self._in_process else _ANY)
        asm.call(helpers["map_update_elem"])
        if not self._in_process:  # another thread may have done it
            asm.jump_if("ne", R0, 0, lost)
        self._look_up()
        asm.jump_if("eq", R0, 0, lost)
        if self._in_process:
            asm.place(known)
        asm.constant(R1, 0)
        if asm.leads_to(room):
            asm.place(room)
        self._at_last()
        asm.store(R3, WORD, R9, WORD)
        self._copy_noted(R3, WORD)
        asm.compute_with("add", R1, 1)
        asm.store(R0, 0, R1, WORD)
        asm.jump(done)
        asm.place(lost)
        self._forget()
        asm.place(done)
        if asm.leads_to(self._unread):
            asm.jump_if("eq", R9, 0, record)
        if asm.leads_to(self._unknown):
            asm.place(self._unknown)
        asm.end()
        if not asm.leads_to(self._unread):
            return False
        asm.place(record)
        return True

    def _copy_noted(self, base: int, time: int) -> None:
        # After the time.
        for number, place in enumerate(self._noted, 1):
            self._asm.load(R2, FRAME, place, WORD)
            self._asm.store(base, time + WORD * number, R2, WORD)

    def elapsed(self) -> None:
        """Have the time since the begin at :data:`ELAPSED`, all bits where that was not noted."""
        asm = self._asm
        asm.store_constant(FRAME, ELAPSED, -1, WORD)
        for place in self._noted:
            asm.store_constant(FRAME, place, 0, WORD)
        self._identify()
        self._look_up()
        asm.jump_if("eq", R0, 0, self._unknown)
        if self._in_process:
            self._take_time()
        else:
            self._take_call()
        asm.call(self._helpers["ktime_get_ns"])
        asm.compute("sub", R0, R9)
        asm.store(FRAME, ELAPSED, R0, WORD)
        asm.place(self._unknown)

    def _take_time(self) -> None:
        # Of two threads that take it at the same time one has it.
        asm = self._asm
        asm.move(R7, R0)
        asm.load(R0, R7, WORD, WORD)
        asm.jump_if("eq", R0, 0, self._unknown)
        asm.move(R9, R0)
        asm.constant(R1, 0)
        asm.compare_exchange(R7, WORD, R1)
        asm.jump_if_both("ne", R0, R9, self._unknown)

    def _take_call(self) -> None:
        asm, last = self._asm, self._asm.fresh()
        asm.load(R1, R0, 0, WORD)
        asm.compute_with("add", R1, -1)
        asm.jump_if("ge", R1, _NESTED, self._unknown)
        asm.store(R0, 0, R1, WORD)
        self._at_last()
        asm.load(R9, R3, WORD, WORD)
        for number, place in enumerate(self._noted, 1):
            asm.load(R2, R3, WORD + WORD * number, WORD)
            asm.store(FRAME, place, R2, WORD)
        asm.jump_if("ne", R1, 0, last)
        asm.map(R1, self._map)
        asm.move(R2, FRAME)
        asm.compute_with("add", R2, self._key)
        asm.call(self._helpers["map_delete_elem"])
        asm.place(last)
        if self._noted:
            asm.jump_if("eq", R9, 0, self._unknown)

    def _identify(self) -> None:
        for position, step in enumerate(self._steps):
            self.step(position, step)

    def step(self, position: int, step: Step) -> None:
        """Emit the step; what cannot be identified is no call."""
        asm = self._asm
        match step:
            case ReadMemory():
                failed = self._unread if self._is_identified else self._unknown
                self.step_or(position, step, failed)
            case Note(values=values):
                for place, value in zip(self._noted, values, strict=True):
                    self.value(R1, value)
                    asm.store(FRAME, place, R1, WORD)
            case Identify(place=None):
                self._is_identified = self._in_process = True
                asm.call(self._helpers["get_current_pid_tgid"])
                asm.compute_with("rsh", R0, 32)
                asm.store(FRAME, self._key + _PROCESS, R0, WORD)
                asm.store_constant(FRAME, self._key + _STACK, 0, WORD)
                asm.store_constant(FRAME, self._key + _PLACE, 0, WORD)
            case Identify(stack=stack, place=int() as place):
                self._is_identified = True
                known = asm.fresh()
                asm.call(self._helpers["get_current_pid_tgid"])
                asm.move(R7, R0)
                asm.compute_with("rsh", R0, 32)
                asm.store(FRAME, self._key + _PROCESS, R0, WORD)
                asm.constant(R1, 0)
                if stack is not None:
                    # Every thread has a system stack, and they all have the number 0.
                    self._in_goroutine = True
                    self.value(R1, stack)
                    asm.jump_if("ne", R1, 0, known)
                    asm.compute_with("lsh", R7, 32)
                    asm.compute_with("arsh", R7, 32)
                    asm.compute("sub", R1, R7)
                    asm.place(known)
                asm.store(FRAME, self._key + _STACK, R1, WORD)
                self.value(R1, place)
                asm.store(FRAME, self._key + _PLACE, R1, WORD)
            case _:
                super().step(position, step)

    def _at_last(self) -> None:
        # R3 leads to the word before what is noted of number R1, which is less than all.
        asm = self._asm
        asm.move(R2, R1)
        asm.compute_with("mul", R2, self._slot)
        asm.move(R3, R0)
        asm.compute("add", R3, R2)

    def _forget(self) -> None:
        asm = self._asm
        asm.map_value(R1, self._target.maps.lost, FORGOTTEN)
        asm.constant(R2, 1)
        asm.atomic_add(R1, 0, R2)

    def _look_up(self) -> None:
        asm = self._asm
        asm.map(R1, self._map)
        asm.move(R2, FRAME)
        asm.compute_with("add", R2, self._key)
        asm.call(self._helpers["map_lookup_elem"])


FORGOTTEN = 8
"""Where in the array of counters the number of calls is that the map had no room for."""


def entry_code(call: Call, target: Target) -> Code:
    """The program of an entry, which records nothing."""
    asm = Assembler()
    asm.move(CONTEXT, R1)
    emitter = CallEmitter(call, target, asm)
    emitter.only_recorded()
    emitter.begin()
    return Code(asm.instructions(), ())
