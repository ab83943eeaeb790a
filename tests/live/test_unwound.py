"""Returns of functions that exceptions and panics leave: the program lives, no return is missed.

Random C++ functions throw, catch, return and end by calls of each other. The program counts itself
what returns from where and with which value, and prints it at its end: the trace must show the
same, but for calls that end by a jump to another function. Of such functions a warning tells.
"""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import fetchc
from tests.live.rustc import COMPILERS, compiled
from tests.live.traced import trace
from tests.support.seeds import seeds
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

FUNCTIONS = 10
HEAD = """\
#include <cstdio>
#include <string>
#include <vector>
#define KEPT __attribute__((noipa))
struct Returned { int from; long value; };
static std::vector<Returned> returned;
KEPT static void note(int from, long value) { returned.push_back({from, value}); }
KEPT static long calm(long k) { return k * 3; }
static long back(int from, long value)
{ note(from, value); __asm__ volatile("" : "+r"(value) : : "memory"); return value; }
struct Cleaned { std::string text; Cleaned(long k) : text(40 + k % 7, 'x') {} };
"""
TAIL = """\
int main() {
  long sum = 0, caught = 0;
  for (long k = 0; k < 24; k++)
    try { sum += f0(k * 7 + 1); } catch (long thrown) { sum += thrown; caught++; }
  for (auto &one : returned) printf("EVENT %d %ld\\n", one.from, one.value);
  printf("EVENT sum %ld caught %ld\\n", sum, caught);
}
"""


def body(draw: random.Random, number: int) -> str:
    """One function: it calls only those after it."""
    later = range(number + 1, FUNCTIONS)
    lines = []
    if draw.random() < 0.3:
        lines.append("Cleaned cleaned(k);")
    if later:  # to the next, so that all are reached
        lines.append(f"k += f{number + 1}(k + 1) % 100;")
    else:
        lines.append("if (k % 3 == 0) throw k;")
    for _ in range(draw.randint(1, 3)):
        when = f"if (k % {draw.randint(2, 5)} == {draw.randint(0, 2)})"
        kind = draw.randint(0, 4)
        if kind == 0:
            lines.append(f"{when} throw k;")
        elif kind == 1 or not later:
            lines.append(f"{when} return back({number}, k * {draw.randint(2, 9)});")
        elif kind == 2:
            lines.append(f"{when} k += f{draw.choice(later)}(k + {draw.randint(1, 9)});")
        elif kind == 3:
            # A jump, where the compiler makes one of it.
            lines.append(f"{when} {{ note({-1 - number}, 0); return calm(k); }}")
        else:
            call = f"k += f{draw.choice(later)}(k - 1);"
            lines.append(
                f"{when} {{ try {{ {call} }} catch (long thrown) {{ k -= thrown % 5; }} }}"
            )
    return " ".join([*lines, f"return back({number}, k + {number});"])


def built(folder: Path, seed: int, level: str) -> Path:
    require("g++")
    draw = random.Random(seed)
    declared = "".join([f"long f{number}(long k);\n" for number in range(FUNCTIONS)])
    made = [f"KEPT long f{one}(long k) {{ {body(draw, one)} }}\n" for one in range(FUNCTIONS)]
    (folder / "throws.cc").write_text(HEAD + declared + "".join(made) + TAIL)
    command = ["g++", "-g", level, "throws.cc", "-o", "throws"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "throws"


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("seed", seeds())
def test_every_return_is_seen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: int, level: str
) -> None:
    require_uprobes()
    pytest.importorskip("capstone", reason="no disassembler")
    binary = built(tmp_path, seed, level)
    alone = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    functions = [word for number in range(FUNCTIONS) for word in ("-f", f"f{number}")]
    words: list[str | Path] = [
        "--return",
        "--format",
        "jsonl",
        "-x",
        binary,
        *functions,
        "--",
        binary,
    ]
    done = trace(capfd, "$retval", *words)
    assert done.program == alone.splitlines()  # to its end
    program = fetchc.open(str(binary))
    counted, total = counts(alone), 0
    for number in range(FUNCTIONS):
        name = f"f{number}"
        hits = [one["args"]["$retval"] for one in done.objects if one["function"] == name]
        own, by_calls = counted.get(number, []), len(counted.get(-1 - number, []))
        assert not Counter(own) - Counter(hits), name
        unseen = by_calls - (len(hits) - len(own))
        warned = "FC0609" in [one.code for one in program.probe(name, returns=True).warnings]
        assert 0 <= unseen <= (by_calls if warned else 0), name
        total += len(hits)
    assert total > 20


