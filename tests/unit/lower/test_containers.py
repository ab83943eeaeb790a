"""The bytes that a bit field is taken from."""

from __future__ import annotations

import pytest

from fetchc.diag.diagnostic import CompileError
from fetchc.lower.fetches import smallest_container
from fetchc.source import Span

HERE = Span(0, 1)


@pytest.mark.parametrize(
    ("offset", "width", "holder", "place"),
    [
        (0, 1, 4, (0, 8)),
        (6, 17, 4, (0, 32)),
        (23, 9, 4, (2, 16)),
        (7, 57, None, (0, 64)),  # to the last bit of the biggest
        (24, 5, 4, (3, 8)),  # the last byte of its object
        (31, 2, 5, (3, 16)),
    ],
)
def test_smallest_container_inside_the_object(
    offset: int, width: int, holder: int | None, place: tuple[int, int]
) -> None:
    assert smallest_container(offset, width, holder, HERE) == place


def test_a_field_in_nine_bytes_is_refused() -> None:
    with pytest.raises(CompileError) as raised:
        smallest_container(7, 58, None, HERE)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "FC0513"
