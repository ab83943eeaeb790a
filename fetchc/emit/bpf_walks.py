"""The part of an eBPF program that walks a container.

A walk is a function of the program, which the kernel calls once a round.
"""

from __future__ import annotations

from copy import copy

from fetchc.emit.bpf_assembler import CONTEXT, FRAME, R0, R1, R2, R3, R4, R8, R9, Assembler
from fetchc.emit.bpf_layout import (
    WORD,
    TooLarge,
    entry_bytes,
    value_places,
)
from fetchc.emit.bpf_steps import (
    NOWHERE,
    StepEmitter,
)
from fetchc.ir.steps import (
    AGAIN,
    BEFORE,
    CHANGED,
    COUNT,
    COUNTED,
    ENDED,
    ENTRIES,
    FLAGS,
    HEADER,
    OWN,
    SEEN,
    UNREAD,
    Loop,
    ReadCursor,
    ReadMemory,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from fetchc.emit.bpf_steps import Start, Target
    from fetchc.ir.steps import Program, Step

__all__ = ["Walk", "followed_rounds"]


def followed_rounds(program: Program) -> int:
    """How many rounds each walk of a program has where the kernel has no bpf_loop."""
    walks = sum([1 + step.twice for step in program.steps if isinstance(step, Loop)])
    return _FOLLOWED // max(walks, 2)


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
            if not isinstance(step, ReadMemory):
                self.step(position, step)
                continue
            if step.when is None:
                self.load(step, place)
            elif "loop" in self._helpers:
                unread, done = asm.fresh(), asm.fresh()
                self.value(R1, step.when)
                asm.jump_if("eq", R1, 0, unread)
                self.load(step, place)
                asm.jump_if("ne", R0, 0, failed)
                asm.jump(done)
                asm.place(unread)
                asm.store_constant(FRAME, place, 0, WORD)
                asm.place(done)
                continue
            else:  # without a jump, both ways of which the verifier would follow in each round
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

    The second walk records each entry after those of the first one, and compares it with that of
    its number; where they differ, the container has changed.
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
        followed: int,
    ) -> None:
        """``place`` is that of the first entry in the record, ``room`` that of its strings.

        ``followed`` is how many rounds there are where the verifier follows each of them.
        """
        self._loop = loop
        self._names = names
        self._place = place
        self._room = room
        self._target = target
        self._asm = asm
        self._followed = followed
        self._label = asm.fresh()
        cursors = len(loop.start) + len(loop.places)
        self._words = -used - WORD * (cursors + 2)
        self._used = -self._words

    def call(self, larger: str | None) -> None:
        """Walk, in the program itself; to ``larger`` where a string of an entry fills its room.

        None, or where those are not larger then: the text is cut.
        """
        largest = self._loop.text_room(self._target.rules.record_bytes)
        self._cuts = larger is None or largest <= self._room
        loop, asm, at = self._loop, self._asm, self._loop.at
        failed, done = asm.fresh(), asm.fresh()
        stride = entry_bytes(loop, self._room)
        asm.constant(R1, stride << 16 | self._place)
        asm.store(R8, at, R1, 4)
        asm.store_constant(R8, at + ENTRIES, 0, 4)
        asm.store_constant(R8, at + COUNT, 0, 8)
        asm.store_constant(R8, at + SEEN, 0, 8)
        cursors = FRAME, self._words + WORD
        begin = _Straight(loop.begin, loop.start, loop, self._target, asm, cursors, self._used)
        self._begin(begin, failed)
        checked = (loop.count, loop.version, loop.writing)
        kept = [one for one in checked if one is not None]
        check = _Straight(loop.check, kept, loop, self._target, asm, cursors, self._used)
        self._stack = max(begin.stack_used, check.stack_used)
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
        if loop.twice:
            self._again(begin, done)
        for label, flag in ((changed, CHANGED), (failed, UNREAD)):
            if asm.leads_to(label):
                asm.jump(done)
                asm.place(label)
                self._flag(flag)
        asm.place(done)

    def _begin(self, begin: _Straight, failed: str) -> None:
        # The words of the first round.
        asm, loop = self._asm, self._loop
        begin.emit(0, len(loop.begin), failed)
        for number, value in enumerate(loop.start, 1 + len(loop.places)):
            begin.value(R1, value)
            self._forget(R1)
            asm.store(FRAME, self._words + WORD * number, R1, 8)
        asm.store(FRAME, self._words, R8, 8)

    def _again(self, begin: _Straight, done: str) -> None:
        # The second walk; to ``done`` where it is as the first one.
        asm, at = self._asm, self._loop.at
        other = asm.fresh()
        asm.load(R1, R8, at + FLAGS, 2)
        asm.jump_if("set", R1, CHANGED, done)
        asm.store(R8, at + BEFORE, R1, 2)
        asm.store_constant(R8, at + FLAGS, 0, 2)
        asm.store_constant(R8, at + AGAIN, 1, 2)
        asm.store_constant(R8, at + COUNTED, 0, 8)
        self._begin(begin, other)
        self._rounds()
        same = [(FLAGS, BEFORE, 2), (ENTRIES, SEEN, 2)]
        if self._loop.count is None:
            same.append((COUNT, COUNTED, 8))
        for first, second, size in same:
            asm.load(R1, R8, at + first, size)
            asm.load(R2, R8, at + second, size)
            asm.jump_if_both("ne", R1, R2, other)
        asm.jump(done)
        asm.place(other)
        asm.load(R1, R8, at + BEFORE, 2)
        asm.compute_with("or", R1, CHANGED)
        asm.store(R8, at + FLAGS, R1, 2)

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
        asm.constant(R9, min(loop.rounds, self._most_followed()))
        asm.place(again)
        asm.constant(R1, 0)
        asm.move(R2, FRAME)
        asm.compute_with("add", R2, self._words)
        asm.call_function(self._label)
        asm.jump_if("ne", R0, 0, done)
        asm.compute_with("add", R9, -1)
        asm.jump_if("ne", R9, 0, again)
        asm.place(done)

    def _most_followed(self) -> int:
        # Fewer rounds where each has many branches.
        counted = copy(self)
        counted._asm = Assembler()
        counted.function([])
        branches = max(counted._asm.branches(), _BRANCHES)
        return max(self._followed * _BRANCHES // branches, 1)

    def _forget(self, register: int) -> None:
        # The verifier then knows nothing of the number: one round is to it as another.
        self._asm.store(R8, self._loop.at + OWN, register, 8)
        self._asm.load(register, R8, self._loop.at + OWN, 8)

    def _counted(self, count: int, entries: int, behind: str) -> None:
        # R1 is the number of the entry, counted in these words; to ``behind`` from `most` on.
        loop, asm = self._loop, self._asm
        if loop.count is None:
            asm.load(R1, R8, loop.at + count, 8)
            asm.compute_with("add", R1, 1)
            asm.store(R8, loop.at + count, R1, 8)
        asm.load(R1, R8, loop.at + entries, 2)
        asm.jump_if("ge", R1, loop.most, behind)
        asm.move(R2, R1)
        asm.compute_with("add", R2, 1)
        asm.store(R8, loop.at + entries, R2, 2)

    def _to_entry(self, register: int) -> None:
        # From the record to where the header of the entry of the number R1 would be.
        asm = self._asm
        asm.compute_with("mul", R1, entry_bytes(self._loop, self._room))
        asm.compute_with("add", R1, self._place - HEADER)
        asm.compute("add", register, R1)

    def _flag(self, flag: int) -> None:
        at = self._loop.at + FLAGS
        self._asm.load(R1, R8, at, 2)
        self._asm.compute_with("or", R1, flag)
        self._asm.store(R8, at, R1, 2)

    def function(self, starts: list[Start]) -> int:
        """The function of a round; its first instruction. It returns 1 where it is the last one."""
        loop, asm = self._loop, self._asm
        first = len(asm)
        starts.append((first, self._names, loop))
        asm.place(self._label)
        asm.move(CONTEXT, R2)
        ended, failed, larger, next, stop, other = [asm.fresh() for _ in range(6)]
        kept = {loop.end, loop.found, *loop.places, *loop.next}
        cursors = CONTEXT, WORD
        body = _Straight(loop.body, kept, loop, self._target, asm, cursors, WORD)
        following = enumerate(loop.next, len(loop.places))
        changed = [(at, one) for at, one in following if loop.body[one] != ReadCursor(at)]
        # What is another cursor is read where it is used, and has to be before that changes.
        read = [one for _, one in changed if isinstance(loop.body[one], ReadCursor)]
        places = enumerate(dict.fromkeys(read), 1)
        copies = {one: -body.stack_used - WORD * at for at, one in places}
        moved = body.stack_used + WORD * len(copies)
        entry = _EntryEmitter(loop.entry, self._target, asm, cursors, moved)
        needed = sum([-(-one // _ROUNDED) * _ROUNDED for one in (self._stack, entry.stack_used)])
        if needed > self._target.rules.stack_bytes:
            raise TooLarge(f"a walk needs {needed} bytes of stack")
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
        again, recorded = asm.fresh(), asm.fresh()
        if loop.twice:
            asm.load(R1, R8, loop.at + AGAIN, 2)
            asm.jump_if("ne", R1, 0, again)
        behind = next if loop.count is None else stop
        self._counted(COUNT, ENTRIES, behind)
        if loop.twice:
            asm.jump(recorded)
            asm.place(again)
            self._counted(COUNTED, SEEN, behind)
            asm.load(R2, R8, loop.at + ENTRIES, 2)
            asm.jump_if_both("ge", R1, R2, other)
            asm.constant(R1, loop.most)
            asm.place(recorded)
        self._to_entry(R8)
        room = loop.text_room(self._room)
        entry.entry(room, None if self._cuts else larger, compared=loop.twice)
        if loop.twice:
            asm.load(R9, CONTEXT, 0, 8)
            asm.load(R1, R9, loop.at + AGAIN, 2)
            asm.jump_if("eq", R1, 0, next)
            asm.load(R1, R9, loop.at + SEEN, 2)
            asm.compute_with("add", R1, -1)
            asm.jump_if("ge", R1, loop.most, other)
            self._to_entry(R9)
            entry.unlike(R9, other)
        asm.place(next)
        for value, place in copies.items():
            body.value(R1, value)
            asm.store(FRAME, place, R1, 8)
        asm.load(R8, CONTEXT, 0, 8)
        for number, value in changed:
            if value in copies:
                asm.load(R1, FRAME, copies[value], 8)
            else:
                body.value(R1, value)
            self._forget(R1)
            asm.store(CONTEXT, WORD * (1 + number), R1, 8)
        asm.end()
        ends = ((ended, ENDED), (failed, UNREAD), (larger, _LARGER), (other, _OTHER), (stop, 0))
        for label, flag in ends:
            if asm.leads_to(label):
                asm.place(label)
                asm.load(R8, CONTEXT, 0, 8)
                self._flag(flag)
                asm.end(1)
        return first


class _EntryEmitter(StepEmitter):
    """What is recorded of an entry: R8 is where its header would be."""

    def entry(self, room: int, larger: str | None, compared: bool) -> None:
        """All steps; to ``larger`` where a string fills its room, if it is not to be cut."""
        self._room, self._larger = room, larger
        self.no_faults()
        for at in self._starts_of_texts() if compared else ():
            self._asm.store_constant(R8, at, 0, WORD)
        for position, step in enumerate(self._steps):
            self.step(position, step)

    def unlike(self, other: int, label: str) -> None:
        """Jump where the entry at the register ``other`` has another value: R8 has not changed."""
        program = self._program
        ranges = [(slot.at, slot.at + slot.size * (slot.count or 1)) for slot in program.slots]
        ranges += [(one.word, one.word + 4) for one in program.blocks]
        ranges.append((program.faults_at, program.size))
        ranges += [(at, at + WORD) for at in self._starts_of_texts()]
        asm = self._asm
        asm.constant(R3, 0)  # with one jump: the verifier has a limit for those of all rounds
        for at, size in _words(ranges):
            asm.load(R1, R8, at, size)
            asm.load(R2, other, at, size)
            asm.compute("xor", R1, R2)
            asm.compute("or", R3, R1)
        asm.jump_if("ne", R3, 0, label)

    def _starts_of_texts(self) -> list[int]:
        starts = [self._program.size + one * self._room for one in range(self._program.texts)]
        return [at + word for at in starts for word in range(0, _COMPARED_TEXT, WORD)]


def _words(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    # The bytes of the ranges, in as few words as have their alignment: place and size.
    left = sorted({at for low, high in ranges for at in range(low, high)}, reverse=True)
    while left:
        at, size = left[-1], WORD
        while at % size or left[-size:] != list(range(at + size - 1, at - 1, -1)):
            size >>= 1
        del left[-size:]
        yield at, size


_LARGER = 8  # a flag that no record is submitted with: a string of an entry has filled its room
_OTHER = 16  # one, too: the second walk finds another entry
_COMPARED_TEXT = 64  # bytes of a string of an entry, its length besides
_FOLLOWED = 96  # rounds of all walks, where the verifier follows each: more were refused by 5.10
_BRANCHES = 42  # of one of these; in all 5.10 bears 8,192, with the memory for as many states
# The stack of a function is counted in such parts. Source: kernel/bpf/verifier.c,
# check_max_stack_depth.
_ROUNDED = 32
