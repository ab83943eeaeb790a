"""Probe points that need more than a name: IFUNCs, functions without a symbol, addresses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
static int plain(int n) { return n + 1; }
static void *pick(void) { return plain; }
int chosen(int n) __attribute__((ifunc("pick")));
static inline __attribute__((always_inline)) int only_inlined(int n) { return 2 * n; }
int main(int argc, char **argv) { (void)argv; return chosen(argc) + only_inlined(argc); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Program:
    require("gcc")
    where: Path = tmp_path_factory.mktemp("sites")
    (where / "sites.c").write_text(SOURCE)
    subprocess.run(
        ["gcc", "-g", "-O0", "sites.c", "-o", "sites"], cwd=where, check=True, timeout=60
    )
    return fetchc.open(str(where / "sites"))


def refused(program: fetchc.Program, function: str | None, at: str | None = None) -> str:
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe(function, at=at, kernel="6.1")
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.code} {diagnostic.message} {' '.join(diagnostic.notes)}"


def test_an_ifunc_is_refused(program: fetchc.Program) -> None:
    assert refused(program, "chosen").startswith("FC0206 `chosen` is chosen when the program")


def test_the_return_of_a_function_that_is_inlined_everywhere(program: fetchc.Program) -> None:
    said = refused(program, None, "only_inlined%return")
    assert said.startswith("FC0202 `only_inlined` has no code of its own")
    assert "into every function that calls it" in said


def test_a_bare_number_may_have_meant_a_line(program: fetchc.Program) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("main", at="6", kernel="6.1")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "FC0202"
    assert diagnostic.help == "a line is written `:6`, a distance in bytes `+6`"


def test_an_address_finds_its_function(program: fetchc.Program) -> None:
    start = program.probe("plain", kernel="6.1").address
    probe = program.probe(at=f"{start:#x}", kernel="6.1")
    assert probe.function is not None
    assert (probe.function.name, probe.kind) == ("plain", "entry")
    assert probe.compile("n").fetcharg == "%di:s32"


def test_an_address_of_another_function_is_refused(program: fetchc.Program) -> None:
    start = program.probe("plain", kernel="6.1").address
    assert refused(program, "main", f"{start:#x}").startswith("FC0206")


def test_a_point_in_place_of_a_function(program: fetchc.Program) -> None:
    entry = program.probe("main", kernel="6.1").address
    for written in (f"{entry:#x}", "main+0", "main:6", "sites.c:6"):
        assert program.probe(written, kernel="6.1").address == entry, written
    assert program.probe("main+0x4", kernel="6.1").address == entry + 4
    assert refused(program, "sites.c:70").startswith("FC0206 line 70 has no code in `sites.c`")
    assert refused(program, "other+4").startswith("FC0202 no function `other`")
    kinds = {"only_inlined%inline": "inline", "plain%return": "return", "plain%body": "body"}
    for written, kind in kinds.items():
        assert program.probe(written, kernel="6.1").kind == kind, written


def test_an_address_of_no_segment_is_refused(program: fetchc.Program) -> None:
    assert refused(program, None, "0x7f0000000000").startswith("FC0206 the file has no code")


def test_a_file_without_symbols_is_said_to_be_stripped(
    program: fetchc.Program, tmp_path: Path
) -> None:
    require("strip")
    bare = tmp_path / "bare"
    subprocess.run(["strip", "-o", bare, program.path], check=True, timeout=60)
    said = refused(fetchc.open(str(bare)), "chosen")
    assert said.startswith("FC0202 no function `chosen` is known: ")
    assert "was stripped of its symbols" in said
