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
