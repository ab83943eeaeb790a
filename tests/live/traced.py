"""A program of our own under ``fetchc trace``: it tells of every call what the trace must show."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.target.bpf_rules import bpf_machine
from fetchc.tracer.bpf.features import unusable
from fetchc.tracer.bpf.system_calls import Bpf
from fetchc.tracer.install import hits
from fetchc.tracer.tracefs import Tracefs
from tests.support.schemas import trace_errors
from tests.support.toolchains import ROOT, require
from tests.support.tracefs import require_uprobes

__all__ = [
    "BPF",
    "SECONDS",
    "Traced",
    "build",
    "engine",
    "event",
    "hit",
    "left_behind",
    "running",
    "trace",
]

SECONDS = 60  # what takes longer never comes
BPF = os.environ.get("FETCHC_ENGINE") == "bpf"  # traces go through eBPF, and copy whole lists
_TRACEFS = Path("/sys/kernel/tracing")
_HELD_TO_SCHEMA = 50  # lines of a trace
# bpf(2): commands, and where struct bpf_prog_info counts the runs of a program.
_PROGRAM_BY_NUMBER, _ENABLE_STATS, _RUNS = 13, 32, 200

SOURCE = r"""
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("" ::: "memory")

enum shade { DARK = -1, PLAIN = 0, LIGHT = 300 };
struct pair { int x, y; };
struct item {
    signed char small; unsigned char big; short middle; int number; long long wide;
    unsigned five : 5; int minus : 5; _Bool yes; enum shade shade; double d;
    char fixed[4]; const char *name; struct pair pair; int row[3]; void (*act)(void);
};
static jmp_buf back;

void act(void) { KEEP; }

NOINLINE int work(struct item *it, int n) { KEEP; return n * 3 + it->five; }
NOINLINE int down(int n) { int r = n ? down(n - 1) + 1 : 0; KEEP; return r; }
NOINLINE int risky(int n) { KEEP; if (n % 2) longjmp(back, 1); KEEP; return n; }
NOINLINE int nap(int ms) { usleep(1000 * ms); return ms; }
NOINLINE void outer(struct item *it, int n) { work(it, n); KEEP; }

static const char *names[] = { "plain", "", "a \"b\" \\", "two\nlines", "esc\033[31m", 0 };

static struct item made(int n)
{
    struct item it = { 0 };
    it.small = n - 100; it.big = n + 100; it.middle = n * 300; it.number = n - 50;
    it.wide = (n - 3) * 10000000000LL; it.five = n; it.minus = n; it.yes = n % 2;
    it.shade = n % 3 == 0 ? DARK : n % 3 == 1 ? PLAIN : LIGHT; it.d = n / 4.0;
    memcpy(it.fixed, n % 2 ? "full" : "ab\0", 4); it.name = names[n % 6];
    it.pair.x = n; it.pair.y = -n; it.row[1] = n; it.act = act;
    return it;
}

static void print_event(int n, struct item *it, int show)
{
    if (!show)
        return;
    printf("EVENT %d %d %d %d %d %lld %d %d %d %d %g %d\n", n, it->small, it->big, it->middle,
           it->number, it->wide, it->five, it->minus, it->yes, it->shade, it->d, n % 6);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "calls";
    int many = argc > 2 ? atoi(argv[2]) : 12;
    int show = !strcmp(how, "calls");
    setvbuf(stdout, NULL, _IOLBF, 8192); /* whole lines, between those of the trace */
    if (!strcmp(how, "loop")) {
        puts("ready");
        fflush(stdout);
    }
    for (int n = 0; n < many || !strcmp(how, "loop"); n++) {
        struct item it = made(n % 256);
        print_event(n, &it, show);
        if (!strcmp(how, "down"))
            down(n);
        else if (!strcmp(how, "risky")) {
            if (!setjmp(back))
                risky(n);
        } else if (!strcmp(how, "nap"))
            nap(n + 1);
        else
            outer(&it, n);
        if (!strcmp(how, "loop"))
            usleep(2000);
    }
    fflush(stdout);
    return argc > 3 ? atoi(argv[3]) : 0;
}
"""


def build(folder: Path) -> Path:
    """The program, with frame pointers; skips the test where it cannot be traced."""
    require_uprobes()
    require("gcc")
    program, source = folder / "traced", folder / "traced.c"
    source.write_text(SOURCE)
    flags = ["-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
    subprocess.run(["gcc", *flags, "-o", program, source], check=True, timeout=60)
    return program


@dataclass(frozen=True)
class Traced:
    """What a trace printed, apart from what its program printed; and its exit status."""

    status: int
    lines: list[str]
    program: list[str]
    errors: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The lines as JSON; each is what its schema says."""
        found = [json.loads(line) for line in self.lines]
        for each in found[:_HELD_TO_SCHEMA]:
            assert trace_errors(each) == []
        return found

    @property
    def args(self) -> list[dict[str, Any]]:
        """The values of each event."""
        return [each["args"] for each in self.objects if "args" in each]


