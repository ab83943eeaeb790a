"""Stacks of ``fetchc trace`` against gdb's backtrace at the same instruction, hit for hit.

The programs run without address randomisation, so that both see the same addresses. A stack is
right where it is gdb's, or the beginning of gdb's with a mark that it was cut. ``FETCHC_LONG=1``
compares some thousands of each program.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fetchc.debuginfo import unwind_tables
from fetchc.debuginfo.dwarf.call_frames import Row
from fetchc.program.entities import InMemory
from fetchc.quantities import ByteOffset
from tests.live.rustc import COMPILERS
from tests.live.traced import trace
from tests.support.toolchains import GO_VERSIONS, ROOT, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

LONG = bool(os.environ.get("FETCHC_LONG"))
HITS = 2500 if LONG else 60
SHARE = 0.99  # that has to be right
PYTHON = "/usr/bin/python3.11"

C = r"""
#include <glob.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static int compared(const void *a, const void *b)
{
    void *volatile p = malloc(8); free(p); return *(const int *)a - *(const int *)b;
}
static void handler(int n) { void *volatile p = malloc(24); free(p); }
int main(void)
{
    signal(SIGUSR1, handler);
    for (int round = 0; round < 400; round++) {
        int numbers[9]; regex_t regex; glob_t found; char text[64]; time_t now = round * 86400;
        for (int i = 0; i < 9; i++) numbers[i] = (i * 7 + round) % 10;
        qsort(numbers, 9, sizeof *numbers, compared);
        regcomp(&regex, "(a|b)*c[0-9]{2,3}x?", REG_EXTENDED);
        regexec(&regex, "ababc123", 0, 0, 0);
        regfree(&regex);
        glob("/etc/ho*", 0, 0, &found);
        globfree(&found);
        raise(SIGUSR1);
        strftime(text, sizeof text, "%A %c", gmtime(&now));
        free(strdup(text));
        FILE *file = fopen("/etc/hosts", "r");
        if (file) { fgets(text, sizeof text, file); fclose(file); }
    }
}
"""

CPP = r"""
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <alloca.h>
#include <cstring>
#define NOINLINE __attribute__((noinline))
extern "C" NOINLINE int leaf(int n) { __asm__ volatile("" ::: "memory"); return n; }
struct Shape { virtual ~Shape() = default; virtual int area(int n) const = 0; };
struct Square : Shape { int area(int n) const override { return leaf(n) * n; } };
struct Round : Shape {
    std::unique_ptr<Shape> inner = std::make_unique<Square>();
    int area(int n) const override { return n ? inner->area(n - 1) + leaf(n) : 3; }
};
namespace deep {
template <typename T> __attribute__((noinline)) int down(T n, int left)
{
    char *room = static_cast<char *>(alloca(16 + left * 40));
    std::memset(room, left, 16 + left * 40);
    int sum = left ? down<T>(n + 1, left - 1) : leaf(n);
    return sum + room[3];
}
__attribute__((noinline)) double aligned(int n)
{
    alignas(64) double values[16];
    for (int i = 0; i < 16; i++) values[i] = leaf(n + i);
    return values[n % 16];
}
__attribute__((noinline)) int thrower(int n)
{
    if (n % 3 == 0) throw std::runtime_error("no");
    return leaf(n);
}
}
int main()
{
    int sum = 0;
    for (int round = 0; round < 2000; round++) {
        std::vector<int> numbers{5, 3, round % 7, 1};
        std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return leaf(a) < leaf(b); });
        std::map<std::string, std::function<int(int)>> calls;
        calls["a"] = [&](int n) { return leaf(n) + sum; };
        calls["b"] = [](int n) { return Round().area(n); };
        for (auto &[name, call] : calls) sum += call(round % 5);
        sum += deep::down<long>(round, round % 9);
        sum += deep::aligned(round);
        try { sum += deep::thrower(round); } catch (const std::exception &) { sum += leaf(1); }
    }
    return sum == 42;
}
"""

RUST = r"""
use std::collections::BTreeMap;
#[no_mangle] #[inline(never)]
pub extern "C" fn leaf(n: u64) -> u64 { unsafe { std::ptr::read_volatile(&n) + 1 } }
trait Shape { fn area(&self, n: u64) -> u64; }
struct Square; struct Round(Box<dyn Shape>);
impl Shape for Square { fn area(&self, n: u64) -> u64 { leaf(n) * n } }
impl Shape for Round {
    fn area(&self, n: u64) -> u64 { if n > 0 { self.0.area(n - 1) + leaf(n) } else { 2 } }
}
#[inline(never)]
fn down(n: u64, left: u64) -> u64 {
    let room = [left; 12];
    let seen = unsafe { std::ptr::read_volatile(&room) };
    if left == 0 { leaf(n) } else { down(n + 1, left - 1) + seen[3] }
}
fn main() {
    let mut sum = 0u64;
    for round in 0..2000u64 {
        let mut numbers = vec![5, 3, round % 7, 1];
        numbers.sort_by(|a, b| leaf(*a).cmp(&leaf(*b)));
        let mut calls: BTreeMap<&str, Box<dyn Fn(u64) -> u64>> = BTreeMap::new();
        calls.insert("a", Box::new(move |n| leaf(n) + round));
        calls.insert("b", Box::new(|n| Round(Box::new(Square)).area(n)));
        for call in calls.values() { sum += call(round % 5); }
        sum += down(round, round % 9);
        sum += std::panic::catch_unwind(|| numbers.iter().map(|n| leaf(*n)).sum::<u64>()).unwrap();
    }
    println!("EVENT {}", sum);
}
"""

GO = r"""
package main

