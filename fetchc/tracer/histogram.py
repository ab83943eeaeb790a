"""Histograms by powers of two: of all values, or one for each key."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    Bucket = tuple[int | None, int, int]

__all__ = ["MOST_KEYS", "Histogram", "Histograms", "bucket_label", "number"]

MOST_KEYS = 4096  # counted separately; a key like an address would fill the memory
_UNITS = ("", "K", "M", "G", "T", "P", "E")


class Histogram:
    """Counts of whole numbers: below 0, 0, 1, and from each power of two up to the next."""

    __slots__ = ("_counts", "largest", "smallest", "total")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.total = 0
        self.smallest: int | None = None
        self.largest: int | None = None

    def add(self, value: int) -> None:
        """Count a value."""
        bits = value.bit_length() if value >= 0 else -1
        self._counts[bits] = self._counts.get(bits, 0) + 1
        self.total += 1
        if self.smallest is None or value < self.smallest:
            self.smallest = value
        if self.largest is None or value > self.largest:
            self.largest = value

    def buckets(self) -> Iterator[Bucket]:
        """Lower bound (None: no bound), upper bound (not included), count.

        From the first that has any to the last one, those between them with 0 included.
        """
        if not self._counts:
            return
        for bits in range(min(self._counts), max(self._counts) + 1):
            count = self._counts.get(bits, 0)
            if bits < 0:
                yield None, 0, count
            else:
                yield (1 << bits) >> 1, 1 << bits, count


class Histograms:
    """One histogram for each key; ``dropped`` counts values whose key came too late for one."""

    __slots__ = ("_by_key", "_keys", "dropped")

    def __init__(self, keys: int = MOST_KEYS) -> None:
        self._by_key: dict[Hashable, Histogram] = {}
        self._keys = keys
        self.dropped = 0

    def add(self, key: Hashable, value: int) -> None:
        """Count ``value`` under ``key``."""
        histogram = self._by_key.get(key)
        if histogram is None:
            if len(self._by_key) >= self._keys:
                self.dropped += 1
                return
            histogram = self._by_key[key] = Histogram()
        histogram.add(value)

    def __iter__(self) -> Iterator[tuple[Hashable, Histogram]]:
        """The keys with their histograms, the one with most values last, where the eye is."""
        return iter(sorted(self._by_key.items(), key=lambda each: each[1].total))


def bucket_label(low: int | None, high: int) -> str:
    """``(..., 0)``, ``[0]``, ``[1]``, ``[2, 4)``, ``[1K, 2K)``."""
    if low is None:
        return "(..., 0)"
    if low < 2:
        return f"[{low}]"
    return f"[{_short(low)}, {_short(high)})"


def _short(power: int) -> str:
    step = min((power.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{power >> (10 * step)}{_UNITS[step]}"


def number(value: object) -> int | float | None:
    """The number that a value counts as; None where it is none (a text, a fault, an infinity)."""
    if isinstance(value, dict):
        value = value.get("value")  # an enum
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, float) and math.isfinite(value) else None
