"""Variables of a library, at functions of the program and of the library: what both print."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

HEADER = """
#include <stdio.h>
struct conf { int level; const char *name; long t[3]; };
extern struct conf shared, *pointed;
void say(int n);
#define SAY(where) printf("EVENT " where \\
  " {\\"n\\": %d, \\"shared.level\\": %d, \\"shared.t[1]\\": %ld, " \\
  "\\"pointed->name\\": \\"%s\\"}\\n", n, shared.level, shared.t[1], pointed->name)
"""
LIBRARY = """#include "shared.h"
struct conf shared = { 1, "lib", { 10, 20, 30 } }, *pointed = &shared;
void say(int n) { SAY("say"); }
"""
PROGRAM = """#include "shared.h"
static struct conf other = { 5, "other" };
__attribute__((noinline)) void work(int n) {
  SAY("work"); shared.level = n * 7; shared.t[1] = -n; if (n == 2) pointed = &other; }
int main(void) { for (int n = 1; n < 4; n++) { work(n); say(n); } return 0; }
"""
BUILDS = {
    "a copy": ["-fPIE", "-pie"],
    "a copy, at one place": ["-fno-pie", "-no-pie"],
    "the global offset table": ["-fPIC", "-pie", "-Wl,-z,nocopyreloc"],
}


@pytest.mark.parametrize("build", BUILDS)
def test_values_are_what_both_printed(
    build: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    require("gcc")
    require_uprobes()
    for name, source in (("shared.h", HEADER), ("library.c", LIBRARY), ("program.c", PROGRAM)):
        (tmp_path / name).write_text(source)
    library, program = tmp_path / "library.so", tmp_path / "program"
    for options in (
        ["-shared", "-fPIC", "library.c", "-o", "library.so"],
        [*BUILDS[build], "program.c", str(library), "-o", "program"],
    ):
        subprocess.run(["gcc", "-g", "-O1", *options], cwd=tmp_path, check=True, timeout=60)
    shown = subprocess.run([program], capture_output=True, check=True, timeout=60, text=True).stdout
    printed = [line.split(" ", 2)[1:] for line in shown.splitlines()]
    assert len(printed) == 6
    for path, function in ((program, "work"), (library, "say")):
        calls = [json.loads(values) for name, values in printed if name == function]
        where: list[str | Path] = ["-x", path, "-f", function, "--format", "jsonl"]
        done = trace(capfd, *calls[0], *where, "--", program)
        assert done.args == calls, done.errors
