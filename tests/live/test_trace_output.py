"""Where the lines of a trace go, their times, and what is said where none came."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.live.traced import build, trace
from tests.support.toolchains import require

pytestmark = pytest.mark.live

INLINED = r"""
#include <stdio.h>
int twice(int n) { return n * 2; }
int unused(int n) { return n * 5; }
__attribute__((noinline)) void show(int n) { printf("%d\n", n); }
int main(int c, char **v) { show(twice(c)); show(twice(c + 7)); return 0; }
"""


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traced"))


@pytest.fixture(scope="module", name="inlined")
def inlined_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    folder = tmp_path_factory.mktemp("inlined")
    (folder / "inlined.c").write_text(INLINED)
    command = ["gcc", "-g", "-O2", "-o", str(folder / "inlined"), str(folder / "inlined.c")]
    subprocess.run(command, check=True, timeout=60)
    return folder / "inlined"


def test_lines_go_to_a_file_and_the_programs_do_not(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lines"
    traced = trace(capfd, "n", "-f", "work", "-o", path, "--", program, "calls", "3")
    assert (traced.lines, len(traced.program)) == ([], 3)
    assert [line.split()[-1] for line in path.read_text().splitlines()] == ["n=0", "n=1", "n=2"]


def test_a_file_that_cannot_be_written_starts_nothing(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nosuch" / "lines"
    traced = trace(capfd, "n", "-f", "work", "-o", path, "--", program, "calls", "3")
    assert (traced.status, traced.program) == (3, [])
    assert traced.errors == f"error: {path} cannot be written: No such file or directory\n"


@pytest.mark.parametrize("latency", [False, True])
def test_times(program: Path, latency: bool, capfd: pytest.CaptureFixture[str]) -> None:
    timed = ["--latency"] if latency else []
    words = [*timed, "ms", "-f", "nap", "--", str(program), "nap", "3"]
    before = time.localtime()
    wall = [line.split()[0] for line in trace(capfd, "--time", "wall", *words).lines]
    first, last = (time.strftime("%H:%M:%S", one) for one in (before, time.localtime()))
    if first < last:  # not at midnight
        assert all(first <= each <= f"{last}.999999" for each in wall)
    assert wall == sorted(wall)
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d\.\d{6}", each) for each in wall)
    delta = [line.split()[0] for line in trace(capfd, "--time", "delta", *words).lines]
    assert delta[0] == "+0.000000"
    assert all(0.001 <= float(each) < 1 for each in delta[1:])  # naps of some milliseconds


def test_calls_that_are_inlined(inlined: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = trace(capfd, "-f", "twice", "--", inlined).errors
    note = r"note: nothing was hit: `twice` is inlined in \d places?: probe .* `-f 'twice%inline'`"
    assert re.search(note, said)
    never = f"note: nothing was hit: `{inlined}` never reached the probed code\n"
    assert trace(capfd, "-f", "unused", "--", inlined).errors.endswith(never)
    assert "nothing was hit" not in trace(capfd, "-f", "show", "--", inlined).errors


def test_processes_of_another_file(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    here, there = tmp_path / "fetchc_here", tmp_path / "other" / "fetchc_here"
    there.parent.mkdir()
    for copy in (here, there):
        shutil.copy(program, copy)
    with subprocess.Popen([there, "loop"], stdout=subprocess.DEVNULL) as child:
        try:
            said = trace(capfd, "-x", here, "-f", "work", "--timeout", "300ms").errors
            own = trace(capfd, "-f", "act", "-p", str(child.pid), "--timeout", "300ms").errors
        finally:
            child.kill()
    other = f"nothing was hit: process {child.pid} runs another file of that name: `-x {there}`"
    assert other in said
    assert f"nothing was hit: process {child.pid} never reached the probed code" in own
