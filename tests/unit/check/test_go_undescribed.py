"""Go functions without debug information: whose convention is certain, and whose is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.programs import fixture
from tests.support.toolchains import require


def stripped(option: str, folder: Path, name: str = "go1.27") -> fetchc.Program:
    require("objcopy")
    bare = folder / "bare"
    command = ["objcopy", option, str(fixture(f"go/features/{name}")), str(bare)]
    subprocess.run(command, check=True, timeout=60)
    return fetchc.open(str(bare))


def answer(program: fetchc.Program, function: str) -> str:
    """The fetch-arg of the first argument, or the refusal."""
    try:
        return program.probe(function, kernel="6.1").compile("$arg1").fetcharg
    except fetchc.CompileError as refused:
        (diagnostic,) = refused.diagnostics
        return f"{diagnostic.code} {diagnostic.message}"


def test_symbols_tell_the_twins_apart(tmp_path: Path) -> None:
    program = stripped("--strip-debug", tmp_path)
    assert answer(program, "main.survey") == "%ax:u64"
    assert answer(program, "runtime.memmove") == "%ax:u64"
    assert answer(program, "runtime.asmcgocall.abi0") == "+8(%sp):u64"


def test_without_symbols_assembly_is_not_certain(tmp_path: Path) -> None:
    program = stripped("--strip-all", tmp_path)
    assert answer(program, "main.survey") == "%ax:u64"
    said = answer(program, "runtime.memmove")
    assert said.startswith("FC0903 nothing says how `runtime.memmove` is called: it is written in")


def test_one_of_two_compiled_functions_of_a_name_is_not_certain(tmp_path: Path) -> None:
    program = stripped("--strip-all", tmp_path)
    known = program._program
    doubled = [
        name
        for name in program.functions()
        if len(found := known.functions_named(name)) > 1
        and not any("asm" in one.producer for one in found)
    ]
    assert doubled
    for name in doubled:
        for one in known.functions_named(name):
            probe = program.probe(at=f"{one.address:#x}", kernel="6.1")
            with pytest.raises(fetchc.CompileError, match="nothing says how"):
                probe.compile("$arg1")


def test_the_stack_convention_holds_for_all(tmp_path: Path) -> None:
    program = stripped("--strip-all", tmp_path, "go1.15")
    assert answer(program, "main.survey") == "+8(%sp):u64"
    assert answer(program, "runtime.memmove") == "+8(%sp):u64"
