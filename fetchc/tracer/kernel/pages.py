"""Pages of the ring buffer, as ``trace_pipe_raw`` gives them.

A page is a header (time stamp, length of the data with flags, data) and records one behind the
other, each 4-byte aligned behind a word: 5 bits of type or length, 27 bits of time since the
record before, in nanoseconds where the clock counts them. Sources: ``events/header_page`` and
``events/header_event``, include/linux/ring_buffer.h, kernel/trace/ring_buffer.c.
"""

from __future__ import annotations

import re
import sys

from fetchc.record import Record
from fetchc.tracer.kernel.unread import unread
from fetchc.tracer.model import Sample

__all__ = ["Layout", "parse_layout", "samples"]

_FIELD = re.compile(r"field: \S.* (\w+);\toffset:(\d+);\tsize:(\d+);")
_LENGTH = 0xFFFFF  # of the commit word; RB_MISSED_EVENTS and RB_MISSED_STORED are above
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_KNOWN_EVENT_HEADER = {
    "type_len": "5", "time_delta": "27", "array": "32",
    "padding": "29", "time_extend": "30", "time_stamp": "31",
}  # fmt: skip
_STAMP_BITS = (1 << 59) - 1  # of an absolute time stamp; those above come from the page's


class Layout(Record):
    """Where the header's words stand in a page, in bytes; ``size`` is that of a whole page."""

    stamp: int
    commit: int
    data: int
    size: int


def parse_layout(page: str, event: str) -> Layout:
    """The layout that ``events/header_page`` and ``events/header_event`` describe.

    Raises TracerError FC0716 where it is not one that :func:`samples` reads.
    """
    fields = {name: (int(at), int(size)) for name, at, size in _FIELD.findall(page)}
    told = dict(re.findall(r"^\s*(\w+)\s*:\s*(\d+) bits$", event, re.MULTILINE))
    told |= dict(re.findall(r"^\s*(\w+)\s*: type == (\d+)$", event, re.MULTILINE))
    if {"timestamp", "commit", "data"} - fields.keys() or told != _KNOWN_EVENT_HEADER:
        raise unread("the ring buffer's pages have an unknown layout")
    data, room = fields["data"]
    if fields["timestamp"][1] != 8 or data % 4 or sys.byteorder != "little":
        raise unread("the ring buffer's pages have an unknown layout")
    return Layout(fields["timestamp"][0], fields["commit"][0], data, data + room)


def samples(page: bytes, layout: Layout, cpu: int) -> list[Sample]:
    """The records of one page, in the order of time.

    Raises TracerError FC0716 where a record reaches out of the page's data.
    """
    if len(page) < layout.data or len(page) % 4:
        raise unread(f"a page of {len(page)} bytes")
    words = memoryview(page).cast("I")
    at = layout.stamp // 4
    now = words[at] | words[at + 1] << 32
    start = layout.data // 4
    end = start + (words[layout.commit // 4] & _LENGTH) // 4
    if end > len(words):
        raise unread(f"a page of {len(page)} bytes says that it holds more")
    found: list[Sample] = []
    try:
        _read(page, words[:end], start, now, cpu, found)
    except IndexError:
        raise unread("a record reaches out of its page") from None
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
        if kind < _PADDING:
            now += head >> 5
            if kind:
                first, after = start + 1, start + 1 + kind
            else:  # the next word has the length, its own 4 bytes counted
                first, after = start + 2, start + 1 + (words[start + 1] + 3) // 4
            if after > end:
                raise IndexError
            event, thread = words[first] & 0xFFFF, words[first + 1]
            append(Sample(event, cpu, now, thread, page[first * 4 : after * 4]))
            start = after
        elif kind == _TIME_EXTEND:
            now += (words[start + 1] << 27) + (head >> 5)
            start += 2
        elif kind == _TIME_STAMP:
            stamp = (words[start + 1] << 27) + (head >> 5)
            now = stamp | (now & ~_STAMP_BITS)
            start += 2
        else:
            delta = head >> 5
            if delta == 0:  # nothing but room up to the end
                break
            now += delta if delta > 1 else 0  # a dropped record; 1 stands for 0 there
            start += 1 + (words[start + 1] + 3) // 4
