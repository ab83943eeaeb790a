"""Refusals about a Go program say what a Go programmer can do."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.diag.model import Diagnostic
from tests.support.programs import fixture


def refused(function: str, text: str) -> Diagnostic:
    program = fetchc.open(str(fixture("go/features/go1.27")))
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe(function, kernel="6.1").compile(text)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_names_that_nobody_writes_are_not_listed() -> None:
    # The result, which has no name, is `~r0` in the debug information.
    assert refused("main.count", "nope").notes == ("visible here: m, s, none, c, d",)


@pytest.mark.parametrize("name", ["m", "s"])
def test_of_maps_the_number_of_entries_is_named(name: str) -> None:
    said = refused("main.count", f"{name}.missing")
    assert said.code == "FC0301"
    assert said.help == "its number of entries can be had: `len(e)`"


@pytest.mark.parametrize(("bits", "half"), [(64, "float32"), (128, "float64")])
def test_the_halves_of_a_complex_number_have_a_type_of_their_own(bits: int, half: str) -> None:
    said = refused(f"runtime.printcomplex{bits}", "c")
    assert said.notes == (f"its members are real {half}, imag {half}",)
