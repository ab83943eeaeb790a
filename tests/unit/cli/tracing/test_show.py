"""Which values are looked through for addresses of functions, to name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from fetchc.cli.trace_events import has_function
from fetchc.ir.fetch import Decode
from fetchc.tracer import value_shapes as shapes

if TYPE_CHECKING:
    from fetchc.program.protocol import RuntimeTypes

NUMBER = shapes.Leaf("n", Decode("integer", 64), size=8)
FUNCTION = shapes.Leaf("f", Decode("symbol", 64), size=8)
TYPES = cast("RuntimeTypes", None)


def of_kinds(inner: shapes.Leaf) -> list[shapes.Shape]:
    """Shapes that have ``inner`` somewhere in them."""
    dynamic = shapes.TypeName(NUMBER, NUMBER, TYPES)
    row = shapes.Row("r", inner.decode, 2, 8)
    sequence = shapes.SequenceShape(NUMBER, row)
    return [
        inner,
        row,
        sequence,
        shapes.Items((NUMBER, inner)),
        shapes.Ranged(row, 0, 0, NUMBER, None),
        shapes.Inside(NUMBER, 1, inner),
        shapes.Grid((NUMBER,), sequence),
        shapes.Members((("n", NUMBER), ("f", inner))),
        shapes.Noted("decimal", (("f", inner),)),
        shapes.Spelled("error", (("f", inner),)),
        shapes.EitherShape(shapes.ComputedShape((), 0, True), NUMBER, inner),
        shapes.Choice(NUMBER, ((1, inner),)),
        shapes.Variants(NUMBER, (shapes.Case(1, "A", None), shapes.Case(2, "B", inner))),
        shapes.OfVariant(NUMBER, ((1, "A"),), "A", inner),
        shapes.Kept(NUMBER, 4, inner),
        shapes.Referred(NUMBER, inner),
        shapes.Asserted(dynamic, 8, inner),
        shapes.Worded(dynamic, shapes.Members((("data", inner),)), (), False),
        shapes.Worded(dynamic, NUMBER, (shapes.DescribedShape(8, ("at ", inner), False),), False),
        shapes.Sum(NUMBER, 4, 8, inner.decode),
    ]


@pytest.mark.parametrize("shape", of_kinds(FUNCTION), ids=lambda one: type(one).__name__)
def test_an_address_is_found_in_every_shape(shape: shapes.Shape) -> None:
    assert has_function(shape)


@pytest.mark.parametrize("shape", of_kinds(NUMBER), ids=lambda one: type(one).__name__)
def test_a_number_is_none(shape: shapes.Shape) -> None:
    assert not has_function(shape)


def test_a_caller_that_is_not_known_is_one() -> None:
    assert has_function(shapes.Called(NUMBER, ((5, NUMBER),)))
