"""What is counted until the end: the histogram and the summary."""

from __future__ import annotations

import json
import math
import os

from fetchc.cli.trace_request import value_of
from fetchc.diag.render import printable
from fetchc.tracer.display_values import CutString, printed
from fetchc.tracer.histogram import MOST_KEYS, Histograms, bucket_label, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from fetchc.cli.trace_events import Hit
    from fetchc.cli.trace_targets import Target
    from fetchc.tracer.events import Value
    from fetchc.tracer.histogram import Histogram
    from fetchc.tracer.stacks import Frame

    ValueOf = Callable[[Hit], Value]
    KeyOf = Callable[[Hit], Hashable]

__all__ = ["HistogramTally", "StackTree", "Summary", "Sums", "key_of", "key_shown", "key_value"]

_BAR = 52  # columns
_encode = json.JSONEncoder(allow_nan=False).encode


class HistogramTally:
    """``--histogram EXPR [--by EXPR]``: counts by powers of two, of all hits or for each key."""

    def __init__(self, measure: str, by: str | None) -> None:
        self._measure = measure
        self._by = by
        self._histograms = Histograms()
        self._sources: dict[str, tuple[ValueOf, KeyOf]] = {}
        self._without = 0

    def add(self, hit: Hit) -> None:
        """Count a hit."""
        target = hit.target
        sources = self._sources.get(target.plan.event)
        if sources is None:
            sources = (value_of(target.measure), key_of(target.by))
            self._sources[target.plan.event] = sources
        value = number(sources[0](hit))
        if value is None:
            self._without += 1
            return
        self._histograms.add(None if self._by is None else sources[1](hit), int(value))

    def text(self) -> Iterator[str]:
        """The histograms as bpftrace draws them; the one with most values last."""
        for key, histogram in self._histograms:
            yield ""
            yield self._title(key)
            yield from _bars(histogram)

    def _title(self, key: object) -> str:
        unit = " (us)" if self._measure == "$latency" else ""
        where = "" if self._by is None else f", {printable(self._by)} = {key_shown(key)}"
        return f"{printable(self._measure)}{unit}{where}:"

    def json(self) -> Iterator[str]:
        """An object for each histogram."""
        for key, histogram in self._histograms:
            yield _encode(
                {
                    "histogram": self._measure,
                    "by": self._by,
                    "key": key_value(key),
                    "count": histogram.total,
                    "smallest": histogram.smallest,
                    "largest": histogram.largest,
                    "buckets": [list(bucket) for bucket in histogram.buckets()],
                }
            )

    def remarks(self) -> Iterator[str]:
        """What is not in the histograms."""
        if self._without:
            yield f"{self._without} hits without a number are not in the histogram"
        if self._histograms.dropped:
            yield f"{self._histograms.dropped} hits are in no histogram: there were too many keys"


def _bars(histogram: Histogram) -> Iterator[str]:
    buckets = list(histogram.buckets())
    most = max(count for _, _, count in buckets)
    for low, high, count in buckets:
        bar = "@" * (count * _BAR // most)
        yield f"{bucket_label(low, high):<16} {count:>9} |{bar:<{_BAR}}|"


def key_of(label: str) -> Callable[[Hit], Hashable]:
    """How to have the value of that label as a key of a table, by what it holds.

    The beginning of a text is another key than a text that is all of it, null than a fault.
    """
    source = value_of(label)

    def key(hit: Hit) -> Hashable:
        value = source(hit)
        if value is None:
            event = hit.event
            is_null = label in event.args and label not in event.faults
            return _Composed(None, printed(None, ())) if is_null else None
        if isinstance(value, CutString) or not isinstance(value, str | int | float):
            return _Composed(value, printed(value))
        return value

    return key


class _Composed:
    """A value as a key, by how it is shown: what is cut says so."""

    __slots__ = ("shown", "value")

    def __init__(self, value: Value, shown: str) -> None:
        self.value = value
        self.shown = shown

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Composed) and self.shown == other.shown

    def __hash__(self) -> int:
        return hash(self.shown)


def key_value(key: object) -> Value:
    """The value that became a key."""
    return key.value if isinstance(key, _Composed) else key  # type: ignore[return-value]


def key_shown(key: object) -> str:
    """A key as text."""
    return key.shown if isinstance(key, _Composed) else printed(key_value(key))


