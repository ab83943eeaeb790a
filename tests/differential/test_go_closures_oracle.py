"""Captured variables as the closures' code shows them, against what Go says from 1.23 on.

The debug information of new versions has the offsets (DW_AT_go_closure_offset). Hidden from the
checker, as older versions hide them, they must come out of the code, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from fetchc.check.go_variables import captured_place
from fetchc.check.probe_site import Site
from fetchc.debuginfo.open_file import open_binary
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import Function, InMemory, Variable
from fetchc.program.protocol import Program
from fetchc.quantities import Address, ByteOffset
from fetchc.target.machines import architecture
from tests.support import cross
from tests.support.cross import TARGETS
from tests.support.programs import fixture

OLD = "Go cmd/compile go1.22.10; regabi"
FIXTURES = ("go/features/go1.24", "go/features/go1.27", "go/features/go1.27-N-l")
MACHINES = ("aarch64", "riscv64", "i386", "arm", "ppc64le")
SOURCE = """
package main

import (
	"fmt"
	"os"
	"sort"
)

type box struct {
	a int
	s string
}

//go:noinline
func many(n int, label string, b box, c byte, xs []int) func(int) int {
	total := 0
	return func(step int) int {
		total += step
		fmt.Fprintln(os.Stdout, n, label, b, c, xs, total)
		return total
	}
}

func main() {
	xs := []int{len(os.Args), 2, 1}
	many(len(os.Args), os.Args[0], box{2, "x"}, 3, xs)(4)
	sort.Slice(xs, func(i, j int) bool { return xs[i] < xs[j] })
}
"""


class Older:
    """A program as a version before Go 1.23 describes it."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def __getattr__(self, name: str) -> object:
        return getattr(self._program, name)

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        found = self._program.variables(function, address)
        return tuple(altered(variable, captured=None) for variable in found)


def altered(record: Any, **changed: object) -> Any:
    kept = {name: getattr(record, name) for name in type(record).__match_args__}
    return type(record)(**{**kept, **changed})


def closures(program: Program) -> Iterator[tuple[Function, tuple[Variable, ...]]]:
    # The run-time's own take long, by the size of their unit's line table.
    for name in sorted(set(program.function_names())):
        if re.search(r"\.func\d|\.gowrap|\.deferwrap|-range", name) and name[:8] != "runtime.":
            for function in program.functions_named(name):
                variables = program.variables(function, function.address)
                yield function, tuple(each for each in variables if each.outermost)


def shown(program: Program) -> dict[tuple[str, str], ByteOffset]:
    """The offsets that the code of the closures shows, by function and variable."""
    found = {}
    for function, variables in closures(program):
        old = altered(function, compiler=compiler_of(OLD))
        site = Site(
            cast("Program", Older(program)), architecture(program.architecture),
            cast("Any", None), old, function.address, True, False,
        )  # fmt: skip
        for variable in variables:
            place = captured_place(site, old, altered(variable, captured=None))
            if isinstance(place, InMemory):
                found[function.name, variable.name] = place.offset
    return found


def printed(program: Program) -> dict[tuple[str, str], int]:
    """The offsets that the debug information tells."""
    return {
        (function.name, variable.name): variable.captured
        for function, variables in closures(program)
        for variable in variables
        if variable.captured is not None
    }


def differences(
    shown: dict[tuple[str, str], ByteOffset], printed: dict[tuple[str, str], int]
) -> list[tuple[str, str]]:
    # Since 1.27 parts of a captured variable are variables too (`list.ptr`), without an offset.
    return [
        name for name, offset in shown.items() if "." not in name[1] and printed.get(name) != offset
    ]


@pytest.mark.parametrize("name", FIXTURES)
def test_code_shows_what_the_debug_information_tells(name: str) -> None:
    program = open_binary(str(fixture(name)))
    known, found = printed(program), shown(program)
    assert not differences(found, known)
    assert len(known) >= 7
    assert len(found) >= 0.6 * len(known)


@pytest.mark.parametrize("machine", MACHINES)
def test_on_other_machines(machine: str, tmp_path: Path) -> None:
    reason = cross.unavailable_go("1.24")
    if reason:
        pytest.skip(reason)
    program = open_binary(str(cross.build_go(TARGETS[machine], "1.24", SOURCE, tmp_path)))
    known, found = printed(program), shown(program)
    assert not differences(found, known)
    assert {name for function, name in found if function == "main.many.func1"} >= {"n", "&total"}
    assert len(found) >= 0.7 * len(known)


def test_a_wrong_offset_is_seen() -> None:
    program = open_binary(str(fixture(FIXTURES[0])))
    known, found = printed(program), shown(program)
    some = next(iter(found))
    assert differences({**found, some: ByteOffset(found[some] + 8)}, known) == [some]
    assert differences({**found, ("main.main", "n"): ByteOffset(8)}, known) == [("main.main", "n")]
