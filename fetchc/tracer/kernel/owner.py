"""The names of sessions: they say which process made one, so that leftovers are known.

``fetchc_PID_START_N``: the process, when it started (ticks since boot, which a reused number does
not share; proc_pid_stat(5), field 22), and the number of the session in it.
"""

from __future__ import annotations

import itertools
import os
import re

__all__ = ["alive", "session_name", "started"]

_NAME = re.compile(r"fetchc_(\d+)_(\d+)_(\d+)\Z")
_numbers = itertools.count()


def session_name() -> str:
    """A name for a new session of this process, good for an instance and a group."""
    pid = os.getpid()
    return f"fetchc_{pid}_{started(pid)}_{next(_numbers)}"


def started(pid: int) -> int | None:
    """When process ``pid`` started, in ticks since boot; None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is a name in brackets, with any characters in it.
    state, *fields = text[text.rindex(b")") + 2 :].split()
    return None if state in (b"Z", b"X") else int(fields[18])


def alive(name: str) -> bool | None:
    """Whether the process that made the session ``name`` still runs; None: not such a name."""
    matched = _NAME.match(name)
    if matched is None:
        return None
    return started(int(matched[1])) == int(matched[2])
