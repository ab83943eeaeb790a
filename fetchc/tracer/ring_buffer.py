"""The ring buffers of a tracefs instance, one per CPU, read as one stream in time order."""

from __future__ import annotations

import operator
import os
import re
import select
import struct
import sys
import time
from bisect import bisect_right
from collections import deque
from itertools import accumulate, repeat

from fetchc.diag.diagnostic import TracerError
from fetchc.record import Record
from fetchc.tracer.events import Field, Format
from fetchc.tracer.trace_instance import available_bytes
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from fetchc.tracer.events import Sample
    from fetchc.tracer.trace_instance import Instance
    from fetchc.tracer.tracefs import Tracefs

__all__ = [
    "Records",
    "Ring",
    "SubBufferLayout",
    "in_order",
    "parse_format",
    "parse_sub_buffer_layout",
    "records",
    "samples",
    "spare_bytes",
    "unreadable",
]

# ------------------------------------------------------------------------------
# Records of an unknown layout: an error, never values.

_HELP = "`fetchc add --enable` has the kernel print them itself; report its version with this"


def unreadable(what: str) -> TracerError:
    """FC0716, for ``raise unreadable(...)``; ``what`` is odd, in words."""
    return refused("FC0716", f"the kernel's records cannot be read: {what}", help=_HELP)


# ------------------------------------------------------------------------------
# Sub-buffers (pages) of the ring buffer, as ``trace_pipe_raw`` gives them.
#
# A page is a header (time stamp, length of the data with flags) and adjacent records, each 4-byte
# aligned after a word: 5 bits of type or length, 27 bits of time since the
# record before, in nanoseconds where the clock counts them. Sources: ``events/header_page`` and
# ``events/header_event``, include/linux/ring_buffer.h, kernel/trace/ring_buffer.c.

_FIELD = re.compile(r"field: \S.* (\w+);\toffset:(\d+);\tsize:(\d+);")
_LENGTH = 0xFFFFF  # of the commit word; RB_MISSED_EVENTS and RB_MISSED_STORED are above
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_EVENT_HEADER = {
    "type_len": "5", "time_delta": "27", "array": "32",
    "padding": "29", "time_extend": "30", "time_stamp": "31",
}  # fmt: skip
_STAMP_BITS = (1 << 59) - 1  # of an absolute time stamp; those above come from the page's


class SubBufferLayout(Record):
    """Byte offsets of the header's fields in a page; ``size`` is that of a whole page."""

    stamp: int
    commit: int
    data: int
    size: int


def parse_sub_buffer_layout(page: str, event: str) -> SubBufferLayout:
    """The layout that ``events/header_page`` and ``events/header_event`` describe.

    Raises TracerError FC0716 where it is not one that :func:`samples` reads.
    """
    fields = {name: (int(at), int(size)) for name, at, size in _FIELD.findall(page)}
    stated = dict(re.findall(r"^\s*(\w+)\s*:\s*(\d+) bits$", event, re.MULTILINE))
    stated |= dict(re.findall(r"^\s*(\w+)\s*: type == (\d+)$", event, re.MULTILINE))
    if {"timestamp", "commit", "data"} - fields.keys() or stated != _EVENT_HEADER:
        raise unreadable("the ring buffer's pages have an unknown layout")
    data, room = fields["data"]
    if fields["timestamp"][1] != 8 or data % 4 or sys.byteorder != "little":
        raise unreadable("the ring buffer's pages have an unknown layout")
    return SubBufferLayout(fields["timestamp"][0], fields["commit"][0], data, data + room)


