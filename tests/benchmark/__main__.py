"""Measure ``fetchc compile`` beside its peers on the same files in one run.

    python -m tests.benchmark [--rounds N] [--json] [SUBJECT...]

``.ci/setup --peers`` installs the peers and the debug packages; what is missing is
skipped with its reason. Ratios and goals are those of docs/speed.md. Exit status 1 tells
that a goal was missed or fetchc failed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from tests.benchmark.measure import Result, measure
from tests.benchmark.subjects import BARE, KEPT, SUBJECTS, Subject, Unavailable, contenders

_COLUMNS = ("fetchc", KEPT, BARE, "perf", "gdb", "pahole")
_SMALL_PEAK_BYTES = 25_000_000  # of docs/speed.md, for small programs


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.benchmark", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help="only these")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    wanted = [it for it in SUBJECTS if not options.subjects or it.name in options.subjects]
    if not wanted:
        parser.error(f"subjects: {', '.join(subject.name for subject in SUBJECTS)}")

    results: dict[str, dict[str, Result]] = {}
    missed: list[str] = []
    for subject in wanted:
        try:
            path = subject.file()
            commands = contenders(subject, path)
        except Unavailable as reason:
            print(f"skipped {subject.name}: {reason}", file=sys.stderr)
            continue
        results[subject.name] = measure(commands, options.rounds)
        missed += _missed(subject, results[subject.name])
    if options.json:
        shown = {
            name: {tool: dataclasses.asdict(result) for tool, result in row.items()}
            for name, row in results.items()
        }
        print(json.dumps({"rounds": options.rounds, "results": shown, "missed": missed}, indent=1))
    else:
        print(_table(results, options.rounds))
        print("\n".join(f"missed: {line}" for line in missed) or "every goal is met")
    return 1 if missed else 0


def _missed(subject: Subject, row: dict[str, Result]) -> list[str]:
    ours = row["fetchc"]
    if ours.status != 0:
        return [f"{subject.name}: fetchc ends with status {ours.status}"]
    missed = []
    for peer, factor in subject.goals.items():
        theirs = row.get(peer)
        if theirs is not None and theirs.status == 0 and theirs.median < factor * ours.median:
            missed.append(
                f"{subject.name}: {theirs.median / ours.median:.2f} x {peer}, goal {factor:.2f}"
            )
    if BARE in subject.goals and ours.peak_bytes > _SMALL_PEAK_BYTES:
        missed.append(f"{subject.name}: {ours.peak_bytes / 1e6:.0f} MB, goal 25")
    return missed


def _table(results: dict[str, dict[str, Result]], rounds: int) -> str:
    lines = [
        f"CPU ms: median (lowest-highest) of {rounds}; peak MB; x: times fetchc's median",
        "| file | " + " | ".join(_COLUMNS) + " |",
        "|---|" + "---|" * len(_COLUMNS),
    ]
    for name, row in results.items():
        cells = [_cell(row.get(tool), row["fetchc"]) for tool in _COLUMNS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(result: Result | None, ours: Result) -> str:
    if result is None:
        return "not installed"
    times = f"{result.median * 1e3:.0f} ({result.low * 1e3:.0f}-{result.high * 1e3:.0f})"
    memory = f"{result.peak_bytes / 1e6:.0f} MB"
    if result.status != 0:
        return f"{times}; {memory}; fails ({result.status})"
    return f"{times}; {memory}; {result.median / ours.median:.2f}x"


if __name__ == "__main__":
    sys.exit(main())
