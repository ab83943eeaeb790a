"""Programs whose debug information is split, packed or shared: the kernel reads the right bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

ONE = r"""
#include <stdio.h>
struct node { int value; struct node *next; const char *label; };
struct shared { short a; unsigned long b; };
struct shared together = { 3, 4 };
extern long other(struct shared *s, struct node *n);
static inline int twice(struct node *q, int by)
{ int t = q->value * by; __asm__ volatile("" :: "r"(t) : "memory"); return t; }
__attribute__((noinline)) long visit(struct node *n, int depth, struct shared *s)
{
    together.b += depth;
    long sum = twice(n, depth);
    return sum + other(s, n);
}
int main(void)
{
    struct node two = { 22, 0, "two" }, one = { 11, &two, "one" };
    for (int i = 0; i < 4; i++) {
        struct shared s = { -i, 100 + i };
        printf("EVENT %d\n", (int)visit(&one, i, &s));
    }
    return 0;
}
"""
TWO = r"""
struct node { int value; struct node *next; const char *label; };
struct shared { short a; unsigned long b; };
__attribute__((noinline)) long other(struct shared *s, struct node *n)
{ __asm__ volatile("" ::: "memory"); return s->b + n->value; }
"""
SPLIT = ("-gsplit-dwarf",)
WAYS = {
    "gcc-4": ("gcc", "-gdwarf-4", *SPLIT),
    "gcc-5": ("gcc", "-gdwarf-5", *SPLIT),
    "clang-4": ("clang", "-gdwarf-4", *SPLIT),
    "clang-5": ("clang", "-gdwarf-5", *SPLIT),
    "dwp-4": ("gcc", "-gdwarf-4", *SPLIT),
    "dwp-5": ("clang", "-gdwarf-5", *SPLIT),
    "dwz": ("gcc", "-gdwarf-5"),
}


def build(folder: Path, way: str) -> Path:
    """The program, with its debug information where ``way`` says."""
    compiler, *flags = WAYS[way]
    require(compiler, *{"dwp": ["llvm-dwp"], "dwz": ["dwz"]}.get(way[:3], []))
    for name, text in (("one.c", ONE), ("two.c", TWO)):
        (folder / name).write_text(text)

    def run(*command: str) -> None:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)

    run(compiler, "-O1", *flags, "one.c", "two.c", "-o", "program")
    if way.startswith("dwp"):
        run("llvm-dwp", "-e", "program", "-o", "program.dwp")
        for split in folder.glob("*.dwo"):
            split.unlink()
    elif way == "dwz":
        run(compiler, "-O2", *flags, "one.c", "two.c", "-o", "another")
        run("dwz", "-m", "common", "program", "another")
    return folder / "program"


@pytest.mark.parametrize("way", WAYS)
def test_values_are_those_of_the_program(
    way: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    program = build(tmp_path, way)
    expressions = ["depth", "n->next->label", "n->value", "s->a", "s->b", "together.b"]
    entry = trace(
        capfd, *expressions, "-x", program, "-f", "visit", "--format", "jsonl", "--", program
    )
    together = [4, 4, 5, 7]
    assert entry.args == [
        {
            "depth": i, "n->next->label": "two", "n->value": 11, "s->a": -i, "s->b": 100 + i,
            "together.b": together[i],
        }
        for i in range(4)
    ]  # fmt: skip
    other = trace(
        capfd, "s->b", "n->label", "-x", program, "-f", "other", "--format", "jsonl", "--", program
    )
    assert other.args == [{"s->b": 100 + i, "n->label": "one"} for i in range(4)]
    if WAYS[way][0] == "clang":
        return  # it says nothing of the inlined parameter
    inlined = trace(
        capfd,
        "q->value",
        "-x",
        program,
        "-f",
        "twice",
        "--at",
        "inline",
        "--format",
        "jsonl",
        "--",
        program,
    )
    assert inlined.args == [{"q->value": 11}] * 4
