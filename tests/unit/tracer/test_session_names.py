"""Names of sessions, and whether who made them still runs."""

from __future__ import annotations

import os
import subprocess

import pytest

from fetchc.tracer.tracefs import alive, session_name, started


def test_a_name_is_of_this_process_and_no_other_session_has_it() -> None:
    one, two = session_name(), session_name()
    assert one != two
    assert one.startswith(f"fetchc_{os.getpid()}_{started(os.getpid())}_")
    assert alive(one) is True
    assert len(one) < 64


def test_a_reused_number_is_another_process() -> None:
    pid = os.getpid()
    start = started(pid)
    assert start is not None
    assert alive(f"fetchc_{pid}_{start - 1}_0") is False


def test_a_process_that_ended_is_gone_even_while_nobody_took_its_status() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert started(child.pid) is None
    child.wait()
    assert started(child.pid) is None


def test_a_name_with_brackets_and_blanks_does_not_confuse() -> None:
    script = 'printf ") Z 1 2 (" >/proc/$$/comm; exec 3<&0; read line'
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE) as child:
        start = started(child.pid)
        assert start is not None
        assert alive(f"fetchc_{child.pid}_{start}_7") is True


@pytest.mark.parametrize("name", ["fetchc_1_2", "probe_libc", "fetchc_server", "xfetchc_1_2_3", ""])
def test_other_names_are_nobodys_session(name: str) -> None:
    assert alive(name) is None
