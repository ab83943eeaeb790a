"""Shapes of the types of a Go program, as its linker's names spell them."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.go import stripped_program
from fetchc.debuginfo.go.stripped_program import stripped_go
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.driver.function_lookup import find_function
from fetchc.lang.go_function_names import shapes
from fetchc.lang.go_language import spell
from tests.support.go_programs import go_program
from tests.support.programs import fixture


@pytest.mark.parametrize(
    ("argument", "shape"),
    [
        ("int", "int"),
        ("*square", "*uint8"),
        ("[3]int8", "[3]int8"),
        ("weight", "uint16"),
        ("main.weight", "uint16"),
        ("machine", "struct { main.speed int; main.turns int }"),
        ("holder", "struct { main.inner *main.circle }"),
        ("set", "map[uint16]struct {}"),
        ("[]byte", "[]uint8"),
        ("map[rune]any", "map[int32]interface {}"),
        ("error", "interface { Error() string }"),
        ("interface{}", "interface {}"),
    ],
)
def test_a_type_has_the_shape_that_the_linker_names(argument: str, shape: str) -> None:
    program = DwarfProgram(str(fixture("go/features/go1.27")))
    assert f"go.shape.{shape}" in shapes(argument, "main", program, spell)


def test_other_types_have_other_shapes() -> None:
    program = DwarfProgram(str(fixture("go/features/go1.27")))
    assert shapes("weight", "other", program, spell) == ("go.shape.weight", "go.shape.uint16")
    assert shapes("nobody", "main", program, spell) == ("go.shape.nobody",)


@pytest.mark.parametrize("flags", [(), ("-ldflags=-s -w",)], ids=["described", "stripped"])
def test_a_named_number_has_the_shape_of_the_type_it_is_made_of(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    source = """package main
    type ID int
    type Wide int64
    type Place uintptr
    type Set[T comparable] struct { first T }
    //go:noinline
    func (s *Set[T]) Add(v T) { s.first = v }
    var kept any
    func add[T comparable](v T) { s := &Set[T]{}; s.Add(v); kept = s }
    func main() { add(ID(1)); add(Wide(2)); add(Place(3)); add(uint64(4)); add(int(5)) }
    """
    program = fetchc.open(str(go_program("1.22", tmp_path, source, *flags, name="sets")))
    found = [program.probe(f"Set[{name}].Add").named_after for name in ("ID", "Wide", "Place")]
    assert found == [f"main.(*Set[go.shape.{name}]).Add" for name in ("int", "int64", "uintptr")]
    messages = [
        one.message for one in program.probe("Set[ID].Add").warnings if one.code == "FC0624"
    ]
    assert messages == ([] if flags else ["calls of `Set[int]` are seen too"])


def test_a_star_among_type_arguments_is_no_glob() -> None:
    program = DwarfProgram(str(fixture("go/dnsforward/go1.27")))
    function, _ = find_function(program, "largest[int32]")
    assert function.name == "main.largest[go.shape.int32]"
    function, _ = find_function(program, "stack[*].push")
    assert function.name == "main.(*stack[go.shape.string]).push"


@pytest.mark.parametrize(
    ("argument", "shape"), [("internal/sync.hashFunc", "func("), ("dns.RR", "interface { ")]
)
def test_what_nothing_spells_has_the_beginning_of_a_shape(argument: str, shape: str) -> None:
    program = DwarfProgram(str(fixture("go/miekg/go1.27")))
    assert shapes(argument, "main", program, spell)[1:] == (f"go.shape.{shape}",)
    assert "go.shape.*uint8" not in shapes(argument, "main", program, spell)


@pytest.mark.parametrize("wanted", ["entropy.source.Sample", "entropy.(*source).Sample"])
def test_a_package_has_the_name_of_its_clause(wanted: str) -> None:
    program = DwarfProgram(str(fixture("go/miekg/go1.27")))
    function, _ = find_function(program, wanted)
    assert function.symbol == "crypto/internal/entropy/v1%2e0%2e0.(*source).Sample"


def test_types_tell_how_packages_without_debug_information_call_themselves() -> None:
    program = stripped_go(str(fixture("go/stripped/go1.27")), "x86_64")
    assert program is not None
    assert program.go.packages_called("abi") == ("internal/abi",)


def test_damaged_types_leave_functions_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_: object) -> None:
        raise DebugInfoError("FC0904", "program", "no types", "runtime.moduledata")

    monkeypatch.setattr(stripped_program, "module", damaged)
    program = stripped_go(str(fixture("go/stripped/go1.27")), "x86_64")
    assert program is not None
    assert program.go.packages_called("abi") == ()
    assert find_function(program, "main.main")[0].name == "main.main"
