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

from fetchc.diag.diagnostic import TracerError
from fetchc.record import Record
from fetchc.tracer.events import Field, Format
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.tracer.events import Sample
    from fetchc.tracer.trace_instance import Instance
    from fetchc.tracer.tracefs import Tracefs

__all__ = [
    "Ring",
    "SubBufferLayout",
    "parse_format",
    "parse_sub_buffer_layout",
    "samples",
    "unreadable",
]

# ------------------------------------------------------------------------------
# Records of an unknown layout: an error, never values.

_HELP = "`fetchc add --enable` has the kernel print them itself; report its version with this"


def unreadable(what: str) -> TracerError:
    """FC0716, for ``raise unread(...)``; ``what`` is odd, in words."""
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


_PAGES = 64  # of one processor that are read before the next has its turn
_POLL = 0.25  # seconds: some kernels forget to wake who waits
_SETTLE = 10_000_000  # nanoseconds from a record's time stamp until it surely can be read
_STACK_SETTLE = 50_000_000  # and until its stack can: the thread may be delayed between the two
_NEVER = 1 << 64
_WORD = struct.Struct("<Q")
_COMMON = struct.Struct("<HBBi").unpack_from  # event, flags, preemption count, thread
_END = (0, (1 << 64) - 1)  # after the last address of a stack; the second before 5.2
_nanoseconds = operator.itemgetter(0)


class Ring:
    """A reader of the buffers. It never blocks who writes, and takes out what it reads.

    A record gets its time when its place is reserved, and can be read when it is complete. So
    what was read is pending until it is 10 ms older than a moment at which all buffers were
    found empty: nothing that is still being written comes before it. Where there is too much to
    empty a buffer, that processor's newest record is the limit; of an event whose stack is to come,
    as much before it as a stack may need.
    """

    def __init__(self) -> None:
        self._settle = _SETTLE
        self._behind = 0  # nanoseconds that a stack may come after its event
        self._pending: list[Sample] = []
        self._files: list[tuple[int, int]] = []  # processor, open file
        self._poll = select.poll()
        self._stacks: Stacks | None = None
        self._of_kernel: set[int] = set()
        self.more = False

    def open(self, tracefs: Tracefs, instance: Instance) -> None:
        """Open the buffers of ``instance``."""
        page, event = (tracefs.read("events", f"header_{each}") for each in ("page", "event"))
        self._layout: SubBufferLayout = parse_sub_buffer_layout(page, event)
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
        """Return when there is something to read, at the latest after ``seconds``, or a quarter.

        A record wakes who waits; those that follow within 10 ms are read with it.
        """
        if self.more:
            return
        if self._pending:
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
        ordered = self._ordered()
        settled = bisect_right(ordered, limit, key=_nanoseconds)
        self._pending = ordered[settled:]
        return ordered[:settled]

    def _drain(self, processor: int, file: int, limit: int) -> int:
        # Up to which time the processor's records are read: `limit` when its buffer is empty.
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
                newest = found[-1][0]
                self._pending += found
        return newest - self._behind

    def _ordered(self) -> list[Sample]:
        pending = self._pending
        pending.sort(key=_nanoseconds)
        return pending if self._stacks is None else self._stacks.joined(pending)


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
    # `char[][2] s` where the kernel fetches two texts.
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
