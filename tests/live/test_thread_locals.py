"""Thread-local variables, of a program and of its library: each thread's own, or a refusal."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.built import built
from tests.live.test_bpf_c_programs import loaded
from tests.live.traced import trace
from tests.support.libbpf_programs import compiled
from tests.support.toolchains import require
from tests.support.tracefs import require_bpf

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="only of x86-64"),
]

PROGRAM = r"""
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
struct item { int number; char name[16]; struct item *next; };
__thread long value = 1;
static __thread struct item own;
static __thread volatile long table[70];
static char block[4096] __attribute__((aligned(64)));
void count(long n);
__attribute__((noipa)) void hit(long n) { __asm__ volatile("" :: "r"(n) : "memory"); }
static void told(long n) {
  value = n; table[n % 70] = n; own.number = n % 7; own.next = &own;
  snprintf(own.name, 16, "n%ld", n);
  hit(n); count(n);
}
static void *run(void *start) { for (long n = 0; n < 3; n++) told((long)start + n); return 0; }
/* By arch_prctl(2): a thread pointer that the program itself chooses. */
#define SET(pointer) syscall(SYS_arch_prctl, ARCH_SET_FS, pointer)
__attribute__((noipa, optimize("no-stack-protector"))) static void chosen(char *was) {
  char *pointer = block + 1024;
  memcpy(block, was - 1024, 2048); *(void **)pointer = pointer;
  SET(pointer); value = 900; hit(900); SET(was); value = 901; hit(901);
}
int main(void) {
  pthread_t threads[4];
  for (long n = 0; n < 4; n++) pthread_create(&threads[n], 0, run, (void *)(n * 100));
  for (int n = 0; n < 4; n++) pthread_join(threads[n], 0);
  if (!fork()) { told(500); _exit(0); }
  wait(0);
  if (!vfork()) { value = 600; hit(600); _exit(0); }
  wait(0);
  chosen(__builtin_thread_pointer());
}
"""
LIBRARY = """
static __thread volatile long last = 7, all = 0;
__attribute__((noipa)) void counted(long n) { __asm__ volatile("" :: "r"(n) : "memory"); }
void count(long n) { last = n; all += 1; counted(n); }
"""
RUST = r"""
use std::cell::{Cell, RefCell};
thread_local! {
    static FIRST: Cell<u64> = const { Cell::new(1) };
    static NAME: RefCell<String> = RefCell::new(String::from("none"));
}
#[inline(never)]
pub fn work(n: u64) -> u64 { println!("EVENT {}", n); n }
fn main() {
    let run = |n: u64| move || {
        FIRST.with(|one| one.set(n * 10)); NAME.with(|one| *one.borrow_mut() = format!("w{}", n));
        work(n)
    };
    let threads: Vec<_> = (1..4).map(|n| std::thread::spawn(run(n))).collect();
    for one in threads { one.join().unwrap(); }
    println!("EVENT {}", FIRST.with(|one| one.get()) + work(0));
}
"""
THREADS = [start + n for start in (0, 100, 200, 300) for n in range(3)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_bpf()
    require("gcc")
    folder = tmp_path_factory.mktemp("tls")
    (folder / "program.c").write_text(PROGRAM)
    (folder / "library.c").write_text(LIBRARY)
    common = ["gcc", "-g", "-O1", "-w", "-pthread"]
    library = (
        "-shared -fPIC -ftls-model=initial-exec -Wl,-soname,library.so -o library.so library.c"
    )
    own = "-Wl,-rpath,$ORIGIN -o program program.c ./library.so"
    for words in (library, own):
        subprocess.run([*common, *words.split()], cwd=folder, check=True, timeout=60)
    return folder / "program"


def test_each_thread_has_its_own(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["n", "value", "own", "own.next->name", "table[n % 70]"]
    asked += ["--format", "jsonl", "-f", "hit"]
    done = trace(capfd, *asked, "-x", program, "--", program)
    assert done.status == 0, done.errors
    hits = [one["args"] for one in done.objects]
    assert sorted(one["n"] for one in hits) == [*THREADS, 500, 600, 900, 901]
    assert [one["value"] for one in hits] == [one["n"] for one in hits]
    for one in hits:
        if one["n"] <= 500:
            assert (one["own"]["number"], one["own"]["name"]) == (one["n"] % 7, f"n{one['n']}")
            assert one["own.next->name"] == f"n{one['n']}"
            assert one["table[n % 70]"] == one["n"]


def test_a_librarys_own_in_filters_and_as_keys(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked: list[str | Path] = [
        "-x",
        program.parent / "library.so",
        "-f",
        "counted",
        "--format",
        "jsonl",
    ]
    done = trace(capfd, "n", "last", *asked, "--filter", "last > 100 && all != 2", "--", program)
    assert done.status == 0, done.errors
    hits = sorted([(one["args"]["n"], one["args"]["last"]) for one in done.objects])
    assert hits == [(n, n) for n in (102, 200, 202, 300, 302, 500)]
    rows = trace(capfd, "--count-by", "all", "--sum", "last", *asked, "--", program).objects
    found = {row["key"]: (row["count"], row["total"]) for row in rows}
    assert found == {1: (5, 1100), 2: (4, 604), 3: (4, 608)}


def test_what_has_no_thread_refuses_them(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked: list[str | Path] = ["value", "--engine", "tracefs", "-x", program, "-f", "hit"]
    refused = trace(capfd, *asked, "--", program)
    assert refused.status != 0
    assert "only an eBPF program reads thread-local variables" in refused.errors
    refused = trace(capfd, "--watch", "value", "-x", program, "-f", "hit", "--", program)
    assert "is thread-local, and a watchpoint covers one address" in refused.errors


@pytest.mark.long
def test_those_of_rust_have_the_names_of_their_macro(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_bpf()
    program = built("rust", RUST, "locals", tmp_path)
    asked = ["FIRST", "NAME", "--format", "jsonl", "-f", "locals::work"]
    done = trace(capfd, *asked, "-x", program[-1], "--", *program)
    assert done.status == 0, done.errors
    hits = {one["args"]["FIRST"]: str(one["args"]["NAME"]) for one in done.objects}
    assert sorted(hits) == [1, 10, 20, 30]
    # How the library has it, and whether it was used, is another structure by its version.
    assert [first for first in sorted(hits) if f"'w{first // 10}'" in hits[first]] == [10, 20, 30]


@pytest.mark.long
@pytest.mark.parametrize(("name", "function"), [("program", "hit"), ("library.so", "counted")])
def test_a_program_in_c_reads_them(name: str, function: str, program: Path, tmp_path: Path) -> None:
    asked = ("n", "value", "slot=table[n % 70]") if function == "hit" else ("n", "last")
    probe = fetchc.open(str(program.parent / name)).probe(function)
    text = probe.written("bpf-c", [probe.compile(one, computes=True) for one in asked]).text
    compiled(tmp_path, text)
    hits = loaded(tmp_path, program, text, asked)
    numbers = sorted(int(one["n"] or "") for one in hits)
    assert numbers == [*THREADS, 500, *([600, 900, 901] if function == "hit" else [])]
    assert [one["value" if function == "hit" else "last"] for one in hits] == [
        one["n"] for one in hits
    ]
    assert [one.get("slot", one["n"]) for one in hits if int(one["n"] or "") <= 500] == [
        one["n"] for one in hits if int(one["n"] or "") <= 500
    ]
    wrong = text.replace("own != value", "false").replace(
        "thread_storage() -", "8 + thread_storage() -"
    )
    wrong = wrong.replace("distance(rip", "8 + distance(rip")
    compiled(tmp_path, wrong)
    assert loaded(tmp_path, program, wrong, asked) != hits


def test_a_walk_in_c_begins_at_one(program: Path) -> None:
    probe = fetchc.open(str(program)).probe("hit")
    text = probe.written("bpf-c", [probe.compile("list(table, 2)", computes=True)]).text
    assert re.search(r"^    unread \|= read\(&\w+, 8, thread_storage\(\)\);$", text, re.M)
