"""Measure ``fetchc trace`` beside bpftrace and perf: the same probes, one run.

    python -m tests.benchmark.tracing [--events N] [--rounds N]
                                      [--starts | --bursts | --functions | --tables] [--json]

A program of its own calls a function as fast as it can. The definitions for perf and the program
for bpftrace are what ``fetchc compile --format`` writes of the same expressions. Needs root;
``.ci/setup`` installs the tools; one that is missing is skipped with the reason.

Events a second: printed lines by the time from start to end of the tool, the best of the rounds
that lost nothing, or of all where each lost some. CPU is by 100,000 events, the tool's own and the
traced program's: of the round where their sum is the least, the starts of the tools included.

Starts: a program calls a function all the time, and a tool that traces it starts. The time until
it prints the first value, and its CPU time until then, children included, are the least
of the rounds. fetchc starts with an empty cache, and again with what that left there. What perf
takes is that of its two commands.

Functions: probes of 1,000 functions are switched on and off by each engine of fetchc.

Tables: a histogram that the kernel counts, of a value and of the time of each call, beside
bpftrace's, the installed and the newest one. There are twenty times as many events, and the CPU
time is that of the whole run. ``--starts``, ``--bursts``, ``--functions`` and ``--tables`` measure
one of the four only.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import fetchc
from fetchc.tracer.bpf.bpf_session import BpfSession
from fetchc.tracer.session import Session
from tests.benchmark.fetched import Unavailable
from tests.benchmark.goals import Goal
from tests.benchmark.newer import newer
from tests.support.toolchains import ROOT, TOOLCHAINS
from tests.support.tracefs import unavailable

ARGUMENTS = (1, 5, 20)
TOOLS = (
    "fetchc text", "fetchc jsonl", "fetchc text bpf", "fetchc jsonl bpf", "bpftrace", "perf script",
    "perf trace",
)  # fmt: skip
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
            case "fetchc text" | "fetchc jsonl" | "fetchc text bpf" | "fetchc jsonl bpf":
                _, kind, *engine = tool.split()
                where = ["-x", str(self.program), "-f", "hit", "--format", kind]
                where += ["--engine", *(engine or ["tracefs"])]
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

    def table(self, words: Sequence[str], question: Question) -> Run:
        """Have the kernel count all calls; ``words`` begin the command of bpftrace, if any."""
        own = self.folder / "program-cpu"
        command = [str(self.program), str(TABLE_EVENTS * self.events), str(own)]
        if words:
            script = question.script.replace("HIT", f"{self.program}:hit")
            steps = [[*words, "--unsafe", "-e", script, "-c", " ".join(command)]]
        else:
            where = ["-x", str(self.program), "-f", "hit"]
            steps = [[*self._fetchc, "trace", *question.options, *where, "--", *command]]
        return self._timed(steps, own, "@@@")

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


# ------------------------------------------------------------------------------
# Counting in the kernel.

TABLE_EVENTS = 20  # times as many as of the other measurements
MOST_OF_PEER = 1.1  # times the CPU time of bpftrace


@dataclass(frozen=True)
class Question:
    """One question: the options of fetchc, the program of bpftrace, where HIT is the probe."""

    options: tuple[str, ...]
    script: str


QUESTIONS = {
    "histogram": Question(("--histogram", "r->n0"), "uprobe:HIT { @ = hist(*(int64 *)arg0); }"),
    "latency": Question(
        ("--latency", "--histogram", "$latency"),
        "uprobe:HIT { @start[tid] = nsecs; } uretprobe:HIT /@start[tid]/ "
        "{ @ = hist((nsecs - @start[tid]) / 1000); delete(@start[tid]); }",
    ),
}
Tables = dict[str, dict[str, list[Run]]]


def tables(folder: Path, events: int, rounds: int) -> Tables:
    """The runs of each question by the tools, in turns."""
    bench = Bench(folder, events)
    tools: dict[str, list[str]] = {"fetchc": []}
    if not _missing("bpftrace"):
        tools["bpftrace"] = ["bpftrace"]
    try:
        tools["bpftrace, newer"] = newer("bpftrace")
    except Unavailable as reason:
        print(f"skipped bpftrace, newer: {reason}", file=sys.stderr)
    found: Tables = {name: {tool: [] for tool in tools} for name in QUESTIONS}
    for _ in range(rounds):
        for name, question in QUESTIONS.items():
            for tool, words in tools.items():
                run = bench.table(words, question)
                if not run.printed:
                    raise RuntimeError(f"{tool} printed no histogram")
                found[name][tool].append(run)
    return found


def _least_cpu(runs: Sequence[Run]) -> Run:
    return min(runs, key=lambda run: run.cpu + run.program_cpu)


def table_goals(found: Tables) -> list[Goal]:
    """What the kernel counts for fetchc takes hardly more CPU time than for bpftrace."""
    goals = []
    for name, by_tool in found.items():
        ours, *theirs = [_least_cpu(runs) for runs in by_tool.values()]
        mine = ours.cpu + ours.program_cpu
        if theirs:
            peer = min([one.cpu + one.program_cpu for one in theirs])
            measured = f"{mine:.2f} s, bpftrace {peer:.2f} s"
            most = f"at most {MOST_OF_PEER:g} of bpftrace"
            name = f"trace, {name} in the kernel"
            goals.append(Goal(name, measured, most, mine <= MOST_OF_PEER * peer))
    return goals


# ------------------------------------------------------------------------------
# From the start of a tool to its first value.

STARTS = ("fetchc", "fetchc, cached", "bpftrace", "perf")
FEW_MS = 300  # of CPU, that a cold start of fetchc may take
LARGEST = "Go compiler"
WAITS = (
    "the kernel waits for all processors, 50 ms for the clock and the buffers, 10 for the probe, "
    "and fetchc 10 for what other processors recorded before"
)

WAITING = """
#include <netdb.h>
#include <string.h>
#include <unistd.h>
struct row { long n; };
__attribute__((noinline)) void hit(struct row *r) { __asm__ volatile("" :: "r"(r) : "memory"); }
int main(void) {
    struct row r = {0};
    struct addrinfo hints, *found;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_INET;
    hints.ai_flags = AI_NUMERICHOST;
    for (;;) {
        r.n++;
        hit(&r);
        if (!getaddrinfo("127.0.0.1", 0, &hints, &found))
            freeaddrinfo(found);
        usleep(1000);
    }
}
"""
GO = (
    "package main; func f(n int) int { if n < 2 { return n }; return f(n-1) }; func main() { f(3) }"
)
PYTHON = "import time, sys\nwhile True: getattr(sys, 'path'); time.sleep(0.001)"


@dataclass(frozen=True)
class Started:
    """A start of a tool: seconds until its first value, CPU seconds of it until then.

    ``tracing`` is when fetchc said that it traces; None of the others.
    """

    first: float
    cpu: float
    tracing: float | None = None


@dataclass(frozen=True)
class Waiting:
    """A file whose function is called all the time, by ``command``."""

    name: str
    file: str
    function: str
    expression: str
    perf: str
    command: tuple[str, ...]


def waiting(folder: Path) -> list[Waiting]:
    """The files that are here; a missing one is named."""
    (folder / "waits.c").write_text(WAITING)
    (folder / "waits.go").write_text(GO)
    program = str(folder / "waits")
    subprocess.run(["gcc", "-O2", "-g", "-o", program, folder / "waits.c"], check=True)
    compiler = str(TOOLCHAINS / "benchmark/compile")
    compiled = f"while :; do {compiler} -p main -o /dev/null {folder}/waits.go; done"
    python, value = "/usr/bin/python3.11", "v->ob_type->tp_name"
    libc, hints = "/lib/x86_64-linux-gnu/libc.so.6", "hints->ai_family"
    compile_ = "cmd/compile/internal/ssa.Compile"
    found = [
        Waiting("small C", program, "hit", "r->n", "r->n", (program,)),
        Waiting("libc", libc, "getaddrinfo", hints, hints, (program,)),
        Waiting("python3.11", python, "PyObject_GetAttr", value, f"{value}:string",
                (python, "-c", PYTHON)),
        Waiting(LARGEST, compiler, compile_, "f.Entry.ID", "f->Entry->ID",
                ("sh", "-c", compiled)),
    ]  # fmt: skip
    for one in found:
        if not Path(one.file).exists():
            print(f"skipped {one.name}: no {one.file} (.ci/setup --peers)", file=sys.stderr)
    return [one for one in found if Path(one.file).exists()]


@contextmanager
def _running(command: Sequence[str]) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _used(pid: int) -> float:
    # CPU seconds of a process and its children, those that ended and those that run.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return used + sum(_used(int(child)) for child in children)


def _first_value(
    command: Sequence[str], marks: tuple[str, ...], environment: dict[str, str]
) -> Started:
    # Until a line that has all ``marks``.
    begin = time.monotonic()
    tracing = None
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        env=environment, cwd=ROOT, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    said = ""
    try:
        for line in child.stdout:
            said += line
            if line.startswith("tracing "):
                tracing = time.monotonic() - begin
            elif all(mark in line for mark in marks):
                return Started(time.monotonic() - begin, _used(child.pid), tracing)
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate()
    raise RuntimeError(f"{command[0]} printed no value: {said[:300]!r}")


class Starts:
    """Starts of the tools, while the functions they trace are called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = waiting(folder)
        self._environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(self, tool: str, one: Waiting) -> Started:
        """Start a tool and wait for its first value."""
        where = ["-x", one.file, "-f", one.function]
        fetchc = [str(Path(sys.executable).with_name("fetchc"))]
        match tool:
            case "fetchc" | "fetchc, cached":
                if tool == "fetchc":
                    shutil.rmtree(self.folder / "cache", ignore_errors=True)
                command = [*fetchc, "trace", one.expression, *where, "--format", "jsonl"]
                return _first_value(command, ('{"event"',), self._environment)
            case "bpftrace":
                # At the entry: Debian's refuses to probe anywhere else.
                asked = ["compile", one.expression, *where, "--at", "+0", "--format", "bpftrace"]
                script = self.folder / "start.bt"
                text = subprocess.run(
                    [*fetchc, *asked], capture_output=True, text=True, check=True, cwd=ROOT
                ).stdout
                script.write_text(text)
                command = ["bpftrace", "--unsafe", str(script)]
                return _first_value(command, ("-", ": ", "="), self._environment)
            case _:
                return self._perf(one)

    def _perf(self, one: Waiting) -> Started:
        event = "fetchc_start:first"
        remove = ["perf", "probe", "-q", "-d", event]
        begin = time.monotonic()
        adding = subprocess.Popen(
            ["perf", "probe", "-q", "-x", one.file, f"{event}={one.function} {one.perf}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _, status, used = os.wait4(adding.pid, 0)
        adding.returncode = os.waitstatus_to_exitcode(status)
        if adding.returncode:
            raise RuntimeError(f"perf probe fails on {one.name}")
        added = time.monotonic() - begin
        try:
            command = ["perf", "trace", "--no-syscalls", "-e", event, "-a"]
            then = _first_value(command, (event,), self._environment)
        finally:
            subprocess.run(remove, capture_output=True, check=False)
        return Started(added + then.first, used.ru_utime + used.ru_stime + then.cpu)


Measured = dict[str, dict[str, list[Started]]]


def starts(folder: Path, rounds: int) -> Measured:
    """The starts of all tools on all files, in turns."""
    bench = Starts(folder)
    found: Measured = {one.name: {} for one in bench.files}
    for one in bench.files:
        with _running(one.command):
            for _ in range(rounds):
                for tool in STARTS:
                    if _missing(tool.partition(",")[0]):
                        continue
                    try:
                        found[one.name].setdefault(tool, []).append(bench.run(tool, one))
                    except RuntimeError as failed:
                        print(f"skipped: {failed}", file=sys.stderr)
    return found


def _least(runs: Sequence[Started]) -> Started:
    said = [run.tracing for run in runs if run.tracing is not None]
    first, cpu = min(run.first for run in runs), min(run.cpu for run in runs)
    return Started(first, cpu, min(said, default=None))


def start_goals(found: Measured) -> list[Goal]:
    """Ahead of the peers on each file, and little CPU of a cold start on all but the largest."""
    goals = []
    for name, by_tool in found.items():
        own = by_tool.get("fetchc")
        if not own:
            continue
        mine = _least(own)
        for peer in ("bpftrace", "perf"):
            if runs := by_tool.get(peer):
                theirs = _least(runs)
                measured = f"{1000 * mine.first:.0f} ms, {peer} {1000 * theirs.first:.0f}"
                goals.append(Goal(f"trace, first value, {name}, cold", measured, f"below {peer}",
                                  mine.first < theirs.first, WAITS))  # fmt: skip
        if name != LARGEST:
            goals.append(Goal(f"trace, CPU until then, {name}, cold", f"{1000 * mine.cpu:.0f} ms",
                              f"at most {FEW_MS} ms", 1000 * mine.cpu <= FEW_MS))  # fmt: skip
    return goals


def _starts_table(found: Measured) -> Iterator[str]:
    yield "ms until the first value; CPU until then; (until fetchc says that it traces)"
    yield "| file | " + " | ".join(STARTS) + " |"
    yield "|---|" + "---|" * len(STARTS)
    for name, by_tool in found.items():
        cells = []
        for tool in STARTS:
            least = _least(by_tool[tool]) if by_tool.get(tool) else None
            cells.append(
                "" if least is None else f"{1000 * least.first:.0f}; {1000 * least.cpu:.0f}"
            )
            if least is not None and least.tracing is not None:
                cells[-1] += f" ({1000 * least.tracing:.0f})"
        yield f"| {name} | " + " | ".join(cells) + " |"


# ------------------------------------------------------------------------------
# Many functions at once.

MANY = 1000
MOST_SECONDS = 0.5  # to switch their probes on, and off


@dataclass(frozen=True)
class Switched:
    """Seconds until the probes of :data:`MANY` functions are on, and until they are gone."""

    on: float
    off: float


def functions(folder: Path, rounds: int) -> dict[str, list[Switched]]:
    """Each engine in turns; each function is called once meanwhile, and its hit is read."""
    numbers = range(MANY)
    source, program = folder / "many.c", folder / "many"
    head = "__attribute__((noinline, noipa)) long"
    text = "".join([f"{head} f{n}(long n) {{ return n; }}\n" for n in numbers])
    calls = "".join([f"f{n}({n}); " for n in numbers])
    source.write_text(f"{text}int main(void) {{ {calls}return 0; }}\n")
    subprocess.run(["gcc", "-O1", "-g", "-o", program, source], check=True)
    opened = fetchc.open(str(program))
    found: dict[str, list[Switched]] = {"tracefs": [], "bpf": []}
    for _ in range(rounds):
        for engine, session_of in (("tracefs", Session), ("bpf", BpfSession)):
            with session_of() as session:
                probes = [(f"f{n}", opened.probe(f"f{n}")) for n in numbers]
                session.add(*[one.plan(["n"], session.group, name) for name, one in probes])
                begin = time.monotonic()
                session.start()
                on = time.monotonic() - begin
                subprocess.run([program], check=True)
                begin = time.monotonic()
                session.stop()
                off = time.monotonic() - begin
                seen = [event.args["n"] for event in session.events()]
                begin = time.monotonic()
            off += time.monotonic() - begin
            if sorted(seen, key=str) != sorted(numbers, key=str):
                raise RuntimeError(f"{engine}: {len(seen)} hits of {MANY}")
            found[engine].append(Switched(on, off))
    return found


def function_goals(found: dict[str, list[Switched]]) -> list[Goal]:
    """Probes of many functions are on, and off, soon; of the eBPF engine."""
    goals = []
    for what in ("on", "off"):
        least = min([getattr(one, what) for one in found.get("bpf", ())], default=None)
        if least is not None:
            name, most = (
                f"trace, {MANY} functions {what}, bpf",
                f"below {1000 * MOST_SECONDS:.0f} ms",
            )
            goals.append(Goal(name, f"{1000 * least:.0f} ms", most, least < MOST_SECONDS))
    return goals


# ------------------------------------------------------------------------------


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
    parser.add_argument("--starts", action="store_true")
    parser.add_argument("--bursts", action="store_true")
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    reason = unavailable()
    if reason:
        print(f"cannot trace here: {reason}", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="fetchc_bench_") as folder:
        one = options.starts or options.bursts or options.functions or options.tables
        rounds = options.rounds
        bursts = options.bursts or not one
        rows = _bursts(Path(folder), options.events, rounds) if bursts else {}
        counted = tables(Path(folder), options.events, rounds) if options.tables or not one else {}
        first = starts(Path(folder), rounds) if options.starts or not one else {}
        many = functions(Path(folder), rounds) if options.functions or not one else {}
    goals = start_goals(first) + function_goals(many) + table_goals(counted)
    if options.json:
        document = {
            "events": options.events,
            "results": {
                tool: {count: list(map(dataclasses.asdict, runs)) for count, runs in row.items()}
                for tool, row in rows.items()
            },
            "starts": {
                name: {tool: list(map(dataclasses.asdict, runs)) for tool, runs in by_tool.items()}
                for name, by_tool in first.items()
            },
            "functions": {
                engine: list(map(dataclasses.asdict, runs)) for engine, runs in many.items()
            },
            "tables": {
                name: {tool: list(map(dataclasses.asdict, runs)) for tool, runs in by_tool.items()}
                for name, by_tool in counted.items()
            },
            "goals": list(map(dataclasses.asdict, goals)),
        }
        print(json.dumps(document, indent=1))
        return 0
    if rows:
        print("events a second; CPU of the tool + the program by 100,000 events; peak memory")
        print("| tool | " + " | ".join(f"{count} arguments" for count in ARGUMENTS) + " |")
        print("|---|" + "---|" * len(ARGUMENTS))
    for tool, row in rows.items():
        cells = [_cell(row[count], options.events) for count in ARGUMENTS]
        print(f"| {tool} | " + " | ".join(cells) + " |")
    if first:
        print(*_starts_table(first), sep="\n")
    for name, by_tool in counted.items():
        for tool, its in by_tool.items():
            least = _least_cpu(its)
            cpu = f"CPU {least.cpu:.3f} s and the program's {least.program_cpu:.3f}"
            print(f"{name} of {TABLE_EVENTS * options.events} calls, {tool}: {cpu}")
    for engine, runs in many.items():
        on, off = (min([getattr(run, what) for run in runs]) for what in ("on", "off"))
        print(f"{MANY} functions, {engine}: on in {1000 * on:.0f} ms, off in {1000 * off:.0f}")
    return 0


def _bursts(folder: Path, events: int, rounds: int) -> dict[str, dict[int, list[Run]]]:
    rows: dict[str, dict[int, list[Run]]] = {}
    bench = Bench(folder, events)
    for tool in TOOLS:
        if reason := _missing(tool):
            print(f"skipped {tool}: {reason}", file=sys.stderr)
            continue
        rows[tool] = {count: [] for count in ARGUMENTS}
    for _ in range(rounds):  # in turns: what else the machine does hits them all
        for tool, row in rows.items():
            for count in ARGUMENTS:
                row[count].append(bench.run(tool, count))
    return rows


if __name__ == "__main__":
    sys.exit(main())
