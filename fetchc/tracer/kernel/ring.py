"""The buffers of an instance, one for each processor, read as one stream in the order of time."""

from __future__ import annotations

import operator
import os
import select
import struct
import time
from bisect import bisect_right

from fetchc.tracer.kernel.pages import parse_layout, samples
from fetchc.tracer.kernel.unread import unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.tracer.kernel.instance import Instance
    from fetchc.tracer.kernel.pages import Layout
    from fetchc.tracer.kernel.tracefs import Tracefs
    from fetchc.tracer.model import Format, Sample

__all__ = ["Ring"]

_PAGES = 64  # of one processor that are read before the next has its turn
_POLL = 0.25  # seconds: some kernels forget to wake who waits
_SETTLE = 10_000_000  # nanoseconds from a record's time stamp until it surely can be read
_STACK_SETTLE = 50_000_000  # and until its stack can: the thread may be held up between the two
_NEVER = 1 << 64
_WORD = struct.Struct("<Q")
_END = (0, (1 << 64) - 1)  # behind the last address of a stack; the second before 5.2
_nanoseconds = operator.attrgetter("nanoseconds")


class Ring:
    """A reader of the buffers. It never blocks who writes, and takes out what it reads.

    A record gets its time when its place is reserved, and can be read when it is complete. So
    what was read is held back until it is 10 ms older than a moment at which all buffers were
    found empty: nothing that is still being written comes before it. Where there is too much to
    empty a buffer, that processor's newest record is the limit; of an event whose stack is to come,
    as much before it as a stack may need.
    """

    def __init__(self) -> None:
        self._settle = _SETTLE
        self._behind = 0  # nanoseconds that a stack may be behind its event
        self._held: list[Sample] = []
        self._files: list[tuple[int, int]] = []  # processor, open file
        self._poll = select.poll()
        self._stacks: Stacks | None = None
        self._of_kernel: set[int] = set()
        self.more = False

    def open(self, tracefs: Tracefs, instance: Instance) -> None:
        """Open the buffers of ``instance``."""
        page, event = (tracefs.read("events", f"header_{each}") for each in ("page", "event"))
        self._layout: Layout = parse_layout(page, event)
        for processor in instance.processors():
            path = f"{instance.path}/per_cpu/cpu{processor}/trace_pipe_raw"
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            self._files.append((processor, file))
            self._poll.register(file, select.POLLIN)

    def close(self) -> None:
        """Let the buffers go; what is in them is lost."""
        while self._files:
            os.close(self._files.pop()[1])

    def expect_stacks(self, format: Format) -> None:
        """Join stacks, records of ``format`` (``events/ftrace/user_stack``), to their events."""
        self._stacks = Stacks(format, self._of_kernel)
        self._settle = self._behind = _STACK_SETTLE

    def expect_kernel(self, event: int) -> None:
        """Records of that number are of probes of the kernel itself: see :class:`Stacks`."""
        self._of_kernel.add(event)

    def wait(self, seconds: float) -> None:
        """Return when it is worth to read again, at the latest after ``seconds``, or a quarter.

        A record wakes who waits; those that follow within 10 ms are read with it.
        """
        if self.more:
            return
        if self._held:
            time.sleep(min(seconds, _SETTLE / 1e9))
        else:
            self._poll.poll(min(seconds, _POLL) * 1000)

    def read(self, ended: bool = False) -> list[Sample]:
        """What has happened since the last call and is settled, in the order of time.

        ``ended``: nothing is written any more, so that all is settled. A call takes a part of
        full buffers only; :attr:`more` says that another one will find something.
        """
        emptied = limit = _NEVER if ended else time.monotonic_ns() - self._settle
        for processor, file in self._files:
            limit = min(limit, self._drain(processor, file, emptied))
        self.more = limit < emptied
        held = self._ordered()
        settled = bisect_right(held, limit, key=_nanoseconds)
        self._held = held[settled:]
        return held[:settled]

    def _drain(self, processor: int, file: int, limit: int) -> int:
        # Up to which time the processor's records are known: `limit` when its buffer is empty.
        newest = 0
        for _ in range(_PAGES):
            try:
                page = os.read(file, self._layout.size)
            except BlockingIOError:
                return limit
            if not page:  # not empty, and nothing of it complete
                return limit
            found = samples(page, self._layout, processor)
            if found:
                newest = found[-1].nanoseconds
                self._held += found
        return newest - self._behind

    def _ordered(self) -> list[Sample]:
        held = self._held
        held.sort(key=_nanoseconds)
        return held if self._stacks is None else self._stacks.joined(held)


class Stacks:
    """Joins the records of stacks to those of their events."""

    def __init__(self, format: Format, of_kernel: Container[int] = ()) -> None:
        callers = next((field for field in format.fields if field.name == "caller"), None)
        if callers is None or callers.size != _WORD.size or callers.count is None:
            raise unread("stacks of addresses of another size")
        self._id = format.id
        self._of_kernel = of_kernel
        self._callers = callers.offset

    def joined(self, held: list[Sample]) -> list[Sample]:
        """The events of ``held``, with their stacks; the records of these are gone.

        A stack belongs to its thread's last event, when it begins where that happened: if the
        event was lost, the stack must not go to another.
        """
        events: list[Sample] = []
        last: dict[int, Sample] = {}
        for sample in held:
            if sample.event != self._id:
                events.append(sample)
                last[sample.thread] = sample
                continue
            owner = last.get(sample.thread)
            stack = self._addresses(sample.data)
            if owner is None or owner.stack:
                continue
            if owner.event in self._of_kernel or stack[:1] in _places(owner.data):
                owner.stack = stack
        return events

    def _addresses(self, data: bytes) -> tuple[int, ...]:
        stack = data[self._callers :]
        if len(stack) % _WORD.size:
            raise unread(f"a stack of {len(stack)} bytes")
        words = [word for (word,) in _WORD.iter_unpack(stack)]
        end = next((at for at, word in enumerate(words) if word in _END), len(words))
        return tuple(words[:end])


def _places(data: bytes) -> tuple[tuple[int], ...]:
    # Where the thread was: at the probed address, or where the probed function returns to.
    return tuple(_WORD.iter_unpack(data[8:24].ljust(16, b"\0")))
