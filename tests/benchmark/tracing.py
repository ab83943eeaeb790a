"""Measure ``fetchc trace`` beside bpftrace and perf: the same probes, one run.

    python -m tests.benchmark.tracing [--events N] [--rounds N] [--json]

A program of its own calls a function as fast as it can. The definitions for perf and the program
for bpftrace are what ``fetchc compile --format`` writes of the same expressions. Needs root;
``.ci/setup`` installs the tools; one that is missing is skipped with the reason.

Events a second: printed lines by the time from start to end of the tool, the best of the rounds
that lost nothing, or of all where each lost some. CPU is by 100,000 events, the tool's own and the
traced program's: of the round where their sum is the least, the starts of the tools included.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.tracefs import unavailable

ARGUMENTS = (1, 5, 20)
TOOLS = ("fetchc text", "fetchc jsonl", "bpftrace", "perf script", "perf trace")
SECONDS = 300  # a tool that takes longer hangs

_MEMBERS = "".join(f"long n{number}; " for number in range(20))
SOURCE = f"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
struct row {{ {_MEMBERS} }};
__attribute__((noinline)) void own(struct row *r) {{ __asm__ volatile("" :: "r"(r) : "memory"); }}
__attribute__((noinline)) void hit(struct row *r) {{ own(r); own(r); }}
static double cpu(void) {{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec
        + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}}
int main(int count, char **words) {{
    struct row r = {{0}};
    for (long i = 0; i < atol(words[1]); i++) {{ r.n0 = i; r.n19 = -i; hit(&r); }}
    FILE *times = fopen(words[2], "w");
    fprintf(times, "%f", cpu());
    return fclose(times);
}}
"""


@dataclass(frozen=True)
class Run:
    """One run of a tool: lines of events it printed, seconds, peak bytes.

    CPU seconds of the tool itself, and of the program that it traced.
    """

    printed: int
    seconds: float
    cpu: float
    program_cpu: float
    peak_bytes: int


class Bench:
    """The program, and the commands that trace it."""

    def __init__(self, folder: Path, events: int) -> None:
        self.folder = folder
        self.events = events
        self.program = folder / "hits"
        source = folder / "hits.c"
        source.write_text(SOURCE)
        subprocess.run(["gcc", "-O2", "-g", "-o", self.program, source], check=True)
        self._fetchc = [sys.executable, "-m", "fetchc"]
        self._environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def run(self, tool: str, arguments: int) -> Run:
        """Trace all calls with a tool."""
        expressions = [f"r->n{(number * 19) % 20}" for number in range(arguments)]
        own = self.folder / "program-cpu"
        command = [str(self.program), str(self.events), str(own)]
        match tool:
            case "fetchc text" | "fetchc jsonl":
                kind = tool.rpartition(" ")[2]
                where = ["-x", str(self.program), "-f", "hit", "--format", kind]
                steps = [[*self._fetchc, "trace", *expressions, *where, "--", *command]]
                return self._timed(steps, own, "hit")
            case "bpftrace":
                script = self.folder / "hits.bt"
                script.write_text(self._compiled("bpftrace", expressions))
                # The program is started by bpftrace itself, by words that need no quotes.
                steps = [["bpftrace", "--unsafe", str(script), "-c", " ".join(command)]]
                return self._timed(steps, own, "")
            case _:
                return self._perf(tool, expressions, command, own)

    def _compiled(self, kind: str, expressions: list[str]) -> str:
        where = ["-x", str(self.program), "-f", "hit", "--format", kind]
        done = subprocess.run(
            [*self._fetchc, "compile", *expressions, *where],
            capture_output=True, text=True, check=True, cwd=Path.cwd(),
        )  # fmt: skip
        return done.stdout

    def _perf(self, tool: str, expressions: list[str], command: list[str], own: Path) -> Run:
        adding = self._compiled("perf", expressions).strip()
        event = adding.split("'")[1].split("=")[0]
        data = str(self.folder / "perf.data")
        subprocess.run(["sh", "-c", adding], check=True, capture_output=True)
        try:
            if tool == "perf trace":
                steps = [["perf", "trace", "--no-syscalls", "-e", event, *command]]
            else:
                recorded = ["perf", "record", "-q", "-m", "4096", "-e", event, "-o", data, "--"]
                steps = [[*recorded, *command], ["perf", "script", "-i", data]]
            return self._timed(steps, own, event.rpartition(":")[2])
        finally:
            subprocess.run(["perf", "probe", "-q", "-d", event], capture_output=True, check=False)

    def _timed(self, steps: list[list[str]], own: Path, mark: str) -> Run:
        own.unlink(missing_ok=True)
        output = self.folder / "output"
        begin = time.monotonic()
        cpu, peak = 0.0, 0
        with output.open("wb") as file:
            for step in steps:
                started = subprocess.Popen(
                    step, stdout=file, stderr=file, stdin=subprocess.DEVNULL,
                    env=self._environment, cwd=Path.cwd(),
                )  # fmt: skip
                _, status, used = os.wait4(started.pid, 0)
                started.returncode = os.waitstatus_to_exitcode(status)
                cpu += used.ru_utime + used.ru_stime
                peak = max(peak, used.ru_maxrss * 1024)
        seconds = time.monotonic() - begin
        if not own.exists():
            raise RuntimeError(
                f"{steps[0][0]} did not run the program: {output.read_bytes()[:300]!r}"
            )
        expected = mark.encode()
        with output.open("rb") as file:
            printed = sum(1 for line in file if expected in line and line.strip())
        programs = float(own.read_text())
        # perf trace does not wait for the program, so its time is not in perf's.
        cpu -= programs if cpu >= programs else 0.0
        return Run(min(printed, self.events), seconds, cpu, programs, peak)


