"""Measure fetchc beside its peers on the same files in one run.

    python -m tests.benchmark [--large] [--tracing] [--rounds N] [--json] [--docs] [SUBJECT...]

``.ci/setup --peers`` installs the peers and some debug packages; the other files are fetched and
built here, what cannot be had is skipped with its reason. ``--large`` takes in those of hundreds
of megabytes (1 GB to download). ``--docs`` writes the tables to docs/speed.md and the plot to
docs/speed.svg. ``--tracing`` runs ``tests.benchmark.tracing`` as well, for its goals. Ratios and
goals are those of docs/speed.md. Exit status 1 tells that a goal was missed or fetchc failed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys

from tests.benchmark.fetched import drgn
from tests.benchmark.goals import Goal, tracing_goals
from tests.benchmark.measure import Result, measure
from tests.benchmark.newer import PEERS, newer, versions
from tests.benchmark.report import goals, table, write_docs
from tests.benchmark.subjects import SUBJECTS, Subject, Unavailable, contenders, debug_bytes
from tests.benchmark.tasks import TASKS, Task


def main(argv: list[str] | None = None) -> int:
    """Measure, print; the exit status."""
    parser = argparse.ArgumentParser("python -m tests.benchmark", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help="only these")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--tracing", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args(argv)
    everything: list[Subject | Task] = [*SUBJECTS, *TASKS]
    named = [it for it in everything if it.name in options.subjects]
    wanted = named or [it for it in everything if options.large or not it.large]
    if options.subjects and not named:
        parser.error(f"subjects: {', '.join(each.name for each in everything)}")

    with_drgn = _has_drgn()
    newer_peers = _newer()
    results: dict[str, dict[str, Result]] = {}
    tasks: dict[str, dict[str, Result]] = {}
    sizes: dict[str, int] = {}
    reached: list[Goal] = []
    for subject in SUBJECTS:
        if subject in wanted:
            try:
                path = subject.file()
                commands = contenders(subject, path, with_drgn, newer_peers)
            except Unavailable as reason:
                print(f"skipped {subject.name}: {reason}", file=sys.stderr)
                continue
            print(f"measuring {subject.name}", file=sys.stderr)
            results[subject.name] = measure(commands, options.rounds)
            sizes[subject.name] = debug_bytes(subject, path)
            reached += goals(subject, results[subject.name])
    for task in TASKS:
        if task in wanted:
            try:
                commands = task.commands()
            except Unavailable as reason:
                print(f"skipped {task.name}: {reason}", file=sys.stderr)
                continue
            print(f"measuring {task.name}", file=sys.stderr)
            tasks[task.name] = measure(commands, options.rounds)
            reached += task.goals(tasks[task.name])
    if options.tracing:
        reached += _tracing()
    failures = [goal.line for goal in reached if not goal.met]
    if options.json:
        shown = {
            name: {tool: dataclasses.asdict(result) for tool, result in row.items()}
            for name, row in (results | tasks).items()
        }
        document = {"rounds": options.rounds, "results": shown, "bytes": sizes, "missed": failures}
        document["goals"] = [dataclasses.asdict(goal) for goal in reached]
        print(json.dumps(document, indent=1))
    else:
        print(table(results, tasks, sizes, reached, options.rounds))
    if options.docs:
        write_docs(results, tasks, sizes, reached, options.rounds, versions(newer_peers))
    return 1 if failures else 0


def _has_drgn() -> bool:
    try:
        drgn()
    except Unavailable as reason:
        print(f"skipped drgn: {reason}", file=sys.stderr)
        return False
    return True


def _tracing() -> list[Goal]:
    print("measuring tracing", file=sys.stderr)
    command = [sys.executable, "-m", "tests.benchmark.tracing", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print("skipped tracing", file=sys.stderr)
        return []
    return tracing_goals(json.loads(done.stdout))


def _newer() -> dict[str, list[str]]:
    found = {}
    for tool in PEERS:
        try:
            found[tool] = newer(tool)
        except Unavailable as reason:
            print(f"skipped the newer {tool}: {reason}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
