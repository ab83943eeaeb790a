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


def bit_field(name: str, width: int, offset: int) -> Entry:
    bits = (
        Attr(dw.DW_AT_bit_size, dw.DW_FORM_data1, width),
        Attr(dw.DW_AT_data_bit_offset, dw.DW_FORM_data1, offset),
    )
    return Entry(dw.DW_TAG_member, member_die(name, "int", 0).attributes[:2] + bits, (), "")


# struct { unsigned a : 4; short b : 16; int after; }, packed, as clang 14 describes it
OVERLAPPING = [bit_field("a", 4, 0), member_die("b", "short", 0), member_die("after", "int", 3)]


def probe(
    directory: Path, tag: int, members: list[Entry] = OVERLAPPING, size: int = 7
) -> fetchc.Probe:
    written = struct_die("s", size, members)
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


# As clang 14 describes them, all packed: b is at bit 11 of the first two, and at byte 1 of the
# others, where it ends next to what follows, or nothing tells of packing.
@pytest.mark.parametrize(
    ("members", "size", "certain"),
    [
        # { unsigned short a : 6, : 5, b : 16; }
        ([bit_field("a", 6, 0), member_die("b", "short", 1)], 4, False),
        # { unsigned short a : 6, : 5, b : 16, c : 5; }
        ([bit_field("a", 6, 0), member_die("b", "short", 1), bit_field("c", 5, 27)], 4, False),
        # { unsigned short a : 6; short b; }
        ([bit_field("a", 6, 0), member_die("b", "short", 1)], 3, True),
        # { unsigned short a : 6; short b; unsigned short c : 5; }
        ([bit_field("a", 6, 0), member_die("b", "short", 1), bit_field("c", 5, 24)], 4, True),
        # { unsigned short a : 6; short b; int c; }, not packed
        ([bit_field("a", 6, 0), member_die("b", "short", 2), member_die("c", "int", 4)], 8, True),
        # { unsigned short a : 6; short b; int c aligned to 8; }, not packed
        ([bit_field("a", 6, 0), member_die("b", "short", 2), member_die("c", "int", 8)], 12, True),
    ],
)
def test_a_hole_behind_a_packed_member_makes_its_place_uncertain(
    members: list[Entry], size: int, certain: bool, tmp_path: Path
) -> None:
    found = probe(tmp_path, dw.DW_TAG_structure_type, members, size)
    if certain:
        assert found.compile("p.b").fetcharg.endswith("(%di):s16")
        return
    with pytest.raises(fetchc.CompileError) as caught:
        found.compile("p.b")
    assert caught.value.diagnostics[0].code == "FC0904"
    assert "`b` end before what follows it" in caught.value.diagnostics[0].message
