"""Tables of numbers by key: buckets, percentiles, merging."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.tracer.tables import (
    MOST_STEPS,
    Cell,
    Table,
    bar_label,
    bucket,
    bucket_bounds,
    number,
)

INTEGERS = st.integers(-(1 << 64), 1 << 64)
NUMBERS = st.one_of(INTEGERS, st.floats(allow_nan=False, allow_infinity=False))


def counted(values: list[int] | list[int | float] | list[float], step: int = 0) -> Cell:
    cell = Cell(step)
    for value in values:
        cell.add(value)
    return cell


def test_bars_and_the_gaps_between_them() -> None:
    cell = counted([0, 1, 1, 2, 3, 8, 15])
    assert list(cell.bars()) == [(0, 1, 1), (1, 2, 2), (2, 4, 2), (4, 8, 0), (8, 16, 2)]
    assert (cell.count, cell.smallest, cell.largest) == (7, 0, 15)
    assert list(Cell().bars()) == []
    assert list(counted([0.3, 0.6, 1.5]).bars()) == [(0.25, 0.5, 1), (0.5, 1, 1), (1, 2, 1)]


@given(st.lists(NUMBERS, min_size=1), st.sampled_from([0, 1, 10]))
def test_every_value_is_in_its_bar(values: list[int | float], step: int) -> None:
    values = [0 if abs(value) < 2**-64 else value for value in values]
    cell, seen = counted(values, step), 0
    for low, high, count in cell.bars():
        inside = [value for value in values if value < high and (low is None or value >= low)]
        assert len(inside) == count
        seen += count
    assert seen + cell.beyond == len(values)


@given(NUMBERS, NUMBERS)
def test_buckets_rise_with_values_and_hold_them(one: int | float, other: int | float) -> None:
    low, high = bucket_bounds(bucket(one))
    assert abs(low) <= abs(one) < abs(high) or abs(one) < 2**-64
    if one <= other:
        assert bucket(one) <= bucket(other)
    assert abs(high - low) * 32 <= max(abs(high), 32)


@given(st.lists(NUMBERS, min_size=1), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_percentiles_are_close_to_the_sorted_list_s(values: list[int | float], part: float) -> None:
    found = counted(values).quantile(part)
    exact = sorted(values)[math.ceil(part * len(values)) - 1]
    assert found is not None
    assert abs(found - exact) <= max(abs(exact) / 32, 2**-64)
    if all(isinstance(value, int) and 0 <= value < 64 for value in values):
        assert found == exact


@given(st.lists(st.tuples(st.integers(0, 9), NUMBERS)), st.integers(0, 50))
def test_tables_of_parts_merge_to_the_table_of_all(
    hits: list[tuple[int, int | float]], cut: int
) -> None:
    whole, first, second = Table((0, 7)), Table((0, 7)), Table((0, 7))
    for position, (key, value) in enumerate(hits):
        # A float's sum depends on the order: what is compared is exact.
        value = int(value) if math.isfinite(value) and abs(value) < 1 << 70 else 1
        for table in (whole, first if position < cut else second):
            table.add(key, (value, None if value % 3 else value))
    first.merge(second)
    assert first.missing == whole.missing
    assert {key: parts(row.cells) for key, row in first.rows.items()} == {
        key: parts(row.cells) for key, row in whole.rows.items()
    }


def parts(cells: list[Cell]) -> list[tuple[object, ...]]:
    return [
        (one.count, one.total, one.smallest, one.largest, one.buckets, one.linear, one.beyond)
        for one in cells
    ]


def test_cells_of_other_steps_do_not_merge() -> None:
    with pytest.raises(ValueError, match="do not merge"):
        Cell(10).merge(Cell(7))


def test_no_more_keys_and_buckets_than_fit() -> None:
    table = Table((0,), most=2)
    for key, value in [("a", 1), ("b", 1), ("b", 2), ("c", 9)]:
        table.add(key, (value,))
    assert [(key, row.hits) for key, row in table.heaviest(None)] == [("b", 2), ("a", 1)]
    assert [key for key, _ in table.heaviest(1, sums=[0])] == ["b"]
    assert table.dropped == 1
    more = Table((0,), most=2)
    more.add("d", (1,))
    table.merge(more)
    assert table.dropped == 2
    cell = counted(list(range(0, 7 * (MOST_STEPS + 5), 7)), step=1)
    assert (cell.beyond, len(cell.linear)) == (5, MOST_STEPS)
    assert len(list(cell.bars())) == MOST_STEPS  # not the million between them


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (None, 0, "(..., 0)"),
        (0, 1, "[0]"),
        (1, 2, "[1]"),
        (512, 1024, "[512, 1K)"),
        (8 << 20, 16 << 20, "[8M, 16M)"),
        (10, 20, "[10, 20)"),
        (0.25, 0.5, "[0.25, 0.5)"),
        (1 << 63, 1 << 64, "[8E, 16E)"),
        (1 << 70, 1 << 71, "[1024E, 2048E)"),
    ],
)
def test_labels(low: float | None, high: float, label: str) -> None:
    assert bar_label(low, high) == label


@pytest.mark.parametrize(("values", "label"), [([1, 1, 3], "[1]"), ([1.2, 3.0], "[1, 2)")])
def test_only_whole_numbers_are_one_number(values: list[float], label: str) -> None:
    low, high, _ = next(iter(counted(values).bars()))
    assert bar_label(low, high) == label


@pytest.mark.parametrize(
    ("value", "counted"),
    [
        (7, 7),
        (True, 1),
        (2.9, 2.9),
        (-2.9, -2.9),
        ({"name": "RED", "value": 3}, 3),
        (None, None),
        ("7", None),
        ([7], None),
        ({"x": 7}, None),
        (math.nan, None),
        (math.inf, None),
    ],
)
def test_numbers(value: object, counted: int | float | None) -> None:
    assert number(value) == counted
