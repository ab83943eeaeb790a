"""``fetchc trace`` of Go programs: callers, names of constants and functions, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
package main

import "os"

type level int8

const (
	low  level = -1
	high level = 100
)

type state struct {
	now   level
	act   func(int) int
	acts  []func(int) int
	share float32
	rooms []map[string]int
	lines []chan int
}

//go:noinline
func double(n int) int { return 2 * n }

//go:noinline
func down(s *state, n int) int {
	if n > 0 {
		return down(s, n-1) + 1
	}
	return s.act(n)
}

//go:noinline
func outer(s *state) int { return down(s, 2) + 1 }

func main() {
	line := make(chan int, 2)
	line <- 3
	more := len(os.Args)
	s := &state{low, double, nil, 2.1, nil, nil}
	s.acts = []func(int) int{double, nil, func(n int) int { return n + more }}
	s.rooms = []map[string]int{{"a": 1, "b": 2}, nil, {}}
	s.lines = []chan int{line, nil}
	outer(s)
	s.now = high
	outer(s)
	s.now = 5
	outer(s)
}
"""


@pytest.fixture(scope="module", name="programs")
def programs_(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    require_uprobes()
    return {}


@pytest.fixture(name="program", params=GO_VERSIONS)
def program_(
    request: pytest.FixtureRequest,
    programs: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    version: str = request.param
    if version not in programs:
        folder = tmp_path_factory.mktemp("go")
        programs[version] = go_program(version, folder, SOURCE.lstrip(), name="traced")
    return programs[version]


def _by_goroutine(program: Path) -> bool:
    # --latency pairs by goroutines, which no register holds at a return up to Go 1.16.
    probe = fetchc.open(str(program)).probe("main.outer", returns=True)
    try:
        probe.asked("$goid")
    except fetchc.CompileError:
        return False
    return True


@pytest.mark.parametrize("stack", ["--stack", "--stack=fp"])
@pytest.mark.parametrize("options", [["--return"], ["--latency"], []])
def test_no_caller_is_missing(
    program: Path, options: list[str], stack: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if "--latency" in options and not _by_goroutine(program):
        pytest.skip("no register holds the goroutine")
    shown = trace(
        capfd, "-x", program, "-f", "main.down", stack, *options, "--format", "jsonl",
        "--", program,
    )  # fmt: skip
    stacks = [[frame["function"] for frame in one["stack"]] for one in shown.objects]
    callers = [[one for one in stack if one and one.startswith("main.")] for stack in stacks]
    recursive = [["main.down"] * depth + ["main.outer", "main.main"] for depth in (1, 2, 3)]
    if options:
        recursive.reverse()  # the innermost call returns first
    assert callers == recursive * 3


def test_constants_and_functions_have_names(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = ["s.now", "s.act", "s.acts", "s.share", "s.rooms", "s.lines", "(s.lines[0])"]
    shown = trace(
        capfd, *texts, "-x", program, "-f", "main.outer", "--format", "jsonl", "--", program
    )
    assert [each["s.now"] for each in shown.args] == [
        {"name": "low", "value": -1}, {"name": "high", "value": 100}, {"name": None, "value": 5},
    ]  # fmt: skip
    first = shown.args[0]
    assert list(first) == texts
    assert [first[text] for text in texts[1:]] == [
        "main.double", ["main.double", 0, "main.main.func1"], 2.1, [2, 0, 0], [1, 0], 1,
    ]  # fmt: skip
    plain = trace(capfd, "s.now", "-x", program, "-f", "main.outer", "--", program)
    assert [line.split("s.now=")[1] for line in plain.lines] == ["low", "high", "5"]
    some = trace(
        capfd, "s.now", "-x", program, "-f", "main.outer", "--filter", "s.now == high", "--format",
        "jsonl", "--", program,
    )  # fmt: skip
    assert len(some.lines) == 1


def test_maps_and_channels_are_in_words(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words: list[str | Path] = ["-x", program, "-f", "main.outer", "--count", "1"]
    texts = ["s.rooms", "s.rooms[0]", "s.lines", "s.rooms[1]", "s.rooms[2]", "s.lines[1]"]
    shown = trace(capfd, *texts, *words, "--", program).lines
    assert [value.partition("=")[2] for value in shown[0].split("  ")[-len(texts) :]] == [
        "[map[2], nil map, map[0]]", "map[2]", "[chan 1/2, nil chan]", "nil map", "map[0]",
        "nil chan",
    ]  # fmt: skip
    for filter, wanted in (
        ("s.rooms[1] == nil", 1), ("s.rooms[2] == nil", 0), ("s.rooms[2] != nil", 1),
        ("s.rooms[2] == 0", 1), ("s.rooms[0] > 1 && s.lines[0] == 1", 1), ("s.lines[1] != nil", 0),
    ):  # fmt: skip
        some = trace(capfd, *texts, "--filter", filter, *words, "--json", "--", program)
        assert len(some.lines) == wanted, filter
    summed = ["--sum", "s.rooms[0]", "--by", "s.rooms[2],s.rooms[1]"]
    total = trace(capfd, *summed, *words[:-2], "--json", "--", program)
    assert [(one["key"], one["total"]) for one in total.objects] == [([0, 0], 6)]


def test_what_is_refused_does_not_stop_the_rest(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words: list[str | Path] = ["s.now", "s.nothing", "s.share", "-x", program, "-f", "main.outer"]
    for options in ([], ["--latency"]) if _by_goroutine(program) else ([],):
        shown = trace(capfd, *words, *options, "--format", "jsonl", "--", program)
        assert shown.status == 0
        assert [list(each) for each in shown.args] == [["s.now", "s.share"]] * 3
        assert "error[FC0302]: `main.state` has no member `nothing`" in shown.errors
        assert "left out `s.nothing` of `main.outer`: " in shown.errors
    refused = trace(capfd, *words, "--strict", "--", program)
    assert (refused.status, refused.lines) == (1, [])
    # Nothing is left to go on with, or it decides what is shown.
    for others in (["s.nothing"], ["s.now", "--filter", "s.nothing > 1"]):
        alone = trace(capfd, *others, "-x", program, "-f", "main.outer", "--", program)
        assert (alone.status, alone.lines) == (1, [])