def engine(words: Sequence[str | Path]) -> list[str]:
    """The engine that ``FETCHC_ENGINE`` names, for what it can do: all tests can go through it."""
    named = os.environ.get("FETCHC_ENGINE")
    own = [str(word) for word in (words[: words.index("--")] if "--" in words else words)]
    other = any(word in ("--engine", "kernel") for word in own)
    return [] if named is None or other else ["--engine", named]


def trace(capfd: pytest.CaptureFixture[str], *words: str | Path) -> Traced:
    """``fetchc trace`` in this process; what the traced program prints begins with EVENT."""
    capfd.readouterr()
    status = main(["trace", "--color", "never", *engine(words), *map(str, words)])
    printed = capfd.readouterr()
    lines = printed.out.splitlines()
    until = time.monotonic() + 5  # a process of its own removes an instance that nobody needs
    while left_behind(os.getpid()) and time.monotonic() < until:
        time.sleep(0.01)
    assert left_behind(os.getpid()) == []
    return Traced(
        status,
        [line for line in lines if not line.startswith("EVENT")],
        [line for line in lines if line.startswith("EVENT")],
        printed.err,
    )


@contextmanager
def running(*words: str | Path, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """A trace in a process of its own, in JSON lines unless the words have another form."""
    form = () if "--format" in words else ("--format", "jsonl")
    command = [sys.executable, "-m", "fetchc", "trace", *form, *engine(words), *map(str, words)]
    with subprocess.Popen(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        try:
            yield child
        finally:
            child.kill()
    assert left_behind(child.pid) == []


def event(child: subprocess.Popen[str]) -> dict[str, object]:
    """The next event that it shows."""
    assert child.stdout is not None
    while True:
        line = child.stdout.readline()
        assert line, "no event came"
        if line.startswith("{"):
            found: dict[str, object] = json.loads(line)
            assert trace_errors(found) == []
            return found


def hit(pid: int, times: int) -> None:
    """Return when the probes of a process's sessions were hit so many times."""
    until = time.monotonic() + SECONDS
    counted = -1
    with _counted_runs() as bpf:
        while counted < times:
            assert time.monotonic() < until, f"{counted} hits of {times}"
            time.sleep(0.01)
            found = hits(Tracefs(str(_TRACEFS)))
            counted = sum(found[one] for one in found if one[0].startswith(f"fetchc_{pid}_"))
            counted += 0 if bpf is None else sum(_runs(bpf, one) for one in _programs(pid))


@contextmanager
def _counted_runs() -> Iterator[Bpf | None]:
    # The kernel counts the runs of eBPF programs while it is asked to, where there are some.
    machine = bpf_machine(os.uname().machine)
    if machine is None or unusable() is not None:
        yield None
        return
    bpf = Bpf(machine)
    enabled = bpf._bpf(_ENABLE_STATS, bytes(4))
    try:
        yield bpf
    finally:
        os.close(enabled)


def _programs(pid: int) -> list[int]:
    # The numbers of the programs that links for many probes run.
    infos = [path.read_text() for path in Path(f"/proc/{pid}/fdinfo").iterdir()]
    links = [info for info in infos if "uprobe_multi" in info]
    return [int(found[1]) for info in links if (found := re.search(r"prog_id:\s(\d+)", info))]


def _runs(bpf: Bpf, program: int) -> int:
    opened = bpf._bpf(_PROGRAM_BY_NUMBER, struct.pack("=III", program, 0, 0))
    try:
        return bpf._number_in(opened, _RUNS)
    finally:
        os.close(opened)


def left_behind(pid: int) -> list[str]:
    """What sessions of a process have in the kernel: definitions, instances, open files."""
    group = f"fetchc_{pid}_"
    lines = (_TRACEFS / "uprobe_events").read_text().splitlines()
    instances = [path.name for path in (_TRACEFS / "instances").iterdir()]
    opened = []
    with suppress(FileNotFoundError):  # the process has ended, and nothing of it is open
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                opened.append(os.readlink(path))
    return (
        [line for line in lines if f":{group}" in line]
        + [name for name in instances if name.startswith(group)]
        + [name for name in opened if name.startswith(("anon_inode:bpf", "anon_inode:[perf"))]
    )
