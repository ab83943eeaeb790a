"""What was measured, as tables and a plot."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import date

from tests.benchmark.goals import Goal, goals_table
from tests.benchmark.measure import Result
from tests.benchmark.plot import svg
from tests.benchmark.subjects import BARE, KEPT, NEWER, SUBJECTS, Subject
from tests.benchmark.tasks import NM, WALK
from tests.support.toolchains import ROOT

__all__ = ["goals", "table", "write_docs"]

Rows = Mapping[str, Mapping[str, Result]]

COLUMNS = ("fetchc", KEPT, BARE, "perf", "gdb", "drgn", "bpftrace", "pahole")
_BOTH = [[tool, tool + NEWER] for tool in ("perf", "gdb", "bpftrace")]
TASK_COLUMNS = ("fetchc", KEPT, "perf", NM, "pahole", WALK)
NEWER_COLUMNS = ("fetchc", *[name for pair in _BOTH for name in pair])
BEGIN, END = "<!-- benchmark: begin -->\n", "<!-- benchmark: end -->\n"
_WARM = 4.5  # times bare Python: 45 ms where that takes 10


def goals(subject: Subject, row: Mapping[str, Result]) -> list[Goal]:
    """The goals of one file, met or missed; a peer that is missing or fails has none."""
    name, ours, kept = subject.name, row["fetchc"], row[KEPT]
    if ours.status != 0:
        return [Goal(name, f"fetchc ends with status {ours.status}", "", False)]
    found = []
    for peer, factor in _goals(subject):
        theirs = row.get(peer)
        if theirs is not None and theirs.status == 0:
            ratio = theirs.median / ours.median
            met = theirs.median >= factor * ours.median
            why = subject.limits.get(peer.removesuffix(NEWER), "")
            found.append(Goal(name, f"{ratio:.2f} x {peer}", f"{factor:.2f}", met, why))
    if subject.peak_bytes is not None:
        most, peak = subject.peak_bytes, ours.peak_bytes
        found.append(Goal(name, f"{peak / 1e6:.0f} MB", f"{most / 1e6:.0f}", peak <= most))
    warm = kept.median / row[BARE].median
    measured, why = f"kept, {warm:.1f} times bare Python", subject.limits.get(KEPT, "")
    found.append(Goal(name, measured, str(_WARM), warm <= _WARM, why))
    return found


def _goals(subject: Subject) -> list[tuple[str, float]]:
    # The goals hold against newer releases of a peer as well.
    newer = [(peer + NEWER, factor) for peer, factor in subject.goals.items() if peer != BARE]
    return [*subject.goals.items(), *newer]


def table(
    results: Rows, tasks: Rows, sizes: Mapping[str, int], goals: Sequence[Goal], rounds: int
) -> str:
    """Markdown: the files, the other tasks, the goals."""
    lines = [
        f"CPU ms: median (lowest-highest) of {rounds}; peak MB; x: times fetchc's median",
        "",
        "| file | debug information | " + " | ".join(COLUMNS) + " |",
        "|---|---|" + "---|" * len(COLUMNS),
    ]
    for name, row in results.items():
        size = f"{sizes[name] / 1e6:.1f} MB"
        lines.append(f"| {name} | {size} | " + _cells(row, COLUMNS))
    if any(tool.endswith(NEWER) for row in results.values() for tool in row):
        lines += ["", "| file | " + " | ".join(NEWER_COLUMNS) + " |"]
        lines.append("|---|" + "---|" * len(NEWER_COLUMNS))
        lines += [f"| {name} | " + _cells(row, NEWER_COLUMNS) for name, row in results.items()]
    if tasks:
        lines += ["", "| task | elapsed | " + " | ".join(TASK_COLUMNS) + " |"]
        lines.append("|---|---|" + "---|" * len(TASK_COLUMNS))
    for name, row in tasks.items():
        elapsed = f"{row['fetchc'].elapsed * 1e3:.0f}"
        lines.append(f"| {name} | {elapsed} | " + _cells(row, TASK_COLUMNS))
    lines += ["", *_why(results)]
    return "\n".join([*lines, "", *goals_table(goals)])


def _cells(row: Mapping[str, Result], tools: Sequence[str]) -> str:
    return " | ".join(_cell(row.get(tool), row["fetchc"]) for tool in tools) + " |"


def _why(results: Rows) -> list[str]:
    # Of peers that fail, the reason where it is known.
    return [
        f"* {tool} fails on {subject.name}: {reason}"
        for subject in SUBJECTS
        for tool, reason in subject.unable.items()
        if any(each.status != 0 for name, each in results.get(subject.name, {}).items()
               if name.startswith(tool))
    ]  # fmt: skip


def _cell(result: Result | None, ours: Result) -> str:
    if result is None:
        return ""
    times = f"{result.median * 1e3:.0f} ({result.low * 1e3:.0f}-{result.high * 1e3:.0f})"
    memory = f"{result.peak_bytes / 1e6:.0f} MB"
    if result.status != 0:
        return f"fails ({result.status})"
    return f"{times}; {memory}; {result.median / ours.median:.2f}x"


def write_docs(
    results: Rows,
    tasks: Rows,
    sizes: Mapping[str, int],
    goals: Sequence[Goal],
    rounds: int,
    versions: Mapping[str, str],
) -> None:
    """Put the tables between the marks in docs/speed.md, and the plot beside it."""
    path = ROOT / "docs/speed.md"
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} lacks the lines {BEGIN.strip()} and {END.strip()}")
    machine = f"{date.today():%d %B %Y}; Python {platform.python_version()}, {platform.machine()}"
    shown = table(results, tasks, sizes, goals, rounds)
    peers = ", ".join(f"{tool} {version}" for tool, version in versions.items())
    text = f"{machine}; {peers}.\n\n{shown}\n\n![CPU time by size](speed.svg)\n"
    path.write_text(f"{before}{begin}{text}{end}{after}", encoding="utf-8")
    path.with_suffix(".svg").write_text(svg(_series(results, sizes)), encoding="utf-8")


def _series(results: Rows, sizes: Mapping[str, int]) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for tool in COLUMNS:
        line = [
            (float(sizes[name]), row[tool].median * 1e3)
            for name, row in results.items()
            if tool in row and row[tool].status == 0
        ]
        if line:
            series[tool] = line
    return series