def samples(page: bytes, layout: SubBufferLayout, cpu: int) -> list[Sample]:
    """The records of one page, in the order of time.

    Raises TracerError FC0716 where a record reaches out of the page's data.
    """
    if len(page) < layout.data or len(page) % 4:
        raise unreadable(f"a page of {len(page)} bytes")
    words = memoryview(page).cast("I")
    at = layout.stamp // 4
    now = words[at] | words[at + 1] << 32
    start = layout.data // 4
    end = start + (words[layout.commit // 4] & _LENGTH) // 4
    if end > len(words):
        raise unreadable(f"a page of {len(page)} bytes says that it holds more")
    found: list[Sample] = []
    try:
        _read(page, words[:end], start, now, cpu, found)
    except IndexError:
        raise unreadable("a record reaches out of its page") from None
    return found


def _read(
    page: bytes, words: memoryview, start: int, now: int, cpu: int, found: list[Sample]
) -> None:
    # Raises IndexError where a record is longer than `words`, the page up to its data's end.
    end = len(words)
    append = found.append
    while start < end:
        head = words[start]
        kind = head & 31
        if 1 < kind < _PADDING:
            now += head >> 5
            first = start + 1
            start = first + kind
            append((now, cpu, page, first * 4, start * 4, ()))
        elif not kind:  # the next word has the length, its own 4 bytes counted
            now += head >> 5
            first = start + 2
            start += 1 + (words[start + 1] + 3) // 4
            if start < first + 2:
                raise IndexError
            append((now, cpu, page, first * 4, start * 4, ()))
        elif kind == _TIME_EXTEND:
            now += (words[start + 1] << 27) + (head >> 5)
            start += 2
        elif kind == _TIME_STAMP:
            stamp = (words[start + 1] << 27) + (head >> 5)
            now = stamp | (now & ~_STAMP_BITS)
            start += 2
        elif kind == _PADDING:
            delta = head >> 5
            if delta == 0:  # nothing but room up to the end
                return
            now += delta if delta > 1 else 0  # a dropped record; 1 means 0 there
            start += 1 + (words[start + 1] + 3) // 4
        else:  # a record without room for what all begin with
            raise IndexError
    if start > end:
        raise IndexError


# ------------------------------------------------------------------------------
# Records of one processor. Those of a hot probe mostly have one length, so that all fields of a
# page can be taken out together.

_FEW = 8  # records: below, one after the other is faster
_KIND = bytes(byte & 31 for byte in range(256))  # of the low byte of a record's first word


class Records:
    """Records of one processor, never none, in the order of time; ``times`` in nanoseconds.

    Where ``step`` is not 0 they are of one length: the first is at ``first`` of ``page``, each
    ``step`` bytes after the one before, and has ``size`` bytes. Else only :meth:`samples` has them.
    """

    __slots__ = ("_samples", "cpu", "first", "page", "size", "step", "times")

    def __init__(
        self,
        times: list[int],
        cpu: int,
        page: bytes,
        place: tuple[int, int, int],
        samples: list[Sample],
    ) -> None:
        self.times = times
        self.cpu = cpu
        self.page = page
        self.first, self.step, self.size = place
        self._samples = samples

    @classmethod
    def of(cls, samples: list[Sample]) -> Records:
        """Records of any lengths."""
        samples.sort(key=_nanoseconds)
        times = [sample[0] for sample in samples]
        return cls(times, samples[0][1], samples[0][2], (0, 0, 0), samples)

    def samples(self) -> list[Sample]:
        """Each record."""
        if not self.step:
            return self._samples
        first, last = self.first, self.first + len(self.times) * self.step
        starts = range(first, last, self.step)
        ends = range(first + self.size, last + self.size, self.step)
        alike = repeat(self.cpu), repeat(self.page), starts, ends, repeat(())
        return list(zip(self.times, *alike, strict=False))

    def cut(self, count: int) -> tuple[Records, Records]:
        """The first ``count`` of them, and the others; neither is none."""
        place = (self.first + count * self.step, self.step, self.size)
        return (
            Records(self.times[:count], self.cpu, self.page, (self.first, *place[1:]),
                    self._samples[:count]),
            Records(self.times[count:], self.cpu, self.page, place, self._samples[count:]),
        )  # fmt: skip


def in_order(records: Sequence[Records]) -> list[Sample]:
    """All of several, in the order of time."""
    if len(records) == 1:
        return records[0].samples()
    found = [sample for each in records for sample in each.samples()]
    found.sort(key=_nanoseconds)
    return found


def records(page: bytes, layout: SubBufferLayout, cpu: int) -> Records | None:
    """The records of one page as :func:`samples` has them; None for none.

    Raises TracerError FC0716 where a record reaches out of the page's data.
    """
    found = _of_one_length(page, layout, cpu)
    if found is None:
        several = samples(page, layout, cpu)
        return Records.of(several) if several else None
    return found


def _of_one_length(page: bytes, layout: SubBufferLayout, cpu: int) -> Records | None:
    # None where they are not, or there are few. A page may begin with a word about time.
    if len(page) < layout.data or len(page) % 4:
        return None
    words = memoryview(page).cast("I")
    stamp, start = layout.stamp // 4, layout.data // 4
    now = words[stamp] | words[stamp + 1] << 32
    end = start + (words[layout.commit // 4] & _LENGTH) // 4
    if end > len(words) or end - start < 4:
        return None
    kind = words[start] & 31
    if kind == _TIME_EXTEND:
        now += (words[start + 1] << 27) + (words[start] >> 5)
        start += 2
        kind = words[start] & 31
    before = 1
    if not kind:
        kind, before = (words[start + 1] + 3) // 4 - 1, 2
        if kind < 2:
            return None
    elif not 1 < kind < _PADDING:
        return None
    step = before + kind
    count, more = divmod(end - start, step)
    if more or count < _FEW:
        return None
    heads = page[4 * start : 4 * end : 4 * step]
    if heads.translate(_KIND).count(heads[0] & 31) != count:
        return None
    if before == 2 and words[start + 1 : end : step].tolist().count(words[start + 1]) != count:
        return None
    deltas = [head >> 5 for head in words[start:end:step]]
    deltas[0] += now
    place = (4 * (start + before), 4 * step, 4 * kind)
    return Records(list(accumulate(deltas)), cpu, page, place, [])


_PAGES = 64  # of one processor whose records are read before the next has its turn
_SHARE = 8  # the part of the available memory that pages may take
_MOST = 2 << 30  # bytes of pages, and no more than that
_LITTLE = 4  # a page has little in it where less than that part is filled
_POLL = 0.25  # seconds: some kernels forget to wake who waits
_SETTLE = 10_000_000  # nanoseconds from a record's time stamp until it surely can be read
_STACK_SETTLE = 50_000_000  # and until its stack can: the thread may be delayed between the two
_NEVER = 1 << 64
_WORD = struct.Struct("<Q")
_HALF_WORD = struct.Struct("<I").unpack_from
_COMMON = struct.Struct("<HBBi").unpack_from  # event, flags, preemption count, thread
_END = (0, (1 << 64) - 1)  # after the last address of a stack; the second before 5.2
_nanoseconds = _number = operator.itemgetter(0)


def spare_bytes() -> int:
    """How much memory may hold what left a buffer and was not looked into."""
    return min(available_bytes() // _SHARE, _MOST)


class Ring:
    """A reader of the buffers. It never blocks who writes, and takes out what it reads.

    A record gets its time when its place is reserved, and can be read when it is complete. So
    what was read is pending until it is 10 ms older than a moment at which all buffers were
    found empty: nothing that is still being written comes before it. Where not all records of a
    processor were looked into, its newest one that was is the limit; of an event whose stack is to
    come, as much before it as a stack may need.

    Pages are taken out of the buffers at once, which costs little beside reading their records,
    and wait here: as many as the machine can spare memory for. So a burst has far more room than
    the buffers. Larger buffers would cost every session their pages, and enlarging them while they
    record loses events that nobody counts: the kernel stops the tracer meanwhile (from Linux 6.7
    on, tracing_resize_ring_buffer of kernel/trace/trace.c; 8,232 of 100,000 events on 6.18).
    """

    def __init__(self) -> None:
        self._settle = _SETTLE
        self._behind = 0  # nanoseconds that a stack may come after its event
        self._pending: list[Records] = []  # as they were read
        self._files: list[tuple[int, int]] = []  # processor, open file
        self._pages: dict[int, deque[bytes]] = {}  # of each processor, not looked into
        self._room = 0  # pages that may wait
        self._poll = select.poll()
        self._stacks: Stacks | None = None
        self._of_kernel: set[int] = set()
        self.more = False

    def open(self, tracefs: Tracefs, instance: Instance) -> None:
        """Open the buffers of ``instance``."""
        # An instance has these from 3.10 on, with its own size of a page.
        below = ("instances", instance.name, "events")
        page, event = (tracefs.read(*below, f"header_{each}") for each in ("page", "event"))
        self._layout: SubBufferLayout = parse_sub_buffer_layout(page, event)
        for processor in instance.processors():
            path = f"{instance.path}/per_cpu/cpu{processor}/trace_pipe_raw"
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            self._files.append((processor, file))
            self._poll.register(file, select.POLLIN)
            self._pages[processor] = deque()
        self._room = spare_bytes() // self._layout.size

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
        """Return when there is something to read, at the latest after ``seconds``, or a quarter.

        A record wakes who waits; those that follow within 10 ms are read with it.
        """
        if self.more:
            return
        if self._pending:
            time.sleep(min(seconds, _SETTLE / 1e9))
        else:
            self._poll.poll(min(seconds, _POLL) * 1000)

    def read(self, ended: bool = False) -> list[list[Records]]:
        """What has happened since the last call and is settled.

        In parts, in the order of time. The records of one part overlap in time, and
        :func:`in_order` has them in order. ``ended``: nothing is written any more, so that all is
        settled. A call takes a part of full buffers only; :attr:`more` says that another one will
        find something.
        """
        limit = _NEVER if ended else time.monotonic_ns() - self._settle
        self.more = False
        for processor, file in self._files:
            pages = self._pages[processor]
            is_empty, is_left = self._drain(pages, file, ended)
            newest = self._look_into(pages, processor)
            if not is_empty or pages:
                limit = min(limit, newest - self._behind)
            self.more = self.more or is_left or bool(pages)
        if self._stacks is not None and self._pending:
            joined = self._stacks.joined(in_order(self._pending))
            self._pending = [Records.of(joined)] if joined else []
        return self._settled(limit)

    def _settled(self, limit: int) -> list[list[Records]]:
        # What is pending up to that time, in parts.
        settled: list[Records] = []
        pending: list[Records] = []
        for each in self._pending:
            count = bisect_right(each.times, limit)
            if 0 < count < len(each.times):
                first, rest = each.cut(count)
                settled.append(first)
                pending.append(rest)
            else:
                (settled if count else pending).append(each)
        self._pending = pending
        return _overlapping(settled)

    def _drain(self, pages: deque[bytes], file: int, ended: bool) -> tuple[bool, bool]:
        # Take the pages out of a buffer: whether it is empty then, and whether whole pages are
        # left. Two in a row with little in them are of the page that is being written to, a few
        # records each: its next ones are taken together, later. (A page that is left because a
        # record does not fit in is followed by one with that record.)
        size, commit = self._layout.size, self._layout.commit
        room = self._room - sum(map(len, self._pages.values()))
        little = False
        for _ in range(max(room, _PAGES - len(pages))):
            try:
                page = os.read(file, size)
            except BlockingIOError:
                return True, False
            if not page:  # not empty, and nothing of it complete
                return True, False
            pages.append(page)
            before, little = little, _HALF_WORD(page, commit)[0] & _LENGTH < size // _LITTLE
            if before and little and not ended:
                return False, False
        return False, True

    def _look_into(self, pages: deque[bytes], processor: int) -> int:
        # The time of the newest record of those that it read, 0 where it read none.
        newest = 0
        for _ in range(min(_PAGES, len(pages))):
            found = records(pages.popleft(), self._layout, processor)
            if found is not None:
                newest = found.times[-1]
                self._pending.append(found)
        return newest


def _overlapping(settled: list[Records]) -> list[list[Records]]:
    # Of equal times comes first what was read first, so a part keeps the order of reading.
    numbered = sorted(enumerate(settled), key=lambda one: one[1].times[0])
    parts: list[list[tuple[int, Records]]] = []
    latest = -1
    for one in numbered:
        if parts and one[1].times[0] <= latest:
            parts[-1].append(one)
        else:
            parts.append([one])
        latest = max(latest, one[1].times[-1])
    return [[each for _, each in sorted(part, key=_number)] for part in parts]


class Stacks:
    """Joins the records of stacks to those of their events."""

    def __init__(self, format: Format, of_kernel: Container[int] = ()) -> None:
        callers = next((field for field in format.fields if field.name == "caller"), None)
        if callers is None or callers.size != _WORD.size or callers.count is None:
            raise unreadable("stacks of addresses of another size")
        self._id = format.id
        self._of_kernel = of_kernel
        self._callers = callers.offset

    def joined(self, samples: list[Sample]) -> list[Sample]:
        """The events of ``samples``, with their stacks; the records of these are gone.

        A stack belongs to its thread's last event, when it begins where that happened: if the
        event was lost, the stack must not go to another.
        """
        events: list[Sample] = []
        last: dict[int, int] = {}  # of each thread, the place of its last event in `events`
        for sample in samples:
            nanoseconds, cpu, page, at, end, _ = sample
            event, _, _, thread = _COMMON(page, at)
            if event != self._id:
                last[thread] = len(events)
                events.append(sample)
                continue
            stack = self._addresses(page[at:end])
            place = last.get(thread)
            if place is None or events[place][5]:
                continue
            nanoseconds, cpu, page, at, end, _ = events[place]
            (event, *_) = _COMMON(page, at)
            if event in self._of_kernel or stack[:1] in _places(page[at:end]):
                events[place] = nanoseconds, cpu, page, at, end, stack
        return events

    def _addresses(self, data: bytes) -> tuple[int, ...]:
        stack = data[self._callers :]
        if len(stack) % _WORD.size:
            raise unreadable(f"a stack of {len(stack)} bytes")
        words = [word for (word,) in _WORD.iter_unpack(stack)]
        end = next((at for at, word in enumerate(words) if word in _END), len(words))
        return tuple(words[:end])


def _places(data: bytes) -> tuple[tuple[int], ...]:
    # Where the thread was: at the probed address, or where the probed function returns to.
    return tuple(_WORD.iter_unpack(data[8:24].ljust(16, b"\0")))


# ------------------------------------------------------------------------------
# ``format`` files: what the bytes of an event's records are.
#
# Source: Documentation/trace/events.rst, and the files of Linux 5.10 to 7.2 for events of
# uprobes.

_FORMAT_FIELD = re.compile(
    r"\tfield:(?P<type>.+?) ?(?P<name>\w+)(?P<array>\[\d*\])?;"
    r"\toffset:(?P<offset>\d+);\tsize:(?P<size>\d+);\tsigned:(?P<signed>[01]);"
)
_BITS = re.compile(r"[us](\d+)\Z")
_TEXT = "__data_loc char[]"


def parse_format(text: str) -> Format:
    """The format that ``text`` describes; raises TracerError FC0716 where it is in another form."""
    name = re.search(r"^name: (\S+)$", text, re.MULTILINE)
    number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
    if not name or not number:
        raise unreadable("no name or ID in the format of an event")
    lines = [line for line in text.split("\n") if line.startswith("\tfield")]
    return Format(int(number[1]), name[1], tuple(_field(line) for line in lines))


def _field(line: str) -> Field:
    matched = _FORMAT_FIELD.match(line)
    if not matched:
        raise unreadable(f"a field of another form: {line.strip()}")
    whole = int(matched["size"])
    text = matched["type"].startswith(_TEXT)
    size = 4 if text else whole
    # `char[][2] s` where the kernel fetches two strings.
    array = matched["array"] is not None or (text and matched["type"] != _TEXT)
    if array and not text:
        size = _element(matched["type"], matched["array"], whole)
    if array and (size == 0 or whole % size):
        raise unreadable(f"an array of broken elements: {line.strip()}")
    return Field(
        matched["name"],
        int(matched["offset"]),
        size,
        matched["signed"] == "1" and not text,
        whole // size if array else None,
        text,
    )


def _element(type: str, array: str, whole: int) -> int:
    # `s32 n[]` on newer kernels, `s32 n[4]` on older ones; the type's name says the size.
    bits = _BITS.match(type)
    if bits:
        return int(bits[1]) // 8
    count = array[1:-1]
    if not count or int(count) == 0:
        raise unreadable(f"an array of `{type}`, whose size is not known")
    return whole // int(count)
