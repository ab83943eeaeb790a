"""What `trace` asks where the program that it started hit no probe, or `-x` is not there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.cli.trace_command import _unhit


def test_whether_the_program_runs_what_is_probed() -> None:
    assert _unhit("sh", sys.executable) == f"does `sh` run `{sys.executable}`?"
    did_not_come = f"`{sys.executable}` never reached the probed code"
    assert _unhit(sys.executable, sys.executable) == did_not_come


def test_every_program_runs_the_kernel() -> None:
    for binary in ("kernel", "kernel:loop"):
        assert _unhit("sh", binary) == "`sh` never reached the probed code"


def test_a_file_that_a_process_still_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sleeper = shutil.which("sleep")
    assert sleeper is not None
    gone = Path(shutil.copy(sleeper, tmp_path / "gone"))
    with subprocess.Popen([gone, "60"]) as process:
        gone.unlink()
        words = ["trace", "-x", str(gone), "-f", "main", "-p", str(process.pid)]
        assert main(words) == 3
        process.kill()
    help = f"process {process.pid} still runs the file that was there: `-x /proc/{process.pid}/exe`"
    assert help in capsys.readouterr().err
    assert main(words) == 4
    assert f"error[FC0707]: there is no process {process.pid}" in capsys.readouterr().err


def test_a_process_that_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "-x", "/proc/4194305/exe"]) == 3
    assert "cannot be read: there is no process 4194305" in capsys.readouterr().err
