"""More events in a moment than a reader can print: none is lost, or the lost are counted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import ROOT, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
#include <stdlib.h>
struct row { long a, b, c, d, e; };
__attribute__((noinline)) void inside(struct row *r) { __asm__ volatile("" :: "r"(r) : "memory"); }
__attribute__((noinline)) void hit(struct row *r) { inside(r); inside(r); }
int main(int count, char **words) {
  struct row r = {0};
  for (long i = 0; i < atol(words[1]); i++) { r.a = i; r.e = -i; hit(&r); }
  return 0;
}
"""
EXPRESSIONS = ["r->a", "r->b", "r->c", "r->d", "r->e"]


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    folder = tmp_path_factory.mktemp("burst")
    (folder / "burst.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-o", "burst", "burst.c"], cwd=folder, check=True)
    return folder / "burst"


@pytest.mark.parametrize("form", ["text", "jsonl"])
@pytest.mark.parametrize("events", [100_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_all_events_are_printed_or_counted(
    program: Path, events: int, form: str, tmp_path: Path
) -> None:
    require_uprobes()
    command = [sys.executable, "-m", "fetchc", "trace", *EXPRESSIONS, "-x", str(program)]
    command += ["-f", "hit", "--format", form, "--", str(program), str(events)]
    output = tmp_path / "lines"  # not a pipe, whose reader may be slower than the trace
    with output.open("wb") as file:
        done = subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.PIPE, check=True)
    lines = output.read_text().splitlines()
    numbers = [int(found[1]) for line in lines if (found := re.search(r'r->a"?[=:] ?(\d+)', line))]
    assert len(numbers) == len(lines)
    assert numbers == sorted(set(numbers))
    lost = re.search(r"warning: (\d+) events were lost", done.stderr.decode())
    assert len(lines) + (int(lost[1]) if lost else 0) == events
    # A machine that has other work to do prints less than it is hit.
    assert lost is None or events < 1_000_000 or os.getloadavg()[0] > (os.cpu_count() or 1)


def test_the_number_that_is_lost_is_exact(program: Path) -> None:
    require_uprobes()
    with fetchc.tracing(buffer_kib=64) as session:
        session.add(fetchc.open(str(program)).probe("hit"), EXPRESSIONS)
        session.start()
        # A second processor would have room of its own, where hits are recorded again.
        alone = partial(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))})
        subprocess.run([str(program), "50000"], check=True, preexec_fn=alone)
        session.stop()
        events = list(session.events())
    assert session.lost > 0
    assert len(events) + session.lost == 50_000
    assert [event.args["r->e"] for event in events] == [-n for n in range(len(events))]
