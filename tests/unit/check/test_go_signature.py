"""What the name of a result without a name says of the parameters, up to Go 1.16."""

from __future__ import annotations

import pytest

from fetchc.check.go_parameters import count_from_result_name
from fetchc.program.entities import Variable
from fetchc.program.types import IntType, PointerType
from fetchc.quantities import ByteSize, DieOffset, TypeId
from tests.support.types import TypeTable, function

OLD, NEW = "Go cmd/compile go1.15.15", "Go cmd/compile go1.22.10; regabi"


def counted(
    symbol: str, listed: tuple[Variable, ...], producer: str = OLD, receiver: str = ""
) -> bool | None:
    types = TypeTable()
    package, _, rest = symbol.rpartition("/")[2].partition(".(*")
    whole = symbol[: symbol.rfind("/") + 1] + package
    name = receiver or (f"*{whole}.{rest.partition(')')[0]}" if rest else symbol.rpartition(".")[0])
    types.add(IntType("int", ByteSize(8), True))
    types.add(PointerType(name, ByteSize(8), TypeId(0)))
    return count_from_result_name(types.program, function(symbol, "go", producer, symbol), listed)


def variables(parameters: int, *results: str) -> tuple[Variable, ...]:
    listed = [
        Variable(f"p{index}", TypeId(1), "parameter", DieOffset(10 + index), 1)
        for index in range(parameters)
    ]
    found = [
        Variable(name, TypeId(1), "result", DieOffset(90 + index), 1)
        for index, name in enumerate(results)
    ]
    return (*listed, *found)


@pytest.mark.parametrize(
    ("symbol", "listed", "result", "said"),
    [
        ("main.f", 3, "~r3", True),
        ("main.f", 2, "~r3", False),  # func(_ int, a, b int) int
        ("main.f", 1, "~b1", True),  # a blank result is named the same way
        ("main.(*server).handle", 3, "~r2", True),  # the receiver does not count
        ("main.server.handle", 3, "~r2", True),
        ("example.com/a.b/zone%2ev2.(*Zone).Find", 2, "~r1", True),
        ("main.f.func1", 1, "~r1", None),  # a closure, or a method of a type f
        ("main.(*server).handle-fm", 1, "~r1", None),
        ("main.(*server).handle.func1", 1, "~r1", None),
        ("main.glob..func1", 0, "~r0", None),
        ("main.f", 1, "~rx", None),
    ],
)
def test_the_number_counts_parameters(
    symbol: str, listed: int, result: str, said: bool | None
) -> None:
    assert counted(symbol, variables(listed, result)) is said


def test_named_results_say_nothing() -> None:
    assert counted("main.f", variables(1, "n", "err")) is None
    assert counted("main.f", variables(1)) is None


def test_the_first_of_them_counts() -> None:
    assert counted("main.f", variables(1, "n", "~r1", "~r2")) is True


def test_later_versions_count_from_zero() -> None:
    assert counted("main.f", variables(3, "~r3"), NEW) is None


def test_a_receiver_that_is_not_listed_does_not_count() -> None:
    # func (*server) handle(a, b int) int
    listed = variables(2, "~r2")
    assert counted("main.(*server).handle", listed, receiver="int") is True
    assert counted("main.(*server).handle", variables(1, "~r2"), receiver="int") is False
