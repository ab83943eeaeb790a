"""Strings of a record: which ones the kernel could read, and their characters."""

from __future__ import annotations

import struct
import sys
from itertools import pairwise

from fetchc.tracer.display_values import CutList, CutString
from fetchc.tracer.ring_buffer import unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.events import Field, Format, Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]

__all__ = ["WIDTHS", "Texts", "bounded", "counted", "decoded", "joined", "sized"]

_MOST_CONTINUED = 3  # continuation bytes of a UTF-8 character


class Texts:
    """The strings that the kernel fetched up to their NUL.

    A string is a ``__data_loc`` word of the record: offset (low half), length with the NUL (high
    half). Before the fetch the kernel writes the offset and the free room there. If a pointer on
    the path cannot be read, that word stays, and the next string begins at the same offset
    (``store_trace_args`` of kernel/trace/trace_probe_tmpl.h). If the string itself cannot be read,
    its length is 0. So a string was read if the next one begins where it ends; the last of every
    event never faults. The name of a symbol (``symstr``) has no NUL, and its word keeps the free
    room (``fetch_store_symstring`` of kernel/trace/trace_probe_kernel.h): it ends where the next
    string begins.

    A string can take the room of those after it. One of 4096 bytes (PATH_MAX) or more has no room
    of its own (``fetch_store_strlen`` of kernel/trace/trace_uprobe.c): it takes that of the others,
    is cut without a mark, and leaves nothing for the event's last one.

    In a record of an eBPF program each string has room of its own, and no length where it could not
    be read. One that fills the largest room there is may go on.
    """

    def __init__(self, format: Format) -> None:
        texts = sorted((field for field in format.fields if field.text), key=lambda f: f.offset)
        # Of a string that is whole; 0 where the next one says it.
        self._longest = 0 if format.bpf is None else format.bpf.longest
        self._next: dict[str, int] = {}
        if format.bpf is None:
            self._next = {one.name: two.offset for one, two in pairwise(texts)}
        self._words = {one.name: one.offset for one in texts}
        self.last = texts[-1].offset if texts else 0

    def words(self, field: str) -> tuple[int, int]:
        """The record offsets of the ``__data_loc`` words of a string and of the next one."""
        return self._words[field], self._next[field]

    def one(self, field: Field, limit: int | None, path: str) -> Make:
        """The reader of a string; ``limit`` bytes of it are the object's."""
        following = self._next.get(field.name)
        return _single(field.offset, following, self.last, limit, path, self._longest)

    def several(
        self, field: Field, count: int, pointers: int | None, total: int, path: str
    ) -> Make:
        """The reader of a list of strings; ``pointers`` is the record offset of their pointers.

        A string whose pointer is NULL is None, and no fault.
        """
        following = self._next.get(field.name)
        if self._longest:
            starts = [field.offset + field.size * index for index in range(count)]
            paths = [f"{path}[{index}]" for index in range(count)]
            each = [
                _single(start, None, self.last, None, one, self._longest)
                for start, one in zip(starts, paths, strict=True)
            ]
            return _apart(each, pointers, total)
        return _several(field.offset, following, self.last, count, pointers, total, path)


_word = struct.Struct("=I").unpack_from


def _single(
    start: int, following: int | None, last: int, limit: int | None, path: str, longest: int = 0
) -> Make:
    word = _word

    def make(data: bytes, faults: Faults) -> Value:
        (place,) = word(data, start)
        low, size = place & 0xFFFF, place >> 16
        end = low + size if following is None else word(data, following)[0] & 0xFFFF
        if size == 0 or not low < end <= low + size:
            faults.append(path)
            return None
        text = _bytes(data, low, size) if end == low + size else data[low:end]
        if limit is not None and len(text) >= limit:
            return decoded(text[:limit])
        if longest:
            if size == longest:
                return CutString(decoded(text[:-1], cut=True), None)
            return decoded(text.partition(b"\0")[0])  # the task's name is padded
        return _up_to_room(text, data, end, last)

    return make


def _bytes(data: bytes, start: int, size: int) -> bytes:
    # A string of so many bytes with its NUL.
    if start + size > len(data):
        raise unreadable(f"a string of {size} bytes at {start}, in one of {len(data)}")
    return data[start : start + size - 1]


def _up_to_room(text: bytes, data: bytes, end: int, last: int) -> str:
    """The string that ends at ``end``: cut where it took the room of the event's last one.

    Records are padded to whole words.
    """
    if _word(data, last)[0] >> 16 or end + 3 < len(data):
        return decoded(text)
    return CutString(decoded(text, cut=True), None)


