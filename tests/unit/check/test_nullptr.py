"""A parameter of type ``std::nullptr_t`` takes the place of a pointer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
int sink;
__attribute__((noinline)) int take(int a, decltype(nullptr) none, int b) { return sink += a + b; }
int main() { return take(1, nullptr, 2); }
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_what_stands_behind_it_is_in_the_next_register(compiler: str, tmp_path: Path) -> None:
    require(compiler)
    (tmp_path / "program.cc").write_text(SOURCE)
    command = [compiler, "-g", "-O0", "-o", "program", "program.cc"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    probe = fetchc.open(str(tmp_path / "program")).probe("take")
    found = [probe.compile(name).fetcharg for name in ("a", "none", "b")]
    assert found == ["%di:s32", "%si:x64", "%dx:s32"]