import (
	"fmt"
	"sort"
	"strings"
)

//go:noinline
func leaf(n int) int { return n + 1 }

type shape interface{ area(n int) int }
type square struct{}
type round struct{ inner shape }

func (square) area(n int) int { return leaf(n) * n }
func (r *round) area(n int) int {
	if n > 0 {
		return r.inner.area(n-1) + leaf(n)
	}
	return 3
}

//go:noinline
func down(n, left int) int {
	var room [40]int
	room[left] = n
	if left == 0 {
		return leaf(n)
	}
	return down(n+1, left-1) + room[left]
}

func deferred(n int) (sum int) {
	defer func() {
		if recover() != nil {
			sum = leaf(n)
		}
	}()
	if n%3 == 0 {
		panic("no")
	}
	return leaf(n)
}

func main() {
	sum := 0
	for i := 0; i < 4000; i++ {
		numbers := []int{5, 3, i % 7, 1}
		sort.Slice(numbers, func(a, b int) bool { return leaf(numbers[a]) < leaf(numbers[b]) })
		sum += (&round{square{}}).area(i % 5)
		sum += down(i, i%9)
		sum += deferred(i)
		sum += len(strings.Map(func(r rune) rune { return rune(leaf(int(r))) }, "abc"))
		done := make(chan int)
		go func() { done <- leaf(i) }()
		sum += <-done
	}
	fmt.Println("EVENT", sum)
}
"""

SCRIPT = """
import json, re
class Thing:
    def __init__(self, n): self.n = n
    def __repr__(self): return str(self.n)
for n in range(3000):
    data = {str(i): [Thing(i), {"a": i}] for i in range(4)}
    sorted(data, key=lambda one: len(repr(data[one])))
    json.loads(json.dumps({"a": [1, 2, {"b": n}]}))
    re.sub("[0-9]+", lambda m: str(int(m[0]) + 1), "a1b22")
