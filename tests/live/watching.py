"""Run a program under plans and have every event that it made, as the tracer gives them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence

from fetchc.tracer.model import Event, Plan
from fetchc.tracer.session import Session

__all__ = ["watched"]

_SECONDS = 30  # a program that takes longer hangs
# The program begins when its process is known to the session.
_GATE = ["sh", "-c", 'read go; exec "$@" </dev/null', "gate"]


def watched(
    make: Callable[[str], Sequence[Plan]], command: Sequence[str | os.PathLike[str]]
) -> tuple[str, list[Event]]:
    """What ``command`` printed, and its hits of the plans that ``make`` makes for a group."""
    with Session() as session:
        session.add(*make(session.group))
        with subprocess.Popen(
            [*_GATE, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        ) as child:
            try:
                session.only([child.pid])
                session.start()
                output, _ = child.communicate("go\n", timeout=_SECONDS)
            finally:
                child.kill()
        session.stop()
        events = list(session.events())
        assert child.returncode == 0
        assert session.lost == 0
    return output, events
