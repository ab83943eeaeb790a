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
    dynamic = shapes.TypeNameShape(NUMBER, NUMBER, TYPES)
    row = shapes.NumbersShape("r", inner.decode, 2, 8)
    sequence = shapes.SequenceShape(NUMBER, row)
    return [
        inner,
        row,
        sequence,
        shapes.ListShape((NUMBER, inner)),
        shapes.RangeShape(row, 0, 0, NUMBER, None),
        shapes.BoundsCheckShape(NUMBER, 1, inner),
        shapes.MultiArrayShape((NUMBER,), sequence),
        shapes.StructShape((("n", NUMBER), ("f", inner))),
        shapes.NotationShape("decimal", (("f", inner),)),
        shapes.FormattedShape("error", (("f", inner),)),
        shapes.ConditionalShape(shapes.ComputedShape((), 0, True), NUMBER, inner),
        shapes.ChoiceShape(NUMBER, ((1, inner),)),
        shapes.EnumShape(
            NUMBER, (shapes.VariantCase(1, "A", None), shapes.VariantCase(2, "B", inner))
        ),
        shapes.VariantCheckShape(NUMBER, ((1, "A"),), "A", inner),
        shapes.GrowthCheckShape(NUMBER, 4, inner),
        shapes.OptionalShape(NUMBER, inner),
        shapes.TypeAssertionShape(dynamic, 8, inner),
        shapes.InterfaceShape(dynamic, shapes.StructShape((("data", inner),)), (), False),
        shapes.InterfaceShape(
            dynamic, NUMBER, (shapes.TypeDescription(8, ("at ", inner), False),), False
        ),
        shapes.SumShape(NUMBER, 4, 8, inner.decode),
    ]


@pytest.mark.parametrize("shape", of_kinds(FUNCTION), ids=lambda one: type(one).__name__)
def test_an_address_is_found_in_every_shape(shape: shapes.Shape) -> None:
    assert has_function(shape)


@pytest.mark.parametrize("shape", of_kinds(NUMBER), ids=lambda one: type(one).__name__)
def test_a_number_is_none(shape: shapes.Shape) -> None:
    assert not has_function(shape)


def test_a_caller_that_is_not_known_is_one() -> None:
    assert has_function(shapes.CallerShape(NUMBER, ((5, NUMBER),)))
