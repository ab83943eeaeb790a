"""Signals that wait while something is half done, and that unwind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from fetchc.tracer.session import postponed, shielded, terminable


def _interrupt() -> None:
    # This thread alone: pytest's own, under xdist, would take one of the whole process.
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def test_a_signal_waits_for_the_end_of_the_block() -> None:
    order = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the order is what is tested
        with shielded():
            _interrupt()
            order.append("inside")
        order.append("behind")
    assert order == ["inside"]


def test_blocks_can_be_nested() -> None:
    with pytest.raises(KeyboardInterrupt), shielded():  # noqa: PT012 - as above
        with shielded():
            _interrupt()
        assert signal.SIGINT in signal.sigpending()


def test_a_handler_waits_for_the_end_of_the_block() -> None:
    order = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - as above
        with postponed():
            signal.raise_signal(signal.SIGINT)
            done = subprocess.run(["grep", "^SigBlk", "/proc/self/status"], stdout=subprocess.PIPE)
            order.append("inside")
        order.append("behind")
    assert order == ["inside"]
    assert int(done.stdout.split()[1], 16) == 0  # a child that is started inside has none blocked


@pytest.mark.parametrize(
    ("number", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130), ("SIGQUIT", 131)]
)
def test_a_signal_unwinds_once(number: str, status: int) -> None:
    script = (
        "import os, signal, sys\n"
        "from fetchc.tracer.session import terminable\n"
        "try:\n"
        "    with terminable():\n"
        "        try:\n"
        f"            os.kill(os.getpid(), signal.{number})\n"
        "        finally:\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "            print('cleaned up')\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.returncode) == ("cleaned up\n", status)


def test_signals_at_once_are_one_end() -> None:
    script = (
        "import os, signal\n"
        "from fetchc.tracer.session import shielded, terminable\n"
        "with terminable():\n"
        "    with shielded():\n"
        "        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):\n"
        "            os.kill(os.getpid(), number)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, check=False, timeout=60
    )
    assert (done.stderr, done.returncode) == ("", 129)


def test_what_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminable():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with terminable():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