class Summary:
    """``--summary``: hits of each function, with the times they took where those were measured."""

    def __init__(self) -> None:
        self._counts: dict[str, list[float]] = {}  # count, measured times, their sum, the longest

    def add(self, hit: Hit) -> None:
        """Count a hit."""
        name = _function(hit.target)
        counts = self._counts.get(name)
        if counts is None:
            counts = self._counts[name] = [0, 0, 0.0, 0.0]
        counts[0] += 1
        if hit.latency is not None:
            counts[1] += 1
            counts[2] += hit.latency
            counts[3] = max(counts[3], hit.latency)

    def _sorted(self) -> list[tuple[str, list[float]]]:
        return sorted(self._counts.items(), key=lambda each: (each[1][0], each[0]))

    def text(self) -> Iterator[str]:
        """A table, the function with most hits last."""
        rows = self._sorted()
        timed = any(counts[1] for _, counts in rows)
        yield ""
        yield (
            f"{'HITS':>10}  " + (f"{'MEAN us':>12}  {'MAX us':>12}  " if timed else "") + "FUNCTION"
        )
        for name, (count, measured, total, longest) in rows:
            times = ""
            if timed:
                times = f"{total / measured:>12.3f}  {longest:>12.3f}  " if measured else f"{'':28}"
            yield f"{count:>10}  {times}{printable(name)}"

    def remarks(self) -> Iterator[str]:
        """Nothing is left out."""
        yield from ()

    def json(self) -> Iterator[str]:
        """An object for each function."""
        for name, (count, measured, total, longest) in self._sorted():
            shown: dict[str, object] = {"summary": name, "hits": count}
            if measured:
                mean = round(total / measured, 3)
                shown["latency_us"] = {"count": measured, "mean": mean, "max": longest}
            yield _encode(shown)


# ------------------------------------------------------------------------------
# Stacks, counted until the end.

_STACKS = 1 << 16  # of different callers that are counted apart


class StackTree:
    """``--stack --summary``: hits by their callers, as a tree; ``folded``: as lines of stacks.

    ``frames`` has the frames of a hit, innermost first. ``timed``: with the times they took.
    """

    def __init__(self, frames: Callable[[Hit], Sequence[Frame]], timed: bool, folded: bool) -> None:
        self._frames = frames
        self._timed = timed
        self._folded = folded
        self._counts: dict[tuple[str, ...], list[float]] = {}  # hits, microseconds
        self._dropped = 0

    def add(self, hit: Hit) -> None:
        """Count a hit."""
        frames = self._frames(hit)
        names = [_frame_name(frame) for frame in reversed(frames)]
        if frames and frames[-1].not_unwound is not None:
            names.insert(0, f"[{frames[-1].not_unwound}]")
        key = (hit.event.comm, *names) if self._folded else tuple(names)
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= _STACKS:
                self._dropped += 1
                return
            counts = self._counts[key] = [0, 0.0]
        counts[0] += 1
        counts[1] += hit.latency or 0.0

    def text(self) -> Iterator[str]:
        """Lines for flame graphs, or the tree: what calls is above what it calls."""
        if self._folded:
            for names, (count, _) in sorted(self._counts.items()):
                yield ";".join([printable(one).replace(";", ":") for one in names]) + f" {count}"
            return
        tree = _Branch()
        for names, counts in self._counts.items():
            tree.add(names, counts)
        yield ""
        times = f"{'TIME us':>14}  " if self._timed else ""
        yield f"{'HITS':>10}  {'%':>6}  {times}STACK"
        for name, depth, branch in tree.branches():
            times = f"{branch.time:>14.3f}  " if self._timed else ""
            share = 100 * branch.hits / tree.hits
            yield f"{branch.hits:>10}  {share:>6.1f}  {times}{'  ' * depth}{printable(name)}"

    def remarks(self) -> Iterator[str]:
        """What was not counted."""
        if self._dropped:
            yield f"{self._dropped} hits are in no stack: there were more than {_STACKS} of them"

    def json(self) -> Iterator[str]:
        """An object for each stack, outermost function first; that with most hits last."""
        for names, (count, time) in sorted(self._counts.items(), key=lambda each: each[1][0]):
            shown: dict[str, object] = {"stack_summary": list(names), "hits": count}
            if self._timed:
                shown["latency_us"] = round(time, 3)
            yield _encode(shown)


