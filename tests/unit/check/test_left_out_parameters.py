"""Parameters at the entry where the debug information leaves one out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
struct kept { int n; kept(); kept(const kept &); ~kept(); };
struct big { long a, b, c; };
int f(int a, kept unused, int b, big c) { return a + b + c.a; }
int g(int a, kept used, int b) { return a + used.n + b; }
kept::kept() : n(1) {} kept::kept(const kept &) : n(2) {} kept::~kept() {}
int main() { return f(1, kept(), 3, big()) + g(1, kept(), 3); }
"""


def test_what_stands_behind_a_parameter_that_clang_leaves_out(tmp_path: Path) -> None:
    # clang -O0 leaves `unused` out of f: b would be taken for the second argument.
    require("clang++")
    (tmp_path / "t.cc").write_text(SOURCE)
    subprocess.run(
        ["clang++", "-g", "-O0", "t.cc", "-o", "t"], cwd=tmp_path, check=True, timeout=60
    )
    program = fetchc.open(str(tmp_path / "t"))
    described = {one.name for one in program.probe("f", kernel="6.1").variables()}
    if "unused" in described:
        assert program.probe("f", kernel="6.1").compile("b").fetcharg == "%dx:s32"
    else:
        with pytest.raises(fetchc.CompileError) as refused:
            program.probe("f", kernel="6.1").compile("b")
        assert refused.value.diagnostics[0].code == "FC0407"
    assert program.probe("g", kernel="6.1").compile("b").fetcharg == "%dx:s32"


UNUSED = """
#include <stdio.h>
__attribute__((noinline)) int f(int used, int unused) { return printf("%d", used); }
int main(int argc, char **argv) { return f(argc, 7); }
"""


@pytest.mark.parametrize(("compiler", "known"), [("gcc", True), ("clang", False)])
def test_what_callers_of_the_same_file_may_not_pass(
    compiler: str, known: bool, tmp_path: Path
) -> None:
    # clang -O2: main leaves in %si what it had there. gcc fills it for what others can call.
    require(compiler)
    (tmp_path / "t.c").write_text(UNUSED)
    subprocess.run([compiler, "-g", "-O2", "t.c", "-o", "t"], cwd=tmp_path, check=True, timeout=60)
    probe = fetchc.open(str(tmp_path / "t")).probe("f", kernel="6.1")
    assert probe.compile("used").fetcharg == "%di:s32"
    if known:
        assert probe.compile("unused").fetcharg == "%si:s32"
        return
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("unused")
    assert refused.value.diagnostics[0].code == "FC0401"
