"""Variables that are declared alone, and which the linker has put somewhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc import CompileError
from tests.support.toolchains import require

PROGRAM = """
#include <stdio.h>
extern int elsewhere, nowhere;
extern __thread int per_thread;
extern int also __attribute__((alias("own")));
int own = 4;
static int hidden = 5;
int main(void) { return stdout != NULL && elsewhere + also + per_thread + hidden; }
"""
BARE = "int elsewhere = 3; __thread int per_thread; static int nowhere = 1, *kept = &nowhere;"


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    where = tmp_path_factory.mktemp("linked")
    (where / "program.c").write_text(PROGRAM)
    (where / "bare.c").write_text(BARE)
    for words in (["-g0", "-c", "bare.c"], ["-g", "program.c", "bare.o", "-o", "program"]):
        subprocess.run(["gcc", "-O0", "-fPIE", "-pie", *words], cwd=where, check=True, timeout=60)
    return where / "program"


def _symbols(binary: Path) -> dict[str, int]:
    listed = subprocess.run(
        ["nm", binary], capture_output=True, text=True, check=True, timeout=30
    ).stdout.splitlines()
    rows = [line.split() for line in listed]
    return {row[2].partition("@")[0]: int(row[0], 16) for row in rows if len(row) == 3}


@pytest.mark.parametrize("name", ["elsewhere", "also", "own", "stdout"])
def test_a_declared_variable_is_at_its_symbol(binary: Path, name: str) -> None:
    fetcharg = fetchc.open(str(binary)).probe("main", kernel="6.1").compile(name).fetcharg
    assert fetcharg.partition(":")[0] == f"@+{_symbols(binary)[name]:#x}"


@pytest.mark.parametrize("name", ["nowhere", "per_thread"])
def test_what_is_no_exported_object_stays_unknown(binary: Path, name: str) -> None:
    assert name in _symbols(binary)
    with pytest.raises(CompileError) as refused:
        fetchc.open(str(binary)).probe("main", kernel="6.1").compile(name)
    assert refused.value.diagnostics[0].code == "FC0201"
