"""Run a program under plans and have every event that it made, as the tracer gives them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence

from fetchc.tracer.events import Event, Plan
from fetchc.tracer.session import Session

__all__ = ["new_session", "watched"]

_SECONDS = 60  # a program that takes longer hangs
# The program begins when its process is known to the session.
_GATE = ["sh", "-c", 'read go; exec "$@"', "gate"]


def new_session(buffer_kib: int | None = None) -> Session:
    """A session of the engine that ``FETCHC_ENGINE`` names, as in ``tests/live/traced.py``."""
    if os.environ.get("FETCHC_ENGINE") != "bpf":
        return Session(buffer_kib)
    from fetchc.tracer.bpf.bpf_session import BpfSession

    return BpfSession(buffer_kib)


def watched(
    make: Callable[[str], Sequence[Plan]],
    command: Sequence[str | os.PathLike[str]],
    while_running: int = 0,
) -> tuple[str, list[Event]]:
    """What ``command`` printed, and its hits of the plans that ``make`` makes for a group.

    The program's standard input ends when so many events as ``while_running`` were read: one that
    waits for this is there until then, and its memory can be looked at.
    """
    with new_session() as session:
        session.add(*make(session.group))
        with subprocess.Popen(
            [*_GATE, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        ) as child:
            try:
                session.only([child.pid])
                session.start()
                assert child.stdin is not None
                child.stdin.write("go\n")
                child.stdin.flush()
                events = []
                if while_running:
                    for event in session.events(timeout=_SECONDS):
                        events.append(event)
                        if len(events) == while_running:
                            break
                output, _ = child.communicate(timeout=_SECONDS)
            finally:
                child.kill()
        session.stop()
        events += session.events()
        assert child.returncode == 0
        assert session.lost == 0
    return output, events
