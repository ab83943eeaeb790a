"""Arrays of several dimensions, differences: values that take more than one number."""

from __future__ import annotations

import pytest

from fetchc.ir.fetch import Decode
from fetchc.tracer.display_values import CutList
from fetchc.tracer.value_shapes import (
    DifferenceShape,
    Guard,
    Leaf,
    MultiArrayShape,
    NumbersShape,
    SequenceShape,
)
from tests.support.records import NEAR, read

INT = Decode("integer", 32, True)
FIELDS = [("l", "i"), ("n", "i"), ("m", "i"), ("v", "24s")]


def grid(*indices: int) -> MultiArrayShape:
    """Of two dimensions, six numbers of which are fetched."""
    flat = SequenceShape(Leaf("l", INT), NumbersShape("v", INT, 6, 4))
    return MultiArrayShape((Leaf("n", INT), Leaf("m", INT)), flat, indices)


def bytes_of(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


@pytest.mark.parametrize(
    ("lengths", "value"),
    [
        ((2, 3), [[1, 2, 3], [4, 5, 6]]),
        ((3, 2), [[1, 2], [3, 4], [5, 6]]),
        ((1, 1), [[1]]),
        ((2, 0), [[], []]),
        ((0, 4), []),
    ],
)
def test_rows(lengths: tuple[int, int], value: list[list[int]]) -> None:
    n, m = lengths
    assert read(grid(), FIELDS, [n * m, n, m, bytes_of(1, 2, 3, 4, 5, 6)]) == (value, ())


def test_what_is_left_out_is_marked() -> None:
    value, faults = read(grid(), FIELDS, [12, 3, 4, bytes_of(1, 2, 3, 4, 5, 6)])
    assert (value, faults) == ([[1, 2, 3, 4], [5, 6]], ())
    assert isinstance(value, CutList)
    assert value.length == 3
    assert isinstance(value[1], CutList)
    assert value[1].length == 4
    many, _ = read(grid(), FIELDS, [0, 1 << 30, 0, bytes(24)])
    assert isinstance(many, CutList)
    assert (len(many), many.length) == (64, 1 << 30)


@pytest.mark.parametrize(
    ("indices", "value"), [((1, 2), 6), ((1, 0), 4), ((0, 1), 2), ((2, 0), None), ((0, 3), None)]
)
def test_one_element(indices: tuple[int, int], value: int | None) -> None:
    found = read(grid(*indices), FIELDS, [6, 2, 3, bytes_of(1, 2, 3, 4, 5, 6)])
    assert found == (value, () if value is not None else ("v",))


@pytest.mark.parametrize("lengths", [(6, 2, 4), (6, -2, -3), (7, 2, 3)])
def test_lengths_that_contradict_each_other_are_a_fault(lengths: tuple[int, int, int]) -> None:
    values = [*lengths, bytes_of(1, 2, 3, 4, 5, 6)]
    assert read(grid(), FIELDS, values) == (None, ("v",))
    assert read(grid(0, 1), FIELDS, values) == (None, ("v",))


def test_an_element_behind_what_was_fetched_is_a_fault() -> None:
    values = [12, 3, 4, bytes_of(1, 2, 3, 4, 5, 6)]
    assert read(grid(1, 1), FIELDS, values) == (6, ())
    assert read(grid(1, 2), FIELDS, values) == (None, ("v",))


def test_a_difference() -> None:
    fields = [("a", "i"), ("b", "i"), ("p", "Q")]
    guards = (Guard("p"),)
    shape = DifferenceShape(Leaf("a", INT, guards=guards), Leaf("b", INT, guards=guards))
    assert read(shape, fields, [5, 7, NEAR]) == (-2, ())
    assert read(shape, fields, [5, 7, 0]) == (None, ("v",))


def test_an_address_wraps_around_as_the_programs_does() -> None:
    # `&p[-1]`, `&p->x` where `p` is no address
    for bits, code, last in ((64, "Q", 2**64 - 4), (32, "I", 2**32 - 4)):
        shape = DifferenceShape(Leaf("a", Decode("pointer", bits)), 4)
        assert read(shape, [("a", code)], [0]) == (last, ())
        shape = DifferenceShape(Leaf("a", Decode("pointer", bits)), -8)
        assert read(shape, [("a", code)], [last]) == (4, ())
