"""One program in C by two compilers, at every level and in every kind of file: values as printed.

All that is asked at the entry and at the return has to be fetched, whatever the compiler did. What
optimised code still has at a line is up to the compiler: what fetchc gives there has to be right.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fetchc
from tests.live.traced import Traced, trace
from tests.support.toolchains import ROOT, ZIG, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SEED = 6
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
FRAMES = ("-fomit-frame-pointer", "-fno-omit-frame-pointer")
ENVIRONMENT = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(ROOT / ".toolchains/cache-zig")}
KINDS = {
    "pie": ("-pie", "-fPIE"),
    "no-pie": ("-no-pie", "-fno-pie"),
    "lto": ("-flto", "-pie", "-fPIE"),
    "library": ("-shared", "-fPIC"),
}
COMMANDS = {
    "gcc": ["gcc"],
    "clang": ["clang"],
    # A clang that is years younger than Debian's.
    "zig": [str(ZIG), "cc", "-fno-sanitize=undefined", "-fno-stack-protector"],
}
ALL = list(itertools.product(("gcc", "clang"), LEVELS, FRAMES, KINDS))
# Each compiler at each level; the rest is drawn.
DRAWN = [
    random.Random(f"{SEED} {compiler} {level}").choice(
        [one for one in ALL if one[:2] == (compiler, level)]
    )
    for compiler in ("gcc", "clang")
    for level in LEVELS
] + [("zig", "-O0", FRAMES[0], "no-pie"), ("zig", "-O2", FRAMES[0], "library")]

SOURCE = r"""
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum shade { DARK = -1, PLAIN, LIGHT = 300 };
struct pair { int x; long y; };
struct small { short a, b; int c; };
struct named { int n; char name[]; };
struct packed { unsigned char t; int v; unsigned five : 5; int minus : 6; } __attribute__((packed));
struct all {
  struct pair at; enum shade shade; _Bool yes; double d; double _Complex z;
  __int128 big; unsigned __int128 wide; long double ld; struct packed packed;
  struct all *next; int row[3]; int last __attribute__((aligned(64)));
};
volatile long sink;
__attribute__((noinline)) void seen(long a) { sink += a; }
static inline long measured(struct pair *p, const char *why) {
  long sum = p->x + p->y;
  seen(sum); /* inlined */
  return sum + why[0];
}
__attribute__((noinline)) struct small use(
    struct all *p, int n, const char *text, struct pair pair, struct small small, struct named *s,
    __int128 given, unsigned char narrow) {
  char local[n + 8];
  memset(local, 'a' + n, n + 7);
  local[n + 7] = 0;
  long total = measured(&p->at, "because") + n * 3;
  for (int i = 0; i < 3; i++) total += p->row[i];
  seen(total + local[n]); /* inside */
  /* All parts: clang's callers may not pass what a function does not use. */
  seen(total + pair.x + pair.y + small.a + small.b + small.c + s->n + (long)given
    + (long)(given >> 64) + narrow + text[0]);
  return (struct small){ total, -n, n * 1000 };
}
struct small (*volatile call)(struct all *, int, const char *, struct pair, struct small,
    struct named *, __int128, unsigned char) = use;
