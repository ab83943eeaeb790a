"""Live tests never overlap, although the rest of the tests run in parallel."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PROBE = """
import os, time
import pytest

@pytest.mark.live
@pytest.mark.parametrize("number", range(4))
def test_alone(number):
    start = time.monotonic()
    time.sleep(0.05)
    with open(os.environ["REPORT"], "a") as log:
        who = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        log.write(f"{who} {start} {time.monotonic()}\\n")
"""


def started(folder: Path, report: Path, workers: int) -> subprocess.Popen[bytes]:
    """A run of a checkout of its own."""
    folder.mkdir()
    (folder / "test_probe.py").write_text(PROBE)
    written = (CHECKOUT / "tests/conftest.py").read_text()
    # The kernel is another one: that of this machine may be in use for long.
    conftest = written.replace('"/sys/kernel"', repr(str(folder.parent)))
    assert conftest != written
    (folder / "conftest.py").write_text(conftest)
    command = [sys.executable, "-m", "pytest", "-n", str(workers), "-p", "no:cacheprovider"]
    command += ["-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(folder), str(folder)]
    environment = {"PATH": "/usr/bin:/bin", "REPORT": str(report)}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder, env=environment)


def test_live_tests_wait_for_each_other(tmp_path: Path) -> None:
    report = tmp_path / "report"
    for run in [started(tmp_path / str(workers), report, workers) for workers in (0, 2)]:
        assert run.wait(timeout=200) == 0
    runs = sorted(
        (float(start), float(end), worker)
        for worker, start, end in map(str.split, report.read_text().splitlines())
    )
    assert len(runs) == 8
    assert {worker for *_, worker in runs} == {"alone", "gw0", "gw1"}
    for (_, end, _), (start, _, _) in itertools.pairwise(runs):
        assert end <= start
