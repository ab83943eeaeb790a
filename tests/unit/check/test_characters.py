"""By which encoding elements make a string."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf import constants as dw
from tests.support.dwarfwriter import (
    Attr,
    Entry,
    Ref,
    Unit,
    base_die,
    compile_unit,
    pointer_die,
    program,
    subprogram_die,
    typedef_die,
)
from tests.support.elfwriter import Load, Sym

ELEMENTS = ("short", "char8_t", "char", "char16_t", "letter", "round")


def parameter(name: str, target: str) -> Entry:
    attributes = (
        Attr(dw.DW_AT_name, dw.DW_FORM_string, name),
        Attr(dw.DW_AT_type, dw.DW_FORM_ref4, Ref(target)),
    )
    return Entry(dw.DW_TAG_formal_parameter, attributes, (), name)


@pytest.fixture
def probe(tmp_path: Path) -> fetchc.Probe:
    """``f(short *_short, ..., short n)``; ``round`` is a typedef of itself."""
    types = [
        base_die("short", 2, dw.DW_ATE_signed),
        base_die("char", 1, dw.DW_ATE_signed_char),
        base_die("char8_t", 1, dw.DW_ATE_unsigned),  # of g++ 12; clang says DW_ATE_UTF
        typedef_die("char16_t", "short"),
        typedef_die("letter", "char16_t"),
        typedef_die("round", "circle"),
        typedef_die("circle", "round"),
        *(pointer_die(name, f"{name} *") for name in ELEMENTS),
    ]
    parameters = [parameter(f"_{name}", f"{name} *") for name in ELEMENTS]
    function = subprogram_die("f", 0x1000, 0x1004, *parameters, parameter("n", "short"))
    unit = compile_unit(*types, function, low=0x1000, high=0x1004)
    path = program(
        tmp_path / "program",
        [Unit(unit, version=5)],
        symbols=[Sym("f", 0x1000, 4)],
        loads=[Load(0x1000, b"\x90\x90\x90\xc3")],
    )
    return fetchc.open(str(path)).probe("f", kernel="6.1")


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        ("short", "integer"),
        ("char8_t", "bytes"),
        ("char", "bytes"),
        ("char16_t", "utf-16"),
        ("letter", "utf-16"),
    ],
)
def test_elements_are_text_by_their_kind_or_their_name(
    element: str, kind: str, probe: fetchc.Probe
) -> None:
    assert probe.compile(f"_{element}[0:n]").whole.parts[0].decode.kind == kind


@pytest.mark.parametrize(("element", "register"), [("char8_t", "si"), ("char", "dx")])
def test_a_pointer_to_one_is_a_string(element: str, register: str, probe: fetchc.Probe) -> None:
    assert probe.compile(f"_{element}").fetcharg == f"+0(%{register}):string"


@pytest.mark.timeout(20)
def test_a_typedef_of_itself_has_an_end(probe: fetchc.Probe) -> None:
    with pytest.raises(fetchc.Error):
        probe.compile("_round[0:n]")
    assert probe.plan(["_round"], "group") is not None
