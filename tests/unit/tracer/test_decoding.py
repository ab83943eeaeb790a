"""Records that are shorter than their format says, or point out of themselves, are refused."""

from __future__ import annotations

import struct

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.ir.fetch import Decode
from fetchc.tracer.decode import Decoder
from fetchc.tracer.events import PLAN_INDEX, EventValue, Field, Format, Plan
from fetchc.tracer.value_shapes import Leaf
from tests.support.records import COMM, THREAD, Nobody, format_of, record, sample

FIELDS = [("n", "Q"), ("s", "text"), (COMM, "text")]
GOOD = record(FIELDS, [7, b"text", b"comm"])
VALUES = (
    EventValue("n", Leaf("n", Decode("integer", 64))),
    EventValue("s", Leaf("s", Decode("text"))),
)
PLAN = Plan("g", "ev", "/bin/x", "f", "entry", 0, ("",), VALUES)


def decoder(format: Format | None = None) -> Decoder:
    return Decoder(format_of(FIELDS) if format is None else format, [PLAN], Nobody())


def test_a_whole_record() -> None:
    event = decoder().event(sample(GOOD))
    assert (event.args, event.comm, event.pid) == ({"n": 7, "s": "text"}, "comm", THREAD)


@pytest.mark.parametrize("name", ["__probe_ip", "__probe_func", ""])
def test_the_record_of_an_event_has_no_address(name: str) -> None:
    format = format_of(FIELDS)
    if name:
        place = Field(name, 8, 8, False, None, False)
        format = Format(format.id, format.event, (place, *format.fields))
    (word,) = struct.unpack_from("<Q", GOOD, 8)
    assert decoder(format).event(sample(GOOD)).address == (word if name else 0)
    assert word


@pytest.mark.parametrize("size", [0, 8, 16, 31])
def test_one_that_is_shorter_than_its_fields(size: int) -> None:
    with pytest.raises(TracerError, match=rf"FC0716: .*`ev` has {size} bytes, not 32"):
        decoder().event(sample(GOOD[:size]))


def test_plans_of_one_event_have_names_of_their_own() -> None:
    fields = [("n", "Q"), ("p", "Q"), (COMM, "text"), (PLAN_INDEX, "I")]
    plans = []
    for names in (("n", "p"), ("p", "n")):
        line = f"p:g/ev /bin/x:0x10 {names[0]}=%di {names[1]}=%si {COMM}=$comm"
        values = tuple([EventValue(name, Leaf(name, Decode("integer", 64))) for name in names])
        plans.append(Plan("g", "ev", "/bin/x", "f", "entry", 0, (line,), values))
    shared = Decoder(format_of(fields), plans, Nobody())
    read = [shared.event(sample(record(fields, [7, 8, b"comm", which]))) for which in (0, 1)]
    assert [event.plan for event in read] == plans
    assert [event.args for event in read] == [{"n": 7, "p": 8}, {"p": 7, "n": 8}]


def test_a_text_that_lies_outside() -> None:
    for broken in (GOOD[:32], GOOD[:24] + b"\x20\0\xff\x7f" + b"\x1f\x80\0\0" + GOOD[32:]):
        with pytest.raises(TracerError, match=r"FC0716: .*a string of"):
            decoder().event(sample(broken))


def test_a_format_without_the_name_of_the_task() -> None:
    with pytest.raises(TracerError, match=r"FC0716: .*has no field"):
        decoder(format_of(FIELDS[:1]))
