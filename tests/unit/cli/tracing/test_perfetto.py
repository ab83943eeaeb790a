"""Hits for Perfetto: what its reader finds is what the JSON lines of the same hits say."""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.cli import main
from fetchc.cli.trace_events import Hit, Hits
from fetchc.cli.trace_json import JsonLines
from fetchc.cli.trace_perfetto import PerfettoPackets
from fetchc.tracer.display_values import CutList, CutString, CutStructure, Hexadecimal, NoAddress
from fetchc.tracer.stacks import Frame
from tests.support.perfetto_events import PerfettoEvent, packets, read
from tests.unit.cli.tracing.events import event, plan, target

if TYPE_CHECKING:
    from fetchc.tracer.events import Event, Value

ENTRY, RETURN = plan("f", "main.f"), plan("f_return", "main.f")


def written(hits: list[Hit], *frames: Frame, sums: tuple[str, ...] = ()) -> list[PerfettoEvent]:
    writer = PerfettoPackets(sums)
    data = writer.begin() + b"".join([writer.packets(each, frames) for each in hits])
    return read(data)


def of_values(args: dict[str, Value], *labels: str, **fields: Any) -> dict[str, Any]:
    shown = target("hit", ENTRY, *(labels or tuple(args)))
    (made,) = written([Hit(shown, event(ENTRY, args, **fields), None)])
    assert made.duration is None
    return made.values


def test_values_are_annotations() -> None:
    args: dict[str, Value] = {
        "n": -3, "s": "tëxt", "f": 0.5, "none": None, "r": {"x": 1, "rows": [1, {"y": 2}]},
        "p": Hexadecimal(0x7F0012345678), "hidden": 1,
    }  # fmt: skip
    assert of_values(args, "n", "s", "f", "none", "r", "p", "not seen") == {
        "n": -3, "s": "tëxt", "f": 0.5, "none": "null", "r": {"x": 1, "rows": [1, {"y": 2}]},
        "p": 0x7F0012345678,
    }  # fmt: skip


def test_what_was_not_read_or_cut_says_so() -> None:
    args: dict[str, Value] = {
        "n": None, "r": {"name": None, "rows": [1, None]}, "s": CutString("abc", 9),
        "l": CutList([1, 2], 5), "c": CutStructure({"own": 2}, ("a", "b")), "p": NoAddress(0x5A5A),
    }  # fmt: skip
    assert of_values(args, faults=("n", "r.name", "r.rows[1]")) == {
        "n": "(fault)", "r": {"name": "(fault)", "rows": [1, "(fault)"]}, "s": "abc…",
        "l": [1, 2, "…"], "c": {"own": 2, "…": "without a, b"}, "p": "0x5a5a (no address)",
    }  # fmt: skip


def test_stacks_are_outermost_first() -> None:
    frames = (
        Frame(0x10, "leaf", 2, "/bin/x", line="a.c:7"),
        Frame(0x20, None, 0, "/lib/odd.so", not_unwound="no unwind information in odd.so"),
    )
    (made,) = written([Hit(target("hit", ENTRY), event(ENTRY, {}), None)], *frames)
    assert made.frames == [
        ("[no unwind information in odd.so]", "", 0), ("[odd.so]", "", 0), ("leaf", "a.c", 7),
    ]  # fmt: skip


def test_a_flow_leads_to_what_is_measured_since() -> None:
    start, reached = plan("g", "main.g"), ENTRY
    hits = Hits([target("start", start), target("hit", reached)])
    events = [
        event(start, {}, 1.0, thread=8, comm="a"), event(reached, {}, 1.5, thread=9, comm="b"),
        event(reached, {}, 2.0), event(start, {}, 3.0), event(reached, {}, 3.25),
    ]  # fmt: skip
    made = written([hit for each in events if (hit := hits.hit(each)) is not None])
    assert [(one.name, one.time, one.values) for one in made] == [
        ("main.g", 1_000_000_000, {}), ("main.f", 1_500_000_000, {"$latency": 500000.0}),
        ("main.f", 2_000_000_000, {}), ("main.g", 3_000_000_000, {}),
        ("main.f", 3_250_000_000, {"$latency": 250000.0}),
    ]  # fmt: skip
    first, second, alone, third, fourth = [one.flows for one in made]
    assert first == second != third == fourth
    assert alone == []
    assert (made[0].track, made[1].track) == (("a 8",), ("b 9",))


def test_numbers_to_add_are_counters() -> None:
    shown = target("hit", ENTRY, measures=("n", "d"))
    values: list[dict[str, Value]] = [{"n": 3, "d": 0.5}, {"n": None, "d": 2.0}, {"n": -1}]
    hits = [Hit(shown, event(ENTRY, args, 1.0 + at), None) for at, args in enumerate(values)]
    made = [one for one in written(hits, sums=("r->n", "d")) if one.value is not None]
    assert [(one.track, one.value) for one in made] == [
        (("x 7", "r->n"), 3), (("x 7", "d"), 0.5), (("x 7", "d"), 2.0), (("x 7", "r->n"), -1),
    ]  # fmt: skip


