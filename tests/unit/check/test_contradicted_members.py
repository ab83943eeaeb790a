"""Members whose description cannot be true: refused, with their neighbours as they are."""

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
    member_die,
    pointer_die,
    program,
    struct_die,
    subprogram_die,
)
from tests.support.elfwriter import Load, Sym


def probe(directory: Path, tag: int) -> fetchc.Probe:
    bits = (
        Attr(dw.DW_AT_bit_size, dw.DW_FORM_data1, 4),
        Attr(dw.DW_AT_data_bit_offset, dw.DW_FORM_data1, 0),
    )
    # struct { unsigned a : 4; short b : 16; int after; }, packed, as clang 14 describes it
    written = struct_die(
        "s",
        7,
        [
            Entry(dw.DW_TAG_member, member_die("a", "int", 0).attributes[:2] + bits, (), ""),
            member_die("b", "short", 0),
            member_die("after", "int", 3),
        ],
    )
    holder = Entry(tag, written.attributes, written.children, "s")
    parameter = Entry(
        dw.DW_TAG_formal_parameter,
        (
            Attr(dw.DW_AT_name, dw.DW_FORM_string, "p"),
            Attr(dw.DW_AT_type, dw.DW_FORM_ref4, Ref("s *")),
        ),
        (),
        "p",
    )
    pointer = pointer_die("s", "s *")
    types = [base_die("int", 4, dw.DW_ATE_signed), base_die("short", 2, dw.DW_ATE_signed)]
    function = subprogram_die("f", 0x1000, 0x1004, parameter)
    unit = compile_unit(*types, holder, pointer, function, low=0x1000, high=0x1004)
    path = program(
        directory / "program",
        [Unit(unit, version=5)],
        symbols=[Sym("f", 0x1000, 4)],
        loads=[Load(0x1000, b"\x90\x90\x90\xc3")],
    )
    return fetchc.open(str(path)).probe("f", kernel="6.1")


def test_a_member_over_a_bit_field_has_no_certain_place(tmp_path: Path) -> None:
    found = probe(tmp_path, dw.DW_TAG_structure_type)
    with pytest.raises(fetchc.CompileError) as caught:
        found.compile("p.b")
    assert caught.value.diagnostics[0].code == "FC0904"
    assert "`b` overlap the bit field `a`" in caught.value.diagnostics[0].message


def test_a_whole_structure_leaves_it_out(tmp_path: Path) -> None:
    found = probe(tmp_path, dw.DW_TAG_structure_type)
    whole = found.compile("*p").whole
    assert [part.suffix for part in whole.parts] == ["a", "after"]
    assert "FC0605" in [warning.code for warning in whole.warnings]


def test_members_of_a_union_overlap(tmp_path: Path) -> None:
    found = probe(tmp_path, dw.DW_TAG_union_type)
    assert found.compile("p.b").fetcharg == "+0(%di):s16"
