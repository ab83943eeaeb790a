"""What a name means at the entry: the parameter, whatever optimisers moved before it."""

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
    program,
    subprogram_die,
)
from tests.support.elfwriter import Load, Sym

FIRST_ARGUMENT = bytes([0x55])  # DW_OP_reg5, which is rdi


def named(tag: int, name: str, line: int, *others: Attr, label: str = "") -> Entry:
    return Entry(
        tag,
        (
            Attr(dw.DW_AT_name, dw.DW_FORM_string, name),
            Attr(dw.DW_AT_type, dw.DW_FORM_ref4, Ref("int")),
            Attr(dw.DW_AT_decl_line, dw.DW_FORM_data1, line),
            *others,
        ),
        label=label,
    )


def opened(path: Path, inner: int) -> fetchc.Program:
    # f(int n), whose first instruction belongs to an inner block or an inlined call with an n.
    parameter = Attr(dw.DW_AT_location, dw.DW_FORM_block1, FIRST_ARGUMENT)
    block = Entry(
        inner,
        (
            Attr(dw.DW_AT_low_pc, dw.DW_FORM_addr, 0x1000),
            Attr(dw.DW_AT_high_pc, dw.DW_FORM_addr, 0x1004),
        ),
        (named(dw.DW_TAG_variable, "n", 9, Attr(dw.DW_AT_const_value, dw.DW_FORM_data1, 42)),),
    )
    unit = compile_unit(
        base_die("int", 4, dw.DW_ATE_signed),
        subprogram_die(
            "f", 0x1000, 0x1010, named(dw.DW_TAG_formal_parameter, "n", 7, parameter), block
        ),
        low=0x1000,
        high=0x1010,
    )
    written = program(
        path,
        [Unit(unit, version=3)],
        symbols=[Sym("f", 0x1000, 16)],
        loads=[Load(0x1000, b"\x90" * 15 + b"\xc3")],
    )
    return fetchc.open(written)


@pytest.mark.parametrize("inner", [dw.DW_TAG_lexical_block, dw.DW_TAG_inlined_subroutine])
def test_a_parameter_hides_inner_names_at_the_entry(tmp_path: Path, inner: int) -> None:
    probe = opened(tmp_path / "program", inner).probe("f", kernel="6.1")
    assert probe.compile("n").fetcharg == "%di:s32"
    assert [(shown.name, shown.line) for shown in probe.variables()] == [("n", 7)]


@pytest.mark.parametrize("inner", [dw.DW_TAG_lexical_block, dw.DW_TAG_inlined_subroutine])
def test_inner_names_hide_the_parameter_behind_the_entry(tmp_path: Path, inner: int) -> None:
    probe = opened(tmp_path / "program", inner).probe("f", at="+1", kernel="6.1")
    assert probe.compile("n").fetcharg == "\\42:s32"
    assert probe.compile("n@7").fetcharg == "%di:s32"


def test_a_block_without_code_hides_no_name_of_one_that_has_code(tmp_path: Path) -> None:
    # gcc -fsanitize=address and -flto (sed's setbit_case_fold_c, merge2): often copies of one.
    origin = (Attr(dw.DW_AT_abstract_origin, dw.DW_FORM_ref4, Ref("block")),)
    code = (
        Attr(dw.DW_AT_low_pc, dw.DW_FORM_addr, 0x1000),
        Attr(dw.DW_AT_high_pc, dw.DW_FORM_addr, 0x1008),
    )
    place = Attr(dw.DW_AT_location, dw.DW_FORM_block1, FIRST_ARGUMENT)
    nowhere = Attr(dw.DW_AT_artificial, dw.DW_FORM_data1, 0)
    variable = dw.DW_TAG_variable
    block = Entry(dw.DW_TAG_lexical_block, (), (named(variable, "i", 3, nowhere),), "block")
    copies = (
        Entry(dw.DW_TAG_lexical_block, origin, (named(variable, "i", 3, nowhere),)),
        Entry(dw.DW_TAG_lexical_block, (*origin, *code), (named(variable, "i", 3, place),)),
    )
    unit = compile_unit(
        base_die("int", 4, dw.DW_ATE_signed),
        Entry(dw.DW_TAG_subprogram, (Attr(dw.DW_AT_name, dw.DW_FORM_string, "g"),), (block,)),
        subprogram_die("f", 0x1000, 0x1010, *copies),
        low=0x1000,
        high=0x1010,
    )
    loads = [Load(0x1000, b"\x90" * 15 + b"\xc3")]
    written = program(
        tmp_path / "one", [Unit(unit, version=3)], symbols=[Sym("f", 0x1000, 16)], loads=loads
    )
    opened = fetchc.open(written)
    assert opened.probe("f", at="+4", kernel="6.1").compile("i").fetcharg == "%di:s32"
    (gone,) = opened.probe("f", at="+12", kernel="6.1").variables()
    assert (gone.name, gone.fetchargs) == ("i", ())


