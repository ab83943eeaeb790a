"""Spoilt tables of places, frames, lines and types of a real program, asked for as users do.

Whatever a question meets, an answer or one of fetchc's own errors comes out, in bounded time.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import fetchc
from tests.support.toolchains import require

ROUNDS = 40
INSTRUCTIONS = 8
SECONDS = 4.0  # of a round: some ask every instruction

SOURCE = """
#include <stdlib.h>
#include <string.h>
struct point { int x, y : 5, z : 7; long tag; };
struct node { struct node *next; struct point at[2]; char text[16]; enum { OFF, ON } state; };
volatile long sink; static int table[8];
__attribute__((noinline)) void seen(long a) { sink += a; }
static inline long measured(const struct point *p, const char *why) {
  long sum = p->x + p->tag; seen(sum); return sum + why[0];
}
__attribute__((noinline)) long walk(struct node *n, int count, struct point by, double d) {
  char local[count + 8]; long total = 0;
  memset(local, 1, count);
  for (int i = 0; n && i < count; i++, n = n->next)
    total += measured(&n->at[i & 1], "why") + local[i];
  struct point last = { total, by.y, 3, count };
  return measured(&last, "last") + table[count & 7] + (long)d;
}
int main(int argc, char **argv) {
  struct node *n = calloc(1, sizeof *n);
  struct point by = { argc, 2, 3, 4 };
  return walk(n, argc, by, argc);
}
"""
BUILDS = (
    ("gcc", "-O2", "-gdwarf-5"),
    ("gcc", "-O2", "-gdwarf-4", "-fno-asynchronous-unwind-tables"),
    ("clang", "-O2", "-gdwarf-5"),
    ("gcc", "-O0", "-gdwarf-5"),
)
ASKED = ("n->next->at[1].y", "n->text", "by.tag", "local[2]", "*why", "p->x", "total", "table[1]")
SPOILT = (
    *(".debug_loclists", ".debug_loc", ".eh_frame", ".eh_frame_hdr", ".debug_frame"),
    *(".debug_line", ".debug_rnglists", ".debug_ranges", ".debug_abbrev", ".debug_info"),
    *(".debug_addr", ".debug_str_offsets", ".debug_aranges"),
)

Change = tuple[int, int]  # offset in the file, new byte


def built(folder: Path, flags: tuple[str, ...]) -> bytes:
    """The program's file."""
    require(flags[0])
    (folder / "walk.c").write_text(SOURCE)
    command = [*flags, "-o", "walk", "walk.c"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return (folder / "walk").read_bytes()


def sections(path: Path) -> dict[str, tuple[int, int]]:
    """Offset and size of those that are spoilt."""
    with path.open("rb") as file:
        return {
            one.name: (one["sh_offset"], one["sh_size"])
            for one in ELFFile(file).iter_sections()
            if one.name in SPOILT and one["sh_size"]
        }


def changes(source: random.Random, found: dict[str, tuple[int, int]]) -> list[Change]:
    """A few bytes of one section: turned, made extreme, or a run of what LEB128 never ends with."""
    start, size = found[source.choice(sorted(found))]
    at = start + source.randrange(size)
    kind = source.randrange(4)
    if kind == 0:
        return [(at, source.randrange(256))]
    if kind == 1:
        return [(at + i, 0xFF) for i in range(min(8, start + size - at))]
    if kind == 2:
        return [(at + i, 0x80) for i in range(min(24, start + size - at))]
    return [
        (start + source.randrange(size), source.choice((0, 1, 0x7F, 0x80, 0xFF))) for _ in range(6)
    ]


def within(path: Path) -> list[str]:
    """Some instructions of the sound program's function."""
    program = fetchc.open(str(path))
    starts = []
    for offset in range(1, 0x200):
        try:
            program.probe("walk", f"+{offset:#x}", kernel="6.1")
        except fetchc.Error:
            continue
        starts.append(f"+{offset:#x}")
    return starts[:: max(1, len(starts) // INSTRUCTIONS)]


def asked(path: Path, inside: list[str]) -> int:
    """Ask as a user does; how many questions had an answer."""
    answered = 0
    for question in _questions(path, inside):
        try:
            question()
        except fetchc.Error:
            continue
        answered += 1
    return answered


def _questions(path: Path, inside: list[str]) -> Iterator[Callable[[], object]]:
    try:
        program = fetchc.open(str(path))
    except fetchc.Error:
        return
    points = [("walk", None), ("walk", "body"), ("measured", None), (None, "walk.c:9")]
    points += [("walk", at) for at in ("walk.c:15", *inside)]
    for function, at in points:
        try:
            probe = program.probe(function, at, kernel="6.1")
        except fetchc.Error:
            continue
        yield probe.variables
        for text in ASKED:
            yield partial(_compiled, probe, text)
    yield lambda: list(program.functions("*"))
    yield lambda: program.layouts("*")
    yield lambda: program.offsets("node.at")


def _compiled(probe: fetchc.Probe, text: str) -> str:
    return probe.compile(text).fetcharg


def spoilt(raw: bytes, changed: list[Change]) -> bytes:
    """The file with the changes."""
    copy = bytearray(raw)
    for at, value in changed:
        copy[at] = value
    return bytes(copy)


@pytest.mark.parametrize("flags", BUILDS, ids=" ".join)
def test_spoilt_tables(tmp_path: Path, flags: tuple[str, ...]) -> None:
    raw = built(tmp_path, flags)
    path = tmp_path / "spoilt"
    path.write_bytes(raw)
    inside = within(path)
    whole = asked(path, inside)
    assert whole > 50
    found = sections(path)
    source = random.Random(" ".join(flags))
    met = 0
    for _ in range(ROUNDS):
        changed = changes(source, found)
        path.write_bytes(spoilt(raw, changed))
        start = time.process_time()
        met += asked(path, inside) != whole
        assert time.process_time() - start < SECONDS, changed
    assert met > ROUNDS // 10