def test_the_clock_is_tied_to_the_others() -> None:
    before = time.monotonic_ns()
    (packet,) = packets(PerfettoPackets(()).begin())
    clocks = {each.clock_id: each.timestamp for each in packet.clock_snapshot.clocks}
    assert before <= clocks[3] <= time.monotonic_ns()
    assert clocks[6] >= clocks[3]
    assert abs(clocks[1] - time.time_ns()) < 60_000_000_000


# Calls of threads or goroutines, drawn as a tree: (microseconds before it, the calls in it).
CALLS: st.SearchStrategy[Any] = st.recursive(
    st.just([]),
    lambda inner: st.lists(st.tuples(st.integers(1, 9), inner), max_size=4),
    max_leaves=12,
)


def called(tree: Any, now: list[int], depth: int, key: int, thread: int) -> list[Event]:
    """The entries and returns of a tree of calls, one after the other, by a clock."""
    out = []
    for number, (gap, inner) in enumerate(tree):
        now[0] += gap
        place = {"%sp": 0x1000 - 16 * depth, "$goid": key, "$hi": 0x2000}
        moved = {"pid": 7, "thread": thread, "comm": "x"}
        out.append(event(ENTRY, {"n": number, **place}, now[0] / 1e6, **moved))  # type: ignore[arg-type]
        out += called(inner, now, depth + 1, key, thread)
        now[0] += gap
        out.append(event(RETURN, {"m": depth, **place}, now[0] / 1e6, **moved))  # type: ignore[arg-type]
    return out


def expected(hits: list[Hit]) -> list[tuple[int, int | None, dict[str, Any]]]:
    lines = JsonLines([one.target for one in hits], True)
    found = []
    for one in [json.loads(lines.line(hit)) for hit in hits]:
        assert one["faults"] == []
        end = round(one["timestamp"] * 1e9)
        took = None if one["latency_us"] is None else round(one["latency_us"] * 1000)
        found.append((end - (took or 0), took, one["args"]))
    return sorted(found, key=lambda each: each[0])


@given(st.lists(CALLS, min_size=1, max_size=3), st.booleans(), st.integers(0, 3))
def test_slices_are_the_calls_of_the_json_lines(trees: Any, go: bool, unseen: int) -> None:
    now = [1_000_000]
    key: dict[str, Any] = {"key": "$goid", "stack_end": "$hi"} if go else {"key": "%sp"}
    enter, leave = target("enter", ENTRY, "n", "m", **key), target("leave", RETURN, "n", "m", **key)
    events = []
    for number, tree in enumerate(trees):
        events += called(tree, now, 0, 100 + number, 7 + number)
    events = events[unseen:]  # of the first calls only the return was seen
    watched = Hits([enter, leave])
    hits = [hit for each in events if (hit := watched.hit(each)) is not None]
    json_lines = expected(hits)  # before anything else looks at them
    made = written(hits)
    assert sorted([(one.time, one.duration, one.values) for one in made], key=lambda e: e[0]) == (
        json_lines
    )
    tracks = {one.track for one in made if one.duration is not None}
    assert all(("goroutine" in track[-1]) == go for track in tracks)


def calls(*spans: tuple[float, float], thread: int = 7) -> list[PerfettoEvent]:
    leave = target("leave", RETURN)
    hits = [
        Hit(leave, event(RETURN, {}, end, thread=thread), (end - begin) * 1e6)
        for begin, end in spans
    ]
    return written(hits)


def test_calls_that_do_not_nest_keep_their_times() -> None:
    """Two fibers of one thread: the call of the first ends while that of the second goes on."""
    made = calls((1.0, 3.0), (2.0, 4.0), (0.5, 5.0), (5.0, 6.0), (5.0, 7.0))
    assert [(one.time / 1e9, one.duration, one.values) for one in made] == [
        (0.5, 4_500_000_000, {}), (1.0, 2_000_000_000, {}), (4.0, None, {"$latency": 2e6}),
        (5.0, 1_000_000_000, {}), (7.0, None, {"$latency": 2e6}),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), max_size=12))
def test_a_slice_lasts_as_long_as_its_call(drawn: list[tuple[int, int]]) -> None:
    """Whatever overlaps: no end is taken for that of another call."""
    spans = sorted(
        [(float(begin), float(begin + took)) for begin, took in drawn], key=lambda e: e[1]
    )
    made = calls(*spans)
    found = [
        (one.time / 1e9, one.time / 1e9 + one.duration / 1e9)
        if one.duration is not None
        else (one.time / 1e9 - one.values["$latency"] / 1e6, one.time / 1e9)
        for one in made
    ]
    assert sorted(found) == sorted(spans)
    slices = sorted([(one.time, one.duration) for one in made if one.duration is not None])
    assert len(slices) >= bool(spans)
    assert all(first != second or not first[1] for first, second in pairwise(slices))


def test_calls_without_number_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchc.cli.trace_perfetto._CALLS", 2)
    made = calls((1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (0.5, 7.0))
    assert [one.duration is None for one in made] == [False, False, False, True]
    assert made[-1].values == {"$latency": 6.5e6}


def test_a_terminal_gets_no_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["trace", "n", "-x", "/bin/true", "-f", "f", "--format", "perfetto"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "is bytes, not for a terminal: add -o FILE, or a pipe" in printed.err
