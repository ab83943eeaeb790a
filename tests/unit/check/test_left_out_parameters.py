"""Parameters at the entry where the debug information leaves one out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
struct kept { int n; kept(); kept(const kept &); ~kept(); };
struct big { long a, b, c; };
int f(int a, kept unused, int b, big c) { return a + b + c.a; }
int g(int a, kept used, int b) { return a + used.n + b; }
kept::kept() : n(1) {} kept::kept(const kept &) : n(2) {} kept::~kept() {}
int main() { return f(1, kept(), 3, big()) + g(1, kept(), 3); }
"""


def test_what_stands_behind_a_parameter_that_clang_leaves_out(tmp_path: Path) -> None:
    # clang -O0 leaves `unused` out of f: b would be taken for the second argument.
    require("clang++")
    (tmp_path / "t.cc").write_text(SOURCE)
    subprocess.run(
        ["clang++", "-g", "-O0", "t.cc", "-o", "t"], cwd=tmp_path, check=True, timeout=60
    )
    program = fetchc.open(str(tmp_path / "t"))
    described = {one.name for one in program.probe("f", kernel="6.1").variables()}
    if "unused" in described:
        assert program.probe("f", kernel="6.1").compile("b").fetcharg == "%dx:s32"
    else:
        with pytest.raises(fetchc.CompileError) as refused:
            program.probe("f", kernel="6.1").compile("b")
        assert refused.value.diagnostics[0].code == "FC0407"
    assert program.probe("g", kernel="6.1").compile("b").fetcharg == "%dx:s32"


