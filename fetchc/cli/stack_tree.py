"""Hits by their callers: a tree for people, lines for flame graphs, JSON, speedscope's file."""

from __future__ import annotations

import json
import os

from fetchc import __version__
from fetchc.diag.render import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fetchc.cli.trace_events import Hit
    from fetchc.tracer.stacks import Frame

__all__ = ["StackTree", "frame_name", "frame_source"]

_encode = json.JSONEncoder(allow_nan=False).encode
_STACKS = 1 << 16  # of different callers that are counted apart


_Names = tuple[tuple[str, str, int], ...]  # functions, outermost first, with file and line


class StackTree:
    """``--stack --summary``: hits by their callers, as a tree.

    ``form`` is ``folded`` for lines of stacks, ``speedscope`` for a file of that program, else
    empty. ``frames`` has the frames of a hit, innermost first. ``timed``: with the times they took.
    """

    def __init__(self, frames: Callable[[Hit], Sequence[Frame]], timed: bool, form: str) -> None:
        self._frames = frames
        self._timed = timed
        self._form = form
        self._counts: dict[tuple[str, _Names], list[float]] = {}  # hits, microseconds
        self._dropped = 0

    def add(self, hit: Hit) -> None:
        """Count a hit."""
        frames = self._frames(hit)
        with_lines = self._form == "speedscope"
        names = [
            (frame_name(frame), *(frame_source(frame) if with_lines else ("", 0)))
            for frame in reversed(frames)
        ]
        if frames and frames[-1].not_unwound is not None:
            names.insert(0, (f"[{frames[-1].not_unwound}]", "", 0))
        key = (hit.event.comm if self._form else "", tuple(names))
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= _STACKS:
                self._dropped += 1
                return
            counts = self._counts[key] = [0, 0.0]
        counts[0] += 1
        counts[1] += hit.latency or 0.0

    def text(self) -> Iterator[str]:
        """Lines for flame graphs, the document of speedscope, or the tree: callers come first."""
        if self._form == "speedscope":
            yield _encode(self._speedscope())
            return
        if self._form:
            for (comm, names), (count, _) in sorted(self._counts.items()):
                stack = [comm, *[name for name, _, _ in names]]
                yield ";".join([printable(one).replace(";", ":") for one in stack]) + f" {count}"
            return
        tree = _Branch()
        for (_, names), counts in self._counts.items():
            tree.add([name for name, _, _ in names], counts)
        yield ""
        times = f"{'TIME us':>14}  " if self._timed else ""
        yield f"{'HITS':>10}  {'%':>6}  {times}STACK"
        for name, depth, branch in tree.branches():
            times = f"{branch.time:>14.3f}  " if self._timed else ""
            share = 100 * branch.hits / tree.hits
            yield f"{branch.hits:>10}  {share:>6.1f}  {times}{'  ' * depth}{printable(name)}"

    def _speedscope(self) -> dict[str, object]:
        # A profile for each thread's name. Weights are hits, or with times microseconds.
        # Source: https://www.speedscope.app/file-format-schema.json (FileFormat.SampledProfile)
        numbers: dict[tuple[str, str, int], int] = {}
        stacks: dict[str, list[tuple[list[int], float]]] = {}
        for (comm, names), (count, took) in sorted(self._counts.items()):
            samples = [numbers.setdefault(each, len(numbers)) for each in names]
            weight = round(took, 3) if self._timed else count
            stacks.setdefault(comm, []).append((samples, weight))
        return {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": f"fetchc {__version__}",
            "shared": {"frames": [_speedscope_frame(*each) for each in numbers]},
            "profiles": [
                {
                    "type": "sampled",
                    "name": comm,
                    "unit": "microseconds" if self._timed else "none",
                    "startValue": 0,
                    "endValue": sum(weight for _, weight in listed),
                    "samples": [samples for samples, _ in listed],
                    "weights": [weight for _, weight in listed],
                }
                for comm, listed in stacks.items()
            ],
        }

    def remarks(self) -> Iterator[str]:
        """What was not counted."""
        if self._dropped:
            yield f"{self._dropped} hits are in no stack: there were more than {_STACKS} of them"

    def json(self) -> Iterator[str]:
        """An object for each stack, outermost function first; that with most hits last."""
        for (_, names), (count, time) in sorted(self._counts.items(), key=lambda each: each[1][0]):
            listed = [name for name, _, _ in names]
            shown: dict[str, object] = {"stack_summary": listed, "hits": count}
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


def _speedscope_frame(name: str, file: str, line: int) -> dict[str, object]:
    return {"name": name, "file": file, "line": line} if file else {"name": name}


def frame_name(frame: Frame) -> str:
    """The function of a frame, or the file that its code is of."""
    if frame.function is None:
        return "[unknown]" if frame.file is None else f"[{os.path.basename(frame.file)}]"
    return f"{frame.function}_[i]" if frame.inlined else frame.function


def frame_source(frame: Frame) -> tuple[str, int]:
    """The source file and the line of a frame, ``("", 0)`` where they were not asked for."""
    file, _, line = (frame.line or "").rpartition(":")
    return (file, int(line)) if line.isdecimal() else ("", 0)
