"""``trace --engine breakpoint``: what uprobes record, and code that they do not reach."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.tracer.breakpoints import most_breakpoints
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no execution breakpoints"),
]

# `hit` begins with an instruction that has the prefix `lock`: the kernel sets no uprobe there.
SOURCE = r"""
#include <cstdio>
#include <stdexcept>
#define NOINLINE extern "C" __attribute__((noinline, noclone))
struct point { int x; long y; const char *name; };
int hits;
point where = {3, -4, "here"};
NOINLINE void hit(point *p, int n) { __atomic_add_fetch(&hits, 1, __ATOMIC_SEQ_CST); p->x = n; }
NOINLINE int twice(point *p, int n) { __asm__ volatile("" ::: "memory"); return 2 * n + p->x; }
NOINLINE int pick(int n) {
    switch (n & 3) {
    case 0: return where.y ? std::puts("y") : 5;
    case 1: return n * 7;
    case 2: std::puts("two"); return -n;
    default: return n;
    }
}
NOINLINE int risky(int n) { if (n % 3 == 0) throw std::runtime_error("3"); return n; }
int main() {
    std::puts(where.name);  // a page that nobody has read is not there for a breakpoint
    for (int n = 1; n <= 12; n++) {
        int before = hits, old = where.x, caught = 0;
        hit(&where, n);
        try { risky(n); } catch (std::exception &) { caught = 1; }
        std::printf("= %d %d %d %d %d %d\n", n, before, old, twice(&where, n), pick(n), caught);
    }
}
"""

Event = dict[str, Any]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("g++")
    folder = tmp_path_factory.mktemp("engine")
    (folder / "engine.cc").write_text(SOURCE)
    subprocess.run(
        ["g++", "-g", "-O2", "-o", "engine", "engine.cc"], cwd=folder, check=True, timeout=60
    )
    return folder / "engine"


def traced(program: Path, *words: str) -> tuple[list[list[int]], list[Event], str]:
    """What the program tells of each round, the events, and what fetchc said."""
    results = program.parent / "events.jsonl"
    command = [sys.executable, "-m", "fetchc", "trace", *words, "--json", "-o", str(results)]
    done = subprocess.run(
        [*command, "--", str(program)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    told = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("= ")]
    lines = results.read_text().splitlines()
    return [[int(word) for word in one] for one in told], list(map(json.loads, lines)), done.stderr


BY_BREAKPOINT = ("--engine", "breakpoint")


def test_an_instruction_without_uprobes_is_reached(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["hits", "*p", "n", "-f", "hit"]
    assert main(["trace", *words, "--", str(program)]) == 1
    said = capsys.readouterr().err
    assert "error[FC0515]" in said
    assert "it has the prefix `lock`" in said
    assert "`trace --engine breakpoint` takes any instruction" in said
    told, events, _ = traced(program, *words, "--stack", *BY_BREAKPOINT)
    found = [[each["args"]["n"], each["args"]["hits"], each["args"]["*p"]["x"]] for each in events]
    assert found == [one[:3] for one in told]
    assert all(each["args"]["*p"]["name"] == "here" for each in events)
    assert all([one["function"] for one in each["stack"]][:2] == ["hit", "main"] for each in events)
    assert "read_later" not in events[0]


def test_the_events_are_those_of_uprobes(program: Path) -> None:
    require_uprobes()
    words = ["n", "p->x", "p->name", "where.y", "-f", "twice"]
    _, expected, _ = traced(program, *words, "--engine", "tracefs")
    _, found, _ = traced(program, *words, *BY_BREAKPOINT)
    assert [each["args"] for each in found] == [each["args"] for each in expected]
    assert [each["function"] for each in found] == ["twice"] * 12
    assert {each["address"] & 0xFFF for each in found} == {
        each["address"] & 0xFFF for each in expected
    }


def test_returns_are_at_the_return_instructions(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, events, said = traced(
        program, "n", "$retval", "-f", "twice", "--latency", "--return", *BY_BREAKPOINT
    )
    found = [[each["args"]["n"], each["args"]["$retval"]] for each in events]
    assert found == [[one[0], one[3]] for one in told]
    assert all(each["latency_us"] > 0 for each in events)
    assert "had no return" not in said
    command = ["trace", "-f", "twice", "-f", "pick", "-f", "risky", "-f", "hit", "-f", "main"]
    assert main([*command, *BY_BREAKPOINT, "--", str(program)]) == 4
    assert "error[FC0720]: 5 addresses of COMMAND" in capsys.readouterr().err
    words = ["-f", "pick", "-f", "twice", "--latency"]
    assert main(["trace", *words, *BY_BREAKPOINT, "--", str(program)]) == 4
    said = capsys.readouterr().err
    assert "`pick` has " in said
    assert " return instructions" in said


def test_exceptions_that_pass_are_counted(program: Path) -> None:
    told, events, said = traced(program, "n", "-f", "risky", "--latency", *BY_BREAKPOINT)
    thrown = sum(one[5] for one in told)
    assert thrown == 4
    assert [each["args"]["n"] for each in events] == [one[0] for one in told if not one[5]]
    assert "note: 4 calls had no return: an exception passed, or they still run" in said
