"""A container replaces its file by a link while probes are set: none goes into a file of the host.

The kernel resolves a path of ``/proc/PID/root`` itself, and follows an absolute link to the host.
A round of these tests replaces the file before one system call of fetchc, and puts it back before a
later one. fetchc may refuse the file then, and may probe the container's. The host's program is
never hit, and nothing stays.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.tracer.install import listed
from fetchc.tracer.tracefs import find_tracefs
from tests.support.container import contained
from tests.support.programs import fixture
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

PROGRAM = "c/layouts/gcc-O2-dwarf5"
ROUNDS = 400 if os.environ.get("FETCHC_LONG") else 10
FILE = "/bin/app"  # in the container
CALLS = ("open", "write")  # of os: each is a step
Capture = pytest.CaptureFixture[str]
Way = Callable[["Swapper", str, Capture], tuple[int, int]]


class Swapper:
    """The file of a container, and the program of the host that its link leads to."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        (self.tree / "bin").mkdir(parents=True)
        self.file = self.tree / "bin/app"
        self.host = folder / "host"
        for path in (self.file, self.host):
            shutil.copy(fixture(PROGRAM), path)
        self._kept = folder / "kept"

    def swap(self) -> None:
        os.rename(self.file, self._kept)
        os.symlink(self.host, self.file)

    def restore(self) -> None:
        if self._kept.exists():
            os.replace(self._kept, self.file)

    @contextmanager
    def at(self, first: int, second: int) -> Iterator[list[str]]:
        """Swap before the step ``first`` and put back before ``second``; the steps so far."""
        process = os.getpid()
        steps: list[str] = []

        def stepping(call: str, *given: object, **named: object) -> object:
            if os.getpid() == process:  # the child has no right to do it
                if len(steps) == first:
                    self.swap()
                if len(steps) == second:
                    self.restore()
                steps.append(f"{call} {given}")
            return before[call](*given, **named)

        before = {call: getattr(os, call) for call in CALLS}
        with pytest.MonkeyPatch.context() as patch:
            for call in CALLS:
                patch.setattr(os, call, partial(stepping, call))
            try:
                yield steps
            finally:
                patch.undo()
                self.restore()


@pytest.fixture
def swapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Swapper:
    require_uprobes()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state").mkdir(mode=0o700)
    return Swapper(tmp_path)


def traced(swapper: Swapper, path: str, capfd: Capture) -> tuple[int, int]:
    """The status of a trace of ``path`` while the host's program runs, and how often it was hit."""
    words = ("trace", "r->i", "-x", path, "-f", "visit", "--format", "jsonl")
    status = main([*words, "--", str(swapper.host)])
    shown = capfd.readouterr().out
    return status, sum('"event"' in line for line in shown.splitlines() if line.startswith("{"))


def added(swapper: Swapper, path: str, capfd: Capture) -> tuple[int, int]:
    """The same of a definition that is added, and removed in the end."""
    group = f"fetchc_swapped{os.getpid()}"
    words = ("--group", group, "--event", "e", "--enable")
    status = main(["add", "r->i", "-x", path, "-f", "visit", *words])
    if status:
        return status, 0
    subprocess.run([swapper.host], stdout=subprocess.DEVNULL, check=True)
    capfd.readouterr()
    assert main(["list", f"{group}/e", "--format", "json"]) == 0
    (one,) = json.loads(capfd.readouterr().out)["definitions"]
    assert main(["remove", f"{group}/e"]) == 0
    return status, one["hits"]


WAYS = pytest.mark.parametrize("way", [traced, added])


def steps_of(way: Way, swapper: Swapper, path: str, capfd: Capture) -> list[str]:
    # The second time: the first one writes files that later ones read.
    assert way(swapper, path, capfd) == (0, 0)
    with swapper.at(-1, -1) as steps:
        assert way(swapper, path, capfd) == (0, 0)
    return steps


def of_fetchc(pid: int) -> list[str]:
    # Definitions of this test that are left: by the path, or by this process's descriptors.
    marks = (f"/proc/{pid}/", f"/proc/{os.getpid()}/")
    return [line for line in listed(find_tracefs()) if any(mark in line for mark in marks)]


@WAYS
def test_a_file_that_is_a_link_while_the_kernel_looks(
    way: Way, swapper: Swapper, capfd: Capture
) -> None:
    with contained(swapper.tree) as pid:
        path = f"/proc/{pid}/root" + FILE
        steps = steps_of(way, swapper, path, capfd)
        (written, *_) = [at for at, step in enumerate(steps) if "b'p:" in step]
        with swapper.at(written, written + 1):
            status, hits = way(swapper, path, capfd)
        assert hits == 0
        assert status == (0 if way is traced else 4)
        assert not of_fetchc(pid)
        if way is added:
            assert "FC0719" in capfd.readouterr().err


@WAYS
def test_a_file_that_is_a_link_for_some_steps(way: Way, swapper: Swapper, capfd: Capture) -> None:
    source = random.Random(17)
    with contained(swapper.tree) as pid:
        path = f"/proc/{pid}/root" + FILE
        steps = steps_of(way, swapper, path, capfd)
        for _ in range(ROUNDS):
            first = source.randrange(len(steps))
            second = source.choice((first + 1, source.randrange(first + 1, len(steps) + 1)))
            with swapper.at(first, second):
                status, hits = way(swapper, path, capfd)
            assert hits == 0, (first, second)
            assert status in (0, 3, 4), (first, second)
            assert not of_fetchc(pid)
