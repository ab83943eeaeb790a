"""Readers of strings and lists, and of ranges of them whose bounds are in the record."""

from __future__ import annotations

import struct
from math import prod

from fetchc.record import Record
from fetchc.tracer.display_values import CutList, CutString, Unavailable, WalkedList
from fetchc.tracer.events import BpfRecord, Field, Format
from fetchc.tracer.guards import HIGHEST, by_length
from fetchc.tracer.leaf_values import LeafMakers, pointers
from fetchc.tracer.number_values import meaning
from fetchc.tracer.ring_buffer import unreadable
from fetchc.tracer.string_values import WIDTHS, bounded, counted, decoded, joined
from fetchc.tracer.structure_values import (
    counted_between,
    first_of,
    listed,
    none_read,
    up_to_length,
)
from fetchc.tracer.value_shapes import (
    ELEMENT,
    ElementCountShape,
    ElementsShape,
    ListShape,
    NumbersShape,
    StringShape,
    WalkShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.events import Value
    from fetchc.tracer.guards import Residence, Unread
    from fetchc.tracer.structure_values import Make, Trusted
    from fetchc.tracer.value_shapes import Leaf, RangeShape, SequenceShape, Shape

    Faults = list[str]
    There = Callable[[bytes, int], bool | None]
    Cut = Callable[[bytes, Faults, int, int], Value]
    Each = Callable[[bytes, bytes, Faults], list[Value]]
    Pick = Callable[[bytes, Faults, list[int]], Value]

__all__ = [
    "ElementMakers",
    "Read",
    "cut_items",
    "cut_row",
    "cut_text",
    "looked_up",
    "multi_array",
    "of_items",
    "of_row",
    "ranged",
    "up_to_nul",
    "walked",
    "windowed",
]


class ElementMakers(LeafMakers):
    """Readers of strings, lists, sequences and ranges."""

    def _counted(self, text: StringShape, path: str, trusted: Trusted) -> Make:
        assert text.length is not None
        length = self.maker(text.length, path, trusted)
        inner_trusted = trusted | pointers(text.length.guards)
        if (copied := self._copied(text, text.size)) is not None:
            cut, length_of = copied_text(copied, text.kind, path), self._bare(text.length)
            inner = lambda data, faults: cut(data, faults, 0, length_of(data))  # noqa: E731
            behind = self._guarded(inner, text.guards, path, inner_trusted, None)
            return by_length(length, behind, str, path)
        start, end = self._at(text, text.size)
        inner = counted(start, text.size, text.kind, self._bare(text.length))
        # Zeros after the text's own end say nothing, so that its end is in doubt only
        # where all of the bytes are 0.
        zero: tuple[int, int] | None = (start, end)
        if self.unread is not None:
            length_of, width, zero = self._bare(text.length), WIDTHS.get(text.kind, 1), None
            read_to = lambda data: min(start + width * length_of(data), end)  # noqa: E731
            inner = self.unread.checked_to(inner, start, read_to, path)
        behind = self._guarded(inner, text.guards, path, inner_trusted, zero)
        return by_length(length, behind, str, path)

    def _bounded(self, text: StringShape, path: str, trusted: Trusted) -> Make:
        start, end = self._at(text, text.size)
        make = bounded(start, end, text.kind, whole=text.limit == text.size)
        if self.unread is None:
            return self._guarded(make, text.guards, path, trusted, (start, end))
        read_to = lambda data: data.find(b"\0", start, end) + 1 or end  # noqa: E731
        make = self.unread.checked_to(make, start, read_to, path)
        return self._guarded(make, text.guards, path, trusted, None)

    def _items(self, items: ListShape, path: str, trusted: Trusted) -> Make:
        makers = self._each(items, path, trusted)
        if items.text:
            return joined(makers)
        if items.is_tuple:
            from fetchc.tracer.structure_values import tuple_of

            return self._guarded(tuple_of(makers, path), items.guards, path, trusted, None)
        return self._guarded(listed(makers, items.total), items.guards, path, trusted, None)

    def _each(self, items: ListShape, path: str, trusted: Trusted) -> list[Make]:
        inner_trusted = trusted | pointers(items.guards)
        named = enumerate(items.items)
        return [self.maker(one, f"{path}[{index}]", inner_trusted) for index, one in named]

    def _sequence(self, sequence: SequenceShape, path: str, trusted: Trusted) -> Make:
        length: Make
        if isinstance(sequence.length, ElementCountShape):
            length = self._between(sequence.length, path, trusted)
            length_of = self._count(sequence.length)
            guards = (*sequence.length.start.guards, *sequence.length.end.guards)
        else:
            length = self.maker(sequence.length, path, trusted)
            length_of = self._bare(sequence.length)
            guards = sequence.length.guards
        inner_trusted = trusted | pointers(guards)
        elements = sequence.elements
        if sequence.start is not None:
            part = self._window(sequence, sequence.start, length_of, path, inner_trusted)
            return by_length(length, part, list, path)
        if (
            isinstance(elements, NumbersShape | ElementsShape | WalkShape)
            and (cut := self._row_of(elements, path)) is not None
        ):
            some = lambda data, faults: cut(data, faults, 0, length_of(data))  # noqa: E731
            some = self._guarded(some, elements.guards, path, inner_trusted, None)
            return by_length(length, some, list, path)
        if isinstance(elements, NumbersShape):
            some, most = self._numbers(elements, path, inner_trusted, length_of), elements.count
        else:
            assert isinstance(elements, ListShape)
            makers, most = self._each(elements, path, inner_trusted), len(elements.items)
            firsts = first_of(makers, length_of)
            some = self._guarded(firsts, elements.guards, path, inner_trusted, None)
        return by_length(length, up_to_length(some, length_of, most), list, path)

    def _wide(self, text: StringShape, path: str, trusted: Trusted) -> Make:

        begin = self.offset(text.field, text.offset)
        make = up_to_nul(begin, text.size, text.kind, self._read(text), path)
        return self._guarded(make, text.guards, path, trusted, None, none=None)

    def _read(self, elements: NumbersShape | StringShape) -> Read | None:
        if not elements.guards or elements.guards[-1].kernel:
            return None

        last, begin = elements.guards[-1], self.offset(elements.field, elements.offset)
        place = self.offset(last.field, last.offset)
        residence = self._residence(last)
        return Read(begin, place, last.moved, self.there, residence, self.unread)

    def _ranged(self, shape: RangeShape, path: str, trusted: Trusted) -> Make:

        elements = shape.elements
        bounds: list[Make | int | None] = []
        for one in (shape.low, shape.high, shape.bound):
            if one is None or isinstance(one, int):
                bounds.append(one)
            else:
                bounds.append(self.maker(one, path, trusted))
        there = self._guarded(lambda data, faults: True, elements.guards, path, trusted, None)
        if isinstance(elements, ListShape):
            makers = self._each(elements, path, trusted | pointers(elements.guards))
            return ranged(bounds, shape.start, there, cut_items(makers, path), list, path)
        cut: Cut
        if isinstance(elements, StringShape) and (copied := self._copied(elements, elements.size)):
            cut = copied_text(copied, elements.kind, path, shape.to_nul)
            return ranged(bounds, shape.start, there, cut, str, path)
        if isinstance(elements, NumbersShape | ElementsShape | WalkShape) and (
            row := self._row_of(elements, path)
        ):
            return ranged(bounds, shape.start, there, row, list, path)
        assert isinstance(elements, NumbersShape | StringShape)
        begin, read = self.offset(elements.field, elements.offset), self._read(elements)
        if isinstance(elements, StringShape):
            text = cut_text(begin, elements.size, elements.kind, read, path, shape.to_nul)
            return ranged(bounds, shape.start, there, text, str, path)
        numbers = cut_row(self._row(elements), elements.count, elements.size, read, path)
        return ranged(bounds, shape.start, there, numbers, list, path)

    def _whole(self, row: NumbersShape | ElementsShape, path: str, trusted: Trusted) -> Make:
        # An array.
        cut = self._row_of(row, path)
        if cut is None:
            assert isinstance(row, NumbersShape)
            return self._numbers(row, path, trusted)
        whole = lambda data, faults: cut(data, faults, 0, row.total)  # noqa: E731
        return self._guarded(whole, row.guards, path, trusted, None)

    def _copied(
        self, shape: NumbersShape | StringShape | ElementsShape, size: int
    ) -> Copied | None:
        # What an eBPF program has copied for it, if it is no part of the record.
        record = self.format.bpf
        if record is None or not self._fields[shape.field].text:
            return None
        room = self._fields[shape.field].room or record.longest
        return Copied(self.offset(shape.field, 0), min(size, room))

    def _row_of(self, row: NumbersShape | ElementsShape | WalkShape, path: str) -> Cut | None:
        # What an eBPF program has recorded of a list, as long as it is.
        if isinstance(row, WalkShape):
            return cut_walked(self.offset(row.field, 0), self._entry(row), path)
        copied = self._copied(row, row.count * row.size)
        if copied is None:
            return None
        each = self._numbers_of(row) if isinstance(row, NumbersShape) else self._each_of(row, path)
        return copied_row(copied, each, row.size, path)

    def _numbers_of(self, row: NumbersShape) -> Each:
        code, then = meaning(row.decode, row.size, 0, self.pointer)
        each = struct.Struct("=" + code).iter_unpack
        if then is None:
            return lambda data, raw, faults: [one for (one,) in each(raw)]
        return lambda data, raw, faults: [then(one) for (one,) in each(raw)]

    def _each_of(self, row: ElementsShape, path: str) -> Each:
        # The bytes of an element are a record of their own, all of it read.
        from fetchc.ir.steps import HEADER

        field = Field(ELEMENT, HEADER, 1, False, row.size, False)
        nothing = BpfRecord(0, 0, 0, (), (), 0)
        format = Format(self.format.id, self.format.event, (field,), nothing)
        inner = self._of_each(format, row.inner)

        def each(data: bytes, raw: bytes, faults: Faults) -> list[Value]:
            starts = range(0, len(raw), row.size)
            parts = [data[:HEADER] + raw[start : start + row.size] for start in starts]
            return each_element(parts, inner, path, faults)

        return each

    def _entry(self, walk: WalkShape) -> Make:
        # The reader of an element that a walk recorded.
        formats = dict(self.format.bpf.entries) if self.format.bpf is not None else {}
        return self._of_each(formats[walk.field], walk.inner)

    def _of_each(self, format: Format, inner: Shape) -> Make:
        makers = type(self)(format, (), None, self._symbol, self._kernel)
        return makers.maker(inner, "", frozenset())

    def _window(
        self,
        sequence: SequenceShape,
        start: Leaf,
        length_of: Callable[[bytes], int],
        path: str,
        trusted: Trusted,
    ) -> Make:

        elements, around = sequence.elements, sequence.around
        if isinstance(elements, NumbersShape) and self.unread is not None:
            pick, most = of_items(self._each_number(elements, path, trusted), path), elements.count
        elif isinstance(elements, NumbersShape):
            pick, most = of_row(self.maker(elements, path, trusted)), elements.count
        else:
            assert isinstance(elements, ListShape)
            pick, most = of_items(self._each(elements, path, trusted), path), len(elements.items)
        whole = None if around is None else self.maker(around, path, trusted)
        return windowed(
            pick, most, length_of, self.maker(start, path, trusted), whole, path, sequence.backwards
        )

    def _between(self, length: ElementCountShape, path: str, trusted: Trusted) -> Make:
        ends = [self.maker(one, path, trusted) for one in (length.start, length.end)]
        return counted_between(ends, self._count(length))

    def _count(self, length: ElementCountShape) -> Callable[[bytes], int]:
        # Less than none where what the object holds are no two ends of one array.
        start, end, each = self._bare(length.start), self._bare(length.end), length.each

        def count(data: bytes) -> int:
            number, rest = divmod(end(data) - start(data), each)
            return -1 if rest else number

        return count


# ------------------------------------------------------------------------------
# Ranges of lists and strings, by bounds that are in the record.

_WORD = struct.Struct("=Q").unpack_from
_PLACE = struct.Struct("=I").unpack_from
_MASK = (1 << 64) - 1
_PAGE = 4096  # bytes: what is read of one at once, is there or is not


def ranged(
    bounds: Sequence[Make | int | None],
    start: int,
    there: Make,
    cut: Cut,
    empty: Callable[[], Value],
    path: str,
) -> Make:
    """What ``cut`` makes of the elements between two bounds; the third is the number of all.

    The first element that was fetched has the index ``start``. ``there`` says whether the pointers
    on the way lead anywhere. Bounds that no range has (the end before the start, or after all
    elements; before what was fetched) are a fault, as a bound that could not be read is.
    """

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        values = [one(data, faults) if callable(one) else one for one in bounds]
        low, high, most = values
        if len(faults) > before or not (isinstance(low, int) and isinstance(high, int)):
            faults[before:] = [path]
            return None
        past = isinstance(most, int) and high > most
        if past or not (start <= low <= high and high - low < HIGHEST):
            faults.append(path)
            return None
        if low == high:
            return empty()
        return None if there(data, faults) is None else cut(data, faults, low - start, high - low)

    return make


class Read(Record):
    """What was read from ``moved`` bytes beyond where the word at ``pointer`` leads.

    It is in the record from ``begin`` on. A page that was not there is zeros in the record.
    Zeros of the source are no other ones, and ``there(data, address)`` is asked; None where
    nobody can be. What the kernel read of a program's memory is ``residence``. ``unread`` knows it
    of records of eBPF programs.
    """

    begin: int
    pointer: int
    moved: int
    there: There | None
    residence: Residence | None = None
    unread: Unread | None = None

    def sure(self, data: bytes, low: int, high: int) -> int | None:
        """Up to where the record certainly has the program's bytes; None for a fault.

        Of the bytes from ``low`` to ``high``. Zeros after the end of a page whose program cannot
        be asked any more are left out. A page that certainly was not there is a fault of all.
        """
        if self.unread is not None:
            return None if self.unread.any(data, low, high) else high
        shift = _WORD(data, self.pointer)[0] + self.moved - self.begin & _MASK
        first = low
        while low < high:
            address = low + shift & _MASK
            end = min(high, low + _PAGE - address % _PAGE)
            if self.residence is not None:
                if not self.residence.there(data, address):
                    return low if low > first else None
            elif not any(data[low:end]):
                there = None if self.there is None else self.there(data, address)
                if there is False:
                    return None
                if there is None and low > first:
                    return low
            low = end
        return high


def cut_text(
    begin: int, size: int, kind: str, read: Read | None, path: str, to_nul: bool = False
) -> Cut:
    """A part of the text in ``size`` bytes from ``begin`` on; ``kind`` is that of a Bytes.

    ``to_nul``: an array of bytes, whose text ends at its first NUL.
    """
    width = WIDTHS.get(kind, 1)

    def cut(data: bytes, faults: Faults, passed: int, count: int) -> Value:
        low = begin + width * min(passed, size // width)
        wanted = low + width * count
        end: int | None = min(wanted, begin + size)
        if read is not None and end is not None:
            end = read.sure(data, low, end)
        if end is None:
            faults.append(path)
            return None
        text = data[low:end]
        if to_nul and b"\0" in text:
            return decoded(text.partition(b"\0")[0], kind)
        return decoded(text, kind) if end == wanted else CutString(decoded(text, kind, True), count)

    return cut


class Copied(Record):
    """What an eBPF program has copied: as much as could be read, in the room that ``word`` names.

    That is where its offset in the record is (low half), and its bytes (high half). It has ``most``
    bytes where there were more.
    """

    word: int
    most: int

    def bytes(self, data: bytes) -> bytes:
        """What the record has of it; raises TracerError FC0716 where that is not in the record."""
        (place,) = _PLACE(data, self.word)
        low, size = place & 0xFFFF, place >> 16
        if low + size > len(data):
            raise unreadable(f"{size} bytes at {low}, in one of {len(data)}")
        return data[low : low + size]


def copied_text(copied: Copied, kind: str, path: str, to_nul: bool = False) -> Cut:
    """As :func:`cut_text`; of what is in pages that are not all there, the first part."""
    width = WIDTHS.get(kind, 1)

    def cut(data: bytes, faults: Faults, passed: int, count: int) -> Value:
        raw, low = copied.bytes(data), width * passed
        wanted = low + width * count
        end = min(wanted, copied.most)
        if len(raw) > end or (len(raw) <= low and len(raw) < end):
            faults.append(path)
            return None
        text = raw[low:end]
        if to_nul and b"\0" in text:
            return decoded(text.partition(b"\0")[0], kind)
        if len(raw) < end:
            faults.append(f"{path}[{len(text) // width}:]")
        if len(raw) == wanted:
            return decoded(text, kind)
        return CutString(decoded(text, kind, True), count)

    return cut


def copied_row(copied: Copied, each: Each, size: int, path: str) -> Cut:
    """A part of the list of elements of ``size`` bytes; those that are not there are faults."""

    def cut(data: bytes, faults: Faults, passed: int, count: int) -> Value:
        raw, low = copied.bytes(data), size * passed
        wanted = min(size * (passed + count), copied.most)
        end, there = wanted // size * size, len(raw) // size * size
        if len(raw) > wanted or (there <= low and there < end):
            faults.append(path)
            return None
        values = each(data, raw[low:there], faults)
        missing = range(len(values), (end - low) // size)
        faults += [f"{path}[{index}]" for index in missing]
        values += [None] * len(missing)
        return CutList(values, count) if len(values) < count else values

    return cut


def up_to_nul(begin: int, size: int, kind: str, read: Read | None, path: str) -> Make:
    """The text of units of several bytes that ends before the first one that is 0."""
    width = WIDTHS[kind]
    nul = bytes(width)

    def make(data: bytes, faults: Faults) -> Value:
        starts = range(begin, begin + size, width)
        end = next((at for at in starts if data[at : at + width] == nul), begin + size)
        last = min(end + width, begin + size)
        certain = last if read is None else read.sure(data, begin, last)
        if certain is None:
            faults.append(path)
            return None
        whole = end < begin + size and certain == last
        text = data[begin : min(end, certain)]
        return decoded(text, kind) if whole else CutString(decoded(text, kind, cut=True), None)

    return make


def cut_row(
    row: Callable[[bytes, Faults], Value], most: int, size: int, read: Read | None, path: str
) -> Cut:
    """A part of the list that ``row`` makes, of ``most`` numbers of ``size`` bytes."""

    def cut(data: bytes, faults: Faults, passed: int, count: int) -> Value:
        low, end = min(passed, most), min(passed + count, most)
        if read is not None:
            sure = read.sure(data, read.begin + size * low, read.begin + size * end)
            if sure is None:
                faults.append(path)
                return None
            end = (sure - read.begin) // size
        values = row(data, faults)
        assert isinstance(values, list)
        shown = values[low:end]
        return CutList(shown, count) if len(shown) < count else shown

    return cut


def cut_items(makers: Sequence[Make], path: str) -> Cut:
    """A part of the list of what ``makers`` make; a fault goes by the index in the part."""

    def cut(data: bytes, faults: Faults, passed: int, count: int) -> Value:
        values: list[Value] = []
        for shown, one in enumerate(makers[passed : passed + count]):
            before = len(faults)
            values.append(one(data, faults))
            within = len(f"{path}[{passed + shown}]")
            faults[before:] = [f"{path}[{shown}]{fault[within:]}" for fault in faults[before:]]
        return CutList(values, count) if len(values) < count else values

    return cut


# ------------------------------------------------------------------------------
# Arrays of several dimensions: adjacent elements as rows of rows.


MOST_EMPTY = 64  # rows without elements that are shown


def multi_array(flat: Make, lengths: Sequence[Make], indices: tuple[int, ...], path: str) -> Make:
    """The elements of ``flat`` row by row, or with ``indices`` the one element that they name.

    What is no such element, or was not fetched, is a fault. So is an array whose lengths are
    those of another number of elements.
    """

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        values = flat(data, faults)
        if not isinstance(values, list):
            return values
        sizes = [one(data, faults) for one in lengths]
        valid = [size for size in sizes if isinstance(size, int) and size >= 0]
        whole = values.length if isinstance(values, CutList) else len(values)
        if len(valid) < len(sizes) or prod(valid) != whole:
            faults[before:] = [path]
            return None
        if not indices:
            return _rows(values, valid, 0)
        at = 0
        for index, size in zip(indices, valid, strict=True):
            at = at * size + index
        if isinstance(values, CutList) and values.last:
            at -= whole - len(values)
        if not 0 <= at < len(values) or any(
            i >= size for i, size in zip(indices, valid, strict=True)
        ):
            faults[before:] = [path]
            return None
        # Of the elements that could not be read only this one counts.
        mine = f"{path}[{at}]"
        faults[before:] = [path] if any(one.startswith(mine) for one in faults[before:]) else []
        return values[at]

    return make


def _rows(values: list[Value], sizes: list[int], level: int) -> list[Value]:
    # ``values`` are the first elements of this level's rows; what is missing of them is marked.
    if level == len(sizes) - 1:
        return CutList(values, sizes[level]) if len(values) < sizes[level] else values
    each = prod(sizes[level + 1 :])
    if not each:
        empty: list[Value] = []
        empty += [_rows([], sizes, level + 1) for _ in range(min(sizes[level], MOST_EMPTY))]
        return CutList(empty, sizes[level]) if len(empty) < sizes[level] else empty
    rows: list[Value] = [
        _rows(values[start : start + each], sizes, level + 1)
        for start in range(0, len(values), each)
    ]
    return CutList(rows, sizes[level]) if len(rows) < sizes[level] else rows


# ------------------------------------------------------------------------------
# Parts of arrays: the elements from an index on, in a queue around the array's end.


def windowed(
    pick: Pick,
    most: int,
    length_of: Callable[[bytes], int],
    start: Make,
    around: Make | None,
    path: str,
    backwards: bool = False,
) -> Make:
    """The elements of an array that ``pick`` gives by their indices, which are below ``most``.

    Of a longer list only the beginning was fetched. ``backwards``, as of a
    stack, only the end: the first element is before the index ``start``. An index outside of
    the array is a fault.
    """

    def make(data: bytes, faults: Faults) -> Value:
        first, count = start(data, faults), length_of(data)
        whole = None if around is None else around(data, faults)
        if not isinstance(first, int) or (around is not None and not isinstance(whole, int)):
            return None
        if count == 0:
            return []
        if backwards:
            listed = pick(data, faults, list(range(min(count, most) - 1, -1, -1)))
            if isinstance(listed, list) and count > most:
                return CutList(listed, count, True)
            return listed
        room = first + count if not isinstance(whole, int) else whole
        if first < 0 or count > room or first >= room:
            faults.append(path)
            return None
        wanted: list[int] = []
        for index in range(first, first + min(count, most)):
            if index % room >= most:
                break
            wanted.append(index % room)
        values = pick(data, faults, wanted)
        if not isinstance(values, list):
            return values
        return CutList(values, count) if len(values) < count else values

    return make


def of_row(row: Make) -> Pick:
    """Elements of a list of numbers."""

    def pick(data: bytes, faults: Faults, wanted: list[int]) -> Value:
        values = row(data, faults)
        return [values[index] for index in wanted] if isinstance(values, list) else values

    return pick


def of_items(makers: list[Make], path: str) -> Pick:
    """Elements that are decoded one by one; a fault goes by the index in the part."""

    def pick(data: bytes, faults: Faults, wanted: list[int]) -> Value:
        values: list[Value] = []
        for shown, index in enumerate(wanted):
            before = len(faults)
            values.append(makers[index](data, faults))
            within = len(f"{path}[{index}]")
            faults[before:] = [f"{path}[{shown}]{one[within:]}" for one in faults[before:]]
        return values

    return pick


# ------------------------------------------------------------------------------
# Walks.

_WALK = struct.Struct("=4HQ").unpack_from


def each_element(parts: Sequence[bytes], inner: Make, path: str, faults: Faults) -> list[Value]:
    """What ``inner`` makes of each element, of which ``parts`` are the records."""
    values: list[Value] = []
    for index, part in enumerate(parts):
        of_element: Faults = []
        values.append(inner(part, of_element))
        faults += [f"{path}[{index}]{fault}" for fault in of_element]
    return values


def walked(at: int, inner: Make, counted: bool, path: str) -> Make:
    """The list of what ``inner`` makes of each element that the walk at ``at`` recorded.

    Where the walk could not go on, the element after the last one is a fault; where that is the
    first one, the whole list. ``counted``: the container has its number of elements.
    """
    from fetchc.ir.steps import CHANGED, ENDED, HEADER, UNREAD

    def make(data: bytes, faults: Faults) -> Value:
        place, stride, many, flags, whole = _WALK(data, at)
        starts = range(place, place + stride * many, stride)
        parts = [data[:HEADER] + data[start : start + stride] for start in starts]
        values = each_element(parts, inner, path, faults)
        if counted and whole >= HIGHEST:  # the memory is something else
            faults.append(path)
            return None
        ended = bool(flags & ENDED)
        changed = bool(flags & CHANGED) or (counted and ended and many != whole)
        if flags & UNREAD:
            if not whole:
                faults.append(path)
                return None
            if counted or many == whole:  # it is the next one
                faults.append(f"{path}[{many}]")
                values.append(None)
            else:
                faults.append(f"{path}[{whole}]")
        ended = ended or counted
        if ended and not changed and len(values) == whole:
            return values
        return WalkedList(values, whole, ended, changed)

    return make


def cut_walked(at: int, inner: Make, path: str) -> Cut:
    """A part of the elements side by side that the walk at ``at`` recorded."""
    from fetchc.ir.steps import HEADER, UNREAD

    def cut(data: bytes, faults: Faults, passed: int, count: int) -> Value:
        place, stride, many, flags, _ = _WALK(data, at)
        if flags & UNREAD:
            faults.append(path)
            return None
        starts = [place + stride * one for one in range(passed, min(passed + count, many))]
        parts = [data[:HEADER] + data[start : start + stride] for start in starts]
        before = len(faults)
        values = each_element(parts, inner, path, faults)
        if none_read(values, len(faults) - before):
            faults[before:] = [path]
            return None
        return CutList(values, count) if len(values) < count else values

    return cut


def looked_up(at: int, inner: Make, path: str) -> Make:
    """What ``inner`` makes of the one element that the walk at ``at`` looked for; None without it.

    A container that changed meanwhile is a fault.
    """
    from fetchc.ir.steps import CHANGED, ENDED, HEADER, UNREAD

    def make(data: bytes, faults: Faults) -> Value:
        place, _, many, flags, _ = _WALK(data, at)
        if flags & (UNREAD | CHANGED):
            faults.append(path)
            return None
        if not many:
            return None if flags & ENDED else Unavailable("the walk ended before the key was found")
        of_element: Faults = []
        value = inner(data[:HEADER] + data[place:], of_element)
        faults += [f"{path}{fault}" for fault in of_element]
        return value

    return make
