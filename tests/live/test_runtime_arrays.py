"""Variable-length arrays as a whole: as many elements as the program made, and what they hold."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import BPF, trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <stdio.h>
struct pair { int x; short y; };
__attribute__((noinline)) int use(int n)
{
  int a[n]; double d[n + 1]; struct pair p[n]; long grid[n][3]; const char *names[n];
  printf("EVENT [");
  for (int i = 0; i < n; i++) {
    a[i] = i * i - 3; d[i] = i / 4.0;
    p[i] = (struct pair){i, -i}; names[i] = i % 2 ? "odd" : "even";
    for (int j = 0; j < 3; j++) grid[i][j] = 10 * i + j;
    printf("%s%d", i ? ", " : "", a[i]);
  }
  d[n] = 1e9;
  printf("]\n"); /* here */
  return a[n / 2] + (int)d[n] + p[0].x + (int)grid[n - 1][2] + *names[n - 1];
}
int main(void) { return use(1) + use(5) + use(300) == 0; }
"""
LINE = 1 + SOURCE[: SOURCE.index("/* here */")].count("\n")

BUILDS = [("gcc", "-O0"), ("clang", "-O0"), ("clang", "-O1")]
ALL = ("a", "d", "p", "grid", "names")


def build(folder: Path, compiler: str, level: str) -> Path:
    require(compiler)
    (folder / "arrays.c").write_text(SOURCE)
    flags = [compiler, "-g", level, "-w", "arrays.c", "-o", "arrays"]
    subprocess.run(flags, cwd=folder, check=True, timeout=60)
    return folder / "arrays"


@pytest.mark.parametrize(
    ("compiler", "level"), [("gcc", "-O0"), ("clang", "-O0"), ("clang", "-O1")]
)
def test_as_many_elements_as_there_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], compiler: str, level: str
) -> None:
    binary = build(tmp_path, compiler, level)
    require_uprobes()
    point = ["-f", "use", "--at", f"arrays.c:{LINE}", "--format", "jsonl", "-x", str(binary)]
    names = ALL if level == "-O0" else ("a",)  # the optimiser keeps no number of the others
    traced = trace(capfd, *names, *point, "--", binary)
    assert (traced.status, traced.errors) == (0, "")
    printed = [json.loads(line.removeprefix("EVENT ")) for line in traced.program]
    assert [len(one) for one in printed] == [1, 5, 300]
    calls = traced.args
    for shown, expected in zip(calls, printed, strict=True):
        n = len(expected)
        whole = {
            "a": expected,
            "d": [i / 4.0 for i in range(n)] + [1e9],
            "p": [{"x": i, "y": -i} for i in range(n)],
            "grid": [[10 * i + j for j in range(3)] for i in range(n)],
            "names": ["odd" if i % 2 else "even" for i in range(n)],
        }
        for name in names:
            assert shown[name]
            assert shown[name] == whole[name][: n + 1 if n < 6 else len(shown[name])]
        # An end that gcc computes has no copy of its length.
        assert len(shown["a"]) == (n if BPF and compiler == "clang" else min(n, 64))


def test_a_lone_fetch_arg_has_a_note_of_its_members(tmp_path: Path) -> None:
    probe = fetchc.open(str(build(tmp_path, "clang", "-O0"))).probe("use", at=f"arrays.c:{LINE}")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("a").fetcharg  # noqa: B018
    (refusal,) = caught.value.diagnostics
    assert refusal.code == "FC0312"
    assert any(note.startswith("its end is") for note in refusal.notes)


ROWS = r"""
#include <stdio.h>
__attribute__((noinline)) int sum(int n, int m,
    int (*rows)[m],
    short (*more)[n + 1])
{
  int r = rows[1][m - 1]; /* here */
  r += more[0][1];
  return r;
}
int main(void) {
  int rows[2][5] = {{3, 1, 4, 1, 5}};
  short more[1][3] = {{2, 7, 1}};
  return sum(2, 5, rows, more) != 12;
}
"""


def test_rows_of_parameters_once_their_length_is_computed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # gcc -O0 has slots for the lengths, which statements between prologue and body fill.
    require("gcc")
    (tmp_path / "rows.c").write_text(ROWS)
    build_it = ["gcc", "-g", "-O0", "rows.c", "-o", "rows"]
    subprocess.run(build_it, cwd=tmp_path, check=True, timeout=60)
    require_uprobes()
    binary = tmp_path / "rows"
    line = 1 + ROWS[: ROWS.index("/* here */")].count("\n")
    options = ["--format", "jsonl", "-f", "sum", "-x", str(binary)]
    found = trace(capfd, "rows[0]", "*more", *options, "--at", f"rows.c:{line}", "--", binary)
    assert found.args == [{"rows[0]": [3, 1, 4, 1, 5], "*more": [2, 7, 1]}]
    for row in ("rows[0]", "*more"):
        refused = trace(capfd, row, *options, "--at", "body", "--", binary)
        assert (refused.status, "FC0311" in refused.errors) == (1, True)


