"""All plain numbers at once are what each of them is by itself, on any bytes."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from fetchc.ir.fetch import Decode
from fetchc.tracer.decode import reader
from fetchc.tracer.events import EventValue, Format, Plan
from fetchc.tracer.number_values import numbers
from fetchc.tracer.value_shapes import Guard, Leaf
from tests.support.records import NEAR, format_of, record

WORD, SHORT = Decode("integer", 64, True), Decode("integer", 16)
FIELDS = [("p", "Q"), ("q", "Q"), ("a", "q"), ("b", "H"), ("c", "H"), ("d", "q"), ("e", "i")]
FORMAT: Format = format_of(FIELDS)
LEAVES = {
    "a": Leaf("a", WORD, guards=(Guard("p", 0, 8),)),
    "b": Leaf("b", SHORT, guards=(Guard("p", 0, 16),)),
    "c": Leaf("c", SHORT, guards=(Guard("p", 0, 8), Guard("q", 0, 4090))),
    "d": Leaf("d", WORD, guards=(Guard("p", 0, 8), Guard("q", 0, 0))),
    "e": Leaf("e", Decode("integer", 32, True)),
}


def plan(*labels: str) -> Plan:
    wanted = tuple(EventValue(label, LEAVES[label]) for label in labels)
    return Plan("g", "e", "/x", "f", "entry", 0, (), wanted)


POINTERS = st.sampled_from([0, 8, 0x1000, NEAR, NEAR + 0xFFF, 1 << 47, (1 << 64) - 8])
SMALL = st.sampled_from([0, 0, 1, 77])


@given(POINTERS, POINTERS, SMALL, SMALL, SMALL, SMALL, SMALL, st.sampled_from([0, 1, 2]))
def test_at_once_is_one_by_one(
    p: int, q: int, a: int, b: int, c: int, d: int, e: int, kind: int
) -> None:
    data = _record([p, q, a, b, c, d, e])
    mapped: Callable[[int, int], bool | None]
    mapped = [lambda *_: True, lambda *_: None, lambda _, at: at & 0x1000 == 0][kind]
    together = reader(plan(*LEAVES), FORMAT, mapped)(data)
    values: dict[str, object] = {}
    faults: list[str] = []
    for label in LEAVES:
        one, fault = reader(plan(label), FORMAT, mapped)(data)
        values |= one
        faults += fault
    if kind != 2 or together[1]:  # a page that a neighbour's number came from is there
        assert together == (values, tuple(faults))


def test_a_zero_beside_what_was_loaded_is_not_asked_about() -> None:
    asked = []

    def mapped(thread: int, address: int) -> bool:
        asked.append(address)
        return True

    read = reader(plan("a", "b"), FORMAT, mapped)
    assert read(_record([NEAR & ~0xFFF, 0, 5, 0, 0, 0, 0])) == ({"a": 5, "b": 0}, ())
    assert asked == []
    assert read(_record([NEAR & ~0xFFF, 0, 0, 0, 0, 0, 0])) == ({"a": 0, "b": 0}, ())
    assert asked != []


def test_one_number_is_left_to_itself() -> None:
    fields = {field.name: field for field in FORMAT.fields}
    assert numbers(plan("a").values, fields, None) is None
    found = numbers(plan("a", "e").values, fields, None)
    assert found is not None
    assert found[0] == {"a", "e"}


def _record(values: list[int]) -> bytes:
    return record(FIELDS, values)
