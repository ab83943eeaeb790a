"""The BPF ring buffer, read as the buffers of tracefs are: records in the order of time.

Source: kernel/bpf/ringbuf.c and Documentation/bpf/ringbuf.rst. The consumer's position is in a page
that can be written; behind it are the producer's and the data, twice in a row, so that no record
wraps. A record has a header: 31 bits of length with two flags, and the offset of its page.
"""

from __future__ import annotations

import mmap
import operator
import struct
import time
from bisect import bisect_right
from itertools import repeat

from fetchc.ir.steps import CPU, HEADER, PROCESS, TIME
from fetchc.tracer.ring_buffer import Records, Ring, unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fetchc.emit.bpf_steps import StackRoom
    from fetchc.target.bpf_rules import BpfMachine
    from fetchc.tracer.events import Sample
    from fetchc.tracer.perf_ring import PerfRing, SampledMachine

__all__ = ["BpfRing", "CopiedStacks", "WalkedStacks"]

_BUSY, _DISCARDED = 1 << 31, 1 << 30
_LENGTH = _DISCARDED - 1
_HEAD = 8  # bytes
_AT_ONCE = 4 << 20  # bytes that one reading takes
_LOOK = 0.01  # seconds between two looks: nobody is woken
_LOOK_SELDOM = 0.025  # while nothing happens
_NEVER = 1 << 64
_nanoseconds = operator.itemgetter(0)


class BpfRing(Ring):
    """A reader of one ring buffer of all processors.

    Records are in the order in which their room was reserved; each gets its time a moment later.
    One that is not complete hides those behind it. ``barrier`` orders loads and stores where the
    machine does not: the producer's position, then heads, then what is behind them, and the
    consumer's position last.
    """

    split: Callable[[Sample], Sample] | None = None
    """Takes the stack, where records end with one, from behind the record."""

    mappings: PerfRing | None = None
    """What the mappings of processes change by is read from there at the same time."""

    def __init__(self, barrier: Callable[[], None]) -> None:
        super().__init__()
        self._barrier = barrier
        self._maps: list[mmap.mmap] = []
        self._views: list[memoryview] = []
        self._unsettled: list[Sample] = []
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
        """What has happened since the last call and is settled, in one part."""
        looked = time.monotonic_ns()
        limit = _NEVER if ended else looked - self._settle
        at, end = self._consumer[0], self._producer[0]
        self._barrier()
        found, size, hidden = self._taken(at & (self._size - 1), end - at)
        if self.split is not None:
            found = list(map(self.split, found))
        if self.mappings is not None:
            self.mappings.read(ended)
        self._idle = not found and not hidden
        if size:
            self._barrier()
            self._unsettled += found
            self._consumer[0] = at + size
        self.more = False
        if hidden:
            # It may be older than those in front of it, but not than the last time without one.
            limit = min(limit, self._clear - self._settle)
        elif at + size < end:
            self.more = True
            limit = min(limit, (found[-1][0] if found else self._clear) - self._settle)
        else:
            self._clear = looked
        self._unsettled.sort(key=_nanoseconds)
        count = bisect_right(self._unsettled, limit, key=_nanoseconds)
        settled, self._unsettled = self._unsettled[:count], self._unsettled[count:]
        return [[Records.of(settled)]] if settled else []

    def _taken(self, start: int, size: int) -> tuple[list[Sample], int, bool]:
        # The complete records from `start` on, their bytes together, and whether one follows that
        # is not complete. Heads are looked at before the bytes behind them are copied.
        most = min(size, _AT_ONCE)
        if not most:
            return [], 0, False
        head = self._words[start >> 2]
        step = (head & _LENGTH) + _HEAD + 7 & ~7
        count = most // step
        if not head & (_BUSY | _DISCARDED) and count > 1:
            # Mostly all are of one length.
            heads = self._words[start >> 2 : start + count * step >> 2 : step >> 2].tolist()
            if heads.count(head) == count:
                self._barrier()
                data = bytes(self._data[start : start + count * step])
                return _alike(data, head & _LENGTH, step, count), count * step, False
        heads, taken, hidden = self._complete(start, most)
        self._barrier()
        return _samples(bytes(self._data[start : start + taken]), heads), taken, hidden

    def _complete(self, start: int, most: int) -> tuple[list[int], int, bool]:
        heads: list[int] = []
        append, words, position = heads.append, self._words, 0
        while position < most:
            head = words[start + position >> 2]
            if head & _BUSY:
                return heads, position, True
            append(head)
            position += (head & _LENGTH) + _HEAD + 7 & ~7
        return heads, position, False


def _alike(data: bytes, length: int, step: int, count: int) -> list[Sample]:
    # As _samples, of records of one length: without a step of Python for each of them.
    if length < HEADER:
        raise unreadable(f"a record of {length} bytes")
    times = memoryview(data).cast("Q")[_HEAD + TIME >> 3 :: step >> 3].tolist()
    processors = memoryview(data).cast("I")[_HEAD + CPU >> 2 :: step >> 2].tolist()
    starts = range(_HEAD, count * step, step)
    ends = range(_HEAD + length, count * step + length, step)
    return list(zip(times, processors, repeat(data), starts, ends, repeat(()), strict=False))


def _samples(data: bytes, heads: list[int]) -> list[Sample]:
    longs, words = memoryview(data).cast("Q"), memoryview(data).cast("I")
    found: list[Sample] = []
    append, at = found.append, _HEAD
    for head in heads:
        length = head & _LENGTH
        if not head & _DISCARDED:
            if length < HEADER:
                raise unreadable(f"a record of {length} bytes")
            append((longs[at + TIME >> 3], words[at + CPU >> 2], data, at, at + length, ()))
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
    """Takes what the kernel walked from the ends of records."""

    def __init__(self, room: StackRoom) -> None:
        self._size = room.size

    def split(self, sample: Sample) -> Sample:
        """The record without its end, and the return addresses there."""
        time, cpu, data, at, end, _ = sample
        end -= self._size
        (count,) = struct.unpack_from("=Q", data, end)
        return time, cpu, data, at, end, struct.unpack_from(f"={count // 8}Q", data, end + 8)
