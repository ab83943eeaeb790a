"""Hits by their callers: a tree for people, lines for flame graphs, JSON."""

from __future__ import annotations

import json
import os

from fetchc.diag.render import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fetchc.cli.trace_events import Hit
    from fetchc.tracer.stacks import Frame

__all__ = ["StackTree"]

_encode = json.JSONEncoder(allow_nan=False).encode
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
