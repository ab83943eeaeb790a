"""The part of an eBPF program that walks a container.

A walk is a function of the program, which the kernel calls once a round.
"""

from __future__ import annotations

from fetchc.emit.bpf_assembler import CONTEXT, FRAME, R0, R1, R2, R3, R4, R8, R9
from fetchc.emit.bpf_steps import NOWHERE, WORD, StepEmitter, TooLarge, entry_bytes, value_places
from fetchc.ir.steps import (
    CHANGED,
    COUNT,
    ENDED,
    ENTRIES,
    FLAGS,
    HEADER,
    OWN,
    UNREAD,
    LoadBias,
    ReadMemory,
    ReadRegister,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fetchc.emit.bpf_assembler import Assembler
    from fetchc.emit.bpf_steps import Target
    from fetchc.ir.steps import Loop, Step

__all__ = ["Walk"]


class _Straight(StepEmitter):
    """Steps of a walk that record nothing; a load that fails leads to the label ``failed``.

    All values stay, below the ``used`` bytes of the stack.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        kept: Collection[int],
        loop: Loop,
        target: Target,
        asm: Assembler,
        cursors: tuple[int, int],
        used: int,
    ) -> None:
        super().__init__(loop.entry, target, asm, cursors)
        self._steps = tuple(steps)
        self._places, self.stack_used = value_places(steps, target.rules.stack_bytes, used, kept)

    def emit(self, low: int, high: int, failed: str) -> None:
        """The steps ``low`` to ``high``."""
        asm = self._asm
        for position in range(low, high):
            step, place = self._steps[position], self._places.get(position, 0)
            assert not isinstance(step, LoadBias | ReadRegister), "a walk has cursors alone"
            if not isinstance(step, ReadMemory):
                self.step(position, step)
                continue
            if step.when is None:
                self.load(step, place)
            else:  # without a jump, as above
                self.value(R1, step.when)
                self._nonzero()
                asm.move(R9, R3)
                asm.compute_with("add", R9, NOWHERE)
                self.load(step, place, R9)
                asm.compute_with("xor", R9, -1)
                asm.compute("and", R0, R9)
            asm.jump_if("ne", R0, 0, failed)


class Walk:
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
        target: Target,
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
        self._words = -used - WORD * (cursors + 2)
        self._used = -self._words

    def call(self, emitter: StepEmitter, larger: str | None) -> None:
        """Walk, in the program itself; to ``larger`` where a text of an entry fills its room."""
        loop, asm, at = self._loop, self._asm, self._loop.at
        failed, done = asm.fresh(), asm.fresh()
        stride = entry_bytes(loop, self._room)
        asm.constant(R1, stride << 16 | self._place)
        asm.store(R8, at, R1, 4)
        asm.store_constant(R8, at + ENTRIES, 0, 4)
        asm.store_constant(R8, at + COUNT, 0, 8)
        for value in loop.start:
            emitter.unless_fault(value, failed)
        for number, value in enumerate(loop.start, 1 + len(loop.places)):
            emitter.value(R1, value)
            self._forget(R1)
            asm.store(FRAME, self._words + WORD * number, R1, 8)
        asm.store(FRAME, self._words, R8, 8)
        cursors = FRAME, self._words + WORD
        checked = (loop.count, loop.version, loop.writing)
        kept = [one for one in checked if one is not None]
        check = _Straight(loop.check, kept, loop, self._target, asm, cursors, self._used)
        self._stack = check.stack_used
        check.emit(0, len(loop.check), failed)
        version = self._words + WORD * (len(loop.start) + len(loop.places) + 1)
        if loop.count is not None:
            check.value(R1, loop.count)
            asm.store(R8, at + COUNT, R1, 8)
        if loop.version is not None:
            check.value(R1, loop.version)
            asm.store(FRAME, version, R1, 8)
        if loop.writing is not None:
            idle = asm.fresh()
            check.value(R1, loop.writing)
            asm.jump_if("eq", R1, 0, idle)
            self._flag(CHANGED)
            asm.place(idle)
        self._rounds()
        if larger is not None:
            asm.load(R1, R8, at + FLAGS, 2)
            asm.jump_if("set", R1, _LARGER, larger)
        check.emit(0, len(loop.check), failed)
        changed = asm.fresh()
        compared = ((loop.count, R8, at + COUNT), (loop.version, FRAME, version))
        for result, base, offset in compared:
            if result is not None:
                check.value(R1, result)
                asm.load(R2, base, offset, 8)
                asm.jump_if_both("ne", R1, R2, changed)
        if loop.writing is not None:
            check.value(R1, loop.writing)
            asm.jump_if("ne", R1, 0, changed)
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
        cursors = CONTEXT, WORD
        body = _Straight(loop.body, kept, loop, self._target, asm, cursors, WORD)
        moved = body.stack_used + WORD * len(loop.next)
        entry = _EntryEmitter(loop.entry, self._target, asm, cursors, moved)
        if self._stack + entry.stack_used > self._target.rules.stack_bytes - _ROUNDED:
            raise TooLarge(f"a walk needs {self._stack + entry.stack_used} bytes of stack")
        body.emit(0, loop.tested, failed)
        body.value(R1, loop.end)
        asm.jump_if("ne", R1, 0, ended)
        body.emit(loop.tested, len(loop.body), failed)
        for number, value in enumerate(loop.places, 1):
            body.value(R1, value)
            asm.store(CONTEXT, WORD * number, R1, 8)
        body.value(R1, loop.found)
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
        asm.compute_with("mul", R1, entry_bytes(loop, self._room))
        asm.compute_with("add", R1, self._place - HEADER)
        asm.compute("add", R8, R1)
        entry.entry(self._room, larger)
        asm.place(next)
        places = [-moved + WORD * number for number in range(len(loop.next))]
        for place, value in zip(places, loop.next, strict=True):
            body.value(R1, value)
            asm.store(FRAME, place, R1, 8)
        asm.load(R8, CONTEXT, 0, 8)
        for number, place in enumerate(places, 1 + len(loop.places)):
            asm.load(R1, FRAME, place, 8)
            self._forget(R1)
            asm.store(CONTEXT, WORD * number, R1, 8)
        asm.end()
        for label, flag in ((ended, ENDED), (failed, UNREAD), (larger, _LARGER), (stop, 0)):
            if asm.leads_to(label):
                asm.place(label)
                asm.load(R8, CONTEXT, 0, 8)
                self._flag(flag)
                asm.end(1)
        return first


class _EntryEmitter(StepEmitter):
    """What is recorded of an entry: R8 is where its header would be."""

    def entry(self, room: int, larger: str) -> None:
        """All steps; to ``larger`` where a text fills its room."""
        self._room, self._larger = room, larger
        self.no_faults()
        for position, step in enumerate(self._steps):
            self.step(position, step)


_LARGER = 8  # a flag that no record is submitted with: a text of an entry has filled its room
_FOLLOWED_ROUNDS = 48  # where the verifier follows each of them
_ROUNDED = 64  # bytes that the kernel may round the two stacks up by
