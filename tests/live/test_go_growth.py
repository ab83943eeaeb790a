"""Calls that have to let their stack grow first: lost parameters are reported.

Each of some thousand goroutines begins with a small stack, and each probed function needs a big
one. The program passes numbers from 1 on, each once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS, go_number
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

CALLS = 2000
SOURCE = (
    """package main

import "sync"

type reader struct{ serial int }

var room byte

//go:noinline
func fill(frame []byte) int { frame[0] = room; return int(frame[len(frame)-1]) }

//go:noinline
func (r *reader) stub(serial int, text string, small uint8) int {
	var frame [4096]byte
	return fill(frame[:])
}

//go:noinline
func used(serial int, text string, small uint8) int {
	var frame [4096]byte
	return fill(frame[:]) + serial
}

//go:noinline
func partly(serial int, text string, small uint8) int {
	var frame [4096]byte
	return fill(frame[:]) + len(text)
}

func main() {
	var all sync.WaitGroup
	one := &reader{}
	for n := 1; n <= CALLS; n++ {
		all.Add(3)
		go func(n int) { defer all.Done(); one.stub(n, "abc", 7) }(n)
		go func(n int) { defer all.Done(); used(n, "abc", 7) }(n)
		go func(n int) { defer all.Done(); partly(n, "abc", 7) }(n)
	}
	all.Wait()
}
"""
).replace("CALLS", str(CALLS))


def hits(binary: Path, function: str, at: str = "") -> tuple[list[int], list[int], set[str]]:
    """What `serial` and `small` were in each hit, and the codes of what was said of them."""
    probe = fetchc.open(str(binary)).probe(function, at=at or None)
    arguments = [probe.compile("serial"), probe.compile("small")]
    said = {one.code for argument in arguments for one in argument.warnings}
    with Session() as session:
        session.add(probe.definition(arguments, session.group, "grown"))
        session.run([str(binary)])
        found = session.hits("grown")
    return (
        [int(hit.values["serial"]) for hit in found],
        [int(hit.values["small"]) for hit in found],
        said,
    )


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_what_a_growing_stack_loses_is_reported(version: str, tmp_path: Path) -> None:
    require_uprobes()
    binary = go_program(version, tmp_path, SOURCE, name="growing")
    right = list(range(1, CALLS + 1))
    for function in ("main.used", "main.partly"):
        serials, smalls, said = hits(binary, function)
        assert sorted(serials) == right
        assert set(smalls) == {7}
        assert said == set()
    serials, smalls, said = hits(binary, "main.(*reader).stub")
    assert len(serials) == CALLS
    if go_number(version) < (1, 17):  # on the stack, which is copied
        assert sorted(serials) == right
        assert said == set()
        return
    assert said == {"FC0623"}
    assert sum(serial in right for serial in serials) < CALLS / 2
    twice, _, said = hits(binary, "main.(*reader).stub", "+0")
    assert said == {"FC0623"}
    assert len(twice) > 1.5 * CALLS
    assert set(twice) >= set(right)


@pytest.mark.parametrize("version", [one for one in GO_VERSIONS if one != "1.15"])
def test_a_trace_has_the_right_value_or_none(version: str, tmp_path: Path) -> None:
    require_uprobes()
    binary = go_program(version, tmp_path, SOURCE, name="growing")
    opened = fetchc.open(str(binary))
    probes = {
        "kept": opened.probe("main.used"),
        "lost": opened.probe("main.(*reader).stub"),
        "first": opened.probe("main.(*reader).stub", at="+0"),
    }
    _, events = watched(
        lambda group: [
            probe.plan(["serial", "text", "$goid"], group, event) for event, probe in probes.items()
        ],
        [str(binary)],
    )
    right = list(range(1, CALLS + 1))
    values: dict[str, list[object]] = {name: [] for name in probes}
    for event in events:
        name = event.plan.event
        if event.args["serial"] is None:
            assert event.faults == ("serial", "text")
            assert event.args["text"] is None
        else:
            assert not event.faults
            assert event.args["text"] == "abc"
        assert event.args["$goid"]
        values[name].append(event.args["serial"])
    assert sorted(map(int, map(str, values["kept"]))) == right
    assert len(values["lost"]) == CALLS
    assert values["lost"].count(None) > CALLS / 2
    assert {one for one in values["lost"] if one is not None} <= set(right)
    # Before the check each call has its parameters once.
    assert sorted(int(str(one)) for one in values["first"] if one is not None) == right
    assert values["first"].count(None) > CALLS / 2


def test_filters_and_sums_leave_out_what_was_lost(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    binary = go_program("1.27", tmp_path, SOURCE, name="growing")
    function = ("-x", binary, "-f", "main.(*reader).stub")
    wanted = ("--filter", "serial > 0", "--sum", "serial", "--format", "jsonl")
    traced = trace(capfd, "serial", "--at", "+0", *wanted, *function, "--", binary)
    *events, summed = traced.objects
    assert sorted(event["args"]["serial"] for event in events) == list(range(1, CALLS + 1))
    assert (summed["count"], summed["total"]) == (CALLS, CALLS * (CALLS + 1) // 2)
    assert "FC0623" in traced.errors
