"""Records of any bytes: values, faults or a refusal; never an exception of another kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.decode import Decoder, reader
from fetchc.tracer.display_values import printed
from fetchc.tracer.events import Event, Sample
from tests.support.every_shape import FORMAT, PLAN, SOUND, VALUES
from tests.support.records import Nobody, sample

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

DECODER = Decoder(FORMAT, [PLAN], Nobody())


def decoded(one: Sample) -> Event | None:
    """The event; None where the record was refused as it should be."""
    refused = []
    try:
        return DECODER.event(one)
    except TracerError as error:
        refused = [one.code for one in error.diagnostics]
    assert refused == ["FC0716"]
    return None


@given(
    edits=st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), max_size=12),
    cut=st.integers(0, len(SOUND)),
    whole=st.booleans(),
)
@example(edits=[], cut=0, whole=True)
def test_any_bytes(edits: list[tuple[int, int]], cut: int, whole: bool) -> None:
    data = bytearray(SOUND)
    for at, byte in edits:
        data[at] = byte
    raw = bytes(data if whole else data[:cut])
    event = decoded(sample(raw))
    if event is None:
        assert edits or not whole
        return
    looks_sound(event.args, event.faults)
    for known in (True, False, None):
        made = reader(PLAN, FORMAT, lambda *_, known=known: known, lambda *_: None)
        looks_sound(*made(raw))


def looks_sound(args: dict[str, Value], faults: tuple[str, ...]) -> None:
    assert set(args) == set(VALUES)
    assert json.dumps(args, allow_nan=False)
    for label, value in args.items():
        assert printed(value, faults, label).isprintable()
    for path in faults:
        assert path.partition("[")[0].partition(".")[0] in VALUES


@given(data=st.binary(max_size=200))
def test_nothing_but_bytes(data: bytes) -> None:
    decoded(sample(data))
