"""Shapes of the types of a Go program, as its linker's names spell them."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.program import DwarfProgram
from fetchc.driver.points.functions import find_function
from fetchc.lang.go import spell
from fetchc.lang.go_shapes import shapes
from tests.support.programs import fixture


@pytest.mark.parametrize(
    ("argument", "shape"),
    [
        ("int", "int"),
        ("*square", "*uint8"),
        ("[3]int8", "[3]int8"),
        ("weight", "uint16"),
        ("main.weight", "uint16"),
        ("machine", "struct { speed int; turns int }"),
        ("holder", "struct { inner *main.circle }"),
        ("set", "map[uint16]struct {}"),
    ],
)
def test_a_type_has_the_shape_that_the_linker_names(argument: str, shape: str) -> None:
    program = DwarfProgram(str(fixture("go/features/go1.27")))
    assert f"go.shape.{shape}" in shapes(argument, "main", program, spell)


def test_other_types_have_other_shapes() -> None:
    program = DwarfProgram(str(fixture("go/features/go1.27")))
    assert shapes("weight", "main", program, spell) == ("go.shape.weight", "go.shape.uint16")
    assert shapes("nobody", "main", program, spell) == ("go.shape.nobody",)


def test_a_star_among_type_arguments_is_no_glob() -> None:
    program = DwarfProgram(str(fixture("go/dnsforward/go1.27")))
    function, _ = find_function(program, "largest[int32]")
    assert function.name == "main.largest[go.shape.int32]"
    function, _ = find_function(program, "stack[*].push")
    assert function.name == "main.(*stack[go.shape.string]).push"
