"""Times of calls, histograms, summaries and filters, on the running kernel."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import trace_command as command
from fetchc.tracer.session import Session
from tests.live.test_trace_command import SHADES
from tests.live.traced import Traced, build, trace
from tests.support.go_programs import go_program
from tests.support.programs import fixture
from tests.support.seeds import seeds
from tests.support.toolchains import GO_VERSIONS, go_number

pytestmark = pytest.mark.live


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traced"))


def jsonl(capfd: pytest.CaptureFixture[str], program: Path, *words: str) -> Traced:
    """A trace of ``work`` unless ``words`` say otherwise; the program's own after ``--``."""
    end = words.index("--")
    given, own = words[:end], words[end + 1 :]
    function = () if "-f" in given else ("-f", "work")
    return trace(capfd, *given, *function, "-x", program, "--format", "jsonl", "--", program, *own)


def within(begin: float, calls: list[dict[str, Any]]) -> bool:
    """Whether the times of calls, one after another, are microseconds of those since then."""
    latencies: list[float] = [each["latency_us"] for each in calls]
    return min(latencies) > 0 and sum(latencies) < 1e6 * (time.monotonic() - begin)


def test_the_time_of_a_call(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    traced = jsonl(capfd, program, "ms", "$retval", "-f", "nap", "--latency", "--", "nap", "4")
    assert within(begin, traced.objects)
    assert traced.args == [{"ms": n, "$retval": n} for n in range(1, 5)]
    for each in traced.objects:
        assert 1000 * each["args"]["ms"] <= each["latency_us"]


def test_each_level_of_a_recursion(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = jsonl(capfd, program, "n", "$retval", "-f", "down", "--latency", "--", "down", "9")
    returns = traced.args
    assert returns == [{"n": n, "$retval": n} for top in range(9) for n in range(top + 1)]
    # The inner call ends before the outer one, and took less.
    last = traced.objects[-9:]
    latencies = [each["latency_us"] for each in last]
    assert latencies == sorted(latencies)
    assert all(each > 0 for each in latencies)


def test_calls_that_are_left_by_longjmp(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    traced = jsonl(capfd, program, "n", "$retval", "-f", "risky", "--latency", "--", "risky", "40")
    assert within(begin, traced.objects)
    assert traced.args == [{"n": n, "$retval": n} for n in range(0, 40, 2)]


def test_go_calls_by_goroutine(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    binary = fixture("go/dnsforward/go1.27")
    begin = time.monotonic()
    traced = trace(
        capfd, "depth", "-x", binary, "-f", "main.(*server).forward", "--latency",
        "--format", "jsonl", "--", "sh", "-c", f"exec {binary} >{tmp_path}/printed",
    )  # fmt: skip
    assert within(begin, traced.objects)
    assert [each["args"] for each in traced.objects] == [{"depth": n} for n in (-3, -4, -5)]
    assert {each["kind"] for each in traced.objects} == {"return-site"}


PANICS = """
package main

import (
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"time"
)

var calls int64

//go:noinline
func deep(n int) int {
	var frame [512]byte
	frame[n%512] = byte(n)
	if n == 0 {
		return 0
	}
	return deep(n-1) + int(frame[n%512])
}

// It returns its number, also where a call that it made ended by a panic.
//
//go:noinline
func visit(random *rand.Rand, id, level int64) (result int64) {
	if random.Intn(3) == 0 {
		defer func() {
			if recover() != nil {
				result = id
			}
		}()
	}
	if random.Intn(50) == 0 {
		deep(40) // the stack moves
	}
	for level < 8 && random.Intn(5) > 1 {
		calls++
		visit(random, calls, level+1)
	}
	switch random.Intn(40) {
	case 0, 1, 2, 3, 4, 5:
		panic("left")
	case 6:
		runtime.Goexit()
	case 7:
		runtime.Gosched()
	}
	return id
}

func main() {
	seed, _ := strconv.ParseInt(os.Args[1], 10, 64)
	random := rand.New(rand.NewSource(seed))
	for n := 0; n < 30; n++ {
		done := make(chan int)
		go func() {
			defer close(done)
			defer func() { recover() }()
			for n := 0; n < 3; n++ {
				calls++
				visit(random, calls, 0)
			}
		}()
		<-done
	}
	println(calls)
	time.Sleep(time.Millisecond)
}
"""


@pytest.mark.parametrize("version", [it for it in GO_VERSIONS if go_number(it) >= (1, 18)])
def test_go_calls_that_panics_end(
    version: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    binary = go_program(version, tmp_path, PANICS, name="panics")
    for seed in seeds():
        begin = time.monotonic()
        traced = trace(
            capfd, "id", "$ret0", "-x", binary, "-f", "main.visit", "--latency",
            "--format", "jsonl", "--", "sh", "-c", f"exec {binary} {seed} 2>{tmp_path}/printed",
        )  # fmt: skip
        assert within(begin, traced.objects)
        args = [each["args"] for each in traced.objects]
        assert [each for each in args if each["id"] != each["$ret0"]] == []
        print(f"seed {seed}, Go {version}: {len(traced.objects)} returns")
        assert len(traced.objects) > 20


def test_from_one_function_to_another(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    traced = jsonl(capfd, program, "ms", "-f", "nap", "--since", "main", "--", "nap", "3")
    first, *others = traced.objects
    assert within(begin, [first])
    # The time counts once from each start.
    assert [each["latency_us"] for each in others] == [None, None]


def test_a_histogram_by_a_key(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--histogram", "it->number", "--by", "it->yes")
    shown = jsonl(capfd, program, *words, "--", "calls", "200").objects
    for each in shown:
        values = [n - 50 for n in range(200) if (n % 2 == 1) is each["key"]]
        assert each["count"] == len(values) == 100
        assert (each["smallest"], each["largest"]) == (min(values), max(values))
        for low, high, count in each["buckets"]:
            inside = [v for v in values if v < high and (low is None or v >= low)]
            assert count == len(inside)
    assert len(shown) == 2


def test_a_histogram_of_times_as_text(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "-x", program, "-f", "nap", "--latency", "--histogram", "$latency",
        "--by", "$comm", "--summary", "--", program, "nap", "4",
    )  # fmt: skip
    assert traced.lines[1].split()[-2:] == ["$comm", "EXPRESSION"]
    row = traced.lines[2].split()
    assert (row[0], row[-3:]) == ("4", ['"traced"', "$latency", "(us)"])
    assert 2500 <= float(row[1]) <= float(row[6])
    assert traced.lines[-2].split() == ["HITS", "MEAN", "us", "MAX", "us", "FUNCTION"]
    hits, mean, longest, function = traced.lines[-1].split()
    assert (hits, function) == ("4", "nap")
    assert 2500 <= float(mean) <= float(longest)


def test_a_summary(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("-f", "outer", "-f", "work", "-f", "down", "--summary")
    shown = jsonl(capfd, program, *words, "--", "calls", "70").objects
    assert shown == [{"summary": "outer", "hits": 70}, {"summary": "work", "hits": 70}]


Values = dict[str, Any]
FILTERS: list[tuple[str, Any, bool]] = [
    # The filter, what it says of a call, and whether the kernel has a part in it.
    ("n > 150", lambda v: v["n"] > 150, True),
    ("n == 7 && it->small == -93", lambda v: v["n"] == 7, True),
    ("it->small < -90", lambda v: v["small"] < -90, True),
    ("it->small == 251", lambda v: False, False),
    ("it->small != -5", lambda v: v["small"] != -5, True),
    ("it->big >= 250", lambda v: v["big"] >= 250, True),
    ("it->big < 256", lambda v: True, False),
    ("it->big > -1", lambda v: True, False),
    ("it->middle & 256", lambda v: v["middle"] & 256, True),
    ("it->number <= -40", lambda v: v["number"] <= -40, True),
    ("it->wide == 50000000000", lambda v: v["wide"] == 50000000000, True),
    ("it->wide > -10000000001", lambda v: v["wide"] > -10000000001, True),
    ("it->five == 9", lambda v: v["five"] == 9, False),
    ("it->minus == -3", lambda v: v["minus"] == -3, False),
    ("it->yes == true", lambda v: v["yes"], True),
    ("it->yes == false", lambda v: not v["yes"], True),
    ("it->shade == DARK", lambda v: v["shade"] == "DARK", True),
    ("it->shade > 5", lambda v: v["shade"] == "LIGHT", True),
    ("it->d < 1.3", lambda v: v["d"] < 1.3, False),
    ('it->name == "plain"', lambda v: v["n"] % 6 == 0, True),
    ('it->name == ""', lambda v: v["n"] % 6 == 1, True),
    ('it->name != "plain"', lambda v: v["n"] % 6 in (1, 2, 3, 4), True),
    ('it->name ~ "a*"', lambda v: v["n"] % 6 == 2, True),
    ('it->name ~ "*lin?s"', lambda v: v["n"] % 6 == 3, False),
    (r'it->name == "two\nlines"', lambda v: v["n"] % 6 == 3, False),
    ('it->fixed == "full"', lambda v: v["n"] % 2, False),
    ("it->pair.y == -8", lambda v: v["n"] == 8, True),
    ("it->act != nil && n < 3", lambda v: v["n"] < 3, True),
    ('$comm == "traced" && n < 3', lambda v: v["n"] < 3, True),
    ('$comm == "else"', lambda v: False, False),
    (
        "n < 3 || n == 7 && it->small != 0",
        lambda v: v["n"] < 3 or (v["n"] == 7 and v["small"]),
        True,
    ),
    (
        "(n > 160 || n < 2) && n != 165",
        lambda v: (v["n"] > 160 or v["n"] < 2) and v["n"] != 165,
        True,
    ),
    ("n == 3 || it->d > 1.5", lambda v: v["n"] == 3 or v["d"] > 1.5, False),
    ("n == 3 || $pid == 1", lambda v: v["n"] == 3, False),
]


def calls(traced: Traced) -> list[Values]:
    names = ("n", "small", "big", "middle", "number", "wide", "five", "minus", "yes")
    found = []
    for line in traced.program:
        words = line.split()[1:]
        values: Values = dict(zip(names, map(int, words[:9]), strict=True))
        found.append(values | {"shade": SHADES[int(words[9])], "d": float(words[10])})
    return found


@pytest.mark.parametrize(("text", "passes", "by_kernel"), FILTERS, ids=[it[0] for it in FILTERS])
def test_filters(
    text: str,
    passes: Any,
    by_kernel: bool,
    program: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
    install = Session.filter

    def noted(self: Session, plan: Any, condition: str) -> None:
        sent.append(condition)
        install(self, plan, condition)

    monkeypatch.setattr(Session, "filter", noted)
    words = ("n", "--filter", text, "--", "calls", "170")
    both = jsonl(capfd, program, *words)
    assert bool(sent) is by_kernel
    monkeypatch.setattr(command, "kernel_filter", lambda plan, conditions: "")
    reader = jsonl(capfd, program, *words)
    assert len(sent) <= 1
    wanted = [values["n"] for values in calls(both) if passes(values)]
    assert len(calls(both)) == 170
    assert [each["n"] for each in both.args] == wanted
    assert [each["n"] for each in reader.args] == wanted


def test_a_wrong_kernel_filter_would_be_noticed(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "kernel_filter", lambda plan, conditions: "n > 151")
    shown = jsonl(capfd, program, "n", "--filter", "n > 150", "--", "calls", "160")
    assert [each["n"] for each in shown.args] == list(range(152, 160))


def test_filters_of_whole_calls(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("ms", "-f", "nap", "--latency", "--filter", "$latency >= 3000 && $retval != 4")
    shown = jsonl(capfd, program, *words, "--", "nap", "5")
    assert {each["ms"] for each in shown.args} >= {3, 5}
    assert 4 not in {each["ms"] for each in shown.args}
    assert all(each["latency_us"] >= 3000 for each in shown.objects)
    assert not math.isnan(shown.objects[0]["latency_us"])
