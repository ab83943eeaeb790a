"""Traces for Perfetto, parsed by its own message definitions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.emit.perfetto_trace import PerfettoWriter, Pointer, StackFrame
from tests.support.perfetto_events import annotated as shown
from tests.support.perfetto_events import packets as parsed

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.integers(0, (1 << 64) - 1).map(Pointer)
    | st.floats()
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def expected(value: object) -> object:
    match value:
        case None:
            return "null"
        case bool():
            return value
        case int():
            return value if -(1 << 63) <= value < 1 << 64 else str(value)
        case dict():
            return {key: expected(each) for key, each in value.items()} or "{}"
        case list():
            return [expected(each) for each in value] or "[]"
        case _:
            return value


@given(values)
def test_values_are_those_that_were_written(value: Any) -> None:
    writer = PerfettoWriter()
    track, declared = writer.thread(10, 11, "worker")
    data = declared + writer.instant(track, "hit", 5, {"v": value})
    _, packet = parsed(data)
    (annotation,) = packet.track_event.debug_annotations
    assert annotation.name == "v"
    assert repr(shown(annotation)) == repr(expected(value))  # NaN is as good as NaN


def test_tracks_are_declared_once_and_again_under_a_new_name() -> None:
    writer = PerfettoWriter()
    process, first = writer.process(10, "server")
    thread, second = writer.thread(10, 11, "worker")
    assert writer.thread(10, 11, "worker") == (thread, b"")
    again, third = writer.thread(10, 11, "renamed")
    goroutine, fourth = writer.named(process, "goroutine 17")
    assert again == thread
    packets = parsed(first + second + third + fourth)
    assert packets[0].track_descriptor.process.pid == 10
    assert packets[0].track_descriptor.process.process_name == "server"
    assert (packets[1].track_descriptor.thread.pid, packets[1].track_descriptor.thread.tid) == (
        10,
        11,
    )
    assert packets[2].track_descriptor.thread.thread_name == "renamed"
    assert packets[3].track_descriptor.parent_uuid == process
    assert packets[3].track_descriptor.name == "goroutine 17"
    assert len({process, thread, goroutine}) == 3


def test_slices_begin_and_end_with_their_stacks_and_flows() -> None:
    writer = PerfettoWriter()
    track, declared = writer.thread(1, 1, "t")
    frames = [StackFrame("leaf", "a.c", 7), StackFrame("main")]
    data = declared + writer.slice(track, "f", 100, 250, {"n": -1}, frames, flow=9)
    _, begin, end = parsed(data)
    assert (begin.timestamp, end.timestamp) == (100, 250)
    assert {begin.timestamp_clock_id, end.timestamp_clock_id} == {3}
    assert (begin.track_event.type, end.track_event.type) == (1, 2)
    assert begin.track_event.track_uuid == end.track_event.track_uuid == track
    assert begin.track_event.name == "f"
    assert list(begin.track_event.flow_ids) == [9]
    listed = [(each.function_name, each.line_number) for each in begin.track_event.callstack.frames]
    assert listed == [("main", 0), ("leaf", 7)]  # the outermost first


def test_counters_have_whole_numbers_and_fractions() -> None:
    writer = PerfettoWriter()
    process, first = writer.process(1, "p")
    track, second = writer.counter(process, "bytes")
    data = first + second + writer.value(track, 1, -5) + writer.value(track, 2, 0.5)
    packets = parsed(data + writer.value(track, 3, 1 << 63))
    assert packets[1].track_descriptor.HasField("counter")
    assert packets[2].track_event.counter_value == -5
    assert packets[3].track_event.double_counter_value == 0.5
    assert packets[4].track_event.double_counter_value == 2.0**63  # no negative number


def test_the_clocks_are_tied_together() -> None:
    (packet,) = parsed(PerfettoWriter().begin(10, 20, 30))
    clocks = {each.clock_id: each.timestamp for each in packet.clock_snapshot.clocks}
    assert clocks == {3: 10, 6: 20, 1: 30}
    assert packet.clock_snapshot.primary_trace_clock == 3


def test_of_tracks_without_number_the_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchc.emit.perfetto_trace._TRACKS", 2)
    writer = PerfettoWriter()
    numbers = [writer.named(7, f"goroutine {each}")[0] for each in range(5)]
    assert len(set(numbers)) == 5
    assert writer.named(7, "goroutine 4") == (numbers[4], b"")
    again, declared = writer.named(7, "goroutine 0")
    assert again not in numbers
    assert declared


def test_bytes_that_are_no_text_are_escaped() -> None:
    writer = PerfettoWriter()
    track, declared = writer.process(1, "a\udc80")
    packets = parsed(declared + writer.instant(track, "\udcff", 1, {"\udc80": "\udc81"}))
    assert packets[0].track_descriptor.process.process_name == "a\\udc80"
    assert packets[1].track_event.name == "\\udcff"
