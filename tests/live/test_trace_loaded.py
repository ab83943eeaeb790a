"""A process that does not run the probed file is reported: its calls would never be seen."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.traced import SECONDS, build, trace
from tests.support.container import contained

pytestmark = pytest.mark.live


@pytest.fixture(name="program", scope="module")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("loaded"))


@pytest.fixture(name="running")
def running_(program: Path, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    own = tmp_path / "server"
    shutil.copy(program, own)
    with subprocess.Popen([own, "loop"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it runs
        yield own, child.pid
        child.kill()


def printed(
    capfd: pytest.CaptureFixture[str], binary: Path | str, pid: int, seconds: float = SECONDS
) -> tuple[str, int]:
    """What was said, and the number of hits: until the first one, or for some time."""
    words = ("-x", binary, "-f", "work", "-p", pid, "--count", "1", "--timeout", seconds)
    traced = trace(capfd, *[str(one) for one in words])
    return traced.errors, len(traced.lines)


def test_a_process_that_runs_it(
    running: tuple[Path, int], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program, pid = running
    errors, hits = printed(capfd, program, pid)
    assert (errors.count("\n"), hits) == (1, 1)
    link = tmp_path / "link"
    link.symlink_to(program)
    assert "note" not in printed(capfd, link, pid)[0]


def test_a_process_that_runs_another(
    running: tuple[Path, int], program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pid = running[1]
    errors, hits = printed(capfd, program, pid, 0.3)
    note = f"note: process {pid} has not loaded `{program}`; it, or a child of it, may do so later"
    assert (note in errors, hits) == (True, 0)


def test_a_program_that_was_replaced(
    running: tuple[Path, int], program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own, pid = running
    shutil.copy(program, tmp_path / "new")
    (tmp_path / "new").rename(own)
    errors, hits = printed(capfd, own, pid, 0.3)
    advised = f"/proc/{pid}/exe"
    assert f"was replaced; trace that one with `-x {advised}`\n" in errors
    assert not hits
    # What is advised works.
    errors, hits = printed(capfd, advised, pid)
    assert ("note" in errors, hits) == (False, 1)


def test_a_path_that_only_the_process_has(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "srv").mkdir()
    shutil.copy(program, tmp_path / "srv/fetchc_server")
    with contained(tmp_path) as pid:
        own = "/srv/fetchc_server"
        traced = trace(capfd, "-x", own, "-f", "work", "-p", str(pid))
        assert traced.status == 3
        inside = f"/proc/{pid}/root{own}"
        assert f"help: process {pid} has one by that path: `-x {inside}`" in traced.errors
        words = ("-x", inside, "-f", "work", "-p", str(pid), "--timeout", "0.2")
        assert trace(capfd, *words).status == 0
