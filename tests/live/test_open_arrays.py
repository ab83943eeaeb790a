"""Arrays of no or one element that end a structure: as many elements as the program has there."""

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
#include <stdio.h>
#include <stdlib.h>
struct none { int n; int data[0]; };
struct one { int n; short data[1]; };
struct outer { long k; struct one in; };
struct either { int n; union { struct one in; long word; } u; };
struct middle { int n; int data[1]; int after; };
struct mark { int n; int mark[0]; int after; };
struct row { struct one ones[2]; };
struct one fixed;
__attribute__((noinline)) int look(struct none *z, struct one *o, struct outer *w, struct either *e,
                                   struct middle *m, struct mark *k, struct row *r)
{
    __asm__ volatile("" ::: "memory");
    return z->n + o->n + (int)w->k + e->n + m->n + k->n + r->ones[0].n;
}
int main(void)
{
    struct none *z = malloc(64);
    struct one *o = malloc(64);
    struct outer *w = malloc(64);
    struct either *e = malloc(64);
    struct middle m = { 0 };
    struct mark k = { 0 };
    struct row r = { 0 };
    int total = 0;
    for (int n = 2; n < 5; n++) {
        z->n = o->n = w->in.n = e->n = n;
        w->k = 0;
        for (int i = 0; i < 6; i++) {
            z->data[i] = 10 * n + i;
            o->data[i] = 100 * n + i;
            w->in.data[i] = 200 * n + i;
            e->u.in.data[i] = 300 * n + i;
        }
        printf("EVENT {\"z->data[1]\": %d, \"z->data[1:3]\": [%d, %d], \"o->data[2]\": %d, "
               "\"w->in.data[3]\": %d, \"e->u.in.data[4]\": %d, \"o->data[0:o->n]\": [%d, %d",
               z->data[1], z->data[1], z->data[2], o->data[2], w->in.data[3], e->u.in.data[4],
               o->data[0], o->data[1]);
        for (int i = 2; i < n; i++)
            printf(", %d", o->data[i]);
        puts("]}");
        total += look(z, o, w, e, &m, &k, &r) + fixed.n;
    }
    return total == 0;
}
"""
# In the middle of an object, and at the end of one that is a variable, a bound is a bound.
REFUSED = ("m->data[1]", "k->mark[1]", "r->ones[0].data[1]", "fixed.data[1]", "o->data[-1]")


@pytest.fixture(scope="module", params=["gcc", "clang", "g++"])
def program(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    require_uprobes()
    require(request.param)
    folder = tmp_path_factory.mktemp("open")
    (folder / "open.c").write_text(SOURCE)
    language = ["-x", "c++", "-fpermissive"] if request.param == "g++" else []
    command = [request.param, "-g", "-O1", "-w", *language, "open.c", "-o", "open"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "open"


def test_elements_behind_the_bound_are_the_programs(
    capfd: pytest.CaptureFixture[str], program: Path
) -> None:
    run = subprocess.run([program], capture_output=True, check=True, timeout=60, text=True)
    printed = [json.loads(line.removeprefix("EVENT ")) for line in run.stdout.splitlines()]
    assert len(printed) == 3
    where: list[str | Path] = ["-x", program, "-f", "look", "--format", "jsonl", "--", program]
    done = trace(capfd, *printed[0], *where)
    assert done.args == printed, done.errors


@pytest.mark.parametrize("expression", REFUSED)
def test_a_bound_within_an_object_is_kept(program: Path, expression: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        print(fetchc.open(str(program)).probe("look").compile(expression).fetcharg)
    assert refused.value.diagnostics[0].code == "FC0303"
