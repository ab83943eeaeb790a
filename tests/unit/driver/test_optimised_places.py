"""Values that optimised code does not store in memory, and parts of functions that stand apart."""

from __future__ import annotations

import re
import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
#include <stdlib.h>
#include <string.h>
struct point { int x, y; long tag; };
struct holder { long pad[6]; struct point at; char text[16]; };
volatile long sink;
__attribute__((noinline)) void seen(long a) { sink += a; }
static inline long measure(const struct point *p, const char *why) {
  long sum = p->x + p->tag;
  seen(sum); /* literal */
  return sum + why[0];
}
static inline long member(struct point *st) {
  seen(3);
  long v = st->tag;
  seen(v); /* inside */
  return v + st->x;
}
__attribute__((noinline)) long hold(struct holder *h) {
  long r = member(&h->at);
  seen(r);
  return r + h->at.y;
}
__attribute__((noinline)) long scalar(int a, int b, long c) {
  struct point local = { a, b, c };
  return measure(&local, "because") + local.y;
}
__attribute__((cold, noinline)) void odd(long a) { sink = a; }
__attribute__((noinline)) long guarded(struct holder *h, long n) {
  long first = h->pad[0];
  seen(n);
  if (first == 77) { odd(first); odd(h->at.tag); odd(n + sink); }
  seen(first);
  return first + n + h->at.y;
}
int main(int argc, char **argv) {
  struct holder *h = calloc(1, sizeof *h);
  return scalar(argc, 7, 9) + hold(h) + guarded(h, argc);
}
"""


def line(mark: str) -> str:
    """``places.c:N`` of the line with a comment."""
    lines = SOURCE.splitlines()
    return f"places.c:{1 + next(i for i, text in enumerate(lines) if f'/* {mark} */' in text)}"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Program:
    require("gcc")
    directory = tmp_path_factory.mktemp("optimised")
    (directory / "places.c").write_text(SOURCE)
    command = ["gcc", "-g", "-O2", "-o", "places", "places.c"]
    subprocess.run(command, check=True, cwd=directory)
    return fetchc.open(str(directory / "places"))


def code(probe: fetchc.Probe, text: str) -> str:
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile(text).fetcharg  # noqa: B018
    return caught.value.diagnostics[0].code


def test_a_pointer_that_is_computed_is_followed(program: fetchc.Program) -> None:
    probe = program.probe("hold", at=line("inside"))
    shown = {one.name: one for one in probe.variables()}
    where = re.fullmatch(r"a pointer to what is in memory at \+48\((%\w+)\)", shown["st"].where)
    assert where is not None
    held = where[1]
    for text, fetched in (
        ("st->tag", f"+56({held}):s64"),
        ("(*st).y", f"+52({held}):s32"),
        ("st[-1].tag", f"+40({held}):s64"),
        ("((struct holder *)st)->pad[1]", f"+56({held}):s64"),
    ):
        assert probe.compile(text).fetcharg == fetched
    assert code(probe, "st") == "FC0405"


def test_a_pointer_to_a_constant_reads_the_constant(program: fetchc.Program) -> None:
    probe = program.probe("scalar", at=line("literal"))
    for text, fetched in (
        ("*why", f"\\{ord('b')}:s8"),
        ("why[6]", f"\\{ord('e')}:s8"),
        ("*(short *)(why + 3)", f"\\{int.from_bytes(b'au', 'little')}:s16"),
    ):
        assert probe.compile(text).fetcharg == fetched
    for outside in ("why[8]", "why[-1]", "*(int *)(why + 6)"):
        assert code(probe, outside) == "FC0404"
    assert code(probe, "why") == "FC0405"


def test_the_unlikely_part_of_a_function_is_no_entry(program: fetchc.Program) -> None:
    probe = program.probe("guarded.cold")
    assert probe.kind == "offset"
    # At the entry they would be in %di and %si, whatever is there by now.
    shown = {one.name: one.where for one in probe.variables()}
    assert shown["first"] != "nowhere"
    assert code(probe, "$arg1") == "FC0401"
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("guarded.cold", returns=True)
    assert caught.value.diagnostics[0].code == "FC0206"
    assert program.probe("guarded", returns=True).kind == "return"