def _with_left_out_block(path: Path, within: tuple[Entry, ...]) -> fetchc.Program:
    # A function `f`, its copy with code from +0 to +16, and a block of the source that it lacks.
    origin = Attr(dw.DW_AT_abstract_origin, dw.DW_FORM_ref4, Ref("f"))
    flag = Attr(dw.DW_AT_external, dw.DW_FORM_flag, 1)
    first, second = (
        Attr(dw.DW_AT_location, dw.DW_FORM_block1, bytes([0x03]) + address.to_bytes(8, "little"))
        for address in (0x2000, 0x2008)
    )
    using = Entry(
        dw.DW_TAG_imported_declaration, (Attr(dw.DW_AT_import, dw.DW_FORM_ref4, Ref("inner x")),)
    )
    space = Entry(
        dw.DW_TAG_namespace,
        (Attr(dw.DW_AT_name, dw.DW_FORM_string, "n"),),
        (named(dw.DW_TAG_variable, "x", 1, first, label="inner x"),),
    )
    block = Entry(dw.DW_TAG_lexical_block, (), (using, *within))
    code = (
        Attr(dw.DW_AT_low_pc, dw.DW_FORM_addr, 0x1000),
        Attr(dw.DW_AT_high_pc, dw.DW_FORM_addr, 0x1010),
    )
    unit = compile_unit(
        base_die("int", 4, dw.DW_ATE_signed),
        space,
        named(dw.DW_TAG_variable, "x", 2, second, flag),
        Entry(
            dw.DW_TAG_subprogram,
            (Attr(dw.DW_AT_name, dw.DW_FORM_string, "f"), flag),
            (block,),
            "f",
        ),
        Entry(dw.DW_TAG_subprogram, (origin, *code)),
        language=dw.DW_LANG_C_plus_plus_14,
        low=0x1000,
        high=0x1010,
    )
    loads = [Load(0x1000, b"\x90" * 15 + b"\xc3"), Load(0x2000, bytes(16))]
    symbols = [Sym("f", 0x1000, 16)]
    return fetchc.open(program(path, [Unit(unit, version=3)], symbols=symbols, loads=loads))


def test_a_name_of_a_block_that_the_code_lacks_may_be_meant(tmp_path: Path) -> None:
    # g++ -flto leaves the block out where it has using-declarations alone, and not its code.
    probe = _with_left_out_block(tmp_path / "one", ()).probe("f", at="+4", kernel="6.1")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("x")
    (said,) = caught.value.diagnostics
    assert said.code == "FC0208"
    assert said.help == "write the whole name: `::x`, or with its namespace"
    assert probe.compile("n::x").fetcharg != probe.compile("::x").fetcharg


def test_a_block_that_declares_a_variable_is_left_out_without_code(tmp_path: Path) -> None:
    local = (named(dw.DW_TAG_variable, "y", 3),)
    probe = _with_left_out_block(tmp_path / "one", local).probe("f", at="+4", kernel="6.1")
    assert probe.compile("x").fetcharg == probe.compile("::x").fetcharg
