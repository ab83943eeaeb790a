"""Numbers that optimised code keeps in no place: a register's or a caller's, and a constant."""

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
#define KEPT __attribute__((noinline, noclone))
volatile int sink;
enum level { LOW = 1, HIGH = 2147483600 };
KEPT int near(int x, unsigned u, long l, enum level e)
{
  int y = x + 1; unsigned w = u - 3; long m = l + 100;
  unsigned char c = x + 250; enum level next = e + 1;
  sink = x;
  sink = u; /* near */
  sink = l; sink = e; sink = x;
  return printf("EVENT [%d, %u, %ld, %d, %d]\n", x + 1, u - 3, l + 100, (c + 0) & 255, e + 1);
}
KEPT int far(int x, long l)
{
  int y = x + 1; long m = l - 7;
  printf("EVENT [%d, %ld]\n", x + 1, l - 7);
  return sink; /* far */
}
int main(void)
{
  near(1, 1, 40, LOW); near(2147483647, 5, -50, HIGH - 1); near(-1, 7, 60, LOW);
  far(3, 4); sink++; far(-1, -50); sink++;
  return 0;
}
"""


def line(mark: str) -> int:
    return 1 + SOURCE[: SOURCE.index(f"/* {mark} */")].count("\n")


def build(folder: Path, compiler: str) -> Path:
    require(compiler)
    (folder / "computed.c").write_text(SOURCE)
    flags = [compiler, "-g", "-O1", "-w", "computed.c", "-o", "computed"]
    subprocess.run(flags, cwd=folder, check=True, timeout=60)
    return folder / "computed"


def seen(
    binary: Path, capfd: pytest.CaptureFixture[str], function: str, names: tuple[str, ...]
) -> tuple[list[list[object]], list[list[object]]]:
    """The values at each call, and what was printed of it."""
    require_uprobes()
    at = f"computed.c:{line(function)}"
    point = ["-f", function, "--at", at, "--format", "jsonl", "-x", str(binary)]
    traced = trace(capfd, *names, *point, "--", binary)
    assert (traced.status, traced.errors) == (0, "")
    printed = [json.loads(one.removeprefix("EVENT ")) for one in traced.program]
    values = [[call[name] for name in names] for call in traced.args]
    return values, printed


def test_a_register_and_a_constant(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In the width of the number, as the program counts."""
    binary = build(tmp_path, "gcc")
    names = ("y", "w", "m", "c")
    probe = fetchc.open(str(binary)).probe("near", at=f"computed.c:{line('near')}")
    for name in names:
        with pytest.raises(fetchc.CompileError) as caught:
            probe.compile(name)
        assert caught.value.diagnostics[0].code == "FC0406"
    values, printed = seen(binary, capfd, "near", names)
    assert values == [expected[:4] for expected in printed if len(expected) == 5]
    assert values[1][0] == -(1 << 31)
    wider, printed = seen(binary, capfd, "near", ("(long)y", "(long)(signed char)y", "(long)w"))
    five = [expected for expected in printed if len(expected) == 5]
    bytes_of = [(int(str(expected[0])) + 128) % 256 - 128 for expected in five]
    assert wider == [[t[0], b, t[1]] for t, b in zip(five, bytes_of, strict=True)]
    enums, printed = seen(binary, capfd, "near", ("next",))
    levels = [{"name": {1: "LOW", 2147483600: "HIGH"}.get(n), "value": n} for n in (2, 2147483600)]
    assert [one for (one,) in enums] == [levels[0], levels[1], levels[0]]


def test_clang_in_the_width_of_a_word(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    values, printed = seen(build(tmp_path, "clang"), capfd, "near", ("m",))
    assert values == [[expected[2]] for expected in printed if len(expected) == 5]


def test_what_was_passed_and_a_constant(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    values, printed = seen(build(tmp_path, "gcc"), capfd, "far", ("y", "m"))
    assert values == [expected for expected in printed if len(expected) == 2]
    assert len(values) == 2
