"""A library's exported variable may be copied into the executable: FC0607 says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

LIBRARY = """
int exported = 1;
static int hidden = 2;
__attribute__((visibility("hidden"))) int inner = 3;
int read_them(int n) { return n + exported + hidden + inner; }
"""
PROGRAM = """
extern int exported;
int own = 4;
int read_them(int);
int main(void) { exported = 7; return read_them(own); }
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    where = tmp_path_factory.mktemp("copies")
    (where / "library.c").write_text(LIBRARY)
    (where / "program.c").write_text(PROGRAM)
    for options in (
        ["-shared", "-fPIC", "library.c", "-o", "library.so"],
        ["program.c", "./library.so", "-o", "program"],
    ):
        subprocess.run(["gcc", "-g", "-O0", *options], cwd=where, check=True, timeout=60)
    return where


def codes(path: Path, function: str, name: str) -> list[str]:
    argument = fetchc.open(str(path)).probe(function, kernel="6.1").compile(name)
    return [warning.code for warning in argument.warnings]


def test_an_exported_variable_may_be_copied(directory: Path) -> None:
    assert codes(directory / "library.so", "read_them", "exported") == ["FC0607"]


@pytest.mark.parametrize("name", ["hidden", "inner"])
def test_a_variable_that_is_not_exported_is_not(directory: Path, name: str) -> None:
    assert codes(directory / "library.so", "read_them", name) == []


def test_an_executable_holds_its_own_variables(directory: Path) -> None:
    assert codes(directory / "program", "main", "own") == []


def test_the_linker_does_make_such_copies(directory: Path) -> None:
    # The fact behind it: the executable's own copy is the one that both use.
    require("readelf")
    shown = subprocess.run(
        ["readelf", "-rW", directory / "program"], capture_output=True, text=True, check=True,
        timeout=30,
    ).stdout  # fmt: skip
    assert any("R_X86_64_COPY" in line and "exported" in line for line in shown.splitlines())
