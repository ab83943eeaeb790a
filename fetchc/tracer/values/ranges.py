"""Parts of lists and texts, by bounds that are in the record: never more than they say."""

from __future__ import annotations

import struct

from fetchc.record import Record
from fetchc.tracer.values.guards import HIGHEST
from fetchc.tracer.values.kinds import CutList, CutText
from fetchc.tracer.values.texts import WIDTHS, decoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.model import Value
    from fetchc.tracer.values.residence import Told

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]
    There = Callable[[bytes, int], bool | None]
    # Of the elements that were fetched: so many passed over, so many wanted.
    Cut = Callable[[bytes, Faults, int, int], Value]

__all__ = ["Read", "cut_items", "cut_row", "cut_text", "ranged", "up_to_nul"]

_WORD = struct.Struct("=Q").unpack_from
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
    on the way lead anywhere. Bounds that no range has (the end in front of the start, or behind all
    elements; in front of what was fetched) are a fault, as a bound that could not be read is.
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
    """What was read from ``moved`` bytes behind where the word at ``pointer`` leads.

    It stands in the record from ``begin`` on. A page that was not there is zeros in the record.
    Zeros of the source are no other ones, and ``there(data, address)`` is asked; None where
    nobody can be. What the kernel read of a program's memory is ``told``.
    """

    begin: int
    pointer: int
    moved: int
    there: There | None
    told: Told | None = None

    def sure(self, data: bytes, low: int, high: int) -> int | None:
        """Up to where the record is known to be what the program had; None for a fault.

        Of the bytes from ``low`` to ``high``. Zeros behind the end of a page whose program cannot
        be asked any more are left out.
        """
        shift = _WORD(data, self.pointer)[0] + self.moved - self.begin & _MASK
        first = low
        while low < high:
            address = low + shift & _MASK
            end = min(high, low + _PAGE - address % _PAGE)
            if self.told is not None:
                if not self.told.there(data, address):
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
        return decoded(text, kind) if end == wanted else CutText(decoded(text, kind, True), count)

    return cut


def up_to_nul(begin: int, size: int, kind: str, read: Read | None, path: str) -> Make:
    """The text of units of several bytes that ends in front of the first one that is 0."""
    width = WIDTHS[kind]
    nul = bytes(width)

    def make(data: bytes, faults: Faults) -> Value:
        starts = range(begin, begin + size, width)
        end = next((at for at in starts if data[at : at + width] == nul), begin + size)
        last = min(end + width, begin + size)
        known = last if read is None else read.sure(data, begin, last)
        if known is None:
            faults.append(path)
            return None
        whole = end < begin + size and known == last
        text = data[begin : min(end, known)]
        return decoded(text, kind) if whole else CutText(decoded(text, kind, cut=True), None)

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
