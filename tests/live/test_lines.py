"""Lines, bodies and inlined copies under the running kernel, against what was printed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.conformance.go_programs import build_go
from tests.live.traced import trace
from tests.support.toolchains import GO_VERSIONS, go_build, require
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

SOURCE = """\
#include <stdio.h>
#define INLINED static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
struct pt { int x, y; };
INLINED int scale(struct pt *p, int by, int n)
{
  int made = p->x * by;
  __asm__ volatile("" : "+r"(made), "+r"(p), "+r"(by), "+r"(n));
  return made + n;
}
NOINLINE int first(struct pt *q, int m)
{
  printf("scale %d %d %d\\n", q->x, 3, m);
  return scale(q, 3, m) + 1;
}
NOINLINE int second(struct pt *q)
{
  printf("scale %d %d %d\\n", q->x, q->y, 77);
  return scale(q, q->y, 77);
}
NOINLINE int walk(struct pt *q, int m)
{
  int sum = 5;
  for (int i = 0; i < m; i++) {
    printf("line %d %d\\n", i, sum);
    sum += q[i].x;
    __asm__ volatile("" : "+r"(sum), "+r"(i));
  }
  return sum;
}
NOINLINE int body(struct pt by_value, long wide, char small)
{
  printf("body %d %d %ld %d\\n", by_value.x, by_value.y, wide, small);
  __asm__ volatile("" : : "m"(by_value), "r"(wide), "r"((int)small));
  return by_value.x;
}
int main(void)
{
  struct pt a[] = {{1, -2}, {30, 4}, {-500, 6}};
  int sum = 0;
  for (int n = 0; n < 3; n++)
    sum += first(a + n, n) + second(a + n) + body(a[n], 1l << 40 << n, (char)('a' + n));
  return walk(a, 3) + sum == 0;
}
"""
LINE = 1 + SOURCE[: SOURCE.index("sum += q[i].x")].count("\n")
BUILDS = [(compiler, level) for compiler in ("gcc", "clang") for level in ("-O0", "-O2")]


def build(folder: Path, compiler: str, level: str) -> Path:
    require(compiler)
    (folder / "lines.c").write_text(SOURCE)
    command = [compiler, "-g", level, "lines.c", "-o", "lines"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "lines"


def traced(
    binary: Path, expressions: list[str], **point: str | None
) -> tuple[list[tuple[int, ...]], list[list[int]], int]:
    """The values of each event, what the program printed, and the number of addresses."""
    require_uprobes()
    probe = fetchc.open(str(binary)).probe(point.get("function"), at=point.get("at"))
    arguments = [probe.compile(f"v{n}={text}") for n, text in enumerate(expressions)]
    with Session() as session:
        lines = probe.definition(arguments, session.group, "met").split("\n")
        for line in lines:
            session.add(line)
        printed = session.run([str(binary)])
        hits = session.hits("met")
    word = point["word"]
    expected = [line.split() for line in printed.splitlines()]
    return (
        [tuple(int(hit.values[f"v{n}"], 0) for n in range(len(expressions))) for hit in hits],
        [[int(one) for one in words[1:]] for words in expected if words[0] == word],
        len(lines),
    )


@pytest.mark.parametrize(("compiler", "level"), BUILDS)
def test_every_pass_through_a_line(tmp_path: Path, compiler: str, level: str) -> None:
    binary = build(tmp_path, compiler, level)
    met, expected, _ = traced(binary, ["i", "sum"], at=f"lines.c:{LINE}", word="line")
    assert sorted(set(met)) == sorted(map(tuple, expected))


@pytest.mark.parametrize(("compiler", "level"), [one for one in BUILDS if one != ("clang", "-O0")])
def test_every_inlined_call(tmp_path: Path, compiler: str, level: str) -> None:
    binary = build(tmp_path, compiler, level)
    expressions = ["p->x", "by", "n"]
    met, expected, places = traced(binary, expressions, function="scale", word="scale")
    assert places == 2
    assert sorted(met) == sorted(map(tuple, expected))
    assert len(met) == 6


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_behind_the_prologue(tmp_path: Path, compiler: str) -> None:
    binary = build(tmp_path, compiler, "-O0")
    expressions = ["by_value.x", "by_value.y", "wide", "small:u8"]
    met, expected, places = traced(binary, expressions, function="body", at="%body", word="body")
    assert (places, sorted(met)) == (1, sorted(map(tuple, expected)))


def test_another_instruction_gives_other_values(tmp_path: Path) -> None:
    """At the first instruction the slots that hold after the prologue are not yet stored."""
    binary = build(tmp_path, "gcc", "-O0")
    program = fetchc.open(str(binary))
    entry, behind = program.probe("body"), program.probe("body", at="%body")
    wrong = behind.compile("v=wide").fetcharg
    assert wrong != entry.compile("v=wide").fetcharg
    require_uprobes()
    with Session() as session:
        line = entry.definition([entry.compile("v=wide")], session.group, "met")
        session.add(line.replace(entry.compile("v=wide").fetcharg, wrong))
        printed = session.run([str(binary)])
        hits = session.hits("met")
    expected = [int(line.split()[3]) for line in printed.splitlines() if line.startswith("body")]
    assert [int(hit.values["v"]) for hit in hits] != expected


STALE = {
    "go": """package main

