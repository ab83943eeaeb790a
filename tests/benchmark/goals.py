"""Goals of docs/speed.md: what was measured, what was wanted, and why a goal is missed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Goal", "goals_table", "tracing_goals"]

# CPU seconds of tool and program for 100,000 events, by the number of arguments, as they were when
# the goals were set: the part of them that an engine may take, and why it takes more.
_FORMER = {"1": (0.57, 1.02), "5": (0.72, 1.11)}
_PARTS = (
    ("fetchc text", "tracefs", 4, "the program's hits and the tool's start alone take about that"),
    ("fetchc text bpf", "bpf", 5, "the start is in it, which the time of then left out"),
)


@dataclass(frozen=True)
class Goal:
    """One goal about one file or task; ``why`` is the known reason where it is missed."""

    name: str
    measured: str
    wanted: str
    met: bool
    why: str = ""

    @property
    def line(self) -> str:
        """The goal as a missed one is listed."""
        wanted = f", goal {self.wanted}" if self.wanted else ""
        return f"{self.name}: {self.measured}{wanted}"


def goals_table(goals: Sequence[Goal]) -> list[str]:
    """Markdown: one row a goal, those that were missed with the reason."""
    if not goals:
        return []
    met = sum(goal.met for goal in goals)
    lines = [f"{met} of {len(goals)} goals are met.", ""]
    lines += ["| file or task | measured | goal | |", "|---|---|---|---|"]
    for goal in goals:
        verdict = "met" if goal.met else f"**missed**{': ' + goal.why if goal.why else ''}"
        lines.append(f"| {goal.name} | {goal.measured} | {goal.wanted} | {verdict} |")
    return lines


def tracing_goals(document: Mapping[str, Any]) -> list[Goal]:
    """The goals of tracing, of what ``python -m tests.benchmark.tracing --json`` prints.

    CPU of the tool for 100,000 events is compared with bpftrace's. Goals that the document states
    itself (``goals``: records with the fields of :class:`Goal`) follow.
    """
    results = document["results"]
    ours, theirs = results.get("fetchc text", {}), results.get("bpftrace", {})
    found = []
    for count in ours:
        if not ours[count] or not theirs.get(count):
            continue
        mine, peer = (
            statistics.median(run["cpu"] for run in runs[count]) / document["events"] * 100_000
            for runs in (ours, theirs)
        )
        measured = f"{mine:.2f} s for 100,000 events, bpftrace {peer:.2f} s"
        found.append(Goal(f"trace, {count} arguments", measured, "below bpftrace", mine <= peer))
    for number, (tool, engine, part, why) in enumerate(_PARTS):
        for count, former in _FORMER.items():
            runs = results.get(tool, {}).get(count, ())
            each = [(run["cpu"] + run["program_cpu"], run["program_cpu"]) for run in runs]
            if not each:
                continue
            total, program = (1e5 * one / document["events"] for one in min(each))
            most = former[number] / part
            measured = f"{total:.2f} s for 100,000 events, {program:.2f} of it the program's"
            name = f"trace, {count} arguments, {engine}, with the program"
            found.append(Goal(name, measured, f"{most:.2f} s", total <= most, why))
    return [*found, *(Goal(**stated) for stated in document.get("goals", ()))]
