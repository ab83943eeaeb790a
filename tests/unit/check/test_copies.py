"""Variables of several files: a library's may be copied into the executable (FC0607)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

LIBRARY = """
int exported = 1;
int unread = 9;
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
    assert codes(directory / "library.so", "read_them", "unread") == ["FC0607"]


def test_the_global_offset_table_leads_to_the_copy(directory: Path) -> None:
    assert codes(directory / "library.so", "read_them", "exported") == []
    word = offset_of(directory / "library.so", "exported")
    probe = fetchc.open(str(directory / "library.so")).probe("read_them", kernel="6.1")
    assert probe.compile("exported").fetcharg == f"+0(@+{word:#x}):s32"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64", "s390x", "powerpc64le"])
def test_a_variable_of_another_library(machine: str, tmp_path: Path) -> None:
    compiler = f"{machine}-linux-gnu-gcc"
    require(compiler)
    for name, source in (("library", LIBRARY), ("program", PROGRAM)):
        (tmp_path / f"{name}.c").write_text(source)
    for options in (
        ["-shared", "-fPIC", "library.c", "-o", "library.so"],
        ["-fPIC", "-pie", "-z", "nocopyreloc", "program.c", "./library.so", "-o", "program"],
    ):
        command = [compiler, "-g", "-O1", "-nostdlib", "-e", "main", *options]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    word = offset_of(tmp_path / "program", "exported")
    probe = fetchc.open(str(tmp_path / "program")).probe("main", kernel="6.1")
    assert probe.compile("exported").fetcharg == f"+0(@+{word:#x}):s32"
    probe = fetchc.open(str(tmp_path / "program")).probe("main", kernel="6.1")
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("read_them.x")
    assert "library.so" in (refused.value.diagnostics[0].help or "")


def test_a_variable_of_a_namespace_may_be_copied(tmp_path: Path) -> None:
    # By its symbol, which is another word than its name.
    require("g++")
    source = "namespace ns { int used = 1; int unread = 2; } int f() { return ns::used; }"
    (tmp_path / "t.cc").write_text(source)
    command = ["g++", "-g", "-O0", "-shared", "-fPIC", "t.cc", "-o", "t.so"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    assert codes(tmp_path / "t.so", "f", "ns::unread") == ["FC0607"]
    assert codes(tmp_path / "t.so", "f", "ns::used") == []


def offset_of(path: Path, name: str) -> int:
    """Where readelf has the word that the loader fills in with the variable's address."""
    require("readelf")
    shown = subprocess.run(
        ["readelf", "-rW", path], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    (found,) = [line for line in shown.splitlines() if line.split()[4:5] == [name]]
    return int(found.split()[0], 16)


@pytest.mark.parametrize("name", ["hidden", "inner"])
def test_a_variable_that_is_not_exported_is_not(directory: Path, name: str) -> None:
    assert codes(directory / "library.so", "read_them", name) == []


def test_an_executable_holds_its_own_variables(directory: Path) -> None:
    assert codes(directory / "program", "main", "own") == []


def test_the_linker_does_make_such_copies(directory: Path) -> None:
    # The fact after it: the executable's own copy is the one that both use.
    require("readelf")
    shown = subprocess.run(
        ["readelf", "-rW", directory / "program"], capture_output=True, text=True, check=True,
        timeout=30,
    ).stdout  # fmt: skip
    assert any("R_X86_64_COPY" in line and "exported" in line for line in shown.splitlines())