class _Branch:
    """A function of a tree of stacks, as it was called from those above it."""

    __slots__ = ("below", "hits", "time")

    def __init__(self) -> None:
        self.hits = 0
        self.time = 0.0
        self.below: dict[str, _Branch] = {}

    def add(self, names: Sequence[str], counts: Sequence[float]) -> None:
        """Count a stack of these names, outermost first."""
        branch = self
        branch.count(counts)
        for name in names:
            branch = branch.below.setdefault(name, _Branch())
            branch.count(counts)

    def count(self, counts: Sequence[float]) -> None:
        """Add hits and the time they took."""
        self.hits += int(counts[0])
        self.time += counts[1]

    def branches(self) -> Iterator[tuple[str, int, _Branch]]:
        """Every function with its depth, the ones with more hits first."""
        waiting = [(name, 0, one) for name, one in self._ordered()]
        while waiting:
            name, depth, branch = waiting.pop()
            yield name, depth, branch
            waiting += [(below, depth + 1, one) for below, one in branch._ordered()]

    def _ordered(self) -> list[tuple[str, _Branch]]:
        return sorted(self.below.items(), key=lambda each: (each[1].hits, each[0]))


def _frame_name(frame: Frame) -> str:
    if frame.function is None:
        return "[unknown]" if frame.file is None else f"[{os.path.basename(frame.file)}]"
    return f"{frame.function}_[i]" if frame.inlined else frame.function


def _function(target: Target) -> str:
    return target.plan.function or f"{target.plan.address:#x}"


# ------------------------------------------------------------------------------
# What ``--sum`` adds up until the end.


_TOGETHER = "(all)"


class _Sum:
    """Numbers added up."""

    __slots__ = ("count", "largest", "smallest", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total: int | float = 0
        self.smallest: int | float = math.inf
        self.largest: int | float = -math.inf

    def add(self, value: int | float) -> None:
        """Take a number in."""
        self.count += 1
        self.total += value
        self.smallest = min(self.smallest, value)
        self.largest = max(self.largest, value)


class Sums:
    """``--sum EXPR... [--by EXPR]``: how many numbers, their sum, the mean, the ends.

    Several expressions are added up together, too.
    """

    def __init__(self, measures: Sequence[str], by: str | None) -> None:
        names = tuple(dict.fromkeys(measures))
        self._names = (*names, _TOGETHER) if len(names) > 1 else names
        self._by = by
        self._keys: dict[Hashable, list[_Sum]] = {}
        self._sources: dict[str, tuple[list[ValueOf], KeyOf]] = {}
        self._without = 0
        self._unkept = 0

    def add(self, hit: Hit) -> None:
        """Add a hit's numbers."""
        target = hit.target
        sources = self._sources.get(target.plan.event)
        if sources is None:
            sources = ([value_of(label) for label in target.sums], key_of(target.by))
            self._sources[target.plan.event] = sources
        sums = self._of(None if self._by is None else sources[1](hit))
        if sums is None:
            self._unkept += 1
            return
        for position, source in enumerate(sources[0]):
            value = number(source(hit))
            if value is None:
                self._without += 1
                continue
            sums[position].add(value)
            if len(sums) > len(sources[0]):
                sums[-1].add(value)

    def _of(self, key: Hashable) -> list[_Sum] | None:
        sums = self._keys.get(key)
        if sums is None and len(self._keys) < MOST_KEYS:
            sums = self._keys[key] = [_Sum() for _ in self._names]
        return sums

    def _sorted(self) -> list[tuple[Hashable, list[_Sum]]]:
        return sorted(self._keys.items(), key=lambda each: each[1][-1].total)

    def text(self) -> Iterator[str]:
        """A table for each key, that with the largest sum last."""
        for key, sums in self._sorted():
            yield ""
            if self._by is not None:
                yield f"{printable(self._by)} = {key_shown(key)}:"
            yield f"{'COUNT':>10}  {'SUM':>14}  {'MEAN':>12}  {'MIN':>10}  {'MAX':>10}  EXPRESSION"
            for name, one in zip(self._names, sums, strict=True):
                numbers = f"{one.count:>10}  {_shown(one.total):>14}  "
                if one.count:
                    numbers += f"{one.total / one.count:>12.3f}  "
                    numbers += f"{_shown(one.smallest):>10}  {_shown(one.largest):>10}  "
                else:
                    numbers += f"{'':38}"
                yield f"{numbers}{printable(name)}"

    def json(self) -> Iterator[str]:
        """An object for each key and expression."""
        for key, sums in self._sorted():
            for name, one in zip(self._names, sums, strict=True):
                yield _encode(
                    {
                        "sum": name,
                        "by": self._by,
                        "key": key_value(key),
                        "count": one.count,
                        "total": one.total,
                        "smallest": one.smallest if one.count else None,
                        "largest": one.largest if one.count else None,
                    }
                )

    def remarks(self) -> Iterator[str]:
        """What is not in the sums."""
        if self._without:
            yield f"{self._without} values that are no numbers are not in the sums"
        if self._unkept:
            yield f"{self._unkept} hits are in no sum: there were too many keys"


def _shown(value: int | float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
