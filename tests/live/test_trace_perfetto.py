"""``trace --format perfetto``: a run's events are those that its program tells of."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.live.test_go_goroutines import SOURCE
from tests.live.traced import build, trace
from tests.support.go_programs import go_program
from tests.support.perfetto_events import read
from tests.support.toolchains import GO_VERSIONS, ROOT
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traced"))


def test_calls_are_slices_that_nest(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.pftrace"
    words = ["n", "it->pair", "it->name", "--latency", "--stack", "-f", "outer", "-f", "work"]
    before = time.monotonic_ns()
    form = ["--format", "perfetto", "-o", str(path)]
    traced = trace(capfd, *words, *form, "--sum", "it->number", "--", program, "calls", "6")
    told = [line.split() for line in traced.program]
    assert (traced.status, len(told), traced.lines) == (0, 6, [])
    made = read(path.read_bytes())
    for function, caller in (("outer", "main"), ("work", "outer")):
        slices = [one for one in made if one.name == function]
        assert all(one.duration is not None and one.duration > 0 for one in slices)
        shown = [(one.values["n"], one.values["it->pair"]) for one in slices]
        assert shown == [(int(one[1]), {"x": int(one[1]), "y": -int(one[1])}) for one in told]
        assert {one.track[0].split()[0] for one in slices} == {program.name}
        assert {one.frames[-1][0] for one in slices} == {caller}  # it has returned
        # Above `outer` the stack is not known: it has its own return probe.
        outermost = "_start" if function == "outer" else "[a return probe has replaced the return"
        assert all(one.frames[0][0].startswith(outermost) for one in slices)
    outer, work = [[one for one in made if one.name == name] for name in ("outer", "work")]
    for around, inner in zip(outer, work, strict=True):
        assert around.duration is not None
        assert inner.duration is not None
        assert before < around.time < inner.time  # CLOCK_MONOTONIC
        assert inner.time + inner.duration < around.time + around.duration < time.monotonic_ns()
        assert inner.track == around.track
    counted = [one.value for one in made if one.track[-1] == "it->number"]
    assert counted == [number for one in told for number in [int(one[5])] * 2]


def test_instants_go_through_a_pipe(program: Path, tmp_path: Path) -> None:
    words = ["n", "-f", "work", "-x", str(program), "--format", "perfetto", "--timeout", "3"]
    command = [sys.executable, "-m", "fetchc", "trace", *words]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stderr is not None
        assert b"tracing" in child.stderr.readline()
        ran = subprocess.run([program, "calls", "5"], capture_output=True, check=True, timeout=60)
        data, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (0, b"")
    assert [(one.duration, one.values) for one in read(data)] == [
        (None, {"n": n}) for n in range(5)
    ]
    assert len(ran.stdout.splitlines()) == 5


def test_goroutines_have_tracks_of_their_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The program prints the number of each; a call within another ends before that one does."""
    require_uprobes()
    binary = go_program(GO_VERSIONS[-1], tmp_path, SOURCE, name="routines")
    path, printed = tmp_path / "t.pftrace", tmp_path / "printed"
    words = ["serial", "grow", "-x", str(binary), "-f", "main.work", "--latency"]
    command = ["sh", "-c", f"exec {binary} 2>{printed}"]
    trace(capfd, *words, "--format", "perfetto", "-o", path, "--", *command)
    lines = [line.split() for line in printed.read_text().splitlines()]
    told = {int(serial): int(number) for serial, number in lines}
    slices = read(path.read_bytes())
    found = {(one.values["serial"], one.track[-1]) for one in slices}
    assert found == {(serial, f"goroutine {number}") for serial, number in told.items()}
    for serial in told:
        nested = [one for one in slices if one.values["serial"] == serial]
        assert [one.values["grow"] for one in nested] == list(range(serial % 20, -1, -1))
        lengths = [one.duration for one in nested if one.duration is not None]
        assert lengths == sorted(lengths, reverse=True)
        assert len(lengths) == len(nested)


def test_speedscope_has_the_stacks(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stacks.json"
    words = ["-f", "work", "--stack=lines", "--format", "speedscope", "-o", str(path)]
    trace(capfd, *words, "--", program, "calls", "4")
    document = json.loads(path.read_text())
    (profile,) = document["profiles"]
    frames = document["shared"]["frames"]
    (sample,) = profile["samples"]
    assert profile["weights"] == [4]
    assert [frames[at]["name"] for at in sample][-3:] == ["main", "outer", "work"]
    assert {frames[at]["file"] for at in sample[-3:]} == {"traced.c"}


@pytest.mark.parametrize("form", ["perfetto", "speedscope"])
def test_a_file_apart_is_asked_for(
    form: str, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["-f", "work", "--format", form, "--stack"]
    traced = trace(capfd, *words, "--", program, "calls", "1")
    assert (traced.status, traced.program) == (2, [])
    assert f"--format {form} is one file, and COMMAND prints, too: add -o FILE" in traced.errors