def counts(output: str) -> dict[int, list[int]]:
    """The values that each function returned; below 0 those of its calls that end in another."""
    found: dict[int, list[int]] = {}
    for line in output.splitlines():
        _, number, value, *rest = line.split()
        if number != "sum":
            found.setdefault(int(number), []).append(int(value))
        else:
            assert int(rest[1]) > 2  # exceptions that left f0
    return found


@pytest.mark.parametrize("seed", seeds())
def test_times_of_calls(tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: int) -> None:
    # Calls that an exception ends have no time, and give none to others.
    require_uprobes()
    pytest.importorskip("capstone", reason="no disassembler")
    binary = built(tmp_path, seed, "-O1")
    alone = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    words: list[str | Path] = [
        "--latency",
        "--format",
        "jsonl",
        "-x",
        binary,
        "-f",
        "f?",
        "--",
        binary,
    ]
    done = trace(capfd, "k", *words)
    assert done.program == alone.splitlines()  # to its end
    got = Counter(one["function"] for one in done.objects)
    counted = counts(alone)
    for number in range(FUNCTIONS):
        own, by_calls = len(counted.get(number, [])), len(counted.get(-1 - number, []))
        assert own <= got[f"f{number}"] <= own + by_calls


RUST = """\
#[inline(never)] fn risky(k: i64) -> i64 { if k % 3 == 0 { panic!("at {}", k) } k * 5 }
#[inline(never)] fn around(k: i64) -> i64 { risky(hidden(k)) + 1 }
fn hidden(k: i64) -> i64 { unsafe { std::ptr::read_volatile(&k) } }
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut caught = 0;
    for k in 0..9 {
        match std::panic::catch_unwind(|| around(hidden(k))) {
            Ok(v) => println!("EVENT {}", v),
            Err(_) => caught += 1,
        }
    }
    println!("EVENT caught {}", caught);
}
"""


@pytest.mark.parametrize("level", ["0", "2"])
@pytest.mark.parametrize("compiler", COMPILERS[:1])
def test_a_panic_that_is_caught(
    compiler: str, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    pytest.importorskip("capstone", reason="no disassembler")
    (tmp_path / "panics").mkdir()
    source = tmp_path / "panics/panics.rs"
    source.write_text(RUST)
    binary = compiled(compiler, source, tmp_path / "panicking", "-C", f"opt-level={level}")
    alone = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    words: list[str | Path] = [
        "--return",
        "--format",
        "jsonl",
        "-x",
        binary,
        "-f",
        "panics::around",
        "--",
        binary,
    ]
    done = trace(capfd, "it=%ax:s64", *words)
    assert done.program == alone.splitlines()  # to its end
    said = [int(line.split()[1]) for line in alone.splitlines() if "caught" not in line]
    assert [one["args"]["it"] for one in done.objects] == said == [6, 11, 21, 26, 36, 41]


def test_a_return_probe_would_end_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require_uprobes()
    binary = built(tmp_path, 1, "-O1")
    words: list[str | Path] = [
        "--return",
        "--unsafe-return",
        "-x",
        binary,
        "-f",
        "f?",
        "--",
        binary,
    ]
    alone = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    done = trace(capfd, *words)
    assert done.program != alone.splitlines()
    assert "FC0621" in done.errors


THREADS = """\
#include <cstdio>
#include <pthread.h>
#include <unistd.h>
struct Cleaned { const char *name; ~Cleaned() { printf("EVENT cleaned %s\\n", name); } };
__attribute__((noipa)) void deep(long how)
{ Cleaned it{"deep"}; if (how == 1) pthread_exit(0); if (how == 2) for (;;) pause(); }
__attribute__((noipa)) int outer(long how) { Cleaned it{"outer"}; deep(how); return how + 1; }
static void *run(void *how) { Cleaned it{"run"}; outer((long)how); return 0; }
int main() {
  pthread_t thread;
  for (long how = 0; how < 3; how++) {
    pthread_create(&thread, 0, run, (void *)how);
    if (how == 2) { usleep(100000); pthread_cancel(thread); }
    pthread_join(thread, 0);
  }
}
"""


def test_a_thread_that_ends_midway_cleans_up(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # pthread_exit and pthread_cancel unwind as well; past a return probe nothing is cleaned up.
    require_uprobes()
    require("g++")
    pytest.importorskip("capstone", reason="no disassembler")
    (tmp_path / "threads.cc").write_text(THREADS)
    command = ["g++", "-g", "-O1", "threads.cc", "-o", "threads", "-lpthread"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    binary = tmp_path / "threads"
    alone = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    words = ["--return", "-x", str(binary), "-f", "outer", "-f", "deep", "--", str(binary)]
    done = trace(capfd, *words)
    assert done.program == alone.splitlines()
    assert len(done.program) == 9
    assert trace(capfd, "--unsafe-return", *words).program != done.program
