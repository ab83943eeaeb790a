"""Tables that the kernel counts: the times of calls, and what an interval has."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fetchc.tracer.bpf import bpf_session
from tests.live.traced import trace
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS, require
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live

SOURCE = r"""
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
#define KEEP __asm__ volatile("" ::: "memory")
static __thread jmp_buf back;
NOINLINE int down(int n) { int below = n ? down(n - 1) : 0; KEEP; return below + 1; }
NOINLINE int odd(int n);
NOINLINE int even(int n) { KEEP; return n ? odd(n - 1) : 1; }
NOINLINE int odd(int n) { KEEP; return n ? even(n - 1) : 0; }
NOINLINE int risky(int n) { KEEP; if (n % 3 == 0) longjmp(back, 1); KEEP; return n; }
NOINLINE int nap(int us) { usleep(us); return us; }
static void *work(void *unused)
{
    for (volatile int n = 0; n < 30; n++) {
        down(4);
        even(5);
        if (!setjmp(back))
            risky(n);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[3];
    for (int n = 0; n < 3; n++)
        pthread_create(threads + n, 0, work, 0);
    for (int n = 0; n < 3; n++)
        pthread_join(threads[n], 0);
    if (!fork()) {
        down(2);
        _exit(0);
    }
    wait(0);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int n = 0; n < 20; n++)
        nap(5000);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("EVENT %ld\n", (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
}
"""
COUNTS = {"down": 3 * 30 * 5 + 3, "even": 3 * 30 * 3, "odd": 3 * 30 * 3, "risky": 60, "nap": 20}
IN_GO = r"""
package main

import "sync"

//go:noinline
func down(n int) int { // its stack grows, and moves
	var room [128]byte
	if n == 0 {
		return int(room[0])
	}
	return down(n-1) + int(room[n&127])
}

//go:noinline
func inner(n int) int {
	if n%3 == 0 {
		panic("third")
	}
	return n
}

//go:noinline
func risky(n int) (result int) {
	defer func() { recover() }()
	return inner(n)
}

func main() {
	var all sync.WaitGroup
	for k := 0; k < 4; k++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < 30; n++ {
				down(40)
				risky(n)
			}
		}()
	}
	all.Wait()
}
"""
GO_COUNTS = {"main.down": 4 * 30 * 41, "main.inner": 4 * 20, "main.risky": 4 * 30}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_bpf()
    require("gcc")
    folder = tmp_path_factory.mktemp("tables")
    path, source = folder / "timed", folder / "timed.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O2", "-pthread", "-o", path, source], check=True, timeout=60)
    return path


def times(
    capfd: pytest.CaptureFixture[str], program: Path, names: dict[str, int], *words: str
) -> tuple[list[dict[str, Any]], int, str]:
    """The lines of a table of ``$latency``, what the program printed, the notes."""
    functions = [word for name in names for word in ("-f", name)]
    done = trace(
        capfd, "--latency", "--histogram", "$latency", "--by", "$function", "-v", "--json",
        *words, *functions, "-x", program, "--", program,
    )  # fmt: skip
    assert done.status == 0, done.errors
    assert "bpf: the kernel counts" in done.errors
    own = [int(line.split()[1]) for line in done.program]
    return [json.loads(line) for line in done.lines], sum(own), done.errors


def test_each_call_has_the_time_of_its_own_entry(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Recursion, tail calls, threads, a child, and frames that longjmp leaves.
    lines, own, notes = times(capfd, program, COUNTS)
    by_name = {str(line["key"]): line for line in lines}
    assert {name: line["count"] for name, line in by_name.items()} == COUNTS
    nap = by_name["nap"]
    assert isinstance(nap["total"], float)
    assert nap["smallest"] >= 5000
    assert nap["total"] < own < nap["total"] * 1.2
    assert "no numbers" not in notes


def test_goroutines_have_their_own_calls(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    built = go_program(GO_VERSIONS[-1], tmp_path, IN_GO, name="timed")
    lines, _, notes = times(capfd, built, GO_COUNTS)
    assert {str(line["key"]): line["count"] for line in lines} == GO_COUNTS
    assert "no numbers" not in notes


def test_calls_that_the_map_has_no_room_for_are_counted(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpf_session, "_OPEN_CALLS", 2)
    lines, _, notes = times(capfd, program, {"down": 1})
    counted = sum(int(str(line["count"])) for line in lines)
    assert counted < COUNTS["down"]
    lost = COUNTS["down"] - counted
    assert f"{lost} calls did not return in time to count" in notes
    assert f"{lost} values that are no numbers" in notes


def test_intervals_together_are_the_whole(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines, _, _ = times(capfd, program, COUNTS, "--interval", "20ms")
    *intervals, total = lines
    assert len(intervals) > 1
    assert "total" in total
    sums: Counter[str] = Counter()
    for line in intervals:
        for row in line["rows"]:
            values = row["values"]["$latency"]
            assert values["count"] == row["hits"] == sum(bar[2] for bar in values["buckets"])
            sums[row["key"][0]] += row["hits"]
            sums[row["key"][0] + " in us"] += values["total"]
    assert {name: sums[name] for name in COUNTS} == COUNTS
    for row in total["rows"]:
        name = row["key"][0]
        assert row["hits"] == COUNTS[name]
        assert row["values"]["$latency"]["total"] == pytest.approx(sums[name + " in us"])
