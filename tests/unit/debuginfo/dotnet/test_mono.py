"""Names that Mono gives its symbols."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.dotnet.methods.mono import _sanitized


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("Prog:visit (Person,Pt,Color)", "Prog_visit_Person_Pt_Color"),
        ("Prog:Main (string[])", "Prog_Main_string__"),
        ("Prog:.ctor ()", "Prog__ctor"),
        ("N.Outer/In:f (int&,byte*)", "N_Outer_In_f_int__byte_"),
        ("7up:f (int)", "_7up_f_int"),
        ("é:f ()", "___f"),
    ],
)
def test_what_a_symbol_cannot_have_is_a_line(name: str, symbol: str) -> None:
    assert _sanitized(name) == symbol
