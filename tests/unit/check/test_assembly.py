"""Functions written in assembly: no names, the arguments and result of the C convention."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
    .text
    .globl twice
    .type twice, @function
twice:
    lea (%rdi,%rdi), %rax
    ret
    .size twice, .-twice
    .section .note.GNU-stack,"",@progbits
"""
PROGRAM = "long twice(long); int main(int argc, char **argv) { (void)argv; return twice(argc); }"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Program:
    require("gcc")
    where: Path = tmp_path_factory.mktemp("assembly")
    (where / "twice.s").write_text(SOURCE)
    (where / "main.c").write_text(PROGRAM)
    subprocess.run(
        ["gcc", "-g", "twice.s", "main.c", "-o", "program"], cwd=where, check=True, timeout=60
    )
    return fetchc.open(str(where / "program"))


def test_arguments_by_number(program: fetchc.Program) -> None:
    probe = program.probe("twice", kernel="6.1")
    assert probe.compile("$arg1").fetcharg == "%di:u64"
    assert probe.compile("(char *)$arg2").fetcharg == "+0(%si):string"


def test_the_result_is_a_word(program: fetchc.Program) -> None:
    probe = program.probe("twice", returns=True, kernel="6.1")
    assert probe.compile("$retval").fetcharg == "$retval"


def test_the_listing_says_what_is_known(program: fetchc.Program) -> None:
    (row,) = program.described("twice")
    assert row["signature"] == "twice()"