"""


@dataclass
class Subject:
    """A program, the file and function that are probed, and whether the file is a library."""

    command: list[str]
    binary: str
    function: str
    library: bool = False


def c_program(folder: Path) -> Subject:
    program = _compiled(folder, "c", C, ["gcc", "-O2", "-g", "-fomit-frame-pointer"])
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libc = next(line.split()[2] for line in libraries.splitlines() if "libc.so" in line)
    return Subject([str(program)], libc, "malloc", library=True)


def cpp_program(folder: Path) -> Subject:
    program = _compiled(folder, "cc", CPP, ["g++", "-O2", "-g", "-mavx2", "-std=c++17"])
    return Subject([str(program)], str(program), "leaf")


def rust_program(folder: Path) -> Subject:
    if not COMPILERS:
        pytest.skip("rustc is not here")
    compiler = str(COMPILERS[0].values[0])
    program = _compiled(folder, "rs", RUST, [compiler, "-O", "-g", "--edition", "2021"])
    return Subject([str(program)], str(program), "leaf")


def go_program(folder: Path) -> Subject:
    from tests.support.go_programs import go_program as built

    return Subject(
        [str(one := built(GO_VERSIONS[-1], folder, GO, name="program"))], str(one), "main.leaf"
    )


def python_program(folder: Path) -> Subject:
    if not os.path.exists(PYTHON):
        pytest.skip(f"{PYTHON} is not here")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return Subject([PYTHON, "-ISB", str(script)], PYTHON, "PyDict_New")


SUBJECTS = [c_program, cpp_program, rust_program, go_program, python_program]


def _compiled(folder: Path, ending: str, text: str, command: list[str]) -> Path:
    require(command[0]) if "/" not in command[0] else None
    source, program = folder / f"program.{ending}", folder / "program"
    source.write_text(text)
    subprocess.run([*command, source, "-o", program], check=True, timeout=120, cwd=folder)
    return program


def ours(capfd: pytest.CaptureFixture[str], subject: Subject) -> list[list[dict[str, object]]]:
    """The stacks that fetchc shows."""
    shown = trace(
        capfd, "-x", subject.binary, "-f", subject.function, "--stack",
        "--format", "jsonl", "--count", str(HITS), "--timeout", "100",
        "--filter", f'$comm == "{os.path.basename(subject.command[0])}"',
        "--", "setarch", "-R", "env", "-i", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1",
        *subject.command,
    )  # fmt: skip
    return [each["stack"] for each in shown.objects]


def of_gdb(folder: Path, subject: Subject, address: object, hits: int) -> list[list[int]]:
    """The stacks of the same hits by gdb."""
    questions = {"address": address, "most": hits, "early": subject.library}
    (folder / "questions").write_text(json.dumps(questions))
    script = ROOT / "tests/support/stacks_by_gdb.py"
    command = ["gdb", "-nx", "-batch", "-x", str(script), "--args", *subject.command]
    environment = {"FETCHC_GDB": str(folder), "PATH": os.environ["PATH"]}
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=900, cwd=folder
    )
    assert (folder / "answers").exists(), ran.stderr
    answers: dict[str, list[list[int]]] = json.loads((folder / "answers").read_text())
    return answers["stacks"]


def compared(
    mine: list[list[dict[str, object]]], theirs: list[list[int]]
) -> tuple[int, int, list[str]]:
    """How many stacks are equal, and honestly cut; the others in words.

    In their order: hits that were lost, and counted, are only in ``theirs``.
    """
    equal, cut, wrong, next_one = 0, 0, [], 0
    for frames in mine:
        found = [frame["address"] for frame in frames]
        why = frames[-1].get("not_unwound")
        for at in range(next_one, len(theirs)):
            wanted = theirs[at] if why is None else theirs[at][: len(found)]
            if found == wanted:
                next_one = at + 1
                equal += why is None
                cut += why is not None
                break
        else:
            names = [f"{frame['function']}+{frame['offset']}" for frame in frames]
            wrong.append(f"{names} {why}; gdb: {theirs[next_one : next_one + 1]}")
    return equal, cut, wrong


@pytest.mark.parametrize("made", SUBJECTS)
def test_stacks_are_those_of_gdb(
    made: Callable[[Path], Subject], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    require("gdb")
    if shutil.which("setarch") is None:
        pytest.skip("setarch is not here")
    subject = made(tmp_path)
    mine = ours(capfd, subject)
    assert len(mine) > HITS * 0.9
    more = 4 if LONG else 1  # for those that were lost
    theirs = of_gdb(tmp_path, subject, mine[0][0]["address"], more * len(mine))
    equal, cut, wrong = compared(mine, theirs)
    why = Counter([one[-1].get("not_unwound") for one in mine])
    print(f"{made.__name__}: {equal} equal, {cut} cut, {len(wrong)} wrong; {dict(why)}")
    assert equal + cut >= SHARE * len(mine), wrong[:2]
    assert cut <= (1 - SHARE) * len(mine), cut


def test_a_wrong_rule_would_be_noticed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_uprobes()
    require("gdb")
    subject = c_program(tmp_path)
    right = unwind_tables.UnwindTables.row

    def off_by_a_word(self: unwind_tables.UnwindTables, address: int) -> Row | str:
        row = right(self, address)  # type: ignore[arg-type]
        if isinstance(row, Row) and isinstance(row.cfa, InMemory) and address % 3 == 1:
            return row.replaced(cfa=row.cfa.replaced(offset=ByteOffset(row.cfa.offset + 8)))
        return row

    monkeypatch.setattr(unwind_tables.UnwindTables, "row", off_by_a_word)
    mine = ours(capfd, subject)
    theirs = of_gdb(tmp_path, subject, mine[0][0]["address"], len(mine))
    equal, cut, wrong = compared(mine, theirs)
    assert wrong
    assert equal + cut < SHARE * len(mine)
