"""Tables that the kernel counts: the times of calls, and what an interval has."""

from __future__ import annotations

import json
import operator
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fetchc.ir.fetch import Calculated, Deref, Term
from fetchc.tracer.bpf import bpf_session, counting, floating_terms, noted_values
from fetchc.tracer.bpf.bpf_session import BpfSession
from fetchc.tracer.events import Event
from fetchc.tracer.tables import Row
from tests.live.test_operators import c_program
from tests.live.traced import trace
from tests.support.go_programs import go_program
from tests.support.seeds import seeds
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
int main(int count, char **words)
{
    while (count > 1) // until it is killed
        down(0);
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
    assert "the kernel counts" in done.errors
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


def test_a_time_since_another_function_is_for_one_hit(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Whichever of three threads is first has it; no child has.
    for words in ((), ("--filter", "$latency > 0")):
        done = trace(
            capfd, "--since", "main", "--sum", "$latency", "--by", "$function", "-v", "--json",
            *words, "-f", "down", "-f", "nap", "-x", program, "--", program,
        )  # fmt: skip
        assert "the kernel counts" in done.errors
        counted = [line for line in done.objects if line["count"]]
        assert [(line["key"], line["count"]) for line in counted] == [("down", 1)]
        assert counted[0]["total"] > 0
        others = f"{COUNTS['down'] - 1 + COUNTS['nap']} values that are no numbers"
        assert (others in done.errors) == (not words)


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


def test_calls_that_go_on_after_the_trace_are_not_said_to_be_forgotten(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen([program, "on"]) as running:
        try:
            done = trace(
                capfd, "--latency", "--sum", "$latency", "-v", "--json", "--timeout", "200ms",
                "-f", "down", "-x", program, "-p", str(running.pid),
            )  # fmt: skip
        finally:
            running.kill()
    assert "the kernel counts" in done.errors
    assert "did not return in time" not in done.errors


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


# ------------------------------------------------------------------------------
# Drawn tables: rows of the kernel, of the reader, and of what the program says of itself.

SEEDS = seeds() if "FETCHC_SEEDS" in os.environ else [20]
LONG = bool(os.environ.get("FETCHC_LONG"))
OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__,
    ">=": int.__ge__,
}  # fmt: skip
Call = dict[str, int | None]


class Question:
    """Options of a table, drawn from expressions whose values at each call are known."""

    def __init__(self, chosen: random.Random, calls: list[Call]) -> None:
        texts = [one for one in calls[0] if "," not in one]
        few = [one for one in texts if len({call[one] for call in calls}) < 40]
        self.keys = chosen.sample(few, chosen.choice((0, 1, 1, 2)))
        self.sums = chosen.sample(texts, chosen.choice((0, 1, 2)))
        self.linear = {one: chosen.choice((1, 7, 1000, 1 << 40)) for one in texts[:1]}
        if not self.sums and not self.keys:
            self.sums = texts[:1]
        self.tests: list[tuple[str, str, int]] = []
        for one in chosen.sample(texts, chosen.choice((0, 1, 2))):
            values = [found for call in calls if (found := call[one]) is not None] or [0]
            operator = chosen.choice(list(OPERATORS))
            self.tests.append((one, operator, chosen.choice([0, *values])))
        self.joined = chosen.choice(("&&", "||"))
        self._calls = [call for call in calls if self._passes(call)]

    def _passes(self, call: Call) -> bool:
        passed = [
            (value := call[text]) is not None and OPERATORS[operator](value, constant)
            for text, operator, constant in self.tests
        ]
        return not passed or (all if self.joined == "&&" else any)(passed)

    @property
    def words(self) -> list[str]:
        """The options."""
        found = [word for one in self.sums for word in ("--sum", one)]
        if self.sums:
            found += [
                word for one, step in self.linear.items() for word in ("--linear", f"{step},{one}")
            ]
        if self.keys:
            found += ["--by" if self.sums else "--count-by", ",".join(self.keys)]
        if self.tests:
            conditions = [
                f"({text}) {operator} {constant}" for text, operator, constant in self.tests
            ]
            found += ["--filter", f" {self.joined} ".join(conditions)]
        return found

    def rows(self) -> dict[object, object]:
        """The hits of each key, or what its numbers are, by the key and the measure."""
        by_key: dict[tuple[int | None, ...], list[Call]] = {}
        for call in self._calls:
            by_key.setdefault(tuple([call[one] for one in self.keys]), []).append(call)
        if not self.sums:
            return {key: len(hits) for key, hits in by_key.items()}
        found: dict[object, object] = {}
        for key, hits in by_key.items():
            measures = [("sum", one) for one in self.sums]
            measures += [("histogram", one) for one in self.linear]
            for kind, one in measures:
                numbers = [value for call in hits if (value := call[one]) is not None]
                found[key, kind, one] = (
                    len(numbers), sum(numbers), min(numbers, default=None),
                    max(numbers, default=None),
                )  # fmt: skip
            for one, step in self.linear.items():
                numbers = [
                    value // step * step for call in hits if (value := call[one]) is not None
                ]
                found[key, "buckets", one] = Counter(numbers)
        return found


def told(lines: list[dict[str, Any]]) -> dict[object, object]:
    """The same of the lines of a table."""
    found: dict[object, object] = {}
    for line in lines:
        single = isinstance(line["by"], str)
        key = (line["key"],) if single else tuple(line["key"] or ())
        kind = next((one for one in ("sum", "histogram") if one in line), None)
        if kind is None:
            found[key] = line["count"]
            continue
        if line[kind] == "(all)":
            continue  # the sums together
        numbers = line["count"], line["total"], line["smallest"], line["largest"]
        found[key, kind, line[kind]] = numbers
        if kind == "histogram":
            buckets = {low: count for low, _, count in line["buckets"] if count}
            found[key, "buckets", line[kind]] = buckets
    return found


@pytest.fixture(scope="module", params=SEEDS)
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A program, and what its expressions are at each call."""
    require_bpf()
    folder = tmp_path_factory.mktemp("drawn")
    path, texts = c_program(folder, request.param, "gcc", ".c", 16, 300, real=0)
    done = subprocess.run([path], capture_output=True, text=True, check=True, timeout=60)
    calls: list[Call] = []
    for line in done.stdout.splitlines():
        values = [None if word == "-" else int(word[1:]) for word in line.split()]
        calls.append(dict(zip(texts, values, strict=True)))
    return path, calls, random.Random(request.param)


def asked(
    capfd: pytest.CaptureFixture[str], path: Path, engine: str, words: list[str]
) -> list[dict[str, Any]]:
    done = trace(
        capfd, "--engine", engine, "-v", *words, "-f", "take", "--format", "jsonl", "-x", path,
        "--", path,
    )  # fmt: skip
    assert done.status == 0, (words, done.errors)
    assert ("the kernel counts" in done.errors) == (engine == "bpf"), (words, done.errors)
    return [json.loads(line) for line in done.lines if line.startswith("{")]


def test_drawn_tables_are_those_of_the_reader_and_of_the_program(
    drawn: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls, chosen = drawn
    hits, entries = 0, BpfSession.counted

    def noted(session: BpfSession) -> Iterator[tuple[Event, Row]]:
        nonlocal hits
        for event, row in entries(session):
            hits += row.hits
            yield event, row

    monkeypatch.setattr(BpfSession, "counted", noted)
    for _ in range(20 if LONG else 2):
        question = Question(chosen, calls)
        wanted = question.rows()
        lines = asked(capfd, path, "bpf", question.words)
        assert told(lines) == wanted, question.words
        if LONG:
            theirs = asked(capfd, path, "tracefs", question.words)
            assert sorted(map(json.dumps, theirs)) == sorted(map(json.dumps, lines))
    assert hits > 100


def test_a_wrong_multiple_is_noticed(
    drawn: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls, _ = drawn
    question = Question(random.Random(1), calls)
    question.sums, question.keys, question.linear = ["-(e->i)"], [], {"-(e->i)": 10}
    wanted = told(asked(capfd, path, "tracefs", question.words))
    assert told(asked(capfd, path, "bpf", question.words)) == wanted
    # Rounded to 0, as machines divide.
    monkeypatch.setattr(
        counting, "multiples", lambda found, step: Calculated("div", found.term, step)
    )
    assert told(asked(capfd, path, "bpf", question.words)) != wanted


def test_a_summary_has_the_times_of_all_calls(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    functions = [word for name in COUNTS for word in ("-f", name)]
    for words, counts in (
        ((), COUNTS),
        (("--filter", '$latency >= 4000 && $cpu < 10000 && $function == "nap"'), {"nap": 20}),
        (("--filter", '$function == "even" && $latency > 0.001'), {"even": COUNTS["even"]}),
    ):
        done = trace(
            capfd, "--latency", "--summary", "-v", "--json", *words, *functions, "-x", program,
            "--", program,
        )  # fmt: skip
        assert "the kernel counts" in done.errors
        lines = {line["summary"]: line for line in done.objects}
        assert {name: line["hits"] for name, line in lines.items()} == counts
        assert all(line["latency_us"]["count"] == line["hits"] for line in lines.values())
        if "nap" in lines:
            times, own = lines["nap"]["latency_us"], int(done.program[-1].split()[1]) / 20
            assert 5000 < times["mean"] < own < times["mean"] * 1.2
            assert times["mean"] <= times["max"]


def test_a_return_is_counted_by_values_of_its_entry(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Recursion, tail calls, threads, frames that longjmp leaves; a division by 0 is recorded.
    names = ("down", "even", "odd", "risky")
    functions = [word for name in names for word in ("-f", name)]
    quotient = {n: None if not n else 10 // n for n in range(30)}
    wanted: Counter[tuple[str, int | None]] = Counter()
    for name, numbers, times in (
        ("down", range(5), 90), ("down", range(3), 1), ("even", (1, 3, 5), 90),
        ("odd", (0, 2, 4), 90), ("risky", [n for n in range(30) if n % 3], 3),
    ):  # fmt: skip
        for n in numbers:
            wanted[name, quotient[n]] += times
    for filter, least in (((), 0), (("--filter", "n >= 3 && $latency > 0"), 3)):
        done = trace(
            capfd, "--latency", "--histogram", "$latency", "--sum", "n", "--by",
            "$function,10 / n", "-v", "--json", *filter, *functions, "-x", program, "--", program,
        )  # fmt: skip
        assert "the kernel counts" in done.errors
        found = Counter[tuple[str, int | None]]()
        for line in done.objects:
            if "histogram" in line:
                found[tuple(line["key"])] += line["count"]
        if not least:
            assert found == wanted
            sums = sum(line["total"] for line in done.objects if "sum" in line)
            down, risky = 90 * 10 + 3, 3 * sum(n for n in range(30) if n % 3)
            assert sums == down + 90 * (1 + 3 + 5) + 90 * (2 + 4) + risky
        else:
            assert sum(found.values()) == 90 * 2 + 90 * 2 + 90 + 3 * 18
            assert None not in [key for _, key in found]


def test_goroutines_are_counted_by_values_of_their_entries(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    built = go_program(GO_VERSIONS[-1], tmp_path, IN_GO, name="timed")
    functions = [word for name in GO_COUNTS for word in ("-f", name)]
    done = trace(
        capfd, "--latency", "--sum", "n", "--by", "$function,12 / n", "-v", "--json", *functions,
        "-x", built, "--", built,
    )  # fmt: skip
    assert "the kernel counts" in done.errors
    wanted: Counter[tuple[str, int | None]] = Counter()
    for name, numbers in (
        ("main.down", range(41)), ("main.inner", [n for n in range(30) if n % 3]),
        ("main.risky", range(30)),
    ):  # fmt: skip
        times = 4 * (30 if name == "main.down" else 1)
        for n in numbers:
            wanted[name, None if not n else 12 // n] += times
    assert {tuple(line["key"]): line["count"] for line in done.objects} == wanted


# ------------------------------------------------------------------------------
# Filters of floating-point numbers and of the task's name.

NAMED = r"""
#include <sys/prctl.h>
struct one { float f; double g; const char *name; char tag[12]; int n; short k; };
static struct one given[] = { @GIVEN@ };
__attribute__((noipa)) void take(const struct one *e) { __asm__ volatile("" :: "r"(e) : "memory"); }
int main(void)
{
    for (unsigned i = 0; i < sizeof given / sizeof *given; i++) {
        prctl(PR_SET_NAME, given[i].name);
        take(given + i);
    }
}
"""
NAMES = ("", "a", "reader", "reader_", "reader_1", "reader_12", "fifteen letters", "long" * 20)
TAGS = ("", "t", "tags", "to the end ", "twelve bytes")
COMPARED: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
REAL = (0.0, -0.0, 0.1, -2.5, 16777216.0, 1e-45, 3e38, float("inf"), -float("inf"), float("nan"))


def named_source(seed: int) -> tuple[str, list[dict[str, Any]]]:
    """The source of a program, and what that gives ``take`` at each call."""
    chosen = random.Random(seed)
    calls: list[dict[str, Any]] = []
    rows = []
    for n in range(300):
        f, g, name, tag = *chosen.choices(REAL, k=2), chosen.choice(NAMES), chosen.choice(TAGS)
        calls.append({"f": f, "g": g, "name": name, "$comm": name[:15], "tag": tag, "n": n % 7})
        rows.append(f'{{ {f!r}, {g!r}, "{name}", "{tag}", {n % 7}, {n % 7 % 3} }}')
    given = ", ".join(rows).replace("inf", "__builtin_inf()").replace("nan", '__builtin_nan("")')
    return NAMED.replace("@GIVEN@", given), calls


def named_calls(folder: Path, seed: int) -> tuple[Path, list[dict[str, Any]]]:
    """The program, and what it gives ``take``."""
    text, calls = named_source(seed)
    source, program = folder / "named.c", folder / "named"
    source.write_text(text)
    subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True, timeout=60)
    return program, calls


@pytest.mark.parametrize("seed", SEEDS)
def test_floats_and_names_are_compared_as_the_reader_does(
    seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_bpf()
    require("gcc")
    program, calls = named_calls(tmp_path, seed)
    chosen = random.Random(seed)
    for _ in range(20 if LONG else 1):
        real, name = chosen.choice(("f", "g")), chosen.choice(NAMES)[:15]
        symbol, limit = chosen.choice(sorted(COMPARED)), chosen.choice(REAL[:7])
        same = chosen.choice(("==", "!=", "~"))
        pattern = name + "*" * (same == "~")
        words = ["--count-by", "e->n", "--filter",
                 f'e->{real} {symbol} {limit!r} || $comm {same} "{pattern}"']  # fmt: skip

        wanted = Counter[object]()
        for call in calls:
            begins, is_it = call["$comm"].startswith(name), call["$comm"] == name
            named = begins if same == "~" else is_it == (same == "==")
            if named or COMPARED[symbol](call[real], limit):
                wanted[call["n"],] += 1
        assert told(asked(capfd, program, "bpf", words)) == wanted, words
        if LONG:
            assert told(asked(capfd, program, "tracefs", words)) == wanted, words
    words = ["--count-by", "e->n", "--filter", "e->f < 0"]
    before = told(asked(capfd, program, "bpf", words))
    monkeypatch.setattr(floating_terms, "_is_none", lambda value: 1)
    assert told(asked(capfd, program, "bpf", words)) != before


@pytest.mark.parametrize("seed", SEEDS)
def test_a_return_is_counted_by_strings_of_its_entry(
    seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_bpf()
    require("gcc")
    program, calls = named_calls(tmp_path, seed)
    words = ["--latency", "--count-by", "e->name,e->tag,e->n,e->k", "--filter",
             'e->name != "a" && e->tag ~ "t*" && $latency >= 0']  # fmt: skip
    wanted = Counter[object]()
    for call in calls:
        if call["name"] != "a" and call["tag"].startswith("t"):
            wanted[call["name"], call["tag"], call["n"], call["n"] % 3] += 1
    for engine in ("bpf", "tracefs") if LONG else ("bpf",):
        assert told(asked(capfd, program, engine, words)) == wanted
    words_at = noted_values._to_nul

    def behind(start: Deref, limit: int | None) -> list[Term]:
        return words_at(start.replaced(offset=start.offset + 1), limit)

    monkeypatch.setattr(noted_values, "_to_nul", behind)
    assert told(asked(capfd, program, "bpf", words)) != wanted
