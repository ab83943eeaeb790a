"""A whole session in a booted kernel: globs, stacks, names of functions, and what was missed."""

from __future__ import annotations

import json

import pytest

from tests.support import kernel_lab_guest
from tests.support.kernel_lab import SOURCES, LabKernel, built
from tests.support.kernel_lab_calls import program
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python

SLEEPERS, ROOM = 20, 3
WRITES = 3
STAYS = "1000"  # seconds: fetchc ends it when it has seen what it was to see


def test_sessions_in_the_kernel(lab_kernel: LabKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel's list of symbols is long to read where other work keeps the machine busy.
    monkeypatch.setattr(kernel_lab_guest, "_ANSWER_SECONDS", 300)
    reason = why_no_python(lab_kernel)
    if reason:
        pytest.skip(reason)
    sleepers = built(lab_kernel.machine, SOURCES / "sleepers.c", "-O1", "-pthread")
    content = {**files(lab_kernel), "calls": program(lab_kernel), "sleepers": sleepers}
    with Guest(lab_kernel, content, 300) as guest:
        run = (interpreter(guest.kernel), "-m", "fetchc", "trace", "-x", "kernel")
        # A function that runs once at the start is none to probe, and no reason to end.
        globs = ("-f", "vfs_cache*", "-f", "vfs_writ*")
        shown = guest.run(*run, *globs, "--summary", "--", "/calls", "0")
        assert "vfs_write" in shown.split()
        # The files of a process that has ended are not known: it stays while it is read.
        wanted = ("read=file->f_op->read_iter", "--stack", "-f", "vfs_write")
        until = ("--count", str(WRITES), "--format", "jsonl", "--", "/calls", STAYS)
        shown = guest.run(*run, *wanted, *until)
        # Beside them it may say that hits were missed: 5.10 loses some while perf takes a sample.
        hits = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
        assert len(hits) == WRITES
        for hit in hits:
            assert hit["stack"][0]["file"] == "/calls"
            assert "write" in hit["stack"][0]["function"]
            assert "main" in [frame["function"] for frame in hit["stack"]]
            assert hit["args"]["read"] in ("generic_file_read_iter", "shmem_file_read_iter")
        sleep = ("-f", "hrtimer_nanosleep", "--summary", "--return", "$retval")
        for room, missed in ((ROOM, SLEEPERS - ROOM), (2 * SLEEPERS, 0)):
            words = (*sleep, "--maxactive", str(room), "--", "/sleepers", str(SLEEPERS))
            shown = guest.run(*run, *words)
            assert f"{SLEEPERS - missed}  hrtimer_nanosleep" in shown
            assert (f"warning: {missed} returns were missed" in shown) == (missed > 0), shown