def _missing(tool: str) -> str | None:
    name = tool.split()[0]
    if name == "fetchc":
        return None
    return None if shutil.which(name) else f"no {name} here (.ci/setup brings it)"


def _cell(runs: list[Run], events: int) -> str:
    whole = [run for run in runs if run.printed >= events]
    best = min(whole or runs, key=lambda run: run.seconds)
    lost = "" if whole else f", {100 * (events - best.printed) / events:.0f} % lost"
    rate = best.printed / best.seconds
    least = min(runs, key=lambda run: run.cpu + run.program_cpu)
    own, program = (1e8 * each / events for each in (least.cpu, least.program_cpu))
    peak = max(run.peak_bytes for run in runs) / 1e6
    return f"{rate / 1000:.0f}k/s{lost}; {own:.0f} + {program:.0f} ms; {peak:.0f} MB"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.benchmark.tracing", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    reason = unavailable()
    if reason:
        print(f"cannot trace here: {reason}", file=sys.stderr)
        return 4
    rows: dict[str, dict[int, list[Run]]] = {}
    with tempfile.TemporaryDirectory(prefix="fetchc_bench_") as folder:
        bench = Bench(Path(folder), options.events)
        for tool in TOOLS:
            if reason := _missing(tool):
                print(f"skipped {tool}: {reason}", file=sys.stderr)
                continue
            rows[tool] = {count: [] for count in ARGUMENTS}
        for _ in range(options.rounds):  # in turns: what else the machine does hits them all
            for tool, row in rows.items():
                for count in ARGUMENTS:
                    row[count].append(bench.run(tool, count))
    if options.json:
        shown = {
            tool: {count: [dataclasses.asdict(run) for run in runs] for count, runs in row.items()}
            for tool, row in rows.items()
        }
        print(json.dumps({"events": options.events, "results": shown}, indent=1))
        return 0
    print("events a second; CPU of the tool + the program by 100,000 events; peak memory")
    print("| tool | " + " | ".join(f"{count} arguments" for count in ARGUMENTS) + " |")
    print("|---|" + "---|" * len(ARGUMENTS))
    for tool, row in rows.items():
        cells = [_cell(row[count], options.events) for count in ARGUMENTS]
        print(f"| {tool} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
