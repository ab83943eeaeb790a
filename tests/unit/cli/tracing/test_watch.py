"""The ends of a trace, with a session that is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import pytest

from fetchc.cli.trace_events import Ending, watch
from fetchc.tracer.processes import Command
from fetchc.tracer.ring_buffer import Records
from fetchc.tracer.session import Session
from tests.support.toolchains import ROOT


class Fake:
    """Gives a batch each turn while it runs, and one when it is stopped."""

    def __init__(self) -> None:
        self.running = True
        self.given = 0

    def records(self, timeout: float | None = None) -> Iterator[list[list[Records]]]:
        if self.running:
            time.sleep(min(timeout or 0, 0.01))
        self.given += 1
        yield [[Records.of([(at, 0, b"", 0, 0, ())])] for at in (self.given, -self.given)]

    def stop(self) -> None:
        self.running = False


class Run:
    """What a watch showed."""

    def __init__(
        self,
        command: Command | None = None,
        pids: Iterable[int] = (),
        timeout: float | None = 10,
        enough: int = 1 << 30,
        signal_after: int = 0,
    ) -> None:
        self.session = Fake()
        self.shown: list[int] = []
        self._enough = enough
        self._signal_after = signal_after
        begin = time.monotonic()
        with Ending() as self.ending:
            session = cast(Session, self.session)
            self.gone = watch(session, self.take, self.ending, command, pids, timeout)
        self.seconds = time.monotonic() - begin

    def take(self, parts: Iterable[Sequence[Records]]) -> bool:
        for (each,) in parts:
            self.shown += each.times
            if self._signal_after and len(self.shown) == self._signal_after:
                os.kill(os.getpid(), signal.SIGTERM)
            if len(self.shown) >= self._enough:
                return True
        return False


def test_after_a_time_and_with_what_was_still_in_the_buffers() -> None:
    run = Run(timeout=0.1)
    assert 0.1 <= run.seconds < 5
    assert len(run.shown) == 2 * run.session.given
    assert not run.session.running
    assert not run.ending.asked


def test_when_enough_was_shown() -> None:
    run = Run(enough=5)
    assert len(run.shown) == 5
    assert not run.session.running


def test_a_signal_lets_the_rest_be_shown() -> None:
    before = signal.getsignal(signal.SIGTERM)
    run = Run(signal_after=3)
    assert run.ending.asked
    assert run.seconds < 5
    assert len(run.shown) == 2 * run.session.given > 3
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_second_signal_is_not_held_back() -> None:
    with Ending() as ending:
        os.kill(os.getpid(), signal.SIGINT)
        assert ending.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Ending() as ending:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not ending.asked
    finally:
        signal.signal(signal.SIGHUP, before)


def test_with_the_program() -> None:
    command = Command(["sh", "-c", "exit 5"])
    command.prepare()
    command.go()
    assert Run(command).seconds < 5
    assert command.exit_status == 5


def test_with_the_last_of_the_processes() -> None:
    with subprocess.Popen(["sleep", "0.05"]) as first, subprocess.Popen(["sleep", "0.1"]) as last:
        run = Run(pids=[first.pid, last.pid])
    assert sorted(run.gone) == sorted([first.pid, last.pid])
    assert run.seconds < 5


def test_when_nobody_reads_on() -> None:
    script = (
        "import sys; sys.path.insert(0, '.'); from tests.unit.cli.tracing.test_watch import Run;"
        "print(Run(timeout=20).seconds < 10, file=sys.stderr)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == "True\n"
