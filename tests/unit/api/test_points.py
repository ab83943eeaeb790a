"""What is compiled for one point is not written for another."""

from __future__ import annotations

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
