"""Records that are made of evaluated steps have all of a value where a decoder looks for it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from fetchc.conformance.machine import Memory
from fetchc.conformance.shown_values import encoded, said, unlike
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import Contents, Deref, Fetch, Register, Text
from fetchc.ir.step_lowering import steps_of
from fetchc.tracer.display_values import CutString, WalkedList

if TYPE_CHECKING:
    from fetchc.tracer.events import Value


def test_an_array_is_in_the_fixed_part_and_texts_are_behind_it() -> None:
    array = bytes(range(200)) * 2
    fields = [
        ("array", Fetch(Contents(Deref(Register("di"), 0), len(array), len(array)), Text())),
        ("text", Fetch(Deref(Register("si"), 0), Text())),
    ]
    program = steps_of(fields, "sp", "ax")
    memory = Memory({0x1000: array, 0x2000: b"hello\0"})
    state = State({"di": 0x1000, "si": 0x2000}, memory.read, 0, b"task")
    data = encoded(program, record(program, state, 64))
    found = {}
    for slot in program.slots:
        (word,) = struct.unpack_from("<I", data, slot.at)
        found[slot.name] = data[word & 0xFFFF : (word & 0xFFFF) + (word >> 16)]
    assert found == {"array": array, "text": b"hello\0"}


def walk(written: str, *shown: Value, whole: int, changed: bool = False) -> bool:
    """Whether the elements that a trace shows are other ones than those of a line."""
    values = said(f"look [{written}]")["look"][0]
    return unlike(WalkedList([*shown], whole, True, changed), values[0])


def test_elements_are_the_first_ones_and_as_many_as_are_asked_for() -> None:
    written = '{"walked": [1, 2, "text", 4], "most": 3}'
    assert not walk(written, 1, 2, CutString("te", 4), whole=4)
    assert walk(written, 1, 2, whole=4)
    assert walk(written, 1, 2, "text", 4, whole=4)
    assert walk(written, 1, 2, "other", whole=4)
    assert walk(written, 2, 1, "text", whole=4)
    assert walk(written, 1, 2, "text", whole=5)
    assert walk(written, 1, 2, "text", whole=4, changed=True)
    assert not unlike([], said('look [{"walked": [], "most": 3}]')["look"][0][0])


def test_elements_in_no_order_are_different_ones() -> None:
    written = '{"unordered": [{"key": 1, "value": 5}, {"key": 2, "value": 5}], "most": 2}'
    one: Value = {"key": 1, "value": 5}
    two: Value = {"key": 2, "value": 5}
    other: Value = {"key": 1, "value": 6}
    assert not walk(written, two, one, whole=2)
    assert walk(written, two, two, whole=2)
    assert walk(written, two, other, whole=2)
