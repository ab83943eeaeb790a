"""Numbers that are not read: decimal ones, and those of which nothing says how wide they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf import constants as dw
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.program import types as t
from tests.support.dwarfwriter import Attr, Unit, base_die, compile_unit
from tests.support.dwarfwriter import program as written
from tests.support.toolchains import require

SOURCE = """
struct s { _Decimal64 d; int after; };
__attribute__((noinline)) _Decimal64 f(struct s *p, int n) { return p->d * n; }
int main(int argc, char **argv) { struct s v = {1.5DD, argc}; return (int)f(&v, argc); }
"""


@pytest.fixture(name="program", scope="module")
def program_(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Program:
    require("gcc")
    folder = tmp_path_factory.mktemp("decimal")
    (folder / "d.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "d.c", "-o", "d"], cwd=folder, check=True, timeout=60)
    return fetchc.open(str(folder / "d"))


@pytest.mark.parametrize(("expression", "returns"), [("p->d", False), ("$retval", True)])
def test_a_decimal_number(program: fetchc.Program, expression: str, returns: bool) -> None:
    # As a result it is in a vector register, not in the one that $retval is.
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("f", returns=returns, kernel="6.1").compile(expression)
    (one,) = caught.value.diagnostics
    what = "`_Decimal64` cannot be fetched: it is a decimal floating-point number"
    assert (one.code, one.message) == ("FC0311", what)


def test_what_is_beside_it(program: fetchc.Program) -> None:
    probe = program.probe("f", kernel="6.1")
    found = [probe.compile(one).fetcharg for one in ("p->after", "*(long *)&p->d", "n")]
    assert found == ["+8(%di):s32", "+0(%di):s64", "%si:s32"]


def test_a_parameter_that_has_no_place_before_it_is_stored(tmp_path: Path) -> None:
    require("gcc")
    (tmp_path / "d.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O0", "d.c", "-o", "d"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "d"))
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("f", kernel="6.1").compile("n")
    (one,) = caught.value.diagnostics
    assert "where it is depends on the result: its type cannot be read" in one.message
    assert one.help == "probe where it has been stored: `--at body`"
    found = program.probe("f", at="body", kernel="6.1").compile("n").fetcharg
    assert found.endswith("(%bp):s32")


@pytest.mark.parametrize(
    ("name", "bits", "read"),
    [
        ("_BitInt", None, False),
        ("unsigned _BitInt", None, False),
        ("_ExtInt", None, False),
        ("_BitInt(13)", 13, False),
        ("_BitInt(16)", 16, True),
        ("_BitInt", 16, True),
        ("short int", None, True),
    ],
)
def test_an_integer_of_any_width(tmp_path: Path, name: str, bits: int | None, read: bool) -> None:
    made = base_die(name, 2, dw.DW_ATE_signed)
    if bits is not None:
        made = type(made)(
            made.tag,
            (*made.attributes, Attr(dw.DW_AT_bit_size, dw.DW_FORM_udata, bits)),
            made.children,
            made.label,
        )
    path = written(tmp_path / "unit", [Unit(compile_unit(made))])
    program = DwarfProgram(path)
    (number,) = program.types_named(name, None)
    assert isinstance(program.type(number), t.IntType if read else t.UnknownType)
