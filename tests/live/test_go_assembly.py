"""Functions of Go's assembly: names and results by the declaration, where a wrapper has it.

Go 1.15 has no wrappers: what it says of such a function is its address. From 1.17 on a call
through a function value goes through a wrapper, a call of the same package straight to assembly.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS, go_number
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
package main

import "fmt"

//go:noescape
func Sum(p *byte, n int) (total uint64)

//go:noescape
func Mix(a int8, b []int, s string, f float64, last bool) (x int16, y float64)

func Blank(_ bool, n uint32) uint64

func Direct(n int) int

var sum, mix, blank = Sum, Mix, Blank

func main() {
	data := []byte{1, 2, 3, 4}
	for n := 1; n < 4; n++ {
		total := Sum(&data[0], n)
		through := sum(&data[1], n)
		x, y := mix(int8(-n), []int{7, 8, 9}, "hello"[:n], 2.5*float64(n), n == 2)
		fmt.Println(n, total, through, x, y, blank(true, uint32(40+n)), Direct(n))
	}
}
"""
ASSEMBLY = """
#include "textflag.h"

TEXT ·Sum(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	XORQ AX, AX
loop:
	TESTQ CX, CX
	JZ done
	MOVBLZX (SI), DX
	ADDQ DX, AX
	INCQ SI
	DECQ CX
	JMP loop
done:
	MOVQ AX, total+16(FP)
	RET

TEXT ·Mix(SB), NOSPLIT, $16-80
	MOVBQSX a+0(FP), AX
	ADDQ b_len+16(FP), AX
	ADDQ s_len+40(FP), AX
	MOVW AX, x+64(FP)
	MOVSD f+48(FP), X0
	ADDSD X0, X0
	MOVSD X0, y+72(FP)
	RET

TEXT ·Blank(SB), NOSPLIT, $0-16
	MOVL n+4(FP), AX
	INCQ AX
	MOVQ AX, ret+8(FP)
	RET

TEXT ·Direct(SB), NOSPLIT, $0-16
	MOVQ n+0(FP), AX
	MOVQ AX, ret+8(FP)
	RET
"""


def _build(folder: Path, version: str) -> Path:
    source, assembly = SOURCE.lstrip(), ASSEMBLY.lstrip()
    return go_program(version, folder, source, name="assembly", assembly=assembly)


def _refusal(
    program: Path, function: str, name: str, at: str | None = None, returns: bool = False
) -> fetchc.CompileError:
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(str(program)).probe(function, at=at, returns=returns).compile(name)
    return caught.value


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_values_are_the_declared_ones(version: str, tmp_path: Path) -> None:
    if go_number(version) < (1, 17):
        pytest.skip("Go has no wrappers before 1.17")
    require_uprobes()
    program = _build(tmp_path, version)
    opened = fetchc.open(str(program))
    entry = opened.probe("main.Sum.abi0"), opened.probe("main.Mix.abi0")
    left = [opened.probe(f"main.{name}.abi0", returns=True) for name in ("Sum", "Mix")]
    printed, events = watched(
        lambda group: [
            entry[0].plan(["*p", "n"], group),
            entry[1].plan(["a", "b", "s", "f", "last"], group),
            left[0].plan(["total"], group, "sum_left"),
            left[1].plan(["x", "y"], group, "mix_left"),
        ],
        [program],
    )
    expected = [list(dict(event.args).values()) for event in events]
    wanted: list[list[object]] = []
    for n in (1, 2, 3):
        wanted += [[1, n], [sum(range(1, n + 1))], [2, n], [sum(range(2, n + 2))]]
        wanted += [[-n, [7, 8, 9], "hello"[:n], 2.5 * n, n == 2], [3, 5.0 * n]]
    assert expected == wanted
    shown = [line.split()[1:5] for line in printed.splitlines()]
    assert shown == [
        [str(sum(range(1, n + 1))), str(sum(range(2, n + 2))), "3", f"{5 * n}"] for n in (1, 2, 3)
    ]


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_what_no_wrapper_declares_is_refused(version: str, tmp_path: Path) -> None:
    program = _build(tmp_path, version)
    suffix = "" if go_number(version) < (1, 17) else ".abi0"
    for name in ("Direct",) if suffix else ("Direct", "Sum"):
        (diagnostic,) = _refusal(program, f"main.{name}{suffix}", "n").diagnostics
        assert diagnostic.code == "FC0201"
        assert "it is written in assembly" in diagnostic.notes[0]
        assert "`$arg1`" in (diagnostic.help or "")


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_behind_a_parameter_without_a_name(version: str, tmp_path: Path) -> None:
    if go_number(version) < (1, 17):
        pytest.skip("Go has no wrappers before 1.17")
    program = _build(tmp_path, version)
    if go_number(version) < (1, 22):
        for name, returns in (("n", False), ("$ret0", True)):
            refused = _refusal(program, "main.Blank.abi0", name, returns=returns)
            assert refused.diagnostics[0].code == "FC0407"
        return
    require_uprobes()
    opened = fetchc.open(str(program))
    entry, left = (opened.probe("main.Blank.abi0", returns=one) for one in (False, True))
    _, events = watched(
        lambda group: [entry.plan(["n"], group), left.plan(["$ret0"], group, "left")], [program]
    )
    expected = [next(iter(dict(event.args).values())) for event in events]
    assert expected == [41, 42, 42, 43, 43, 44]


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_no_place_of_the_wrapper_is_one_of_assembly(version: str, tmp_path: Path) -> None:
    if go_number(version) < (1, 17):
        pytest.skip("Go has no wrappers before 1.17")
    program = _build(tmp_path, version)
    (diagnostic,) = _refusal(program, "main.Sum.abi0", "n", at="+0x5").diagnostics
    assert diagnostic.code == "FC0401"
    assert "does not describe locations in assembly" in diagnostic.message
    assert not any("available" in note for note in diagnostic.notes)
