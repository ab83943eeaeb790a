"""Records that are made of evaluated steps have all of a value where a decoder looks for it."""

from __future__ import annotations

import struct

from fetchc.conformance.machine import Memory
from fetchc.conformance.shown_values import encoded
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import Contents, Deref, Fetch, Register, Text
from fetchc.ir.step_lowering import steps_of


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
