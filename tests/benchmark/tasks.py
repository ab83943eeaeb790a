"""What is asked besides one compile: listings, the index of names, many expressions."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.benchmark.measure import Result
from tests.benchmark.subjects import SUBJECTS

__all__ = ["TASKS", "Task"]

_FETCHC = str(Path(sys.executable).with_name("fetchc"))
_FILES = {subject.name: subject.file for subject in SUBJECTS}


@dataclass(frozen=True)
class Task:
    """Commands to compare; ``cpu`` and ``peak_bytes`` are goals of the first.

    ``peer_factor``: the second shall take so many times the first one's CPU time.
    """

    name: str
    commands: Callable[[], dict[str, list[str]]]
    cpu: float | None = None
    peak_bytes: int | None = None
    peer_factor: float | None = None
    large: bool = False

    def missed(self, row: dict[str, Result]) -> list[str]:
        """The goals that were not met."""
        ours, *others = row.values()
        if ours.status != 0:
            return [f"{self.name}: fetchc ends with status {ours.status}"]
        missed = []
        if self.cpu is not None and ours.median > self.cpu:
            missed.append(f"{self.name}: {ours.median:.2f} s, goal {self.cpu}")
        if self.peak_bytes is not None and ours.peak_bytes > self.peak_bytes:
            peak = f"{ours.peak_bytes / 1e6:.0f} MB"
            missed.append(f"{self.name}: {peak}, goal {self.peak_bytes / 1e6:.0f}")
        for theirs in others if self.peer_factor is not None else ():
            if theirs.status == 0 and theirs.median < (self.peer_factor or 0) * ours.median:
                missed.append(f"{self.name}: {theirs.median / ours.median:.2f} x the peer's")
        return missed


def _functions(subject: str) -> Callable[[], dict[str, list[str]]]:
    def commands() -> dict[str, list[str]]:
        path = str(_FILES[subject]())
        found = {"fetchc": [_FETCHC, "functions", "-x", path, "--no-cache"]}
        if shutil.which("perf") is not None:
            found["perf"] = ["perf", "probe", "-F", "-x", path]
        return found

    return commands


def _thousand() -> dict[str, list[str]]:
    script = str(Path(__file__).with_name("thousand.py"))
    path = str(_FILES["python3.11"]())
    return {"fetchc": [sys.executable, script, path, "PyObject_GetAttr", "v->ob_type->tp_name"]}


def _types(*more: str) -> Callable[[], dict[str, list[str]]]:
    def commands() -> dict[str, list[str]]:
        return {"fetchc": [_FETCHC, "types", *more, "-x", str(_FILES["vmlinux"]())]}

    return commands


TASKS = (
    Task("functions of python3.11", _functions("python3.11")),
    Task("functions of the Go compiler", _functions("Go compiler"), peer_factor=1.0),
    Task("1,000 expressions", _thousand, cpu=1.0),
    Task("index of vmlinux", _types("*", "--no-cache"), 3.5, 300_000_000, large=True),
    Task("a type of vmlinux, kept", _types("struct task_struct"), large=True),
)
