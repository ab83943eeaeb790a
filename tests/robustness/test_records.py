"""Records of any bytes: values, faults or a refusal; never an exception of another kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from fetchc.diag.diagnostic import TracerError
from fetchc.ir.fetch import Decode
from fetchc.tracer.decode import Decoder, reader
from fetchc.tracer.display_values import printed
from fetchc.tracer.events import Event, Plan, Sample, Wanted
from fetchc.tracer.trace_instance import Processes
from fetchc.tracer.value_shapes import (
    Between,
    Bytes,
    Called,
    Case,
    Choice,
    ComputedShape,
    Difference,
    EitherShape,
    Grid,
    Guard,
    Inside,
    Items,
    Leaf,
    Members,
    Noted,
    OfVariant,
    Ranged,
    Referred,
    Row,
    SequenceShape,
    Shape,
    Sum,
    Term,
    Variants,
)
from tests.support.records import COMM, THREAD, format_of, record

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

WORD = Decode("integer", 64)
INT = Decode("integer", 32, True)
COLOUR = Decode("enum", 32, False, None, (("RED", 0), ("BLUE", 5)))
GUARDS = (Guard("p"),)
FIELDS = [("n", "Q"), ("p", "Q"), ("q", "Q"), ("a", "64s"), ("s", "text"), ("w", "text3"),
          (COMM, "text")]  # fmt: skip
SOUND = record(FIELDS, [3, 0x7F0000001000, 8, bytes(range(64)), b"text", [b"a", b"", None], b"me"])
LOW, HIGH, FEW = Leaf("n", WORD), Leaf("q", WORD, guards=GUARDS), Leaf("a", INT, 8, 4)
SIGNED = Leaf("a", Decode("integer", 64, True), 16, 8, guards=GUARDS)
BYTES = Bytes("a", 32, guards=GUARDS)
ROW = Row("a", INT, 8, 4, guards=GUARDS)
TWO = Items((Leaf("a", INT, 0, 4), Leaf("a", COLOUR, 8, 4, guards=GUARDS)))
RECKONED = ComputedShape((Term(LOW, HIGH, 8, 4), Term(FEW, None, 1, 0)), 1, False)
NULLABLE = Referred(Leaf("p", Decode("reference", 64)), ROW)
VALUES: dict[str, Shape] = {
    "number": Leaf("n", WORD),
    "float": Leaf("n", Decode("float", 64)),
    "character": Leaf("a", Decode("char", 8), 4, 1, guards=GUARDS),
    "wide character": Leaf("a", Decode("char", 32), 4, 4),
    "text": Leaf("s", Decode("text")),
    "texts": Leaf("w", Decode("text", count=3)),
    "colour": Leaf("a", COLOUR, 4, 4, guards=GUARDS),
    "counted": Bytes("a", 32, length=Leaf("n", WORD), guards=GUARDS),
    "utf-16": Bytes("a", 32, "utf-16", length=Leaf("n", INT, 0, 4), guards=GUARDS),
    "utf-32": Bytes("a", 32, "utf-32", limit=64),
    "row": Row("a", Decode("bool", 8), 8, 1),
    "slice": SequenceShape(Leaf("n", WORD), Row("a", INT, 8, 4, guards=GUARDS)),
    "between": SequenceShape(
        Between(Leaf("p", WORD), Leaf("q", WORD), 4), Row("a", INT, 8, 4, guards=GUARDS)
    ),
    "items": Items((Leaf("a", INT, 0, 4), Leaf("a", COLOUR, 8, 4)), total=9),
    "members": Members((("x", Leaf("a", INT, 0, 4)), ("y", Leaf("s", Decode("text"))))),
    "bytes of a range": Ranged(BYTES, 0, 0, LOW, None),
    "a later range": Ranged(BYTES, 2, 2, SIGNED, 64),
    "wide range": Ranged(Bytes("a", 32, "utf-16", guards=GUARDS), 0, FEW, HIGH, None),
    "row of a range": Ranged(ROW, 0, FEW, SIGNED, Between(HIGH, LOW, 4)),
    "items of a range": Ranged(TWO, 0, SIGNED, 3, RECKONED),
    "range to a difference": Ranged(ROW, 1, 1, Difference(LOW, FEW), None),
    "up to its NUL": Bytes("a", 32, "utf-32", guards=GUARDS),
    "address": Difference(Leaf("p", Decode("pointer", 64)), -8),
    "reckoned": RECKONED,
    "either": EitherShape(RECKONED, ROW, TWO),
    "choice": Choice(FEW, ((0, BYTES), (5, ROW))),
    "variants": Variants(
        FEW,
        (
            Case(0, "A", None),
            Case(1, "B", TWO),
            Case(None, "C", ROW, True),
            Case(9, "D", None, left=2),
        ),
    ),
    "of a variant": OfVariant(FEW, ((0, "A"), (1, "B")), "B", ROW),
    "inside": Inside(FEW, 3, ROW),
    "called": Called(LOW, ((0, ROW), (-8, NULLABLE))),
    "sum": Sum(HIGH, -5, 4, INT),
    "symbol": Sum(LOW, 8, 8, Decode("symbol", 64)),
    "grid": Grid((FEW, LOW), SequenceShape(LOW, ROW)),
    "element": Grid((FEW, LOW), SequenceShape(LOW, ROW), (1, 2)),
    "window": SequenceShape(LOW, ROW, SIGNED, FEW),
    "nullable": NULLABLE,
    "noted": Noted("duration", (("secs", LOW), ("nanos", FEW))),
    "date": Noted("unix-time", (("tv_sec", SIGNED), ("tv_nsec", FEW))),
    "parts": Items(TWO.items, GUARDS, parts=True),
}
PLAN = Plan("g", "ev", "/bin/x", "f", "entry", 0, ("",),
            tuple(Wanted(label, shape) for label, shape in VALUES.items()))  # fmt: skip


class Nobody(Processes):
    """Every thread is its own process, of which no memory can be looked at."""

    def __init__(self) -> None:
        self.known = False

    def of(self, thread: int, nanoseconds: int) -> int:
        return thread


DECODER = Decoder(format_of(FIELDS), [PLAN], Nobody())


def decoded(sample: Sample) -> Event | None:
    """The event; None where the record was refused as it should be."""
    refused = []
    try:
        return DECODER.event(sample)
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
    sample = Sample(1, 0, 5, THREAD, bytes(data if whole else data[:cut]))
    event = decoded(sample)
    if event is None:
        assert edits or not whole
        return
    looks_sound(event.args, event.faults)
    for known in (True, False, None):
        made = reader(PLAN, format_of(FIELDS), lambda *_, known=known: known, lambda *_: None)
        looks_sound(*made(sample.data))


def looks_sound(args: dict[str, Value], faults: tuple[str, ...]) -> None:
    assert set(args) == set(VALUES)
    assert json.dumps(args, allow_nan=False)
    for label, value in args.items():
        assert printed(value, faults, label).isprintable()
    for path in faults:
        assert path.partition("[")[0].partition(".")[0] in VALUES


@given(data=st.binary(max_size=200))
def test_nothing_but_bytes(data: bytes) -> None:
    decoded(Sample(1, 0, 5, THREAD, data))
