"""Return probes of what exceptions may leave: the unwinder does not get past them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.cli import main
from tests.support.toolchains import require

SOURCE = """
extern "C" { void far(int); int table(int); int plain(int k) { return k + 4; } }
#define KEPT __attribute__((noipa))
KEPT int leaf(int k) { return k + 1; }
KEPT int calm(int k) { return leaf(k) + leaf(k + 1); }
KEPT int recurs(int k) { return k ? recurs(k - 1) * 3 : leaf(k); }
KEPT int throws(int k) { if (k > 2) throw k; return k + 1; }
KEPT int passes(int k) { return throws(k) + 2; }
KEPT int calls(int (*f)(int), int k) { return f(k) + 3; }
KEPT int tail(int k) { if (k == 7) return 9; return throws(k); }
KEPT int only_tail(int k) { return throws(k + 1); }
KEPT int outside(int k) { far(k); return k; }
KEPT int cases(int k) {
  switch (k) { case 0: return throws(1) + 1; case 1: return throws(3) + 2; case 2: return 31;
    case 3: return throws(5) + 8; case 4: return 12; case 5: return throws(9) + 1; }
  return 0;
}
void far(int) {}
int main(int c, char **) {
  try { return passes(c + 5) + calm(c) + recurs(c) + calls(leaf, c) + tail(c) + only_tail(c)
      + cases(c) + plain(c); }
  catch (int e) { outside(e); return 0; }
}
"""


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("g++")
    pytest.importorskip("capstone", reason="no disassembler")
    folder = tmp_path_factory.mktemp("unwound")
    (folder / "one.cc").write_text(SOURCE)
    command = ["g++", "-g", "-O2", "-fno-inline", "one.cc", "-o", "one"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "one"


KINDS = {
    # A return probe where nothing that is reached can throw, return instructions elsewhere.
    "leaf": "return", "calm": "return", "recurs": "return", "plain": "return",
    "throws": "return-site", "passes": "return-site", "calls": "return-site",
    "tail": "return-site", "cases": "return-site",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_how_returns_are_probed(binary: Path, name: str) -> None:
    probe = fetchc.open(str(binary)).probe(name, returns=True, kernel="6.1")
    assert probe.kind == KINDS[name]
    wanted = "$retval" if probe.kind == "return" else "%ax"
    assert probe.compile("$retval").fetcharg == f"{wanted}:s32"
    assert [one.code for one in probe.warnings] == (["FC0609"] if name == "tail" else [])


def test_what_leaves_by_a_jump_is_reported(binary: Path) -> None:
    program = fetchc.open(str(binary))
    (warning,) = program.probe("tail", returns=True, kernel="6.1").warnings
    assert "a jump to `_Z6throwsi`" in warning.notes[0]
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("only_tail", returns=True, kernel="6.1")
    (refused,) = caught.value.diagnostics
    assert refused.code == "FC0409"
    assert refused.help == "probe the return of `_Z6throwsi`; `--unsafe-return` takes the risk"


def test_the_risk_can_be_taken(binary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = fetchc.open(str(binary), unsafe_return=True)
    probe = program.probe("passes", returns=True, kernel="6.1")
    assert probe.kind == "return"
    assert [one.code for one in probe.warnings] == ["FC0621"]
    assert program.probe("calm", returns=True, kernel="6.1").warnings == ()
    words = ["compile", "$retval", "--return", "-x", str(binary), "-f", "only_tail"]
    assert main(words) != 0
    assert main([*words, "--unsafe-return"]) == 0
    assert "FC0621" in capsys.readouterr().err


def test_without_symbols_of_the_source(binary: Path, tmp_path: Path) -> None:
    subprocess.run(["strip", "-g", binary, "-o", tmp_path / "bare"], check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "bare"))
    for name, kind in (("_Z6passesi", "return-site"), ("_Z4calmi", "return"), ("plain", "return")):
        assert program.probe(name, returns=True, kernel="6.1").kind == kind


def test_c_where_nothing_is_thrown(tmp_path: Path) -> None:
    require("gcc")
    (tmp_path / "c.c").write_text(
        '#include <stdio.h>\n__attribute__((noipa)) int f(int k) { return puts("") + k; }\n'
        "__attribute__((noipa)) int lfind(int (*f)(int), int k) { return f(k) + k; }\n"
        "int main(int c, char **v) { return f(c) + lfind(f, c); }\n"
    )
    subprocess.run(["gcc", "-g", "-O1", "c.c", "-o", "c"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "c"))
    assert program.probe("f", returns=True, kernel="6.1").kind == "return"
    # What the C library calls back can throw.
    assert program.probe("lfind", returns=True, kernel="6.1").kind == "return-site"


def test_the_entry_is_probed_without_that(binary: Path) -> None:
    assert fetchc.open(str(binary)).probe("throws", kernel="6.1").warnings == ()
