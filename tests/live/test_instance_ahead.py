"""An instance that is created while files are parsed: taken over, or gone a moment later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fetchc.cli import instance_ahead
from fetchc.cli.instance_ahead import InstanceAhead
from fetchc.tracer.install import leftovers
from fetchc.tracer.session import Session
from fetchc.tracer.tracefs import Tracefs, find_tracefs, refused
from tests.live.traced import build

pytestmark = pytest.mark.live


def instances() -> set[str]:
    return {name for name in os.listdir(find_tracefs().path("instances")) if "fetchc_" in name}


def gone(names: set[str]) -> bool:
    """Whether these instances are gone, now or soon."""
    until = time.monotonic() + 5
    while names & instances():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_a_session_takes_it_over_and_removes_it() -> None:
    ahead = InstanceAhead()
    with Session(group=ahead.name, created=ahead.taken):
        assert ahead.name in instances()
        clock = find_tracefs().read("instances", ahead.name, "trace_clock")
        assert "[mono]" in clock  # all is set
    assert ahead.name not in instances()
    ahead.drop()  # nothing: it is not asked for any more


def test_what_is_dropped_goes() -> None:
    ahead = InstanceAhead()
    while ahead.name not in instances():
        time.sleep(0.001)
    ahead.drop()
    assert gone({ahead.name})


def test_where_it_cannot_be_created_the_session_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed() -> Tracefs:
        raise refused("FC0701", "tracing is not permitted")

    monkeypatch.setattr(instance_ahead, "find_tracefs", closed)
    ahead = InstanceAhead()
    assert not ahead.taken()
    assert ahead.name not in instances()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_goes_where_its_trace_is_killed(number: signal.Signals) -> None:
    # The signal may come to both: only the trace ends by it.
    script = (
        "import os, signal; from fetchc.cli.instance_ahead import InstanceAhead; "
        "print(InstanceAhead().name, flush=True); signal.pause()"
    )
    before = instances()
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        while name not in instances():
            time.sleep(0.001)
        if number == signal.SIGKILL:
            child.kill()
        else:
            os.killpg(child.pid, number)
        child.wait()
        # Its end is that of the output, which whoever reads it waits for.
        assert child.stdout.read() == ""
    assert name not in leftovers(find_tracefs())  # nobody is told of what is about to go
    assert gone({name})
    assert instances() <= before


def test_a_refused_trace_leaves_nothing(tmp_path: Path) -> None:
    program = build(tmp_path)
    before = instances()
    command = [sys.executable, "-m", "fetchc", "trace", "n->none", "-x", str(program), "-f", "work"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error[FC")
    assert gone(instances() - before)


def test_a_leftover_of_old_is_reported() -> None:
    tracefs = find_tracefs()
    path = tracefs.path("instances", "fetchc_1_7_0")  # a process that never was
    os.mkdir(path)
    try:
        assert "fetchc_1_7_0" not in leftovers(tracefs)
        time.sleep(1.1)
        assert "fetchc_1_7_0" in leftovers(tracefs)
    finally:
        os.rmdir(path)
