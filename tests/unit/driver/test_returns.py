"""Returns of functions in Go programs: never a return probe, whatever the function is."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.driver.return_points import must_not_be_returned_from
from fetchc.program.entities import Function
from tests.support.programs import fixture


def opened(name: str) -> fetchc.Program:
    return fetchc.open(str(fixture(name)))


@pytest.mark.parametrize("binary", ["go1.15", "go1.22", "go1.27", "go1.27-N-l"])
@pytest.mark.parametrize("function", ["main.split", "main.guarded", "runtime.memequal"])
def test_each_return_instruction_is_probed(binary: str, function: str) -> None:
    probe = opened(f"go/features/{binary}").probe(function, returns=True, kernel="6.1")
    assert probe.kind == "return-site"
    lines = probe.definition([probe.compile("%ax")]).split("\n")
    assert len(lines) == len(probe.each())
    assert all(line.startswith("p:") for line in lines)
    assert len({line.split()[0] for line in lines}) == 1  # one event
    assert len({line.split()[1] for line in lines}) == len(lines)


def test_one_that_jumps_out_is_reported() -> None:
    probe = opened("go/features/go1.27").probe("runtime.memequal", returns=True, kernel="6.1")
    (warning,) = probe.warnings
    assert warning.code == "FC0609"
    assert "`memeqbody`" in warning.notes[0]


def test_one_that_only_jumps_out_is_refused_with_where_to() -> None:
    program = opened("go/features/go1.27")
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("runtime.gcWriteBarrier1", returns=True, kernel="6.1")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "FC0409"
    assert diagnostic.help == "probe the return of `gcWriteBarrier`"


def test_code_of_unknown_origin_in_a_go_program_gets_no_return_probe() -> None:
    go = DwarfProgram(str(fixture("go/features/go1.27")))
    c = DwarfProgram(str(fixture("c/layouts/gcc-O2-dwarf5")))
    (known,) = go.functions_named("main.split")

    def of(language: str) -> Function:
        return Function(
            "f", "f", known.address, known.size, None, language, known.compiler, known.external
        )

    assert [must_not_be_returned_from(go, of(key)) for key in ("go", "", "asm", "c", "c++")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert not must_not_be_returned_from(c, of(""))


def test_a_return_is_of_a_whole_function() -> None:
    program = opened("go/features/go1.27")
    with pytest.raises(fetchc.CompileError, match=r"FC0206.*whole function"):
        program.probe("main.split", at="+0x4", returns=True, kernel="6.1")


def test_an_argument_is_compiled_for_each_address() -> None:
    probe = opened("go/features/go1.27").probe("main.split", returns=True, kernel="6.1")
    each = probe.each([probe.compile("$ret1")])
    assert [(one.address, made[0].probe.address, made[0].fetcharg) for one, made in each] == [
        (one.address, one.address, "%di:s64") for one, _ in each
    ]
    assert len(each) == 2


def test_a_result_is_meant_where_a_block_around_the_return_hides_it() -> None:
    program = opened("go/dnsforward/go1.27")
    # (gp *g, inheritTime, tryWakeP bool), some of whose blocks declare `gp, inheritTime :=` anew
    probe = program.probe("runtime.findRunnable", returns=True, kernel="6.1")
    each = probe.each([probe.compile("gp")])
    assert {made[0].fetcharg for _, made in each} == {"%ax:x64"}
