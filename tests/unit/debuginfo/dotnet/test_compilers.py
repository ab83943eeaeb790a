"""DWARF of .NET's compilers, which call their language C or C++: not read by those rules."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf import constants as dw
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import CompileError
from tests.support.dwarfwriter import (
    Attr,
    Entry,
    Ref,
    Unit,
    base_die,
    compile_unit,
    subprogram_die,
)
from tests.support.dwarfwriter import program as written
from tests.support.elfwriter import Load, Sym

START = 0x1000


def built(folder: Path, producer: str, language: int) -> str:
    parameter = Entry(
        dw.DW_TAG_formal_parameter,
        (
            Attr(dw.DW_AT_name, dw.DW_FORM_string, "at"),
            Attr(dw.DW_AT_type, dw.DW_FORM_ref4, Ref("int")),
        ),
    )
    unit = compile_unit(
        base_die("int", 4, dw.DW_ATE_signed),
        subprogram_die("visit", START, START + 1, parameter),
        language=language,
        low=START,
        high=START + 1,
        extra=(Attr(dw.DW_AT_producer, dw.DW_FORM_string, producer),),
    )
    return str(
        written(
            folder / "program",
            [Unit(unit)],
            symbols=[Sym("visit", START, 1)],
            loads=[Load(START, b"\xc3")],
        )
    )


@pytest.mark.parametrize(
    ("producer", "language", "key"),
    [
        ("Mono AOT Compiler 6.8.0", dw.DW_LANG_C, "C# of Mono"),
        ("GNU C 4", dw.DW_LANG_C, "c"),
        ("NetRuntime", dw.DW_LANG_C_plus_plus, "C# of NativeAOT"),
        ("GNU C++17 12.2.0", dw.DW_LANG_C_plus_plus, "c++"),
    ],
)
def test_the_compiler_counts(tmp_path: Path, producer: str, language: int, key: str) -> None:
    path = built(tmp_path, producer, language)
    (found,) = DwarfProgram(path).functions_named("visit")
    assert found.language == key
    probe = fetchc.open(path).probe("visit", kernel="6.1")
    if key in ("c", "c++"):
        assert probe.compile("at").fetcharg == "%di:s32"
        return
    with pytest.raises(CompileError) as raised:
        probe.compile("at")
    assert [one.code for one in raised.value.diagnostics] == ["FC0905"]
    assert probe.compile("%di").fetcharg == "%di"
