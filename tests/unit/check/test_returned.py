"""Results of functions whose callers the compiler knows: what none takes is not returned."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = r"""
#define KEPT __attribute__((noinline))
#define KEEP __asm__ volatile("" ::: "memory")
struct two { long a, b; };
struct long_one { long a[6]; };
int sink;
KEPT static long unused(int n) { KEEP; sink += n; KEEP; return n * 7; }
KEPT static long used(int n) { KEEP; sink += n; KEEP; return n * 9; }
KEPT static struct two half(int n) { KEEP; struct two r = {n * 3, n * 5}; sink += n; return r; }
KEPT static struct two whole(int n) { KEEP; struct two r = {n * 4, n * 9}; sink += n; return r; }
KEPT static struct long_one far(int n) {
  struct long_one r = {{n, n}}; KEEP; sink += n; KEEP; return r; }
KEPT static long stored(int n) { KEEP; sink += n; return n + 1; }
KEPT static long computed(int n) { KEEP; sink += n; return n + 2; }
KEPT long exported(int n) { KEEP; sink += n; return n * 7; }
long (*const table[2])(int) = {stored};
long (*volatile variable)(int);
int main(int n, char **v) {
  struct two w = whole(n);
  variable = computed;
  unused(n); table[n - 1](n); exported(n); stored(n); computed(n);
  return used(n) + half(n).b + w.a + w.b + far(n).a[1];
}
"""


def built(directory: Path, compiler: str, *options: str) -> fetchc.Program:
    require(compiler)
    (directory / "program.c").write_text(SOURCE)
    command = [compiler, "-g", *options, "-o", directory / "program", directory / "program.c"]
    subprocess.run(list(map(str, command)), check=True, timeout=60)
    return fetchc.open(str(directory / "program"))


def answer(program: fetchc.Program, function: str, text: str = "$retval") -> str:
    try:
        return program.probe(function, returns=True).compile(text).fetcharg
    except fetchc.CompileError as error:
        return error.diagnostics[0].code


@pytest.mark.parametrize("linked", ["-pie", "-no-pie"])
@pytest.mark.parametrize("level", ["-O2", "-Os"])
def test_clang_drops_what_no_caller_takes(level: str, linked: str, tmp_path: Path) -> None:
    code = "-fPIE" if linked == "-pie" else "-fno-pie"
    program = built(tmp_path, "clang", level, code, linked)
    assert answer(program, "unused") == "FC0401"
    assert answer(program, "half", "$retval.b") == "FC0401"
    assert answer(program, "far", "$retval.a[1]") == "FC0401"
    assert answer(program, "used") == "$retval:s64"
    assert answer(program, "whole", "$retval.b") == "%dx:s64"
    assert answer(program, "exported") == "$retval:s64"


@pytest.mark.parametrize("linked", ["-pie", "-no-pie"])
def test_a_function_whose_address_is_stored_returns_all(linked: str, tmp_path: Path) -> None:
    program = built(tmp_path, "clang", "-O2", linked, "-fPIE" if linked == "-pie" else "-fno-pie")
    assert answer(program, "stored") == "$retval:s64"
    assert answer(program, "computed") == "$retval:s64"


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_unoptimised_code_returns_all(version: str, tmp_path: Path) -> None:
    program = built(tmp_path, "clang", "-O0", version)
    assert answer(program, "unused") == "$retval:s64"
    assert answer(program, "half", "$retval.b") == "%dx:s64"


def test_gcc_says_by_the_name_what_it_copied(tmp_path: Path) -> None:
    program = built(tmp_path, "gcc", "-O2")
    assert answer(program, "unused") == "FC0401"
    assert answer(program, "used") == "$retval:s64"
    assert answer(program, "half", "$retval.b") == "%dx:s64"


def test_what_is_exported_is_local_to_a_whole_program(tmp_path: Path) -> None:
    program = built(tmp_path, "gcc", "-O2", "-flto")
    assert answer(program, "exported") == "FC0401"


SANITIZED = r"""
#include <stdio.h>
volatile int sink;
#define ROOM char b[32]; snprintf(b, 32, "%d", n); sink += b[0];
__attribute__((noinline)) static int unused(int n) { ROOM return n * 3; }
__attribute__((noinline)) static int used(int n) { ROOM return n * 5; }
int main(int n, char **v) { unused(n); unused(n + 1); return used(n) + sink; }
"""


@pytest.mark.parametrize("linked", ["-pie", "-no-pie"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_its_address_in_its_own_frame_is_no_other_way_to_call_it(
    compiler: str, linked: str, tmp_path: Path
) -> None:
    """AddressSanitizer stores the address of a function in its frame, for its reports."""
    require("gcc")
    require(compiler)
    (tmp_path / "program.c").write_text(SANITIZED)
    options = ["-g", "-O2", "-fsanitize=address", "-fPIE" if linked == "-pie" else "-fno-pie"]
    subprocess.run([compiler, *options, "-c", "program.c"], check=True, cwd=tmp_path, timeout=60)
    # gcc's run-time library: Debian has clang's in a package of its own.
    command = ["gcc", "-fsanitize=address", linked, "-o", "program", "program.o"]
    done = subprocess.run(command, check=False, cwd=tmp_path, timeout=60, capture_output=True)
    if done.returncode:
        pytest.skip(f"AddressSanitizer is not there: {done.stderr.decode()[-200:]}")
    program = fetchc.open(str(tmp_path / "program"))
    assert answer(program, "unused") == "FC0401"
    assert answer(program, "used") == "$retval:s32"