TEXTS = r"""
#include <stdio.h>
#include <string.h>
volatile int sink;
__attribute__((noinline)) void use(int n, int m)
{
  char v[n];
  char w[m];
  __asm__ volatile("" : : "r"(v), "r"(w) : "memory");
  memset(v, 'A', n); memset(w, 'B', m);
  char *behind = v + n;
  behind[0] = 'x'; behind[1] = 0; /* what stands behind it, in the array's own rounded room */
  sink += v[0] + w[0]; /* full */
  v[1] = 0;
  sink += v[0] + w[m - 1]; /* ended */
}
int main(int c, char **v) { use(5 * c, 9 * c); return 0; }
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_text_is_as_long_as_the_program_made_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], compiler: str
) -> None:
    require(compiler)
    (tmp_path / "texts.c").write_text(TEXTS)
    # Without a canary, and so that nothing else ends the text.
    flags = [compiler, "-g", "-O0", "-w", "-fno-stack-protector", "texts.c", "-o", "texts"]
    subprocess.run(flags, cwd=tmp_path, check=True, timeout=60)
    require_uprobes()
    for mark, wanted in (("full", "AAAAA"), ("ended", "A")):
        line = 1 + TEXTS[: TEXTS.index(f"/* {mark} */")].count("\n")
        point = ["--at", f"texts.c:{line}", "--format", "jsonl", "-x", str(tmp_path / "texts")]
        traced = trace(capfd, "v", "w", *point, "--", tmp_path / "texts")
        assert (traced.status, traced.errors) == (0, "")
        assert traced.args == [{"v": wanted, "w": "B" * 9}]


@pytest.mark.parametrize("level", ["-Og", "-O1", "-O2", "-O3"])
@pytest.mark.parametrize("compiler", ["gcc", "g++", "clang"])
def test_a_text_of_unknown_length_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], compiler: str, level: str
) -> None:
    # What optimised code says of the lengths differs; what it does not say is not guessed.
    require(compiler)
    (tmp_path / "texts.cc").write_text(TEXTS)
    flags = [compiler, "-g", level, "-w", "-fno-stack-protector", "texts.cc", "-o", "texts"]
    subprocess.run(flags, cwd=tmp_path, check=True, timeout=60)
    require_uprobes()
    line = 1 + TEXTS[: TEXTS.index("/* full */")].count("\n")
    words = ["--at", f"texts.cc:{line}", "--format", "jsonl", "-x", str(tmp_path / "texts")]
    for name, text in {"v": "AAAAA", "w": "B" * 9}.items():
        traced = trace(capfd, name, *words, "--", tmp_path / "texts")
        if traced.status == 0:
            assert traced.args == [{name: text}]
        elif "FC0311" in traced.errors:  # by a pointer it is to be had, up to a NUL
            pointed = f"(char *){name}"
            (event,) = trace(capfd, pointed, *words, "--", tmp_path / "texts").args
            assert event[pointed].startswith(text)
        else:
            assert "FC0401" in traced.errors or "FC0405" in traced.errors


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_texts_at_the_end_of_structures_and_of_other_files_go_on_to_their_nul(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], compiler: str
) -> None:
    require(compiler)
    (tmp_path / "ends.c").write_text(ENDS)
    (tmp_path / "other.c").write_text('char other[] = "elsewhere";')
    flags = [compiler, "-g", "-O1", "-w", "ends.c", "other.c", "-o", "ends"]
    subprocess.run(flags, cwd=tmp_path, check=True, timeout=60)
    require_uprobes()
    words = ["-f", "use", "-x", str(tmp_path / "ends"), "--format", "jsonl"]
    found = trace(capfd, "e->name", "other", *words, "--", tmp_path / "ends")
    assert found.args == [{"e->name": "an entry", "other": "elsewhere"}]


ENDS = """
#include <string.h>
#include <stdlib.h>
struct entry { int n; char name[]; };
extern char other[];
__attribute__((noinline)) int use(struct entry *e) { return e->name[0] + other[e->n]; }
int main(void)
{
  struct entry *e = malloc(32);
  e->n = 3;
  strcpy(e->name, "an entry");
  return use(e) == 0;
}
"""
LEFT_OUT = """
volatile long sink;
struct V { int v = 5; };
typedef float Decimal __attribute__((mode(DD)));
struct S : virtual V { Decimal money; int own = 2; };
struct Tag {};  // what has no value is not left out
struct P : Tag { Decimal money; int own; };
struct Q { int n; P inner; Tag tags[2]; };
__attribute__((noinline)) void use(S *s, Q *q) { sink += s->own + s->v + q->inner.own; }
int main() { S s; Q q = {3, {}, {}}; q.inner.own = 7; use(&s, &q); }
"""


def test_what_a_whole_structure_lacks_is_reported_beside_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require("g++")
    (tmp_path / "left.cc").write_text(LEFT_OUT)
    subprocess.run(["g++", "-g", "-O0", "left.cc", "-o", "left"], cwd=tmp_path, check=True)
    require_uprobes()
    words = ["*s", "*q", "-x", str(tmp_path / "left"), "-f", "use", "--at", "body"]
    traced = trace(capfd, *words, "--format", "jsonl", "--", tmp_path / "left")
    (event,) = traced.objects
    assert event["left_out"] == {"*s": ["V", "money"], "*q.inner": ["money"]}
    assert (event["args"]["*s"]["own"], event["args"]["*q"]) == (2, {"n": 3, "inner": {"own": 7}})
    shown = trace(capfd, *words, "--", tmp_path / "left")
    assert "*q={n=3, inner={own=7, …}}" in shown.lines[0]
