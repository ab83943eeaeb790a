"""Histograms by powers of two."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.tracer.histogram import Histogram, Histograms, bucket_label, number


def test_buckets_and_the_gaps_between_them() -> None:
    histogram = Histogram()
    for value in (0, 1, 1, 2, 3, 8, 15):
        histogram.add(value)
    assert list(histogram.buckets()) == [(0, 1, 1), (1, 2, 2), (2, 4, 2), (4, 8, 0), (8, 16, 2)]
    assert (histogram.total, histogram.smallest, histogram.largest) == (7, 0, 15)
    assert list(Histogram().buckets()) == []


@given(st.lists(st.integers(-(1 << 64), 1 << 64), min_size=1))
def test_every_value_is_in_its_bucket(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    counted = 0
    for low, high, count in histogram.buckets():
        inside = [value for value in values if value < high and (low is None or value >= low)]
        assert len(inside) == count
        counted += count
    assert counted == len(values)


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (None, 0, "(..., 0)"),
        (0, 1, "[0]"),
        (1, 2, "[1]"),
        (512, 1024, "[512, 1K)"),
        (8 << 20, 16 << 20, "[8M, 16M)"),
        (1 << 63, 1 << 64, "[8E, 16E)"),
        (1 << 70, 1 << 71, "[1024E, 2048E)"),
    ],
)
def test_labels(low: int | None, high: int, label: str) -> None:
    assert bucket_label(low, high) == label


def test_one_for_each_key_and_no_more_than_fit() -> None:
    histograms = Histograms(keys=2)
    for key, value in [("a", 1), ("b", 1), ("b", 2), ("c", 9)]:
        histograms.add(key, value)
    assert [(key, each.total) for key, each in histograms] == [("a", 1), ("b", 2)]
    assert histograms.dropped == 1


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
