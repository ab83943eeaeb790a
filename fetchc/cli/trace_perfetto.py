"""Hits as packets of Perfetto: instants, slices that nest, flows and counters."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left

from fetchc.cli.stack_tree import frame_name, frame_source
from fetchc.cli.trace_request import value_of
from fetchc.emit.perfetto_trace import PerfettoWriter, Pointer, StackFrame
from fetchc.tracer.display_values import CutList, CutString, CutStructure, Hexadecimal, NoAddress
from fetchc.tracer.tables import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fetchc.cli.trace_events import Hit
    from fetchc.emit.perfetto_trace import Annotation
    from fetchc.tracer.events import Event, Value
    from fetchc.tracer.stacks import Frame

__all__ = ["PerfettoPackets"]

_NAMES = 4096  # processes whose names are remembered
_CALLS = 1 << 20  # calls that are remembered, 16 bytes each
_FAULT = "(fault)"
_CUT = "…"


class PerfettoPackets:
    """Makes the packets of a trace from its hits, which come in the order of their times.

    A hit is an instant on the track of its thread. With a latency it is a slice from the entry to
    the return; one of a goroutine is on a track of the goroutine, which moves between threads.
    Slices of one track nest. A call that does not nest in those before it (of a fiber, or after a
    ``longjmp``) is an instant at its return, with ``$latency`` in microseconds, and so is a hit
    of ``--since``, to which a flow leads from the event where its time began. With ``sums``, the
    strings of numbers to add, each number is also a point of a counter of the process.
    """

    def __init__(self, sums: Sequence[str]) -> None:
        self._writer = PerfettoWriter()
        self._sums = sums
        self._sources: dict[str, list[Callable[[Hit], Value]]] = {}
        self._processes: dict[int, str] = {}
        self._calls = _Calls()
        self._flows = 0

    def begin(self) -> bytes:
        """The first packet: what the clocks show now."""
        clocks = (time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME, time.CLOCK_REALTIME)
        return self._writer.begin(*[time.clock_gettime_ns(each) for each in clocks])

    def packets(self, hit: Hit, frames: Sequence[Frame] = ()) -> bytes:
        """The packets of a hit; ``frames`` are innermost first."""
        event = hit.event
        process, out = self._process(event)
        now, name = _nanoseconds(event), _function(event)
        values = _annotations(hit)
        stack = list(_stack_frames(frames))
        if hit.target.role != "leave":
            track, declared = self._thread(event)
            flow = None
            if hit.start is not None:
                flow, before = self._start(hit.start)
                declared += before
                values["$latency"] = hit.latency
            out += declared + self._writer.instant(track, name, now, values, stack, flow)
        else:
            track, declared = self._track(hit, process)
            out += declared
            begin = None if hit.latency is None else now - round(hit.latency * 1000)
            if begin is not None and self._calls.nests(track, begin, now):
                out += self._writer.slice(track, name, begin, now, values, stack)
            else:
                if hit.latency is not None:
                    values["$latency"] = hit.latency
                out += self._writer.instant(track, name, now, values, stack)
        return out + self._counters(hit, process, now)

    def _start(self, start: Event) -> tuple[int, bytes]:
        # Where the time of --since begins, and the flow from there.
        self._flows += 1
        _, first = self._process(start)
        track, second = self._thread(start)
        name, moment = _function(start), _nanoseconds(start)
        return self._flows, first + second + self._writer.instant(
            track, name, moment, {}, flow=self._flows
        )

    def _process(self, event: Event) -> tuple[int, bytes]:
        # Its name is that of the first thread, if that is ever seen.
        name = self._processes.get(event.pid)
        if name is None or (event.thread == event.pid and name != event.comm):
            if len(self._processes) >= _NAMES:
                del self._processes[next(iter(self._processes))]
            name = self._processes[event.pid] = event.comm
        return self._writer.process(event.pid, name)

    def _thread(self, event: Event) -> tuple[int, bytes]:
        return self._writer.thread(event.pid, event.thread, event.comm)

    def _track(self, hit: Hit, process: int) -> tuple[int, bytes]:
        # Goroutine 0 is the system stack of each thread.
        goroutine = hit.event.args.get(hit.target.key) if hit.target.stack_end else None
        if isinstance(goroutine, int) and goroutine:
            return self._writer.named(process, f"goroutine {goroutine}")
        return self._thread(hit.event)

    def _counters(self, hit: Hit, process: int, now: int) -> bytes:
        target, out = hit.target, b""
        sources = self._sources.get(target.plan.event)
        if sources is None:
            sources = self._sources[target.plan.event] = [value_of(one) for one in target.measures]
        for text, source in zip(self._sums, sources, strict=False):
            value = number(source(hit))
            if value is not None:
                track, declared = self._writer.counter(process, text)
                out += declared + self._writer.value(track, now, value)
        return out


class _Calls:
    """The calls of each track that were written, to tell whether the next one nests in them.

    Of each track the outermost ones, in the order of time. With too many of them, all are
    forgotten, and calls that began before that moment nest nowhere.
    """

    def __init__(self) -> None:
        self._spans: dict[int, tuple[array[int], array[int]]] = {}  # begins and ends
        self._count = 0
        self._known_from = 0

    def nests(self, track: int, begin: int, end: int) -> bool:
        """Whether a call that ends now lies beside the others or around them; it is remembered."""
        if self._count >= _CALLS:
            self._known_from = max(ends[-1] for _, ends in self._spans.values())
            self._spans.clear()
            self._count = 0
        if begin < self._known_from:
            return False
        begins, ends = self._spans.setdefault(track, (array("Q"), array("Q")))
        inner = bisect_left(begins, begin)  # those from here on began within it
        if inner and ends[inner - 1] > begin:
            return False
        if inner < len(begins) and (begins[inner] == begin or ends[-1] > end):
            return False  # at the same moment, none can be told to be the outer one
        self._count += inner + 1 - len(begins)
        del begins[inner:], ends[inner:]
        begins.append(begin)
        ends.append(end)
        return True


def _function(event: Event) -> str:
    return event.plan.function or f"{event.plan.address:#x}"


def _nanoseconds(event: Event) -> int:
    return round(event.timestamp * 1e9)


def _annotations(hit: Hit) -> dict[str, Annotation]:
    # Those of an entry that was not seen are not there.
    event, faults = hit.event, frozenset(hit.event.faults)
    return {
        label: _annotation(event.args[label], label, faults)
        for label in hit.target.labels
        if label in event.args
    }


def _annotation(value: Value, path: str, faults: frozenset[str]) -> Annotation:
    if path in faults:
        return _FAULT
    match value:
        case NoAddress():
            return f"{value:#x} (no address)"
        case Hexadecimal():
            return Pointer(value) if 0 <= value < 1 << 64 else f"{value:#x}"
        case CutString():
            return value + _CUT
        case list():
            listed = [_annotation(one, f"{path}[{at}]", faults) for at, one in enumerate(value)]
            return [*listed, _CUT] if isinstance(value, CutList) else listed
        case dict():
            members: dict[str, Annotation] = {
                name: _annotation(one, f"{path}.{name}", faults) for name, one in value.items()
            }
            if isinstance(value, CutStructure):
                members[_CUT] = f"without {', '.join(value.left)}"
            return members
        case _:
            return value


def _stack_frames(frames: Iterable[Frame]) -> Iterable[StackFrame]:
    for frame in frames:
        yield StackFrame(frame_name(frame), *frame_source(frame))
        if frame.not_unwound is not None:
            yield StackFrame(f"[{frame.not_unwound}]")
