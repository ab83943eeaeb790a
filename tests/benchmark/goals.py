"""Goals of docs/speed.md: what was measured, what was wanted, and why a goal is missed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Goal", "goals_table", "tracing_goals"]


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
    return [*found, *(Goal(**stated) for stated in document.get("goals", ()))]
