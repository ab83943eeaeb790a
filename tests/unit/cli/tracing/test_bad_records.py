"""Records that the trace cannot read: what came before them is printed, then an exact message."""

from __future__ import annotations

import pytest

from fetchc.cli.option_table import Options
from fetchc.cli.output import Output
from fetchc.cli.trace_events import Show
from fetchc.cli.trace_request import request
from fetchc.cli.trace_targets import Target
from fetchc.diag.diagnostic import TracerError
from fetchc.ir.fetch import Decode
from fetchc.tracer.decode import Decoder
from fetchc.tracer.events import EventValue, Plan
from fetchc.tracer.ring_buffer import Records
from fetchc.tracer.session import Session
from fetchc.tracer.stacks import Stacks
from fetchc.tracer.value_shapes import Leaf
from tests.support.records import COMM, Nobody, format_of, record, sample

FIELDS = [("n", "Q"), (COMM, "text")]
GOOD = record(FIELDS, [7, b"comm"])
FOREIGN = b"\2" + GOOD[1:]  # by its number of another event
PLAN = Plan("g", "ev", "/bin/x", "f", "entry", 0, ("",), (
    EventValue("n", Leaf("n", Decode("integer", 64))),
))  # fmt: skip


def show(form: str, events: int) -> Show:
    """A trace of ``events`` events of the kernel."""
    options = Options("trace")
    options.format = form
    options.operands = ["n"]
    session = Session()
    for number in range(1, events + 1):
        format = format_of(FIELDS).replaced(id=number)
        session.decoders[number if number == 1 else number + 10] = Decoder(format, [PLAN], Nobody())
    target = Target("hit", PLAN, ("n",))
    return Show(session, [target], options, request(options), Output("never"), None, Stacks())


@pytest.mark.parametrize("form", ["text", "jsonl"])
@pytest.mark.parametrize("events", [1, 2])
def test_a_record_of_another_event(
    form: str, events: int, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [sample(GOOD, 10), sample(GOOD, 20), sample(FOREIGN, 30)]
    with pytest.raises(TracerError) as refused:
        show(form, events).take([[Records.of(samples)]])
    assert str(refused.value).startswith(
        "FC0716: the kernel's records cannot be read: one is of event 2, which is not an event of "
        "this session"
    )
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_a_record_that_is_shorter_than_its_format(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [sample(GOOD, 10), sample(GOOD[:20], 20), sample(GOOD, 30)]
    with pytest.raises(TracerError, match=r"FC0716: .*one of `ev` has 20 bytes, not 28"):
        show(form, 1).take([[Records.of(samples)]])
    assert len(capsys.readouterr().out.splitlines()) == 1
