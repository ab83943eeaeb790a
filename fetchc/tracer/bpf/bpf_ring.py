"""The BPF ring buffer, read as the buffers of tracefs are: records in the order of time.

Source: kernel/bpf/ringbuf.c and Documentation/bpf/ringbuf.rst. The consumer's position is in a page
that can be written; after it are the producer's and the data, twice in a row, so that no record
wraps. A record has a header: 31 bits of length with two flags, and the offset of its page.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections import deque
from itertools import repeat

from fetchc.ir.steps import CPU, HEADER, NUMBER, PROCESS, TIME
from fetchc.tracer.ring_buffer import Records, Ring, spare_bytes, unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from fetchc.emit.bpf_steps import StackRoom
    from fetchc.target.bpf_rules import BpfMachine
    from fetchc.tracer.events import Sample
    from fetchc.tracer.perf_ring import PerfRing, SampledMachine

__all__ = ["BpfRing", "CopiedStacks", "WalkedStacks"]

_BUSY, _DISCARDED = 1 << 31, 1 << 30
_LENGTH = _DISCARDED - 1
_HEAD = 8  # bytes
_PIECE = 128 << 10  # bytes that leave the buffer at once
_PIECES = 32  # that one reading looks into
_FEW = 8  # records: below, one after the other is faster
_LOOK = 0.01  # seconds between two looks: nobody is woken
_LOOK_SELDOM = 0.025  # while nothing happens
_NEVER = 1 << 64


class BpfRing(Ring):
    """A reader of one ring buffer of all processors.

    Records are in the order in which their room was reserved; each gets its time a moment later.
    One that is not complete hides those after it. ``barrier`` orders loads and stores where the
    machine does not: the producer's position, then heads, then what is after them, and the
    consumer's position last.
    """

    split: Callable[[Sample], Sample] | None = None
    """Takes the stack, where records end with one, from after the record."""

    mappings: PerfRing | None = None
    """What the mappings of processes change by is read from there at the same time."""

    def __init__(self, barrier: Callable[[], None]) -> None:
        super().__init__()
        self._barrier = barrier
        self._maps: list[mmap.mmap] = []
        self._views: list[memoryview] = []
        self._pieces: deque[_Piece] = deque()  # taken out, not looked into
        self._clear = 0  # a time at which no record was on its way
        self._idle = False

    def map(self, file: int, size: int) -> None:
        """Map the ring buffer ``file``, of ``size`` bytes, a power of two."""
        page = mmap.PAGESIZE
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        consumer = mmap.mmap(file, page, mmap.MAP_SHARED, writable)
        self._maps.append(consumer)
        behind = mmap.mmap(file, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)
        self._maps.append(behind)
        self._consumer = memoryview(consumer)[:8].cast("Q")
        self._producer = memoryview(behind)[:8].cast("Q")
        self._data = memoryview(behind)[page:]
        self._words = self._data.cast("I")
        self._views = [self._consumer, self._producer, self._words, self._data]
        self._size = size
        self._room = spare_bytes()

    def close(self) -> None:
        """Let the buffer go; what is in it is lost."""
        while self._views:
            self._views.pop(0).release()
        while self._maps:
            self._maps.pop().close()
        if self.mappings is not None:
            self.mappings.close()
        super().close()

    def wait(self, seconds: float) -> None:
        """Return when it is time for another look, at the latest after ``seconds``."""
        if not self.more:
            time.sleep(min(seconds, _LOOK_SELDOM if self._idle else _LOOK))

    def read(self, ended: bool = False) -> list[list[Records]]:
        """What has happened since the last call and is settled, in parts as every ring has them.

        All that is complete leaves the ring buffer, which costs little beside reading it, and waits
        here: as much as the machine can spare memory for.
        """
        looked = time.monotonic_ns()
        limit = _NEVER if ended else looked - self._settle
        is_empty, hidden = self._take_pieces()
        newest = self._look_into_pieces()
        if self.mappings is not None:
            self.mappings.read(ended)
        self._idle = newest is None and not hidden
        self.more = bool(self._pieces) or not (is_empty or hidden)
        if hidden:
            # It may be older than those before it, but not than the last time without one.
            limit = min(limit, self._clear - self._settle)
        if self.more:
            limit = min(limit, (self._clear if newest is None else newest) - self._settle)
        if is_empty:
            self._clear = looked
        return self._settled(limit)

    def _take_pieces(self) -> tuple[bool, bool]:
        # Whether all is taken out then, and whether a record is next that is not complete.
        at, end = self._consumer[0], self._producer[0]
        self._barrier()
        room, hidden = self._room - sum([len(piece.data) for piece in self._pieces]), False
        while at < end and not hidden and (room > 0 or not self._pieces):
            piece, hidden = self._copied(at & (self._size - 1), min(end - at, _PIECE))
            if piece.data:
                self._barrier()
                self._pieces.append(piece)
                at += len(piece.data)
                if at > end:
                    raise unreadable("a record reaches out of what was written")
                room -= len(piece.data)
                self._consumer[0] = at
        return at == end, hidden

    def _copied(self, start: int, size: int) -> tuple[_Piece, bool]:
        # The complete records from `start` on, and whether one follows that is not complete. Heads
        # are looked at before the bytes behind them are copied.
        words = self._words
        head = words[start >> 2]
        step = (head & _LENGTH) + _HEAD + 7 & ~7
        count = size // step
        if not head & (_BUSY | _DISCARDED) and count >= _FEW:
            # Mostly all are of one length.
            heads = words[start >> 2 : start + count * step >> 2 : step >> 2].tolist()
            if heads.count(head) == count:
                self._barrier()
                return _Piece(bytes(self._data[start : start + count * step]), heads, step), False
        heads, position = [], 0
        while position < size and not words[start + position >> 2] & _BUSY:
            heads.append(words[start + position >> 2])
            position += (heads[-1] & _LENGTH) + _HEAD + 7 & ~7
        self._barrier()
        return _Piece(bytes(self._data[start : start + position]), heads, 0), position < size

    def _look_into_pieces(self) -> int | None:
        # The time of the newest record of those that it read, None where it read none.
        newest = None
        for _ in range(min(_PIECES, len(self._pieces))):
            found = self._pieces.popleft().records()
            if found is not None and self.split is not None:
                found = Records.of(list(map(self.split, found.samples())))
            if found is not None:
                newest = found.times[-1]
                self._pending.append(found)
        return newest


class _Piece:
    """Records out of the ring buffer, with their heads; of one length where ``step`` is not 0."""

    __slots__ = ("_heads", "_step", "data")

    def __init__(self, data: bytes, heads: list[int], step: int) -> None:
        self.data = data
        self._heads = heads
        self._step = step

    def records(self) -> Records | None:
        """The records, in the order of time; None for none."""
        if not self._step:
            samples = self._samples()
            return Records.of(samples) if samples else None
        step, length = self._step, self._heads[0] & _LENGTH
        if length < HEADER:
            raise unreadable(f"a record of {length} bytes")
        times = memoryview(self.data).cast("Q")[_HEAD + TIME >> 3 :: step >> 3].tolist()
        cpu = memoryview(self.data).cast("I")[_HEAD + CPU >> 2 :: step >> 2].tolist()
        together = step == length + _HEAD and cpu.count(cpu[0]) == len(cpu)
        if together and times == sorted(times):
            return Records(times, cpu[0], self.data, (_HEAD, step, length), [])
        starts = range(_HEAD, len(self.data), step)
        ends = range(_HEAD + length, len(self.data) + length, step)
        each = zip(times, cpu, repeat(self.data), starts, ends, repeat(()), strict=False)
        return Records.of(list(each))

    def _samples(self) -> list[Sample]:
        longs, words = memoryview(self.data).cast("Q"), memoryview(self.data).cast("I")
        found: list[Sample] = []
        append, at = found.append, _HEAD
        for head in self._heads:
            length = head & _LENGTH
            if not head & _DISCARDED:
                if length < HEADER:
                    raise unreadable(f"a record of {length} bytes")
                append(
                    (longs[at + TIME >> 3], words[at + CPU >> 2], self.data, at, at + length, ())
                )
            at += length + _HEAD + 7 & ~7
        return found


# ------------------------------------------------------------------------------
# Stacks.


class CopiedStacks:
    """Takes the copies of stacks from the ends of records."""

    def __init__(
        self, room: StackRoom, machine: BpfMachine, machines: Mapping[int, SampledMachine]
    ) -> None:
        self._room = room
        self._context = struct.Struct(f"={room.context // 8}Q")
        self._segment = machine.registers["cs"] // 8
        self._machines = {
            one.code_segment: (abi, one.machine, [
                (number, machine.registers[one.machine.registers[number]] // 8)
                for _, number in one.registers
            ])
            for abi, one in machines.items()
        }  # fmt: skip

    def split(self, sample: Sample) -> Sample:
        """The record without its end, and what was copied there."""
        from fetchc.tracer.unwind import StackCopy

        time, cpu, data, at, end, _ = sample
        end -= self._room.size
        values = self._context.unpack_from(data, end)
        segment = values[self._segment]
        abi, machine, places = self._machines.get(segment) or self._machines[None]
        registers = {number: values[place] for number, place in places}
        start = end + self._room.context + 8
        (count,) = struct.unpack_from("=Q", data, start - 8)
        (process,) = struct.unpack_from("=I", data, at + PROCESS)
        copy = StackCopy(
            process, time, abi, machine.word_bytes, registers, registers[machine.stack_pointer],
            data[start : start + count], self._room.copied,
        )  # fmt: skip
        return time, cpu, data, at, end, copy


class WalkedStacks:
    """Takes what the kernel walked from the ends of records.

    ``with_caller``: in records of these numbers the kernel has added the caller by itself, where a
    walk of frame pointers leaves it out, at a function's entry. It is left out here, too.
    """

    def __init__(self, room: StackRoom, with_caller: Container[int]) -> None:
        self._size = room.size
        self._with_caller = with_caller

    def split(self, sample: Sample) -> Sample:
        """The record without its end, and the return addresses there."""
        time, cpu, data, at, end, _ = sample
        end -= self._size
        (count,) = struct.unpack_from("=Q", data, end)
        walked = struct.unpack_from(f"={count // 8}Q", data, end + 8)
        (number,) = struct.unpack_from("=H", data, at + NUMBER)
        if number in self._with_caller:
            walked = (*walked[:1], *walked[2:])
        return time, cpu, data, at, end, walked