UNREAD = """
struct kept { int n; kept(); kept(const kept &); ~kept(); };
#define KEEP __attribute__((noinline))
int passed_on(int a, const kept &k);
KEEP int unread(kept k, int a) { return a; }
KEEP int overwritten(kept k, int a) { return a % 10; }
KEEP int behind_jump(kept k, int a) { if (a) return 0; return k.n; }
KEEP int tail(kept k, int a) { return passed_on(a, k); }
KEEP int through_call(kept k, int a) { return passed_on(a, k) + 1; }
KEEP int changed(kept k, int a) { k.n = a; return a; }
int main(int argc, char **argv) {
    return unread(kept(), argc) + overwritten(kept(), argc) + behind_jump(kept(), argc)
        + tail(kept(), argc) + through_call(kept(), argc) + changed(kept(), argc);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_objects_that_gcc_need_not_fill(level: str, tmp_path: Path) -> None:
    # g++ 12 -O2 with `kept` inline: main of a like program leaves the pointer of a shared_ptr
    # unwritten, and the trace had shown null.
    require("g++")
    (tmp_path / "t.cc").write_text(UNREAD)
    command = ["g++", "-g", level, "-Wl,--unresolved-symbols=ignore-all", "t.cc", "-o", "t"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "t"))
    functions = ["unread", "overwritten", "behind_jump", "tail", "through_call", "changed"]
    unfilled = set() if level == "-O0" else {"unread", "overwritten"}
    for name in functions:
        probe = program.probe(name, kernel="6.1")
        if name in unfilled:
            with pytest.raises(fetchc.CompileError, match="FC0407"):
                probe.compile("k.n")
        else:
            assert probe.compile("k.n").fetcharg == "+0(%di):s32"


UNUSED = """
#include <stdio.h>
__attribute__((noinline)) int f(int used, int unused) { return printf("%d", used); }
int main(int argc, char **argv) { return f(argc, 7); }
"""


@pytest.mark.parametrize(("compiler", "known"), [("gcc", True), ("clang", False)])
def test_what_callers_of_the_same_file_may_not_pass(
    compiler: str, known: bool, tmp_path: Path
) -> None:
    # clang -O2: main leaves in %si what it had there. gcc fills it for what others can call.
    require(compiler)
    (tmp_path / "t.c").write_text(UNUSED)
    subprocess.run([compiler, "-g", "-O2", "t.c", "-o", "t"], cwd=tmp_path, check=True, timeout=60)
    probe = fetchc.open(str(tmp_path / "t")).probe("f", kernel="6.1")
    assert probe.compile("used").fetcharg == "%di:s32"
    if known:
        assert probe.compile("unused").fetcharg == "%si:s32"
        return
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("unused")
    assert refused.value.diagnostics[0].code == "FC0401"


HALVES = """
struct mixed { double r; int k; };
struct words { long a, b; };
struct ints { int a, b, c; };
volatile double floated; volatile long sink;
#define KEPT __attribute__((noinline)) void
KEPT only_r(struct mixed p) { floated += p.r; }
KEPT only_k(struct mixed p) { sink += p.k; }
KEPT only_a(struct words p) { sink += p.a; }
KEPT only_b(struct words p) { sink += p.b; }
KEPT none(struct words p) { sink++; }
KEPT second(struct ints p) { sink += p.b; }
KEPT low(__int128 v) { sink += (long)v; }
KEPT high(__int128 v) { sink += (long)(v >> 64); }
KEPT both(struct words p) { sink += p.a + p.b; }
KEPT constant(int x) { x = 5; sink = x; sink += x + 1; }
KEPT assigned(int x, int *q) { x = *q; sink = x; sink += x + 1; }
KEPT half(struct words p, int *q) { p.a = *q; sink = p.a; sink += p.b; }
int main(int n, char **v) {
  struct mixed m = { 1.5, n }; struct words w = { n, n + 1 };
  __int128 wide = ((__int128)n << 64) + 5;
  only_r(m); only_k(m); only_a(w); only_b(w); none(w); low(wide); high(wide); both(w);
  constant(n); assigned(n, &n); half(w, &n);
  second((struct ints){ n, n + 1, n + 2 });
  return 0;
}
"""
# What the code uses, and so what its callers pass: the rest is what the registers held before.
PASSED = {
    "only_r": {"p.k": "FC0401", "p.r": "FC0402"},
    "only_k": {"p.k": "%di:s32", "p.r": "FC0402"},
    "only_a": {"p.a": "%di:s64", "p.b": "FC0401"},
    "only_b": {"p.a": "FC0401", "p.b": "%si:s64"},
    "none": {"p.a": "FC0401", "p.b": "FC0401"},
    "second": {"p.a": "%di:s32", "p.b": "%di:b32@32/64", "p.c": "FC0401"},
    "low": {"v.low": "%di:u64", "v.high": "FC0401"},
    "high": {"v.low": "FC0401", "v.high": "%si:s64"},
    "both": {"p.a": "%di:s64", "p.b": "%si:s64"},
    "constant": {"x": "FC0401"},
    "assigned": {"x": "FC0401", "*q": "+0(%si):s32"},
    "half": {"p.a": "FC0401", "p.b": "%si:s64", "*q": "+0(%dx):s32"},
}

ON_STACK = """
struct big { long a, b, c; int d; };
struct pair { long a, b; };
volatile long sink;
#define KEPT __attribute__((noinline)) void
KEPT unused(int n, struct big s) { sink += n; }
KEPT used(int n, struct big s) { sink += n + s.c; }
KEPT addressed(int n, struct big s) { void seen(struct big *); seen(&s); sink += n; }
KEPT late(int a, int b, int c, int d, int e, struct pair s) { sink += a + e; }
static KEPT local(int n, struct big s) { sink += n; }
KEPT seen(struct big *s) { sink += s->d; }
int main(int n, char **v) {
  struct big s = { n, n + 1, n + 2, n + 3 };
  unused(n, s); used(n, s); addressed(n, s); local(n, s);
  late(n, n, n, n, n, (struct pair){ n, n + 1 });
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_a_structure_on_the_stack_is_filled_where_the_function_reads_it(
    level: str, tmp_path: Path
) -> None:
    # clang -O2: the stores of a structure that the function does not read are dead.
    require("clang")
    (tmp_path / "t.c").write_text(ON_STACK)
    subprocess.run(["clang", "-g", level, "t.c", "-o", "t"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "t"))
    assert _answer(program, "used", "s.a") == "+8(%sp):s64"
    assert _answer(program, "addressed", "s.d") == "+32(%sp):s32"
    for name in ("unused", "late", "local"):
        expected = "+8(%sp):s64" if level == "-O0" else "FC0401"
        assert _answer(program, name, "s.a") == expected


@pytest.mark.parametrize("level", ["-O1", "-O2", "-Os"])
def test_of_a_structure_only_what_the_function_uses_is_passed(level: str, tmp_path: Path) -> None:
    require("clang")
    (tmp_path / "t.c").write_text(HALVES)
    subprocess.run(["clang", "-g", level, "t.c", "-o", "t"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "t"))
    assert {
        name: {text: _answer(program, name, text) for text in asked}
        for name, asked in PASSED.items()
    } == PASSED


@pytest.mark.parametrize(("compiler", "level"), [("clang", "-O0"), ("gcc", "-O0"), ("gcc", "-O2")])
def test_other_compilers_pass_all_of_it(compiler: str, level: str, tmp_path: Path) -> None:
    require(compiler)
    (tmp_path / "t.c").write_text(HALVES)
    subprocess.run([compiler, "-g", level, "t.c", "-o", "t"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "t"))
    for name, text in (("only_r", "p.k"), ("only_a", "p.b"), ("none", "p.a"), ("low", "v.high")):
        assert _answer(program, name, text).startswith("%"), (name, text)


def _answer(program: fetchc.Program, function: str, text: str) -> str:
    try:
        return program.probe(function, kernel="6.1").compile(text).fetcharg
    except fetchc.CompileError as error:
        return error.diagnostics[0].code
