"""Names that Mono gives its symbols."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.dotnet.mono_aot import _sanitized


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("Prog:visit (Person,Pt,Color)", "Prog_visit_Person_Pt_Color"),
        ("Prog:Main (string[])", "Prog_Main_string__"),
        ("Prog:.ctor ()", "Prog__ctor"),
        ("N.Outer/In:f (int&,byte*)", "N_Outer_In_f_int__byte_"),
        ("7up:f (int)", "_7up_f_int"),
        (
            "N.G`1/In`1<T_REF, U_REF>:f<V_REF> (T_REF,int)",
            "N_G_1_In_1_T_REF_U_REF_f_V_REF_T_REF_int",
        ),
        ("é:f ()", "___f"),
        ("\udcff:f ()", "__f"),  # no UTF-8: each byte counts
    ],
)
def test_what_a_symbol_cannot_have_is_a_line(name: str, symbol: str) -> None:
    assert _sanitized(name) == symbol
