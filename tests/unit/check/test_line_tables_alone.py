"""Programs built with line tables alone: that no result is described does not make it void."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
int count;
static inline __attribute__((always_inline)) int once(int n) { count++; return n; }
__attribute__((noinline)) int twice(int n) { return 2 * once(n); }  // clang describes no others
__attribute__((noinline)) void bump(void) { count++; }
int main(int argc, char **argv) { bump(); return twice(argc); }
"""


def _built(folder: Path, compiler: str, option: str) -> fetchc.Program:
    require(compiler)
    (folder / "t.c").write_text(SOURCE)
    command = [compiler, option, "-O1", "t.c", "-o", "t"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return fetchc.open(str(folder / "t"))


@pytest.mark.parametrize(("compiler", "option"), [("gcc", "-g1"), ("clang", "-gline-tables-only")])
def test_the_register_is_all_that_is_known(tmp_path: Path, compiler: str, option: str) -> None:
    program = _built(tmp_path, compiler, option)
    probe = program.probe("twice", returns=True, kernel="6.1")
    found = [probe.compile(one).fetcharg for one in ("$retval", "(int)$retval")]
    assert found == ["$retval", "$retval:s32"]
    entry = program.probe("twice", kernel="6.1")
    assert entry.compile("(int)$arg1").fetcharg == "%di:s32"
    with pytest.raises(fetchc.CompileError) as refused:
        entry.compile("n")
    (one,) = refused.value.diagnostics
    assert one.notes == (
        "the function has no variables that are known: it was compiled with line tables alone",
    )
    assert one.help == "build it with -g; or use `$arg1`, `%di` with a cast"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_function_that_returns_nothing(tmp_path: Path, compiler: str) -> None:
    probe = _built(tmp_path, compiler, "-g").probe("bump", returns=True, kernel="6.1")
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("$retval")
    assert refused.value.diagnostics[0].message == "`bump` returns nothing"
