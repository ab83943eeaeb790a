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
        log.write(f"{os.environ['PYTEST_XDIST_WORKER']} {start} {time.monotonic()}\\n")
"""


def test_live_tests_wait_for_each_other(tmp_path: Path) -> None:
    (tmp_path / "test_probe.py").write_text(PROBE)
    (tmp_path / "conftest.py").write_text((CHECKOUT / "tests/conftest.py").read_text())
    report = tmp_path / "report"
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider"),
            *("-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(tmp_path), str(tmp_path)),
        ],
        check=True,
        capture_output=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "REPORT": str(report)},
        timeout=60,
    )
    runs = sorted(
        (float(start), float(end), worker)
        for worker, start, end in (line.split() for line in report.read_text().splitlines())
    )
    assert len(runs) == 4
    assert {worker for *_, worker in runs} == {"gw0", "gw1"}
    for (_, end, _), (start, _, _) in itertools.pairwise(runs):
        assert end <= start
