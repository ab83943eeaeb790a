"""Texts of a record: which ones the kernel could read, and their characters."""

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

_MOST_CONTINUED = 3  # bytes behind the first of a character of UTF-8


class Texts:
    """The texts that the kernel fetched up to their NUL.

    A text is a word of the record: where its bytes are (low half), how many they are with the NUL
    (high half). Before it fetches the kernel writes there the room that is left and where it
    begins, and when a pointer on the way to the text cannot be read, that stays: the text seems
    to be what the next one is (``store_trace_args`` of kernel/trace/trace_probe_tmpl.h). When the
    text itself cannot be read its length is 0. So a text was read if the one behind it begins
    where it ends; the last of every event is one that never faults. The name of a symbol
    (``symstr``) has no NUL, and the room that is left stays written where there is one
    (``fetch_store_symstring`` of kernel/trace/trace_probe_kernel.h): it ends where the next begins.

    A text can take all the room that is left for those behind it. One of 4096 bytes (PATH_MAX) or
    more has no room of its own (``fetch_store_strlen`` of kernel/trace/trace_uprobe.c): it takes
    that of the others, is cut without a word, and leaves nothing for the event's last one.
    """

    def __init__(self, format: Format) -> None:
        texts = sorted((field for field in format.fields if field.text), key=lambda f: f.offset)
        self._next = {one.name: two.offset for one, two in pairwise(texts)}
        self._words = {one.name: one.offset for one in texts}
        self.last = texts[-1].offset if texts else 0

    def words(self, field: str) -> tuple[int, int]:
        """Where the words of a text and of the one behind it are in the record."""
        return self._words[field], self._next[field]

    def one(self, field: Field, limit: int | None, path: str) -> Make:
        """What makes the value of a text, of which ``limit`` bytes are the object's."""
        return _single(field.offset, self._next.get(field.name), self.last, limit, path)

    def several(
        self, field: Field, count: int, pointers: int | None, total: int, path: str
    ) -> Make:
        """What makes a list of texts; ``pointers`` is where in the record their pointers are.

        A text whose pointer is NULL is none, and no fault.
        """
        following = self._next.get(field.name)
        return _several(field.offset, following, self.last, count, pointers, total, path)


_word = struct.Struct("=I").unpack_from


def _single(start: int, following: int | None, last: int, limit: int | None, path: str) -> Make:
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
        return _up_to_room(text, data, end, last)

    return make


def _bytes(data: bytes, start: int, size: int) -> bytes:
    # A text of so many bytes with its NUL.
    if start + size > len(data):
        raise unreadable(f"a text of {size} bytes at {start}, in one of {len(data)}")
    return data[start : start + size - 1]


def _up_to_room(text: bytes, data: bytes, end: int, last: int) -> str:
    """The text that ends at ``end``: cut where it took the room of the event's last one.

    Records are filled up to whole words.
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


def bounded(start: int, end: int, kind: str, whole: bool) -> Make:
    """A text up to the first NUL of these bytes, which are all of its object (``whole``) or not."""

    def make(data: bytes, faults: Faults) -> Value:
        stop = data.find(b"\0", start, end)
        if stop >= 0 or whole:
            return decoded(data[start : end if stop < 0 else stop], kind)
        return CutString(decoded(data[start:end], kind, cut=True), None)

    return make


def counted(start: int, size: int, kind: str, length: Callable[[bytes], int]) -> Make:
    """A text of as many bytes (units of utf-16) as ``length`` says; ``size`` bytes are there."""
    width = WIDTHS.get(kind, 1)

    def make(data: bytes, faults: Faults) -> Value:
        count = length(data)
        if width * count <= size:
            return decoded(data[start : start + width * count], kind)
        return CutString(decoded(data[start : start + size], kind, cut=True), count)

    return make


def sized(text: Make, length: Make) -> Make:
    """A text that ends at a NUL, marked as cut where its object has more bytes than that."""

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
    """The text of characters in registers, each a value of its own, up to the first NUL."""

    def make(data: bytes, faults: Faults) -> Value:
        text = "".join([str(one(data, faults)) for one in characters])
        return decoded(text.partition("\0")[0].encode("utf-8", "surrogateescape"))

    return make


def decoded(text: bytes, kind: str = "text", cut: bool = False) -> str:
    """The characters of ``text``; what is none is kept as a surrogate.

    ``cut``: more bytes followed, of which the last character may lack some; it is left out.
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
"""Bytes of a text's units, where not 1."""

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
