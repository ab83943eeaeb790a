"""Parts of arrays: the elements from an index on, and around the end."""

from __future__ import annotations

import pytest

from fetchc.ir.fetch import Decode
from fetchc.tracer.display_values import CutList
from fetchc.tracer.value_shapes import Guard, Leaf, ListShape, NumbersShape, SequenceShape
from tests.support.records import read

INT = Decode("integer", 32, True)
FIELDS = [("l", "i"), ("s", "i"), ("a", "i"), ("v", "24s")]


def window(around: bool) -> SequenceShape:
    """Of an array of which six numbers are fetched."""
    elements = NumbersShape("v", INT, 6, 4)
    return SequenceShape(
        Leaf("l", INT), elements, Leaf("s", INT), Leaf("a", INT) if around else None
    )


def bytes_of(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


SIX = bytes_of(10, 11, 12, 13, 14, 15)


@pytest.mark.parametrize(
    ("length", "start", "value"),
    [
        (2, 0, [10, 11]),
        (3, 2, [12, 13, 14]),
        (1, 5, [15]),
        (0, 5, []),
        (3, 4, [14, 15]),
        (2, 9, []),
    ],
)
def test_a_part(length: int, start: int, value: list[int]) -> None:
    found, faults = read(window(around=False), FIELDS, [length, start, 0, SIX])
    assert (found, faults) == (value, ())
    assert isinstance(found, CutList) == (len(value) < length)


@pytest.mark.parametrize(
    ("length", "start", "whole", "value"),
    [
        (3, 1, 4, [11, 12, 13]),
        (4, 2, 4, [12, 13, 10, 11]),
        (6, 5, 6, [15, 10, 11, 12, 13, 14]),
        (3, 4, 8, [14, 15]),
        (3, 7, 8, []),
    ],
)
def test_around_the_end(length: int, start: int, whole: int, value: list[int]) -> None:
    found, faults = read(window(around=True), FIELDS, [length, start, whole, SIX])
    assert (found, faults) == (value, ())
    assert isinstance(found, CutList) == (len(value) < length)


@pytest.mark.parametrize(
    ("length", "start", "whole"), [(1, -1, 4), (5, 0, 4), (1, 4, 4), (1, 0, 0), (1, 0, -3)]
)
def test_an_index_outside_of_the_array_is_a_fault(length: int, start: int, whole: int) -> None:
    assert read(window(around=True), FIELDS, [length, start, whole, SIX]) == (None, ("v",))


def test_a_fault_goes_by_the_index_in_the_part() -> None:
    items = tuple([Leaf("v", INT, 4 * at, 4, 0, (Guard("p", 8 * at),)) for at in range(3)])
    shape = SequenceShape(Leaf("l", INT), ListShape(items), Leaf("s", INT))
    pointers = [0x7F0000001000, 0x7F0000001000, 0]
    fields = [("l", "i"), ("s", "i"), ("p", "24s"), ("v", "24s")]
    words = b"".join(one.to_bytes(8, "little") for one in pointers)
    assert read(shape, fields, [2, 1, words, SIX]) == ([11, None], ("v[1]",))
