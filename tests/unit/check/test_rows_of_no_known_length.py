"""Pointers to rows of a variable-length array: the first row is where they lead."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
#define KEPT __attribute__((noinline))
KEPT int sum(int m, int (*rows)[m], int (*fixed)[5]) { return rows[1][m - 1] + fixed[1][2]; }
int main(int argc, char **argv) { int many[2][argc + 2], few[2][5] = {0};
  for (int i = 0; i < 2 * (argc + 2); i++) many[0][i] = i;
  return sum(argc + 2, many, few); }
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Probe:
    require("gcc")
    folder = tmp_path_factory.mktemp("rows")
    (folder / "rows.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "rows.c", "-o", "rows"], cwd=folder, check=True, timeout=60)
    return fetchc.open(str(folder / "rows")).probe("sum", kernel="6.1")


@pytest.mark.parametrize(
    ("expression", "fetcharg"),
    [
        ("rows[0][1]", "+4(%si):s32"),
        ("(*rows)[1]", "+4(%si):s32"),
        ("(*rows)[7]", "+28(%si):s32"),
        ("fixed[0][1]", "+4(%dx):s32"),
        ("fixed[1][1]", "+24(%dx):s32"),
    ],
)
def test_an_element(probe: fetchc.Probe, expression: str, fetcharg: str) -> None:
    assert probe.compile(expression).fetcharg == fetcharg


@pytest.mark.parametrize("expression", ["rows[1][1]", "rows[-1][1]"])
def test_no_other_row_can_be_counted_off(probe: fetchc.Probe, expression: str) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile(expression)
    (one,) = caught.value.diagnostics
    assert (one.code, one.help) == (
        "FC0311",
        "count from the first row: `(*e)[7]` is `e[1][2]` where rows have 5 elements",
    )
