"""``format`` files: what the bytes of an event's records are.

Source: Documentation/trace/events.rst, and the files of Linux 5.10 to 7.2 for events of uprobes.
"""

from __future__ import annotations

import re

from fetchc.tracer.kernel.unread import unread
from fetchc.tracer.model import Field, Format

__all__ = ["parse_format"]

_FIELD = re.compile(
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
        raise unread("no name or ID in the format of an event")
    lines = [line for line in text.split("\n") if line.startswith("\tfield")]
    return Format(int(number[1]), name[1], tuple(_field(line) for line in lines))


def _field(line: str) -> Field:
    matched = _FIELD.match(line)
    if not matched:
        raise unread(f"a field of another form: {line.strip()}")
    whole = int(matched["size"])
    text = matched["type"].startswith(_TEXT)
    size = 4 if text else whole
    # `char[][2] s` where the kernel fetches two texts.
    array = matched["array"] is not None or (text and matched["type"] != _TEXT)
    if array and not text:
        size = _element(matched["type"], matched["array"], whole)
    if array and (size == 0 or whole % size):
        raise unread(f"an array of broken elements: {line.strip()}")
    return Field(
        matched["name"],
        int(matched["offset"]),
        size,
        matched["signed"] == "1" and not text,
        whole // size if array else None,
        text,
    )


def _element(type: str, array: str, whole: int) -> int:
    # `s32 n[]` on newer kernels, `s32 n[4]` on older ones; the type's name tells the size.
    bits = _BITS.match(type)
    if bits:
        return int(bits[1]) // 8
    count = array[1:-1]
    if not count or int(count) == 0:
        raise unread(f"an array of `{type}`, whose size is not known")
    return whole // int(count)
