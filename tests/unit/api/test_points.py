"""What is compiled for one point is not written for another; where a refused point is wrong."""

from __future__ import annotations

import pickle

import pytest

import fetchc
from tests.support.programs import fixture

FILE = str(fixture("c/layouts/gcc-O2-dwarf5"))


def refusal(probe: fetchc.Probe, argument: fetchc.Argument) -> tuple[str, tuple[str, ...]]:
    with pytest.raises(fetchc.CompileError) as caught:
        probe.definition([argument])
    with pytest.raises(fetchc.CompileError):
        probe.written("bpftrace", [argument])
    (said,) = caught.value.diagnostics
    assert said.help == "compile it by the probe that it is to be fetched at"
    return said.code, said.notes


def test_an_argument_of_another_function() -> None:
    program = fetchc.open(FILE)
    visit, chain = program.probe("visit", kernel="6.1"), program.probe("chain", kernel="6.1")
    note = ("it holds at `visit` (entry), for Linux 6.1",)
    assert refusal(chain, visit.compile("r->head->value")) == ("FC0206", note)
    assert refusal(chain, chain.compile("depth @ visit")) == ("FC0206", note)


def test_an_argument_for_another_kernel_or_of_another_program() -> None:
    program = fetchc.open(FILE)
    new = program.probe("visit", kernel="6.18").compile("r->head->value")
    note = ("it holds at `visit` (entry), for Linux 6.18",)
    assert refusal(program.probe("visit", kernel="4.4"), new) == ("FC0206", note)
    other = fetchc.open(str(fixture("c/layouts/gcc-O0-dwarf4")))
    assert refusal(other.probe("visit", kernel="6.18"), new) == ("FC0206", note)


def test_another_probe_of_the_same_point_takes_it() -> None:
    program = fetchc.open(FILE)
    argument = program.probe("visit", kernel="6.1").compile("depth")
    assert program.probe("visit", kernel="6.1").definition([argument]).endswith(" depth=%si:s32")


@pytest.mark.parametrize(
    ("function", "at", "text", "marked"),
    [
        ("visit", "+0x1", "+0x1", "+0x1"),
        ("visit", "body", "body", "body"),
        ("visit", "+0x", "+0x", "0x"),
        ("visit+1", None, "visit+1", "visit+1"),
        ("no_such", None, "no_such", None),
    ],
)
def test_the_place_of_a_refusal_is_in_the_point(
    function: str, at: str | None, text: str, marked: str | None
) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(FILE).probe(function, at, kernel="6.1")
    refused = pickle.loads(pickle.dumps(caught.value))
    span = refused.diagnostics[0].span
    assert (refused.text, span and text[span.start : span.end]) == (text, marked)


def test_the_place_of_a_refused_argument_is_in_the_argument() -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(FILE).argument("depth @ visit+1", kernel="6.1")
    assert caught.value.text == ""
