"""Members of virtual bases: by what the refusal says, an object's distance and then the member."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <cstdio>
struct Base { int id; long extra; virtual ~Base() {} };
struct Left : virtual Base { int left; };
struct Right : virtual Base { int right; };
struct Both : Left, Right { int both; };
__attribute__((noinline)) int ask(Left *l)
{
  std::printf("EVENT %d %ld %d\n", l->id, l->extra, l->left);
  return l->id;
}
int main()
{
  Left left; left.id = 1; left.extra = 2; left.left = 3;
  Both both; both.id = 4; both.extra = 5; both.left = 6; both.right = 7; both.both = 8;
  return ask(&left) + ask(&both) == 0;
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_refusal_says_how_it_is_had(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], compiler: str
) -> None:
    require(compiler)
    (tmp_path / "bases.cpp").write_text(SOURCE)
    binary = tmp_path / "bases"
    command = [compiler, "-g", "-O1", "-w", "bases.cpp", "-o", str(binary)]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(str(binary)).probe("ask").compile("l->id")
    help = caught.value.diagnostics[0].help
    assert help is not None
    first, filter, second = re.findall("`((?:--filter '.*?')|\\(.*?)`", help)
    require_uprobes()
    point = ["-x", str(binary), "-f", "ask", "--format", "jsonl"]
    distance = first.replace("p)", "l)")
    far = trace(capfd, distance, *point, "--", binary)
    distances = [one[distance] for one in far.args]
    assert len(set(distances)) == 2
    for number, line in zip(distances, far.program, strict=True):
        only = filter.removeprefix("--filter '").removesuffix("'").replace("p)", "l)")
        member = second.replace("char *)p", "char *)l").replace("N", str(number))
        narrow = only.replace("N", str(number))
        traced = trace(capfd, member, "--filter", narrow, *point, "--", binary)
        assert [one[member] for one in traced.args] == [int(line.split()[1])]
