"""An event with a value of every shape, for tests that read records of any bytes."""

from __future__ import annotations

from fetchc.ir.fetch import Decode
from fetchc.tracer.events import EventValue, Plan
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    CallerShape,
    ChoiceShape,
    ComputedShape,
    ConditionalShape,
    DifferenceShape,
    ElementCountShape,
    EntryCountShape,
    EnumShape,
    Guard,
    Leaf,
    ListShape,
    MultiArrayShape,
    NotationShape,
    NumbersShape,
    OptionalShape,
    RangeShape,
    SequenceShape,
    Shape,
    StringShape,
    StructShape,
    SumShape,
    Term,
    VariantCase,
    VariantCheckShape,
)
from tests.support.records import COMM, format_of, record

__all__ = ["FIELDS", "FORMAT", "PLAN", "SOUND", "VALUES"]

WORD = Decode("integer", 64)
INT = Decode("integer", 32, True)
COLOUR = Decode("enum", 32, False, None, (("RED", 0), ("BLUE", 5)))
GUARDS = (Guard("p"),)
FIELDS = [("n", "Q"), ("p", "Q"), ("q", "Q"), ("a", "64s"), ("s", "text"), ("w", "text3"),
          (COMM, "text")]  # fmt: skip
SOUND = record(FIELDS, [3, 0x7F0000001000, 8, bytes(range(64)), b"text", [b"a", b"", None], b"me"])
LOW, HIGH, FEW = Leaf("n", WORD), Leaf("q", WORD, guards=GUARDS), Leaf("a", INT, 8, 4)
SIGNED = Leaf("a", Decode("integer", 64, True), 16, 8, guards=GUARDS)
BYTES = StringShape("a", 32, guards=GUARDS)
ROW = NumbersShape("a", INT, 8, 4, guards=GUARDS)
TWO = ListShape((Leaf("a", INT, 0, 4), Leaf("a", COLOUR, 8, 4, guards=GUARDS)))
RECKONED = ComputedShape((Term(LOW, HIGH, 8, 4), Term(FEW, None, 1, 0)), 1, False)
NULLABLE = OptionalShape(Leaf("p", Decode("reference", 64)), ROW)
VALUES: dict[str, Shape] = {
    "number": Leaf("n", WORD),
    "float": Leaf("n", Decode("float", 64)),
    "character": Leaf("a", Decode("char", 8), 4, 1, guards=GUARDS),
    "wide character": Leaf("a", Decode("char", 32), 4, 4),
    "text": Leaf("s", Decode("text")),
    "texts": Leaf("w", Decode("text", count=3)),
    "colour": Leaf("a", COLOUR, 4, 4, guards=GUARDS),
    "counted": StringShape("a", 32, length=Leaf("n", WORD), guards=GUARDS),
    "utf-16": StringShape("a", 32, "utf-16", length=Leaf("n", INT, 0, 4), guards=GUARDS),
    "utf-32": StringShape("a", 32, "utf-32", limit=64),
    "row": NumbersShape("a", Decode("bool", 8), 8, 1),
    "slice": SequenceShape(Leaf("n", WORD), NumbersShape("a", INT, 8, 4, guards=GUARDS)),
    "between": SequenceShape(
        ElementCountShape(Leaf("p", WORD), Leaf("q", WORD), 4),
        NumbersShape("a", INT, 8, 4, guards=GUARDS),
    ),
    "items": ListShape((Leaf("a", INT, 0, 4), Leaf("a", COLOUR, 8, 4)), total=9),
    "members": StructShape((("x", Leaf("a", INT, 0, 4)), ("y", Leaf("s", Decode("text"))))),
    "bytes of a range": RangeShape(BYTES, 0, 0, LOW, None),
    "a later range": RangeShape(BYTES, 2, 2, SIGNED, 64),
    "wide range": RangeShape(StringShape("a", 32, "utf-16", guards=GUARDS), 0, FEW, HIGH, None),
    "row of a range": RangeShape(ROW, 0, FEW, SIGNED, ElementCountShape(HIGH, LOW, 4)),
    "items of a range": RangeShape(TWO, 0, SIGNED, 3, RECKONED),
    "range to a difference": RangeShape(ROW, 1, 1, DifferenceShape(LOW, FEW), None),
    "up to its NUL": StringShape("a", 32, "utf-32", guards=GUARDS),
    "address": DifferenceShape(Leaf("p", Decode("pointer", 64)), -8),
    "reckoned": RECKONED,
    "either": ConditionalShape(RECKONED, ROW, TWO),
    "choice": ChoiceShape(FEW, ((0, BYTES), (5, ROW))),
    "variants": EnumShape(
        FEW,
        (
            VariantCase(0, "A", None),
            VariantCase(1, "B", TWO),
            VariantCase(None, "C", ROW, True),
            VariantCase(9, "D", None, left=2),
        ),
    ),
    "of a variant": VariantCheckShape(FEW, ((0, "A"), (1, "B")), "B", ROW),
    "inside": BoundsCheckShape(FEW, 3, ROW),
    "called": CallerShape(LOW, ((0, ROW), (-8, NULLABLE))),
    "sum": SumShape(HIGH, -5, 4, INT),
    "symbol": SumShape(LOW, 8, 8, Decode("symbol", 64)),
    "grid": MultiArrayShape((FEW, LOW), SequenceShape(LOW, ROW)),
    "element": MultiArrayShape((FEW, LOW), SequenceShape(LOW, ROW), (1, 2)),
    "window": SequenceShape(LOW, ROW, SIGNED, FEW),
    "nullable": NULLABLE,
    "noted": NotationShape("duration", (("secs", LOW), ("nanos", FEW))),
    "entries": EntryCountShape(Leaf("p", Decode("pointer", 64)), LOW, None),
    "channel": EntryCountShape(Leaf("n", Decode("pointer", 64)), SIGNED, HIGH),
    "quantity": Leaf("a", Decode("duration", 32, True, unit="ms"), 4, 4, guards=GUARDS),
    "part of a second": Leaf("n", Decode("float", 64, unit="s")),
    "date": NotationShape("unix-time", (("tv_sec", SIGNED), ("tv_nsec", FEW))),
    "parts": ListShape(TWO.items, GUARDS, is_tuple=True),
}
PLAN = Plan("g", "ev", "/bin/x", "f", "entry", 0, ("",),
            tuple(EventValue(label, shape) for label, shape in VALUES.items()))  # fmt: skip
FORMAT = format_of(FIELDS)
