"""Structures passed to functions that the compiler changed, since nobody else calls them."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
struct s { int a; long b; };
struct t { long a; int b, c; };
int sink;
#define KEPT __attribute__((noinline)) static
KEPT long second(struct s p, int k) { __asm__ volatile("" ::: "memory"); return sink += p.b + k; }
KEPT int shifted(struct s q, struct t r) {
  __asm__ volatile("" ::: "memory"); return sink += q.a + r.c; }
KEPT int whole(struct s q) { __asm__ volatile("" ::: "memory"); return sink += q.a + q.b; }
int main(int n, char **v) {
  struct s q = {n, n + 1}; struct t r = {1, n + 2, n + 3};
  return second(q, 3) + shifted(q, r) + whole(q);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Program:
    require("clang")
    directory = tmp_path_factory.mktemp("signatures")
    (directory / "program.c").write_text(SOURCE)
    command = ["clang", "-g", "-O2", "-o", directory / "program", directory / "program.c"]
    subprocess.run(list(map(str, command)), check=True, timeout=60)
    return fetchc.open(str(directory / "program"))


def refused(program: fetchc.Program, function: str, text: str) -> str:
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe(function).compile(text)
    return caught.value.diagnostics[0].code


def test_what_is_left_of_a_structure_moves_to_the_first_registers(program: fetchc.Program) -> None:
    second = program.probe("second").compile("p.b")
    assert second.fetcharg == "%di:s64"
    assert [warning.code for warning in second.warnings] == ["FC0602"]
    assert refused(program, "second", "p.a") == "FC0401"


def test_a_part_that_nothing_confirms_is_refused(program: fetchc.Program) -> None:
    assert program.probe("shifted").compile("q.a").fetcharg == "%di:s32"
    assert refused(program, "shifted", "q.b") == "FC0401"


def test_a_structure_behind_a_changed_one_is_refused(program: fetchc.Program) -> None:
    assert refused(program, "shifted", "r.c") == "FC0401"


def test_a_structure_passed_whole_is_fetched(program: fetchc.Program) -> None:
    probe = program.probe("whole")
    assert probe.compile("q.a").fetcharg == "%di:s32"
    assert probe.compile("q.b").fetcharg == "%si:s64"
