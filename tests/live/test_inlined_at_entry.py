"""Parameters of calls that were inlined at a function's first instruction."""

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
struct pair { int a, b; };
int sink;
static inline __attribute__((always_inline)) int inner(struct pair *ip, int ik)
{
    sink += ip->a;
    for (int i = 0; i < ik; i++)
        sink += ip->b * i;
    return sink;
}
__attribute__((noinline)) int whole(struct pair *op, int ok) { return inner(op, ok); }
__attribute__((noinline)) int later(int x, struct pair *op, int ok)
{
    sink++;
    return x ? inner(op, ok) : 0;
}
int main(void)
{
    int all = 0;
    for (int n = 1; n < 4; n++) {
        struct pair pair = { n, n + 10 };
        printf("EVENT whole {\"ip->b\": %d, \"ik\": %d, \"op->a\": %d, ", n + 10, n, n);
        printf("\"ok\": %d}\n", n);
        all += whole(&pair, n) + later(n, &pair, n);
    }
    return all == 0;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_values_are_what_the_program_printed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, compiler: str
) -> None:
    require_uprobes()
    require(compiler)
    (tmp_path / "inlined.c").write_text(SOURCE)
    program = tmp_path / "inlined"
    command = [compiler, "-g", "-O2", "inlined.c", "-o", str(program)]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    run = subprocess.run([program], capture_output=True, check=True, timeout=60, text=True)
    printed: dict[str, list[dict[str, int]]] = {}
    for line in run.stdout.splitlines():
        _, name, values = line.split(" ", 2)
        printed.setdefault(name, []).append(json.loads(values))
    assert set(printed) == {"whole"}
    for name, calls in printed.items():
        where: list[str | Path] = ["-x", program, "-f", name, "--format", "jsonl", "--", program]
        done = trace(capfd, *calls[0], *where)
        assert done.args == calls, done.errors
    # Of a call that comes later there is nothing yet.
    with pytest.raises(fetchc.CompileError):
        fetchc.open(str(program)).probe("later").compile("ik")
