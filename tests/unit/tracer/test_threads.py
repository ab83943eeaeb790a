"""Threads and their processes."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.processes import mapped
from fetchc.tracer.trace_instance import Processes, check_namespace, threads_of
from fetchc.tracer.tracefs import Tracefs

SECOND = 1_000_000_000


def processes(tmp_path: Path, saved: str = "") -> Processes:
    (tmp_path / "saved_tgids").write_text(saved)
    return Processes(Tracefs(str(tmp_path)))


def gone() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_a_thread_that_runs_is_looked_up(tmp_path: Path) -> None:
    known = processes(tmp_path)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(known.of(threading.get_native_id(), 0)))
    thread.start()
    thread.join()
    assert seen == [os.getpid()]


def test_one_that_is_gone_is_known_to_the_kernel(tmp_path: Path) -> None:
    thread = gone()
    assert processes(tmp_path, f"1 1\n{thread} 77\n").of(thread, 0) == 77


def test_one_that_nobody_knows_is_its_own(tmp_path: Path) -> None:
    thread = gone()
    assert processes(tmp_path).of(thread, 0) == thread


def test_a_number_is_looked_up_again_after_a_second(tmp_path: Path) -> None:
    thread, now = gone(), time.monotonic_ns()
    known = processes(tmp_path, f"{thread} 77\n")
    assert known.of(thread, now) == 77
    (tmp_path / "saved_tgids").write_text(f"{thread} 78\n")
    assert known.of(thread, now + SECOND - 1) == 77
    assert known.of(thread, now + SECOND) == 78


def test_one_reading_of_the_table_is_for_all_that_was_recorded_before(tmp_path: Path) -> None:
    one, other, last = gone(), gone(), gone()
    before = time.monotonic_ns()
    known = processes(tmp_path, f"{one} 77\n{other} 78\n{last} 79\n")
    assert known.of(one, before) == 77
    (tmp_path / "saved_tgids").write_text(f"{other} 88\n{last} 89\n")
    assert known.of(other, before) == 78
    assert known.of(last, time.monotonic_ns()) == 89  # its number may be another thread's by then


def test_a_saved_number_that_runs_now_is_not_taken_for_it(tmp_path: Path) -> None:
    # The kernel's table has what was: this process is asked for itself.
    known = processes(tmp_path, f"{os.getpid()} 77\n")
    assert known.of(gone(), 0) != 77
    assert known.of(os.getpid(), 0) == os.getpid()


def test_threads_of_a_process() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert {os.getpid(), thread.native_id} <= threads_of(os.getpid())
    finally:
        done.set()
        thread.join()
    assert threads_of(gone()) == set()


def test_numbers_of_another_namespace_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_namespace([os.getpid()])
    monkeypatch.setattr("fetchc.tracer.trace_instance.os.readlink", lambda path: "pid:[4026532000]")
    with pytest.raises(TracerError) as refused:
        check_namespace([7])
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "FC0713"
    assert diagnostic.message == "the kernel knows process 7 by another number"
    known = processes(tmp_path, f"{os.getpid()} 77\n")
    assert not known.visible
    assert known.of(os.getpid(), 0) == 77  # the kernel's number, not this process's


def test_memory_is_looked_at_as_the_program_sees_it() -> None:
    maps = Path("/proc/self/maps").read_text().splitlines()
    readable = next(int(line.split("-")[0], 16) for line in maps if line.split()[1][0] == "r")
    assert mapped(os.getpid(), readable) is True
    assert mapped(os.getpid(), 0x1000) is False
    assert mapped(os.getpid(), 1 << 63) is False
    assert mapped(gone(), readable) is None


def test_memory_without_rights_is_not_readable() -> None:
    maps = Path("/proc/self/maps").read_text().splitlines()
    guard = [line for line in maps if line.split()[1].startswith("---")]
    if not guard:
        pytest.skip("this process has no memory without rights")
    assert mapped(os.getpid(), int(guard[0].split("-")[0], 16)) is False