int run(int argc) {
  struct all next = { .at = { 7, -8 } };
  struct all *p = aligned_alloc(64, sizeof *p);
  struct named *s = malloc(64);
  __asm__ volatile("" ::: "memory");
  for (int n = 1; n <= 3; n++) {
    *p = (struct all){ { n, -n * 10L }, n == 2 ? LIGHT : DARK, n & 1, n / 4.0, n + 2.5 * I, -5 - n,
      ((unsigned __int128)1 << 100) + n, n / 2.0L, { 3, -n, 17 + n, -n }, &next,
      { n, 2 * n, 3 * n }, 77 };
    s->n = n;
    strcpy(s->name, n == 2 ? "flexed" : "");
    __asm__ volatile("" :: "r"(p), "r"(s), "r"(&next) : "memory");
    struct small r = call(p, n, n == 3 ? "" : "word", (struct pair){ -n, n << 20 },
      (struct small){ n, -n, n << 16 }, s, -((__int128)n << 70), 250 + n);
    printf("EVENT %d %d %d %d\n", n, r.a, r.b, r.c);
  }
  return 0;
}
"""
MAIN = "int run(int); int main(int argc, char **argv) { return run(argc); }"


def entry(n: int) -> dict[str, Any]:
    """What each expression is worth at the entry of call ``n``."""
    return {
        "n": n,
        "text": "" if n == 3 else "word",
        "pair.x": -n,
        "pair.y": n << 20,
        "small.a": n,
        "small.b": -n,
        "small.c": n << 16,
        "narrow": 250 + n,
        "given": str(-(n << 70)),
        "p->at.y": -10 * n,
        "p->shade": {"name": "LIGHT", "value": 300} if n == 2 else {"name": "DARK", "value": -1},
        "p->yes": n % 2 == 1,
        "p->d": n / 4,
        "p->z": {"real": float(n), "imag": 2.5},
        "p->z.imag": 2.5,
        "p->big": str(-5 - n),
        "p->wide": str((1 << 100) + n),
        "p->ld": str(n / 2),
        "p->packed.v": -n,
        "p->packed.five": 17 + n,
        "p->packed.minus": -n,
        "p->next->at.x": 7,
        "p->row": [n, 2 * n, 3 * n],
        "p->last": 77,
        "s->name": "flexed" if n == 2 else "",
    }


def inside(n: int) -> dict[str, Any]:
    """What variables are worth at the line that says so."""
    total = n - 10 * n + ord("b") + n * 3 + 6 * n
    return entry(n) | {
        "total": total,
        "local[0]": chr(ord("a") + n),
        "local[1]": chr(ord("a") + n),
    }


def within_inlined(n: int) -> dict[str, Any]:
    """At the line of the inlined call: its own names, and those around it."""
    return {
        "sum": n - 10 * n,
        "p->x": n,
        "p->y": -10 * n,
        "*why": "b",
        "why[3]": "a",
        "n": n,
    }


def built(folder: Path, compiler: str, level: str, frame: str, kind: str) -> tuple[Path, Path]:
    """The file with the function, and the program to run."""
    require(COMMANDS[compiler][0])
    (folder / "use.c").write_text(SOURCE)
    (folder / "main.c").write_text(MAIN)
    made, program = folder / ("use.so" if kind == "library" else "made"), folder / "program"
    command = [*COMMANDS[compiler], "-g", level, frame, *KINDS[kind]]
    if compiler == "clang" and kind == "lto":
        command = [word for word in command if word != "-flto"]  # Debian's ld has no plugin for it
    sources = ["use.c"] if kind == "library" else ["use.c", "main.c"]
    subprocess.run(
        [*command, "-o", made, *sources],
        check=True,
        cwd=folder,
        capture_output=True,
        env=ENVIRONMENT,
    )
    if kind != "library":
        return made, made
    link: list[str | Path] = [
        *COMMANDS[compiler],
        "-o",
        program,
        "main.c",
        made,
        f"-Wl,-rpath,{folder}",
    ]
    subprocess.run(link, check=True, cwd=folder, capture_output=True, env=ENVIRONMENT)
    return made, program


def line(mark: str) -> str:
    """``use.c:N`` of the line with a comment."""
    lines = SOURCE.splitlines()
    return f"use.c:{1 + next(i for i, text in enumerate(lines) if f'/* {mark} */' in text)}"


def accepted(file: Path, at: str, wanted: list[str]) -> list[str]:
    """Those of the expressions that compile at every address of the line."""
    probe = fetchc.open(str(file)).probe(None, at=at)
    found = []
    for text in wanted:
        try:
            probe.plan([text], "fetchc_asked")
        except fetchc.CompileError:
            continue
        found.append(text)
    return found


def asked(
    capfd: pytest.CaptureFixture[str], file: Path, program: Path, words: list[str], *options: str
) -> Traced:
    """The words traced."""
    done = trace(capfd, *words, "-x", file, *options, "--format", "jsonl", "--", program)
    assert done.status == 0, done.errors
    return done


def unlike(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Call, expression, value and the one that it should be."""
    assert len(found) == len(wanted)
    return [
        (call, text, value, right[text])
        for call, (values, right) in enumerate(zip(found, wanted, strict=True), 1)
        for text, value in values.items()
        if value != right[text]
    ]


@pytest.mark.parametrize("how", DRAWN, ids=lambda how: "-".join(how).replace("--", "-"))
def test_values(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], how: tuple[str, str, str, str]
) -> None:
    require_uprobes()
    file, program = built(tmp_path, *how)
    words = list(entry(1))
    done = asked(capfd, file, program, words, "-f", "use")
    assert list(done.args[0]) == words
    assert unlike(done.args, [entry(n) for n in (1, 2, 3)]) == []
    done = asked(
        capfd, file, program, ["$retval.a", "$retval.b", "$retval.c"], "-f", "use", "--return"
    )
    printed = [list(map(int, text.split()[2:])) for text in done.program]
    assert [list(args.values()) for args in done.args] == printed
    for mark, values in (("inside", inside), ("inlined", within_inlined)):
        words = accepted(file, line(mark), list(values(1)))
        assert words
        done = asked(capfd, file, program, words, "--at", line(mark))
        assert unlike(done.args, [values(n) for n in (1, 2, 3)]) == []


def test_an_address_that_the_kernel_cannot_add_up(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    file, program = built(tmp_path, "gcc", "-O2", FRAMES[0], "pie")
    done = asked(capfd, file, program, ["p", "y=&p->at.y", "x=&p->next->row[2]"], "-f", "use")
    assert len(done.args) == 3
    for args in done.args:
        assert args["y"] == args["p"] + 8
        assert args["x"] > 0x1000


def test_the_comparison_sees_a_wrong_value(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    file, program = built(tmp_path, "gcc", "-O2", FRAMES[0], "pie")
    done = asked(capfd, file, program, ["x=p->at.x", "a=small.a"], "-f", "use")
    assert done.args == [{"x": n, "a": n} for n in (1, 2, 3)]
    done = asked(capfd, file, program, ["x=p->at.y", "a=small.b"], "-f", "use")
    assert done.args != [{"x": n, "a": n} for n in (1, 2, 3)]
