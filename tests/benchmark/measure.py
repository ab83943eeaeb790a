"""Interleaved runs of several commands: what each took, over all rounds."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Result", "measure"]

_BEFORE = 2  # rounds that are not counted: what fetchc keeps is written by the second
_CHILD = Path(__file__).with_name("child.py")


@dataclass(frozen=True)
class Result:
    """CPU seconds (user and system, of all its threads and children) and peak memory.

    ``elapsed`` is the median of what it took by the clock: less than the CPU time where processes
    ran side by side, more where the machine did other things.
    """

    median: float
    low: float
    high: float
    peak_bytes: int
    status: int  # of the last round; a time to a failure is compared with nothing
    elapsed: float = 0.0


def measure(commands: dict[str, list[str]], rounds: int) -> dict[str, Result]:
    """Run every command twice to fill the caches, then ``rounds`` times, taking turns.

    Taking turns spreads what else the machine does over all of them.
    """
    taken: dict[str, list[tuple[int, float, int, float]]] = {name: [] for name in commands}
    for number in range(rounds + _BEFORE):
        for name, command in commands.items():
            outcome = _once(command)
            if number >= _BEFORE:
                taken[name].append(outcome)
    return {name: _result(outcomes) for name, outcomes in taken.items()}


def _once(command: list[str]) -> tuple[int, float, int, float]:
    launcher = [sys.executable, "-I", "-S", str(_CHILD)]
    # Compiled modules are written, as for any user: else every run compiles what changed.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        launcher + command, capture_output=True, text=True, check=True, env=environment
    )
    status, seconds, kibibytes, elapsed = done.stdout.split()
    return int(status), float(seconds), int(kibibytes) * 1024, float(elapsed)


def _result(outcomes: list[tuple[int, float, int, float]]) -> Result:
    seconds = [outcome[1] for outcome in outcomes]
    return Result(
        statistics.median(seconds),
        min(seconds),
        max(seconds),
        max(outcome[2] for outcome in outcomes),
        outcomes[-1][0],
        statistics.median(outcome[3] for outcome in outcomes),
    )
