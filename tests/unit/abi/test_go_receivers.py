"""Receivers that the debug information of Go up to 1.21 leaves out."""

from __future__ import annotations

import pytest

from fetchc.abi.signature import missing_receiver
from fetchc.program.entities import Variable
from fetchc.program.types import IntType, PointerType, StructType
from fetchc.quantities import ByteSize, DieOffset, TypeId
from tests.support.types import TypeTable, function

OLD, NEW = "Go cmd/compile go1.21.13; regabi", "Go cmd/compile go1.22.10; regabi"


class Program(TypeTable):
    """Types that can be asked for by their names."""

    def types_named(self, name: str, _: object) -> tuple[TypeId, ...]:
        known = enumerate(self._types)
        return tuple(TypeId(at) for at, made in known if getattr(made, "name", "") == name)


def lacks(symbol: str, first: str | None, producer: str = OLD) -> bool:
    types = Program()
    made = {
        "int": types.add(IntType("int", ByteSize(8), True)),
        "*main.T": types.add(PointerType("*main.T", ByteSize(8), TypeId(2))),
        "main.T": types.add(StructType("main.T", "struct", ByteSize(8), ())),
    }
    listed = [] if first is None else [Variable("p", made[first], "parameter", DieOffset(2), 1)]
    results = [Variable("~r0", made["*main.T"], "result", DieOffset(3), 1)]
    method = function(symbol, "go", producer, symbol)
    return missing_receiver(types.program, method, (*listed, *results)) is not None


@pytest.mark.parametrize("first", ["int", None, "main.T"])
def test_a_method_whose_first_parameter_is_another_lacks_it(first: str | None) -> None:
    assert lacks("main.(*T).Less", first)
    assert not lacks("main.(*T).Less", first, NEW)


def test_one_that_is_listed_is_not_missing() -> None:
    assert not lacks("main.(*T).Less", "*main.T")
    assert not lacks("main.T.Less", "main.T")
    assert lacks("main.T.Less", "int")


@pytest.mark.parametrize(
    "symbol",
    [
        "main.f",
        "main.(*T).Less.func1",
        "main.(*T).Less-fm",
        "main.T.func1",
        "main.init.0",
        "main.glob..func1",
        "main.unknown.Less",
        "main.(*T[go.shape.int]).Less",
    ],
)
def test_what_is_no_method_has_none(symbol: str) -> None:
    assert not lacks(symbol, "int")
