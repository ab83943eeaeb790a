"""How types of C are spelled."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
static const char table[2][3] = {"ab", "cd"};
static const char *const *volatile names;
int f(const int *const p) { const char *s = __func__; return *p + s[0] + table[*p][0] + !names; }
int main(void) { int n = 0; return f(&n); }
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_qualifier_is_spelled_once(compiler: str, tmp_path: Path) -> None:
    require(compiler)
    (tmp_path / "t.c").write_text(SOURCE)
    subprocess.run([compiler, "-g", "-O0", "t.c", "-o", "t"], cwd=tmp_path, check=True, timeout=60)
    probe = fetchc.open(str(tmp_path / "t")).probe("f", kernel="6.1")
    spelled = {one.name: one.type for one in probe.variables()}
    assert spelled["p"] == "const int * const"
    if compiler == "gcc":  # clang describes no __func__
        assert spelled["__func__"] == "const char[2]"
    assert probe.compile("table").type == "const char[2][3]"
    assert probe.compile("names").type == "const char * const * volatile"
