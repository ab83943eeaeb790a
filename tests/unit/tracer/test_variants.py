"""Variants and tuples of Rust as values: what JSON has of them, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from fetchc.ir.fetch import Decode
from fetchc.tracer.display_values import NOTATIONS, Tuple, printed
from fetchc.tracer.element_shaper import plain_number
from fetchc.tracer.structure_values import not_fetched, tuple_of, variant, variant_checked
from fetchc.tracer.value_shapes import Leaf

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

    Make = Callable[[bytes, list[str]], Value]


def fixed(value: Value) -> Make:
    return lambda data, faults: value


def fault(path: str) -> Make:
    def make(data: bytes, faults: list[str]) -> Value:
        faults.append(path)
        return None

    return make


CASES: dict[int | None, tuple[str, Make | None, bool]] = {
    0: ("Empty", None, False),
    1: ("Circle", fixed({"r": 7}), False),
    2: ("Square", fixed(Tuple([1, 9])), False),
    3: ("Pair", fixed(Tuple([1, 9])), True),
    4: ("Point", fixed({"x": 1}), True),
    5: ("Deep", not_fetched(2), False),
    None: ("Some", fixed("text"), True),
}


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        (0, "Empty", "Empty"),
        (1, "Circle{r=7}", {"Circle": {"r": 7}}),
        (2, "Square(1, 9)", {"Square": [1, 9]}),
        (3, "Pair((1, 9))", {"Pair": [1, 9]}),
        (4, "Point({x=1})", {"Point": {"x": 1}}),
        (5, "Deep[…]", {"Deep": []}),
        (6, 'Some("text")', {"Some": "text"}),
    ],
)
def test_a_variant_is_written_with_what_it_holds(tag: int, text: str, value: Value) -> None:
    faults: list[str] = []
    made = variant(fixed(tag), CASES)(b"", faults)
    assert printed(made, faults, "e") == text
    assert json.loads(json.dumps(made)) == value
    assert faults == []


def test_the_only_variant_needs_no_tag() -> None:
    made = variant(None, {None: ("Ok", fixed(5), True)})(b"", [])
    assert printed(made) == "Ok(5)"


def test_a_tag_that_cannot_be_read_is_a_fault() -> None:
    faults: list[str] = []
    assert variant(fault("e"), CASES)(b"", faults) is None
    assert variant_checked(fault("e"), {0: "A"}, "A", fixed(1))(b"", faults) is None
    assert faults == ["e", "e"]


def test_a_number_of_no_variant_is_shown() -> None:
    known: dict[int | None, tuple[str, Make | None, bool]] = {0: ("A", None, False)}
    assert variant(fixed(7), known)(b"", []) == 7
    assert variant_checked(fixed(7), {0: "A"}, "A", fixed(1))(b"", []) == {"variant": 7}


def test_a_field_that_cannot_be_read_is_named_by_its_path() -> None:
    faults: list[str] = []
    cases: dict[int | None, tuple[str, Make | None, bool]] = {None: ("Some", fault("e.Some"), True)}
    assert printed(variant(fixed(1), cases)(b"", faults), faults, "e") == "Some((fault))"
    faults = []
    made = tuple_of([fixed(1), fault("e[1]")], "e")(b"", faults)
    assert printed(made, faults, "e") == "(1, (fault))"
    faults = []
    assert tuple_of([fault("e[0]"), fault("e[1]")], "e")(b"", faults) is None
    assert faults == ["e"]


def test_a_field_of_another_variant_is_not_read() -> None:
    names = {0: "Circle", None: "Square"}
    assert variant_checked(fixed(0), names, "Circle", fixed(7))(b"", []) == 7
    faults: list[str] = []
    made = variant_checked(fixed(5), names, "Circle", fault("never"))(b"", faults)
    assert (printed(made), faults) == ("{variant=Square}", [])


def test_one_part_keeps_its_comma() -> None:
    assert printed(Tuple([1])) == "(1,)"


@pytest.mark.parametrize(
    ("seconds", "nanoseconds", "text"),
    [
        (3, 500_000_000, "3.5s"),
        (3, 0, "3s"),
        (0, 1_500_000, "1.5ms"),
        (0, 1_500, "1.5µs"),
        (0, 7, "7ns"),
        (0, 0, "0ns"),
        (2**64 - 1, 999_999_999, "18446744073709551615.999999999s"),
        (1, 10**9, None),
    ],
)
def test_durations_are_written_as_rust_does(
    seconds: int, nanoseconds: int, text: str | None
) -> None:
    assert NOTATIONS["duration"]({"secs": seconds, "nanos": nanoseconds}) == text
    assert NOTATIONS["duration"]({"secs": seconds, "__0": nanoseconds}) == text


@pytest.mark.parametrize(
    ("seconds", "nanoseconds", "text"),
    [
        (1_700_000_000, 5, "2023-11-14T22:13:20.000000005Z"),
        (0, 0, "1970-01-01T00:00:00Z"),
        (-1, 500_000_000, "1969-12-31T23:59:59.500000000Z"),
        (1 << 60, 0, None),
        (0, -1, None),
    ],
)
def test_times_count_from_1970(seconds: int, nanoseconds: int, text: str | None) -> None:
    assert NOTATIONS["unix-time"]({"tv_sec": seconds, "tv_nsec": nanoseconds}) == text


def test_a_tag_keeps_its_sign_without_its_name() -> None:
    tag = Leaf("tag", Decode("enum", 8, True, None, (("Left", -5),)), 4, 1)
    assert plain_number(tag) == Leaf("tag", Decode("integer", 8, True), 4, 1)
