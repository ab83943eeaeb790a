"""Members of virtual bases: a trace takes the distance from the object's table."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <cstdio>
struct Inner { int number; };
struct Root { short root[2]; };
struct Base : Root { int id; long extra; Inner inner; Inner *link; int row[3]; virtual ~Base() {} };
struct Left : virtual Base { int left; __attribute__((noinline)) int own(int n); };
struct Right : virtual Base { int right; };
struct Both : Left, Right { int both; };
struct Wide : Both { long more[9]; };
struct Far : virtual Both { int far; };
__attribute__((noinline)) int go(Left *l, Far *f)
{
  __asm__ volatile("" ::"r"(l), "r"(f) : "memory");
  return l->id + f->id;
}
__attribute__((noinline)) int ask(Left *l, Left &r)
{
  __asm__ volatile("" ::"r"(l), "r"(&r) : "memory");
  return l->id + r.id;
}
__attribute__((noinline)) int see(Right *r)
{
  __asm__ volatile("" ::"r"(r) : "memory");
  return r->id;
}
int Left::own(int n)
{
  __asm__ volatile("" ::"r"(this) : "memory");
  return n + id;
}
template <class T> void fill(T &t, int n)
{
  static Inner inner;
  inner.number = 10 * n;
  t.id = n; t.extra = n + 1; t.inner.number = n + 2; t.link = &inner;
  t.root[0] = n + 4; t.root[1] = n + 5;
  t.row[0] = 1; t.row[1] = n + 3; t.row[2] = 3;
}
int tell(Left *l, Far *f)
{
  std::printf("EVENT go {\"((Base *)l)->id\": %d, \"((Root *)l)->root[1]\": %d, "
              "\"(*(Base *)l).row[1]\": %d, "
              "\"static_cast<Base *>(l)->link->number\": %d, \"((Base &)*l).inner.number\": %d, "
              "\"((Base *)f)->id\": %d, \"((Left *)f)->left\": %d, "
              "\"static_cast<Root &>(*f).root[0]\": %d, "
              "\"((Root *)(Base *)l)->root[0]\": %d, \"f->id\": %d, \"f->Base::row[1]\": %d, "
              "\"f->root[1]\": %d, \"f->left\": %d, \"l->Base::Root::root[1]\": %d, "
              "\"l->Left::Base::id\": %d, \"f->Both::left\": %d, \"f->Both::Left::left\": %d, "
              "\"f->Both::Right::Base::extra\": %ld}\n",
              l->id, l->root[1], l->row[1], l->link->number, l->inner.number,
              f->id, f->left, f->root[0], l->root[0],
              f->id, f->row[1], f->root[1], f->left, l->Base::Root::root[1],
              l->Left::Base::id, f->Both::left, f->Both::Left::left, f->Both::Right::Base::extra);
  return go(l, f);
}
int show(Left *l)
{
  std::printf("EVENT ask {\"l->id\": %d, \"l->Base::extra\": %ld, \"l->inner.number\": %d, "
              "\"l->link->number\": %d, \"l->row[1]\": %d, \"l->left\": %d, \"r.id\": %d}\n",
              l->id, l->extra, l->inner.number, l->link->number, l->row[1], l->left, l->id);
  int got = ask(l, *l);
  std::printf("EVENT Left::own {\"id\": %d, \"Base::extra\": %ld, \"left\": %d, \"n\": 5, "
              "\"Left::Base::Root::root[1]\": %d}\n",
              l->id, l->extra, l->left, l->root[1]);
  return got + l->own(5);
}
int main()
{
  Left left; fill(left, 1); left.left = 3;
  Both both; fill(both, 4); both.left = 6; both.right = 7; both.both = 8;
  Wide wide; fill(wide, 14); wide.left = 16;
  int got = show(&left) + show(&both) + show(&wide);
  Far far; fill(far, 24); far.left = 26; far.far = 27;
  got += tell(&left, &far) + tell(&both, &far) + tell(&far, &far);
  std::printf("EVENT see {\"r->id\": %d}\n", both.id);
  return got + see(&both) == 0;
}
"""


@pytest.mark.parametrize("compiler", ["g++ -O1", "g++ -O0 -no-pie", "clang++ -O1"])
def test_values_are_what_the_program_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], compiler: str
) -> None:
    command, *options = compiler.split()
    require_uprobes()
    require(command)
    (tmp_path / "bases.cpp").write_text(SOURCE)
    binary = tmp_path / "bases"
    built = [command, "-g", "-w", *options, "bases.cpp", "-o", str(binary)]
    subprocess.run(built, cwd=tmp_path, check=True, timeout=60)
    run = subprocess.run([binary], capture_output=True, check=True, timeout=60, text=True)
    printed: dict[str, list[dict[str, int]]] = {}
    for line in run.stdout.splitlines():
        name, _, values = line.removeprefix("EVENT ").partition(" {")
        printed.setdefault(name, []).append(json.loads("{" + values))
    assert {name: len(calls) for name, calls in printed.items()} == {
        "ask": 3,
        "Left::own": 3,
        "go": 3,
        "see": 1,
    }
    for name, calls in printed.items():
        where: list[str | Path] = ["-x", binary, "-f", name, "--format", "jsonl", "--", binary]
        names = list(calls[0])
        for some in (names[:7], names[7:13], names[13:]) if name == "go" else (names,):
            done = trace(capfd, *some, *where)
            assert done.args == [{one: call[one] for one in some} for call in calls], done.errors
    where = ["-x", binary, "-f", "ask", "--format", "jsonl", "--", binary]
    assert len(trace(capfd, "l->left", "--filter", "l->id == 4", *where).args) == 1


def test_a_distance_that_no_table_has_is_a_fault(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    require("g++")
    library = '#include "bases.h"\nstruct Far : Left { long more[9]; };\n'
    library += "Left *far() { static Far f; f.id = 7; return &f; }\n"
    header = "struct Base { int id; virtual ~Base() {} };\n"
    header += "struct Left : virtual Base { int left; };\nLeft *far();\n"
    main = '#include "bases.h"\n__attribute__((noinline)) int ask(Left *l) { return l->id; }\n'
    main += "int main() { Left own; own.id = 3; return ask(&own) + ask(far()) == 0; }\n"
    for name, text in (("bases.h", header), ("far.cpp", library), ("main.cpp", main)):
        (tmp_path / name).write_text(text)
    shared = ["g++", "-g", "-shared", "-fPIC", "far.cpp", "-o", "libfar.so"]
    subprocess.run(shared, cwd=tmp_path, check=True, timeout=60)
    program = ["g++", "-g", "-O1", "main.cpp", "-o", "main", "-L.", "-lfar", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(program, cwd=tmp_path, check=True, timeout=60)
    binary = tmp_path / "main"
    where: list[str | Path] = ["-x", binary, "-f", "ask", "--format", "jsonl", "--", binary]
    assert [one["l->id"] for one in trace(capfd, "l->id", *where).args] == [3, None]


def test_a_lone_fetch_arg_is_refused_with_each_of_the_places(tmp_path: Path) -> None:
    require("g++")
    (tmp_path / "bases.cpp").write_text(SOURCE)
    built = ["g++", "-g", "-w", "-O1", "bases.cpp", "-o", "bases"]
    subprocess.run(built, cwd=tmp_path, check=True, timeout=60)
    probe = fetchc.open(str(tmp_path / "bases")).probe("ask")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("l->id")
    (printed,) = caught.value.diagnostics
    assert printed.code == "FC0312"
    assert "where `-24(+0(%di)):s64` is 16, it is `+28(%di):s32`" in printed.notes
