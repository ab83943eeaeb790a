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
    assert said.startswith(
        "FC0903 the calling convention of `runtime.memmove` is not known: it is written in"
    )


@pytest.mark.parametrize("option", ["--preserve-dates", "--strip-debug"])
def test_assembly_of_one_file_is_not_certain(option: str, tmp_path: Path) -> None:
    # Its symbol has no `.abi0`, whatever it follows: memeqbody has what it compares in %si and %di.
    program = stripped(option, tmp_path)
    for name in ("memeqbody", "gcWriteBarrier"):
        said = answer(program, name)
        assert said.startswith(
            f"FC0903 the calling convention of `{name}` is not known: it is written in"
        )
    assert answer(program, "main.later.func1") == "%ax:u64"


def test_one_of_two_compiled_functions_of_a_name_is_not_certain(tmp_path: Path) -> None:
    program = stripped("--strip-all", tmp_path)
    known = program._program
    doubled = [
        name
        for name in program.functions()
        if len(found := known.functions_named(name)) > 1
        and not any(one.compiler.name == "go-asm" for one in found)
    ]
    assert doubled
    for name in doubled:
        for one in known.functions_named(name):
            probe = program.probe(at=f"{one.address:#x}", kernel="6.1")
            with pytest.raises(fetchc.CompileError, match="the calling convention of"):
                probe.compile("$arg1")


def test_the_stack_convention_holds_for_all(tmp_path: Path) -> None:
    program = stripped("--strip-all", tmp_path, "go1.15")
    assert answer(program, "main.survey") == "+8(%sp):u64"
    assert answer(program, "runtime.memmove") == "+8(%sp):u64"


def test_a_word_is_cast_to_what_is_one(tmp_path: Path) -> None:
    program = stripped("--strip-all", tmp_path)
    probe = program.probe("main.survey", kernel="6.1")
    assert probe.compile("len((map[string]int)($arg1))").fetcharg == "+0(%ax):s64"
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("(float64)($arg1)")
    (said,) = caught.value.diagnostics
    assert said.help is not None
    assert "`*(*float64)(&e)`" in said.help


@pytest.mark.parametrize(
    ("name", "text", "fetched"),
    [
        ("go1.27", "s=(string)($arg2)", "s=+0(%bx):x64[32] s_len=%cx:s64"),
        ("go1.27", "s=len(([]byte)($arg7))", "s=%r10:s64"),
        ("go1.27", "s=(error)($arg8)", "s_tab=%r10:x64 s_data=%r11:x64"),
        ("go1.27", "s=(string)($arg10)", "s=+0(+8(%sp)):x64[32] s_len=+16(%sp):s64"),
        ("go1.15", "s=(string)($arg3)", "s=+0(+24(%sp)):x64[32] s_len=+32(%sp):s64"),
    ],
)
def test_several_words_of_the_convention(
    name: str, text: str, fetched: str, tmp_path: Path
) -> None:
    program = stripped("--strip-all", tmp_path, name)
    probe = program.probe("main.survey", kernel="6.1")
    assert probe.definition([probe.compile(text)]).endswith(f" {fetched}")


def test_no_value_is_in_registers_and_on_the_stack(tmp_path: Path) -> None:
    probe = stripped("--strip-all", tmp_path).probe("main.survey", kernel="6.1")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("([]byte)($arg8)")
    (said,) = caught.value.diagnostics
    assert said.code == "FC0404"
    assert said.help == "its first word there is `$arg10`"


def test_results_are_in_the_same_registers(tmp_path: Path) -> None:
    probe = stripped("--strip-all", tmp_path).probe("main.survey", returns=True, kernel="6.1")
    (line,) = set(probe.definition([probe.compile("e=(error)(%bx)")]).split("\n")[:1])
    assert line.endswith(" e_tab=%bx:x64 e_data=%cx:x64")
    for text in ("(string)(%r11)", "(string)(%sp)", "(error)(%r12)"):
        with pytest.raises(fetchc.CompileError) as caught:
            probe.compile(text)
        assert caught.value.diagnostics[0].help is None
