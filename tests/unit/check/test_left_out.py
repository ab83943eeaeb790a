"""A parameter that clang -O0 does not describe shifts those after it, of local functions too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
struct big { long a[4]; };
struct odd { odd(const odd &); odd(int); ~odd(); int x; };
odd::odd(const odd &o) : x(o.x) {} odd::odd(int n) : x(n) {} odd::~odd() {}
int sink;
#define KEPT __attribute__((noinline))
namespace { KEPT int local(int a, odd unused, big b, int c) { return sink += a + b.a[1] + c; } }
KEPT int exported(int a, odd unused, big b, int c) { return sink += a + b.a[1] + c; }
int main() { return local(1, odd(2), big{{1, 2}}, 3) + exported(1, odd(2), big{{1, 2}}, 3); }
"""


@pytest.mark.parametrize("function", ["(anonymous namespace)::local", "exported"])
def test_what_stands_behind_it_is_refused(function: str, tmp_path: Path) -> None:
    require("clang++")
    (tmp_path / "program.cc").write_text(SOURCE)
    command = ["clang++", "-g", "-O0", "-o", "program", "program.cc"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    probe = fetchc.open(str(tmp_path / "program")).probe(function)
    assert [one.name for one in probe.variables()][:3] == ["a", "b", "c"]  # `unused` is left out
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("c")
    assert refused.value.diagnostics[0].code == "FC0407"