def _several(
    start: int,
    following: int | None,
    last: int,
    count: int,
    pointers: int | None,
    total: int,
    path: str,
) -> Make:
    words = struct.Struct(f"={count}I").unpack_from
    word = _word
    addresses = struct.Struct(f"={count}Q").unpack_from

    def make(data: bytes, faults: Faults) -> Value:
        places = words(data, start)
        low = places[0] & 0xFFFF
        for place in places:
            if place & 0xFFFF != low:
                break
            low += place >> 16
        else:
            if following is None or word(data, following)[0] & 0xFFFF == low:
                values: list[Value] = []
                for index, place in enumerate(places):
                    if not place >> 16:
                        if pointers is None or addresses(data, pointers)[index]:
                            faults.append(f"{path}[{index}]")
                        values.append(None)
                        continue
                    begin, size = place & 0xFFFF, place >> 16
                    text = _bytes(data, begin, size)
                    values.append(_up_to_room(text, data, begin + size, last))
                return CutList(values, total) if total > count else values
        faults.append(path)
        return None

    return make


def _apart(each: Sequence[Make], pointers: int | None, total: int) -> Make:
    # A list of strings with a room each; one whose pointer is NULL is None, and no fault.
    addresses = struct.Struct(f"={len(each)}Q").unpack_from

    def make(data: bytes, faults: Faults) -> Value:
        values: list[Value] = []
        for index, one in enumerate(each):
            null = pointers is not None and not addresses(data, pointers)[index]
            values.append(None if null else one(data, faults))
        return CutList(values, total) if total > len(each) else values

    return make


def bounded(start: int, end: int, kind: str, whole: bool) -> Make:
    """A string up to the first NUL; ``whole``: the bytes are all of its object."""

    def make(data: bytes, faults: Faults) -> Value:
        stop = data.find(b"\0", start, end)
        if stop >= 0 or whole:
            return decoded(data[start : end if stop < 0 else stop], kind)
        return CutString(decoded(data[start:end], kind, cut=True), None)

    return make


def counted(start: int, size: int, kind: str, length: Callable[[bytes], int]) -> Make:
    """A string of ``length`` bytes (units, of utf-16); ``size`` bytes of it are fetched."""
    width = WIDTHS.get(kind, 1)

    def make(data: bytes, faults: Faults) -> Value:
        count = length(data)
        if width * count <= size:
            return decoded(data[start : start + width * count], kind)
        return CutString(decoded(data[start : start + size], kind, cut=True), count)

    return make


def sized(text: Make, length: Make) -> Make:
    """A string that ends at a NUL, marked as cut where its object has more bytes than that."""

    def make(data: bytes, faults: Faults) -> Value:
        found = text(data, faults)
        if not isinstance(found, str):
            return found
        count = length(data, faults)
        if not isinstance(count, int):
            return None
        there = len(found) if found.isascii() else len(found.encode("utf-8", "surrogateescape"))
        return CutString(found, count) if there < count else found

    return make


def joined(characters: Sequence[Make]) -> Make:
    """The string of characters in registers, each a value of its own, up to the first NUL."""

    def make(data: bytes, faults: Faults) -> Value:
        text = "".join([str(one(data, faults)) for one in characters])
        return decoded(text.partition("\0")[0].encode("utf-8", "surrogateescape"))

    return make


def decoded(text: bytes, kind: str = "text", cut: bool = False) -> str:
    """The characters of ``text``; an invalid byte becomes a surrogate.

    ``cut``: more bytes followed. The last character may lack some; then it is left out.
    ``kind``: text (UTF-8, a byte that is no part of it is U+DC80 to U+DCFF) or utf-16 (of the
    machine's byte order, with any surrogate that is alone as it is) or utf-32 (a unit that is no
    character is U+FFFD).
    """
    if kind == "utf-16":
        units = text[: len(text) & ~1].decode(_UTF_16, "surrogatepass")
        return units[:-1] if cut and "\ud800" <= units[-1:] <= "\udbff" else units
    if kind == "utf-32":
        return "".join([_code_point(one[0]) for one in _UNIT.iter_unpack(text[: len(text) & ~3])])
    if cut:
        text = text[: _complete(text)]
    return text.decode("utf-8", "surrogateescape")


WIDTHS = {"utf-16": 2, "utf-32": 4}
"""Bytes of a unit, by encoding, where not 1."""

_UNIT = struct.Struct("=I")


def _code_point(unit: int) -> str:
    return chr(unit) if unit <= sys.maxunicode else "\ufffd"


_UTF_16 = "utf-16-le" if struct.pack("=H", 1)[0] else "utf-16-be"


def _complete(text: bytes) -> int:
    for back in range(1, min(_MOST_CONTINUED, len(text)) + 1):
        byte = text[-back]
        if byte >= 0xC0:  # the first of a character of several bytes
            whole = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(text) if whole <= back else len(text) - back
        if byte < 0x80:
            break
    return len(text)
