"""Each system call of the eBPF engine is refused once: a message follows, and nothing is left.

Where seccomp, a lockdown, a control group or a limit forbids one command of bpf(2), only that one
fails: so the N-th call fails here, for each N. ``FETCHC_LONG=1`` has more of the ways and errors.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from fetchc.tracer.bpf import bpf_session, features, system_calls
from fetchc.tracer.bpf.system_calls import Bpf
from tests.live.test_bpf_engine import asked_again as asked_again
from tests.live.test_bpf_engine import program as program
from tests.live.traced import Traced, trace

pytestmark = pytest.mark.live

LONG = bool(os.environ.get("FETCHC_LONG"))
ERRORS = (errno.EPERM, errno.EINVAL, errno.ENOMEM, errno.E2BIG, errno.ENOSPC, errno.EBADF)
WAYS = {
    "table": ("--count-by", "how", "--sum", "p->n"),
    "lines": ("how", "p->text"),
    "times": ("--latency", "--summary"),
    "stack": ("how", "--stack"),
    "system call": ("-f", "tracepoint:syscalls:sys_enter_openat"),
    "raw": ("-f", "rawtracepoint:sched_process_fork"),
}
WITHOUT: dict[str, set[str]] = {
    "nothing": set(),
    "links of many probes": {"uprobe_multi"},
    "cookies": {"uprobe_multi", "cookies", "sleepable"},
}


class Refusing:
    """Refuses one of the calls that the engine makes, the N-th, counted from 0."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self._number, self._error = -1, 0
        call, control = Bpf._call, fcntl.ioctl

        def called(bpf: Bpf, number: int, *arguments: object) -> int:
            self._count(f"system call {number}, {arguments[0]}")
            return call(bpf, number, *arguments)

        def ioctl(file: int, request: int, argument: int) -> int:
            self._count(f"ioctl {request:#x}")
            return control(file, request, argument)

        monkeypatch.setattr(Bpf, "_call", called)
        monkeypatch.setattr(system_calls, "fcntl", SimpleNamespace(ioctl=ioctl))

    def next(self, number: int, error: int) -> None:
        """From now on call ``number`` has this error."""
        self.calls.clear()
        self._number, self._error = number, error

    def _count(self, what: str) -> None:
        self.calls.append(what)
        if len(self.calls) == self._number + 1:
            raise OSError(self._error, os.strerror(self._error))


def wrong(done: Traced, right: Traced) -> str:
    """What is wrong with the end of a trace of which one call was refused; empty: nothing."""
    if done.status == 0:  # the engine can do without, as far as it is concerned
        return "" if len(done.lines) == len(right.lines) and not done.errors else "other lines"
    first, *further = done.errors.splitlines()
    if done.status != 4 or not first.startswith("error[FC07"):
        return f"status {done.status}: {done.errors}"
    actions = [line for line in further if line.startswith("   = help: ")]
    return "" if len(actions) == 1 else f"{len(actions)} actions: {done.errors}"


@pytest.mark.parametrize("without", WITHOUT if LONG else ["nothing"])
@pytest.mark.parametrize("way", WAYS if LONG else ["table"])
def test_a_refused_call_is_a_message(
    way: str,
    without: str,
    program: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules, machine = features.running()
    rules = rules.replaced(features=rules.features - WITHOUT[without])
    monkeypatch.setattr(bpf_session, "running", lambda: (rules, machine))
    refusing = Refusing(monkeypatch)
    where = ("-x", "kernel") if "-f" in WAYS[way] else ("-x", program, "-f", "look")
    words = ("--engine", "bpf", *WAYS[way], "--json", *where, "--", program, "children")
    right = trace(capfd, *words)
    assert (right.status, right.errors) == (0, "")
    assert right.lines
    calls, opened = list(refusing.calls), open_files()
    found = {}
    for number, call in enumerate(calls):
        for error in ERRORS if LONG else [ERRORS[number % len(ERRORS)]]:
            refusing.next(number, error)
            done = trace(capfd, *words)
            assert len(refusing.calls) > number
            if text := wrong(done, right):
                found[number, call, errno.errorcode[error]] = text
            assert open_files() == opened, (number, call, error)
    assert found == {}


def open_files() -> list[str]:
    """What the kernel has made for this process: maps, programs, links, events of perf."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # of the folder itself
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(name for name in found if name.startswith("anon_inode:"))


@pytest.mark.long
@pytest.mark.usefixtures("asked_again")
def test_a_refused_call_while_the_kernel_is_asked_what_it_has(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = Refusing(monkeypatch)
    where = ("-x", program, "-f", "look", "--", program, "children")
    words = ("--engine", "auto", "--count-by", "how", "--json", *where)
    right = trace(capfd, *words)
    assert (right.status, right.errors) == (0, "")
    found = {}
    for number, call in enumerate(list(refusing.calls)):
        for error in ERRORS:
            features.running.cache_clear()
            features.tried.cache_clear()
            refusing.next(number, error)
            if text := wrong(trace(capfd, *words), right):
                found[number, call, errno.errorcode[error]] = text
    assert found == {}


def test_a_limit_of_memory_that_may_not_be_lifted_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(resource: int, limits: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")  # as Python says it for EPERM

    monkeypatch.setattr("resource.setrlimit", refused)
    system_calls.lift_memory_limit()


def test_a_refusal_without_an_action_is_noticed() -> None:
    right = Traced(0, ["{}"], [], "")
    assert wrong(right, right) == ""
    assert wrong(Traced(4, [], [], "error[FC0718]: no\n   = help: do\n"), right) == ""
    for bad in (
        Traced(0, [], [], ""),
        Traced(70, [], [], "Traceback\n"),
        Traced(4, [], [], "error[FC0718]: no\n   = note: why\n"),
    ):
        assert wrong(bad, right)
