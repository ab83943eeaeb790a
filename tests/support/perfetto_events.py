"""Reads a trace of Perfetto as its trace processor does, by the definitions of PyPI's perfetto."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PerfettoEvent", "annotated", "packets", "read"]


@dataclass
class PerfettoEvent:
    """A slice, an instant (``duration`` is None) or a point of a counter (with its ``value``).

    ``track`` are the names from the process down; times are nanoseconds; ``frames`` are outermost
    first.
    """

    track: tuple[str, ...]
    name: str
    time: int
    duration: int | None = None
    values: dict[str, Any] = field(default_factory=dict)
    frames: list[tuple[str, str, int]] = field(default_factory=list)
    flows: list[int] = field(default_factory=list)
    value: int | float | None = None


def packets(data: bytes) -> Any:
    """The packets; each byte of them is one that the definitions know."""
    module = importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = module.Trace.FromString(data)
    assert trace.SerializeToString() == data or trace.ByteSize() == len(data)
    return trace.packet


def read(data: bytes) -> list[PerfettoEvent]:
    """The events in the order of their begins; an end closes what began last on its track."""
    listed = packets(data)
    tracks = _tracks(listed)
    timed = [each for each in listed if each.HasField("track_event")]
    found: list[PerfettoEvent] = []
    open_slices: dict[int, list[PerfettoEvent]] = {}
    for packet in sorted(timed, key=lambda each: int(each.timestamp)):  # which is stable
        event = packet.track_event
        waiting = open_slices.setdefault(event.track_uuid, [])
        if event.type == 2:
            last = waiting.pop()
            last.duration = packet.timestamp - last.time
            continue
        made = PerfettoEvent(tracks[event.track_uuid], event.name, packet.timestamp)
        made.values = {each.name: annotated(each) for each in event.debug_annotations}
        made.frames = [
            (each.function_name, each.source_file, each.line_number)
            for each in event.callstack.frames
        ]
        made.flows = list(event.flow_ids)
        if event.type == 4:
            made.value = getattr(event, event.WhichOneof("counter_value_field"))
        if event.type == 1:
            waiting.append(made)
        found.append(made)
    assert not any(open_slices.values())
    return found


def _tracks(listed: Any) -> dict[int, tuple[str, ...]]:
    names: dict[int, tuple[str, ...]] = {}
    for packet in listed:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                own: tuple[str, ...] = (f"{track.process.process_name} {track.process.pid}",)
            elif track.HasField("thread"):
                own = (f"{track.thread.thread_name} {track.thread.tid}",)
            else:
                own = (*names[track.parent_uuid], track.name)
            names[track.uuid] = own
    return names


def annotated(annotation: Any) -> object:
    """The value of an annotation, as Perfetto's interface shows it."""
    if annotation.dict_entries:
        return {each.name: annotated(each) for each in annotation.dict_entries}
    if annotation.array_values:
        return [annotated(each) for each in annotation.array_values]
    return getattr(annotation, annotation.WhichOneof("value"))