var sink int

//go:noinline
func mark() { sink++ }

//go:noinline
func f(v1, v2 int) {
	sink += v1 + v2
	v2 = 92
	mark() // here
	sink += v1 + v2
}

func main() { f(1, 2) }
""",
    "c": """
volatile long sink, base = 92;
struct big { long one, two, three; };
__attribute__((noinline)) void mark(void) { sink++; }
__attribute__((noinline)) void f(long v1, struct big b) {
  sink += b.one + v1;
  b.one = base; sink += b.one;
  mark(); // here
  sink += v1;
}
int main(void) { struct big b = {2, 3, 4}; f(1, b); return 0; }
""",
    "gcc": """
volatile long sink, base = 92;
struct pair { long one, two; };
#ifdef ON_STACK
#define OTHERS long c, long d, long e, long g,
#define NUMBERS 1, 1, 1, 1,
#else
#define OTHERS
#define NUMBERS
#endif
__attribute__((noinline)) void mark(void) { sink++; }
__attribute__((noinline)) void f(long v1, OTHERS struct pair b) {
  b.one = base; sink += b.one;
  mark(); // here
  sink += b.two + v1;
}
int main(void) { struct pair b = {2, 3}; f(1, NUMBERS b); return 0; }
""",
}


@pytest.mark.parametrize(
    "kind",
    ["clang -O2", "clang -O0", "gcc -O1", "gcc -O0", "gcc -O2 -DON_STACK", "go -N", *GO_VERSIONS],
)
def test_what_optimized_code_may_have_assigned_is_said(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    language = next((one for one in ("clang", "gcc") if one in kind), "go")
    go = language == "go"
    source = STALE["c" if language == "clang" else language]
    if go:
        version = GO_VERSIONS[-1] if "-N" in kind else kind
        require(f"go{version}")
        options = ("-gcflags=all=-N -l",) if "-N" in kind else ()
        binary = build_go(source, go_build(version, tmp_path, *options), tmp_path)
    else:
        require(language)
        (tmp_path / "stale.c").write_text(source)
        binary = tmp_path / "stale"
        words = [*kind.split(), "-g", "-o", str(binary), str(tmp_path / "stale.c")]
        subprocess.run(words, check=True, timeout=60)
    lines = source.splitlines()
    line = 1 + [text.endswith("// here") for text in lines].index(True)
    name, text = ("main.f", "v2") if go else ("f", "b.one")
    probe = fetchc.open(str(binary)).probe(name, at=f":{line}")
    argument = probe.compile(text)
    warned = [one.code for one in argument.warnings]
    asked = f"{text} @ {name}:{line}"
    (event,) = trace(capfd, asked, "-x", binary, "--format", "jsonl", "--", binary).objects
    assert event["args"][text] == (2 if warned else 92)
    old = (*GO_VERSIONS, "clang -O2", "gcc -O1", "gcc -O2 -DON_STACK")
    assert warned == (["FC0634"] if kind in old else [])
    there = [one.code for one in probe.compile("v1").warnings]
    assert there == (warned if go else [])
