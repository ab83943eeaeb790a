"""Go's argument streams: read as the compiler writes them, and held against incomplete lists."""

from __future__ import annotations

import pytest

from fetchc.abi.go_arginfo import at_its_position, parse

WORD, TEXT, SLICE = 8, (8, 8), (8, 8, 8)
OPEN, CLOSE, MORE, FAR = 0xFE, 0xFD, 0xFC, 0xFB


@pytest.mark.parametrize(
    ("stream", "shapes", "whole"),
    [
        ([], (), True),
        ([0, 8, 8, 1], (8, 1), True),
        ([OPEN, 0, 8, 8, 8, CLOSE, 16, 2], ((8, 8), 2), True),
        ([OPEN, CLOSE, 0, 8], ((), 8), True),  # an empty structure is listed too
        ([0, 8, FAR], (8, -1), True),  # a number beyond byte 239 of the frame
        ([0, 8, MORE], (8,), False),  # ten numbers, and further parameters
        ([OPEN, 0, 8, 8, 8, MORE, CLOSE], ((8, 8, -2),), True),  # ten numbers, in the last one
        ([OPEN, OPEN, MORE, CLOSE, CLOSE, 0, 1], (((-2,),), 1), True),  # too deep
    ],
)
def test_a_stream_is_read(stream: list[int], shapes: tuple[object, ...], whole: bool) -> None:
    assert parse(bytes(stream)) == (shapes, whole)


@pytest.mark.parametrize("stream", [[0], [OPEN], [CLOSE], [OPEN, 0, CLOSE], [0, 8, CLOSE, 0, 8]])
def test_what_is_no_stream_says_nothing(stream: list[int]) -> None:
    found = parse(bytes(stream))
    assert found is None or not at_its_position(found[0], (8,), 0)


def test_a_whole_list_is_at_its_positions() -> None:
    listed = (WORD, TEXT, SLICE, 1)
    assert all(at_its_position(listed, listed, position) for position in range(4))


@pytest.mark.parametrize(
    ("described", "listed", "positions"),
    [
        ((WORD, WORD), (WORD,), []),  # func(_ int, a int) or func(a, _ int)
        ((WORD, TEXT), (TEXT,), []),  # func(_ int, a string)
        ((TEXT, WORD), (TEXT,), [0]),  # func(a string, _ int)
        ((WORD, TEXT, WORD), (WORD, TEXT), [0, 1]),  # (t *T) serve(w RW, _ *T)
        ((WORD, WORD, TEXT), (WORD, TEXT), []),  # which of the two words is not known
        ((TEXT, TEXT, WORD), (TEXT, WORD), []),
        ((1, WORD, (8, -2), 1), (1, (8, 8, 8, 8, 8), 1), [0]),
        ((WORD, -1), (WORD, 2), [0, 1]),  # the table lacks the size of a number that is far off
        ((TEXT,), (SLICE,), []),
        (((8, -2),), ((8, 1, 2),), [0]),
        (((8, -2),), ((4, 1, 2),), []),
        ((), (WORD,), []),
    ],
)
def test_only_what_can_be_nowhere_else_is_at_its_position(
    described: tuple[int, ...], listed: tuple[int, ...], positions: list[int]
) -> None:
    found = [i for i in range(len(listed)) if at_its_position(described, listed, i)]
    assert found == positions
