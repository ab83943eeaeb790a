"""Functions that are called by another convention than most, as their source asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = r"""
struct three { int a, b, c; };
#define KEPT __attribute__((noinline))
#define KEEP __asm__ volatile("" ::: "memory")
int sink;
KEPT __attribute__((ms_abi)) long windows(int a, struct three s, int d, int e, int f) {
  sink += a + s.b + d + e + f; KEEP; return sink; }
KEPT __attribute__((ms_abi)) struct three result(int a) {
  struct three s = {a, a, a}; KEEP; return s; }
#ifdef __clang__
KEPT __attribute__((regcall)) long registers(int a, long b) { sink += a + b; KEEP; return sink; }
KEPT __attribute__((preserve_most)) void usual(int a, long b) { sink += a + b; KEEP; }
#endif
int main(int n, char **v) {
  struct three s = {n, 2, 3};
  result(1);
#ifdef __clang__
  registers(1, 2); usual(1, 2);
#endif
  return windows(n, s, 3, 4, 5);
}
"""


def built(directory: Path, compiler: str, level: str) -> fetchc.Program:
    require(compiler)
    (directory / "program.c").write_text(SOURCE)
    command = [compiler, "-g", level, "-o", directory / "program", directory / "program.c"]
    subprocess.run(list(map(str, command)), check=True, timeout=60)
    return fetchc.open(str(directory / "program"))


def answer(program: fetchc.Program, function: str, text: str, returns: bool = False) -> str:
    try:
        return program.probe(function, returns=returns).compile(text).fetcharg
    except fetchc.CompileError as error:
        return error.diagnostics[0].code


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_what_is_passed_elsewhere_is_refused_without_evidence(
    compiler: str, tmp_path: Path
) -> None:
    program = built(tmp_path, compiler, "-O0")
    refused = {answer(program, "windows", each) for each in ("a", "s.b", "d", "e", "f")}
    assert refused <= {"FC0401", "FC0407"}


def test_a_structure_beside_a_parameter_that_is_elsewhere_is_refused(tmp_path: Path) -> None:
    # gcc says nowhere that the function is one of another convention, and not where `s` is.
    program = built(tmp_path, "gcc", "-O2")
    assert answer(program, "windows", "s.b") == "FC0407"


def test_what_the_debug_information_tells_is_believed(tmp_path: Path) -> None:
    # The compiler names the convention (DW_AT_calling_convention), and says of registers alone.
    program = built(tmp_path, "clang", "-O2")
    assert answer(program, "windows", "a") == "%cx:s32"
    assert answer(program, "windows", "s.b") == "FC0401"
    assert answer(program, "windows", "f") == "FC0401"
    assert answer(program, "registers", "a") == "%ax:s32"
    assert answer(program, "windows", "$arg1") == "FC0401"


def test_a_result_is_refused(tmp_path: Path) -> None:
    program = built(tmp_path, "clang", "-O2")
    assert answer(program, "result", "$retval.b", returns=True) == "FC0401"
    assert answer(program, "windows", "$retval", returns=True) == "FC0401"


def test_parameters_of_preserve_most_are_where_all_are(tmp_path: Path) -> None:
    program = built(tmp_path, "clang", "-O0")
    assert answer(program, "usual", "a") == "%di:s32"
    assert answer(program, "usual", "b") == "%si:s64"
