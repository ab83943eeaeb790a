"""Types as Go writes them."""

from __future__ import annotations

import pytest

import fetchc
from tests.support.programs import fixture


@pytest.mark.parametrize("binary", ["go1.21", "go1.22", "go1.24", "go1.27"])
def test_parameters_of_generic_bodies_have_the_types_of_their_shape(binary: str) -> None:
    program = fetchc.open(str(fixture(f"go/features/{binary}")))
    probe = program.probe("Stack[int].Push", kernel="6.1")
    types = {one.name: one.type for one in probe.variables()}
    assert types["s"] == "*main.Stack[go.shape.int]"
    assert types["item"] == "go.shape.int"


@pytest.mark.parametrize(
    ("binary", "name"), [("go1.15", "os.PathError"), ("go1.27", "io/fs.PathError")]
)
def test_a_type_that_moved_goes_by_its_old_name(binary: str, name: str) -> None:
    program = fetchc.open(str(fixture(f"go/miekg/{binary}")))
    (layout,) = program.layouts("os.PathError")
    assert layout.name == name
    assert not list(program.layouts("os.DirEnt"))
