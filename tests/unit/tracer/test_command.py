"""The program that a trace starts: it waits, runs as if alone, and is ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.processes import WAITING, Command


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine who obeys may still take its time.
    monkeypatch.setattr("fetchc.tracer.processes._GRACE", 60.0)


def wait_for(command: Command) -> int:
    until = time.monotonic() + 60
    while not command.ended():
        assert time.monotonic() < until
        time.sleep(0.005)
    return command.exit_status


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no-such-program-anywhere", "it is not in PATH"),
        ("./no-such-program", "there is no such file"),
        ("/tmp", "it is a directory"),
        ("./plain", "it is not executable"),
    ],
)
def test_programs_that_cannot_be_run(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain").write_text("no program")
    with pytest.raises(TracerError) as refused:
        Command([name])
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "FC0753"
    assert diagnostic.message == f"`{name}` cannot be run: {why}"


def test_what_the_system_cannot_execute_is_reported_when_it_runs(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    command = Command([str(broken)])
    command.prepare()
    with pytest.raises(TracerError, match="Exec format error"):
        command.go()
    assert command.close()
    assert command.ended()


def test_it_waits_under_a_name_of_its_own_until_it_may_go(tmp_path: Path) -> None:
    made = tmp_path / "made"
    command = Command(["sh", "-c", f"echo $0 >{made}; exit 7", "zero"])
    pid = command.prepare()
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}/comm").read_text() != f"{WAITING}\n":
        assert time.monotonic() < until
    time.sleep(0.02)
    assert not made.exists()
    assert not command.ended()
    command.go()
    assert wait_for(command) == 7
    assert made.read_text() == "zero\n"
    assert command.close()


def test_a_death_by_signal_reads_as_in_a_shell() -> None:
    command = Command(["sh", "-c", "kill -9 $$"])
    command.prepare()
    command.go()
    assert wait_for(command) == 128 + signal.SIGKILL


def test_it_runs_with_the_signals_of_an_ordinary_program() -> None:
    # Python ignores SIGPIPE and SIGXFSZ; a program that inherits that never ends in a pipe.
    command = Command(["sh", "-c", "kill -PIPE $$; exit 3"])
    command.prepare()
    command.go()
    assert wait_for(command) == 128 + signal.SIGPIPE


def test_closing_ends_what_runs_and_what_waits() -> None:
    running = Command(["sleep", "60"])
    running.prepare()
    running.go()
    assert running.close()
    assert running.exit_status == 128 + signal.SIGTERM
    waiting = Command(["sleep", "60"])
    pid = waiting.prepare()
    assert waiting.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    never = Command(["sleep", "60"])
    assert never.close()


def test_one_that_does_not_obey_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchc.tracer.processes._GRACE", 0.2)
    script = "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print(); time.sleep(60)"
    read, write = os.pipe()
    saved = os.dup(1)
    os.dup2(write, 1)
    try:
        command = Command([sys.executable, "-u", "-c", script])
        command.prepare()
        command.go()
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(write)
    assert os.read(read, 1)
    os.close(read)
    try:
        assert not command.close()
    finally:
        os.kill(command.pid, signal.SIGKILL)
        wait_for(command)
