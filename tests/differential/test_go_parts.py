"""Parts of Go's variables: where the body has a parameter's, and where the convention puts them.

The calling convention places every part by its own rules; the debug information has a piece for
each part that the compiler still has, some twice. Where a function has not moved them, both are
one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import fetchc
from fetchc.abi import convention_for, entry_places
from fetchc.check.availability import body_place
from fetchc.check.go_parameters import lists_every_parameter
from fetchc.check.probe_site import Site
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.lang.go_language import GO
from fetchc.program.entities import Absent, InRegister, Pieces
from fetchc.quantities import Address
from fetchc.target.machines import architecture
from tests.support.go_programs import go_program
from tests.support.programs import fixture

PACKAGES = ("strconv.", "main.", "fmt.", "reflect.", "os.")


@pytest.mark.parametrize("version", ["1.21", "1.22", "1.24", "1.27"])
def test_parts_are_those_of_the_convention(version: str) -> None:
    program = DwarfProgram(str(fixture(f"go/features/go{version}")))
    counted, wrong = Counter[str](), []
    for name in program.function_names():
        if not name.startswith(PACKAGES):
            continue
        for function in program.functions_named(name):
            if function.die is None or function.language != "go":
                continue
            address = Address(function.address + 1)
            machine = architecture(program.architecture)
            site = Site(program, machine, GO, function, address, False, False)
            if version == "1.21" and not lists_every_parameter(site, function):
                continue
            variables = program.parameters(function)
            places = entry_places(program, convention_for(program, function), function)
            for variable, place in zip(variables, places, strict=True):
                printed = program.place(variable, function, address)
                if variable.kind != "parameter" or not isinstance(place, Pieces):
                    continue
                if not isinstance(printed, Pieces) or not place.pieces:
                    continue
                found = body_place(site, function, variable)
                if isinstance(found, Absent):
                    counted["unknown"] += 1
                    continue
                assert isinstance(found, Pieces)
                passed = {piece.offset: piece.place for piece in place.pieces}
                known = [it for it in found.pieces if isinstance(it.place, InRegister)]
                counted["right"] += 1
                if any(passed[piece.offset] != piece.place for piece in known):
                    wrong.append((name, variable.name, found, place))
    print(f"Go {version}: {dict(counted)}, {len(wrong)} moved at once")
    assert counted["right"] > 20
    # A parameter that the first block assigns to has its new place from the first instruction on.
    assert len(wrong) <= counted["right"] // 100, wrong
    assert counted["unknown"] <= counted["right"] // 5


@pytest.mark.parametrize(
    ("version", "function", "at", "expression", "expected"),
    [
        # A slice with one part twice before the others, and where one of them is gone.
        ("1.21", "strconv.genericFtoa", "+0x12", "len(dst)", "%bx:s64"),
        ("1.21", "strconv.genericFtoa", "+0x78", "len(dst)", "FC0401"),
        # Two of three parts.
        ("1.22", "strconv.IsPrint", "+0x36", "len(isPrint)", "FC0401"),
        # One part of two in a register, then in memory: of which, nothing says.
        ("1.22", "strconv.fmtX", "+0xf6", "len(hex)", "FC0401"),
        ("1.22", "strconv.fmtX", "+0x128", "len(hex)", "FC0401"),
        # Two of three parts that are still where the caller has put them.
        ("1.15", "strconv.bsearch16", "+0x4", "len(a)", "+40(%sp):s64"),
    ],
)
def test_a_part_is_read_where_it_is_or_not_at_all(
    version: str, function: str, at: str, expression: str, expected: str
) -> None:
    program = fetchc.open(str(fixture(f"go/features/go{version}")))
    try:
        found = program.probe(function, at=at, kernel="6.1").compile(expression).fetcharg
    except fetchc.CompileError as refusal:
        found = refusal.diagnostics[0].code
    assert found == expected


BLANK = """
package main

var sink int

//go:noinline
func mark() {}

//go:noinline
func f(a []byte, _ int, b []int32, c []byte, d string, e []int32) int {
	sink += int(e[0])
	mark()
	sink += len(d)
	return sink
}

func main() { println(f(nil, 1, nil, nil, "d", []int32{1, 2, 3})) }
"""


def test_a_parameter_without_a_name_shifts_parts_on_the_stack(tmp_path: Path) -> None:
    # Go 1.19 does not list `_ int`, which puts c on the stack. Two parts of e are described: its
    # address and length would be length and capacity of what began 8 bytes before.
    program = fetchc.open(str(go_program("1.19", tmp_path, BLANK, name="blank")))
    probe = program.probe("main.f", at=":12")
    assert probe.compile("&e[0]").fetcharg == "+56(%sp):x64"
    assert probe.compile("len(e)").fetcharg == "+64(%sp):s64"
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("cap(e)")
    assert refused.value.diagnostics[0].code == "FC0401"
