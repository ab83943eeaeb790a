"""Tables of numbers by key: what ``--sum``, ``--histogram`` and ``--count-by`` count.

The reader of events adds values to a table, one hit after another; an engine that counts in the
kernel can fill the buckets from its maps. Tables of one shape merge, whichever engine filled them.
``fetchc.cli.trace_tables`` shows them.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    Number = int | float
    Bar = tuple[Number | None, Number, int]

__all__ = [
    "MOST_KEYS",
    "MOST_STEPS",
    "Cell",
    "Row",
    "Table",
    "bar_label",
    "bar_lines",
    "bucket",
    "bucket_bounds",
    "number",
]

MOST_KEYS = 4096  # counted separately; a key like an address would fill the memory
MOST_STEPS = 4096  # linear buckets of a cell

# ------------------------------------------------------------------------------
# Buckets: a value is counted where the values near it are.
#
# Between a power of two and the next there are 32 buckets of one width, so a quantile that is taken
# for the middle of its bucket is off by less than 1/64 (HdrHistogram's layout). Below 0 they are
# mirrored. An engine computes the same from a number's highest bit and the five bits after it.

_PART_BITS = 5
_PARTS = 1 << _PART_BITS
_BIAS = 128  # so that all exponents are above 0
_TINY = 2.0**-64


def bucket(value: Number) -> int:
    """The number of the bucket of a value: 0 of what is nearer to 0 than 2**-64, rising with it."""
    if value < 0:
        return -bucket(-value)
    if value < _TINY:
        return 0
    if isinstance(value, int):
        bits = value.bit_length()
        shift = bits - 1 - _PART_BITS
        part = (value >> shift if shift >= 0 else value << -shift) - _PARTS
        return (bits + _BIAS) * _PARTS + part
    mantissa, exponent = math.frexp(value)
    return (exponent + _BIAS) * _PARTS + int(mantissa * 2 * _PARTS) - _PARTS


def bucket_bounds(index: int) -> tuple[Number, Number]:
    """The smallest value of a bucket, and the smallest above it; below 0 the other way round."""
    if index < 0:
        low, high = bucket_bounds(-index)
        return -low, -high
    if not index:
        return 0, 0
    exponent, part = index // _PARTS - _BIAS, index % _PARTS
    shift = exponent - 1 - _PART_BITS
    low, high = _PARTS + part, _PARTS + part + 1
    if shift >= 0:
        return low << shift, high << shift
    return math.ldexp(low, shift), math.ldexp(high, shift)


class Cell:
    """Numbers counted together: how many, their sum, the ends, and how many in each bucket.

    ``buckets`` are those of :func:`bucket`. With a ``step`` there are also ``linear`` ones of that
    width, which begin at its multiples; ``beyond`` counts values for which these had no room.
    """

    __slots__ = ("beyond", "buckets", "count", "largest", "linear", "smallest", "step", "total")

    def __init__(self, step: Number = 0) -> None:
        self.step = step
        self.count = 0
        self.total: Number = 0
        self.smallest: Number | None = None
        self.largest: Number | None = None
        self.buckets: dict[int, int] = {}
        self.linear: dict[int, int] = {}
        self.beyond = 0

    def add(self, value: Number) -> None:
        """Count a value, which is finite."""
        self.count += 1
        self.total += value
        if self.smallest is None or value < self.smallest:
            self.smallest = value
        if self.largest is None or value > self.largest:
            self.largest = value
        index = bucket(value)
        self.buckets[index] = self.buckets.get(index, 0) + 1
        if isinstance(self.step, float):
            self._step(int(value // self.step), 1)
        elif self.step:
            self._step(math.floor(value) // self.step, 1)  # exact, also of large floats

    def _step(self, index: int, many: int) -> None:
        if index in self.linear or len(self.linear) < MOST_STEPS:
            self.linear[index] = self.linear.get(index, 0) + many
        else:
            self.beyond += many

    def in_step(self, step: Number, index: int) -> Cell:
        """A cell of the same numbers, which are all in one linear bucket."""
        cell = Cell(step)
        cell.linear = {index: self.count}
        cell.count, cell.total, cell.buckets = self.count, self.total, self.buckets
        cell.smallest, cell.largest = self.smallest, self.largest
        return cell

    def merge(self, other: Cell) -> None:
        """Count all that ``other`` has counted; raises ValueError where its buckets differ."""
        if other.step != self.step:
            raise ValueError(f"buckets of {other.step} do not merge with those of {self.step}")
        self.count += other.count
        self.total += other.total
        ends = (self.smallest, other.smallest), (self.largest, other.largest)
        low, high = ([one for one in pair if one is not None] for pair in ends)
        self.smallest, self.largest = min(low, default=None), max(high, default=None)
        self.beyond += other.beyond
        for index, many in other.buckets.items():
            self.buckets[index] = self.buckets.get(index, 0) + many
        for index, many in other.linear.items():
            self._step(index, many)

    def quantile(self, part: float) -> Number | None:
        """The value that ``part`` (above 0, up to 1) of all values do not exceed.

        None where there is no value, or one without a bucket.
        Exact for whole numbers below 64, else the middle of its bucket: see :func:`bucket`.
        """
        if self.smallest is None or self.largest is None:
            return None
        left = math.ceil(part * self.count)
        index = 0
        for index in sorted(self.buckets):
            left -= self.buckets[index]
            if left <= 0:
                break
        low, high = bucket_bounds(index)
        if isinstance(self.total, int):  # all of them are whole
            middle: Number = int(low) if abs(high - low) <= 1 else int((low + high) // 2)
        else:
            middle = (low + high) / 2
        return min(max(middle, self.smallest), self.largest)

    def bars(self) -> Iterator[Bar]:
        """Lower bound (None: no bound), upper bound (not included), count.

        Linear buckets, or powers of two, from the first that has any to the last one, those between
        them with 0 included, unless these are many. Of powers of two, one bar has all below 0.
        """
        if self.step:
            counts = self.linear
        else:
            counts = {}
            for index, many in self.buckets.items():
                power = _power(index)
                counts[power] = counts.get(power, 0) + many
        if not counts:
            return
        fractions = any(0 < power < _ONE for power in counts) and not self.step
        first, last = min(counts), max(counts)
        between = range(first, last + 1) if last - first < _MOST_BARS else sorted(counts)
        for index in between:
            if self.step:
                yield index * self.step, (index + 1) * self.step, counts.get(index, 0)
            elif fractions or not 0 < index < _ONE:
                low, high = _of_power(index, fractions)
                if index == _ONE and not isinstance(self.total, int):
                    high = float(high)  # [1, 2) has more than the number 1
                yield low, high, counts.get(index, 0)


# Bars by powers of two are numbered: -1 below 0, 0 of 0 and next to it, then an exponent each.

_MOST_BARS = 2048  # more than the powers of two have
_LEAST = -10  # the exponent of the smallest fractions: [1/2048, 1/1024)
_ONE = 2 - _LEAST  # the number of [1, 2)


def _power(index: int) -> int:
    if index <= 0:
        return -1 if index < 0 else 0
    return max(index // _PARTS - _BIAS - _LEAST + 1, 0)


def _of_power(power: int, fractions: bool) -> tuple[Number | None, Number]:
    if power < 0:
        return None, 0
    if not power:
        return 0, math.ldexp(1, _LEAST - 1) if fractions else 1
    exponent = power - 1 + _LEAST
    if exponent > 0:
        return 1 << (exponent - 1), 1 << exponent
    return math.ldexp(1, exponent - 1), math.ldexp(1, exponent)


_UNITS = ("", "K", "M", "G", "T", "P", "E")


def bar_label(low: Number | None, high: Number) -> str:
    """``(..., 0)``, ``[0]``, ``[1]``, ``[2, 4)``, ``[1K, 2K)``, ``[0.25, 0.5)``, ``[10, 20)``."""
    if low is None:
        return "(..., 0)"
    if isinstance(low, int) and isinstance(high, int) and high - low == 1:
        return f"[{_short(low)}]"
    return f"[{_short(low)}, {_short(high)})"


def _short(value: Number) -> str:
    if not isinstance(value, int):
        return f"{value:.4g}"
    for step in range(len(_UNITS) - 1, 0, -1):
        if value and not value % (1 << 10 * step):
            return f"{value >> 10 * step}{_UNITS[step]}"
    return str(value)


def bar_lines(bars: Sequence[Bar], width: int) -> Iterator[str]:
    """A line a bar: its label, its count, and a bar of up to ``width`` columns."""
    most = max([count for _, _, count in bars], default=0)
    for low, high, count in bars:
        bar = "@" * (count * width // max(most, 1))
        yield f"{bar_label(low, high):<16} {count:>9} |{bar:<{width}}|"


class Row:
    """What a table has of one key: the hits, and a cell for each measure."""

    __slots__ = ("cells", "hits")

    def __init__(self, steps: Sequence[Number]) -> None:
        self.hits = 0
        self.cells = [Cell(step) for step in steps]

    def merge(self, other: Row) -> None:
        """Count all that ``other`` has counted."""
        self.hits += other.hits
        for cell, its in zip(self.cells, other.cells, strict=True):
            cell.merge(its)


class Table:
    """Rows by key. ``steps`` are those of the cells of a row, ``most`` bounds the keys.

    ``dropped`` counts hits whose key came too late for a row, ``missing`` values that are no
    numbers.
    """

    def __init__(self, steps: Sequence[Number] = (), most: int = MOST_KEYS) -> None:
        self.steps = tuple(steps)
        self.rows: dict[Hashable, Row] = {}
        self.dropped = 0
        self.missing = 0
        self._most = most

    def add(self, key: Hashable, values: Sequence[Number | None] = ()) -> None:
        """Count a hit and its values, one for each cell; None is no number."""
        row = self._row(key)
        if row is None:
            self.dropped += 1
            return
        row.hits += 1
        for cell, value in zip(row.cells, values, strict=True):
            if value is None:
                self.missing += 1
            else:
                cell.add(value)

    def merge(self, other: Table, beyond: bool = False) -> None:
        """Count all that ``other``, a table of the same shape, has counted.

        ``beyond``: its keys have rows even if these are more than the table's bound.
        """
        self.dropped += other.dropped
        self.missing += other.missing
        for key, its in other.rows.items():
            row = self.rows.setdefault(key, Row(self.steps)) if beyond else self._row(key)
            if row is None:
                self.dropped += its.hits
            else:
                row.merge(its)

    def _row(self, key: Hashable) -> Row | None:
        row = self.rows.get(key)
        if row is None and len(self.rows) < self._most:
            row = self.rows[key] = Row(self.steps)
        return row

    def heaviest(self, most: int | None, sums: Sequence[int] = ()) -> list[tuple[Hashable, Row]]:
        """The rows with the largest totals of the cells ``sums``, else with most hits, in order."""

        def weight(row: Row) -> Number:
            return sum([row.cells[one].total for one in sums]) if sums else row.hits

        return sorted(self.rows.items(), key=lambda one: weight(one[1]), reverse=True)[:most]

    def of_all(self) -> Row:
        """The row that all keys have together."""
        together = Row(self.steps)
        for row in self.rows.values():
            together.merge(row)
        return together


def number(value: object) -> int | float | None:
    """The number that a value counts as; None where it is none (a string, a fault, an infinity)."""
    if isinstance(value, dict):
        value = value.get("value")  # an enum
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, float) and math.isfinite(value) else None
