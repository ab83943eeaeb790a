"""Children of the conformance run end with it, whenever it ends."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from fetchc.conformance import child_processes
from fetchc.tracer.session import terminable


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of processes; SIGTERM comes when one is there and its starter has not returned."""
    numbers: list[int] = []

    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[call-overload]
            numbers.append(self.pid)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    return numbers


def test_a_signal_in_the_midst_of_starting_a_command(started: list[int], tmp_path: Path) -> None:
    with pytest.raises(SystemExit), terminable():
        child_processes.call(["sleep", "100"], tmp_path, 60)
    (pid,) = started
    assert not Path(f"/proc/{pid}").exists()


def test_a_signal_in_the_midst_of_starting_a_stopped_program(
    started: list[int], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit), terminable():
        child_processes.run_with_stops(tmp_path / "program", ())
    (pid,) = started
    assert not Path(f"/proc/{pid}").exists()
