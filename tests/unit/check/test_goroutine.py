"""``$goid`` where the program was linked without debug information, or in assembly."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.programs import fixture
from tests.support.toolchains import require


def refused(program: fetchc.Program, function: str) -> str:
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe(function, kernel="6.1").compile("$goid")
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.code} {diagnostic.message}"


def test_without_debug_information_the_run_time_describes_it(tmp_path: Path) -> None:
    require("objcopy")
    bare = tmp_path / "bare"
    command = ["objcopy", "--strip-all", str(fixture("go/features/go1.27")), str(bare)]
    subprocess.run(command, check=True, timeout=60)
    program = fetchc.open(str(bare))
    probe = program.probe("main.split", kernel="6.1")
    assert probe.compile("$goid").fetcharg == "+152(%r14):u64"
    said = refused(program, "runtime.memmove")
    assert said.startswith("FC0903 the calling convention of `runtime.memmove` is not known")


def test_a_return_instruction_of_a_function_in_assembly_has_it() -> None:
    program = fetchc.open(str(fixture("go/features/go1.27")))
    probe = program.probe("runtime.asmcgocall", returns=True, kernel="6.1")
    assert probe.compile("$goid").fetcharg == "+152(%r14):u64"
