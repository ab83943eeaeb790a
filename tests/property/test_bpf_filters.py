"""A filter of an eBPF program lets pass what the reader's own filter does."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import (
    Maps,
    Point,
)
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import Array, Decode, Deref, Fetch, Register, Scalar, Text
from fetchc.ir.step_lowering import filter_steps, steps_of
from fetchc.source import Span
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.tracer.bpf import floating_terms
from fetchc.tracer.bpf.bpf_filters import Passing, passing
from fetchc.tracer.events import EventValue, Plan
from fetchc.tracer.filter_conditions import All, AnyOf, Condition, Filter, accepts
from fetchc.tracer.number_values import meaning
from fetchc.tracer.value_shapes import Leaf, Shape, SizedStringShape, StringShape
from tests.support.bpf_machine import BpfMachine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.events import Value

X86, RULES, MAPS = bpf_machine("x86_64"), bpf_rules((6, 18)), Maps(5, 6)
POINT = Point(77, 0x1234, False)
TEXT = 0x5000
BITS = (8, 16, 32, 64)
# Two numbers by their width: one in a register, one in memory after the text; the text, as one of
# C, and as one of Go, whose length is in a register.
NUMBERS = [(f"{sign}{bits}", bits, sign == "s") for bits in BITS for sign in "su"]
SCALARS = {label: Scalar("s" if signed else "u", bits) for label, bits, signed in NUMBERS}
FLOATS = {"f32": Scalar("u", 32), "f64": Scalar("u", 64)}
FIELDS = (
    *[(label, Fetch(Register("di"), store)) for label, store in SCALARS.items()],
    *[
        (f"m{label}", Fetch(Deref(Register("bx"), 0), store))
        for label, store in {**SCALARS, **FLOATS}.items()
    ],
    ("c", Fetch(Deref(Register("si"), 0), Text())),
    ("go", Fetch(Deref(Register("si"), 0), Array(Scalar("x", 64), 32))),
    ("length", Fetch(Register("r8"), Scalar("s", 64))),
    ("array", Fetch(Deref(Register("si"), 0), Array(Scalar("x", 64), 1))),
)
LENGTH = Leaf("length", Decode("integer", 64, True))
SHAPES: dict[str, Shape] = {
    **{
        place + label: Leaf(place + label, Decode("integer", bits, signed))
        for label, bits, signed in NUMBERS
        for place in ("", "m")
    },
    **{f"m{label}": Leaf(f"m{label}", Decode("float", one.bits)) for label, one in FLOATS.items()},
    "c": Leaf("c", Decode("text")),
    "go": StringShape("go", 256, length=LENGTH),
    "cpp": SizedStringShape(Leaf("c", Decode("text")), LENGTH),
    "array": StringShape("array", 8, limit=8),
}
DEFINITION = "p:g/e /f:0x1 " + " ".join(
    [
        f"{name}=x:{'string' if name == 'c' else name.strip('m').replace('f', 'u')}"
        for name in SHAPES
    ]
)
PLAN = Plan(
    "g", "e", "/f", None, "entry", 0, (DEFINITION,),
    tuple([EventValue(label, shape) for label, shape in SHAPES.items()]), fields=(FIELDS,),
)  # fmt: skip
TEXTS = {"c": None, "go": None, "cpp": None, "$comm": 15, "array": 8}  # and how much is seen of it
texts = st.text("ab*", max_size=17)
floats = st.one_of(
    st.sampled_from([0.1, -2.5, 2**-149, 1e39, 2**53 + 1, 16777217, -0.0, 1e400]),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False),
)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    label = draw(st.sampled_from([*sorted(SHAPES), "$comm"]))
    constant: float | str
    if label in TEXTS:
        operator, constant = draw(st.sampled_from(["==", "!=", "~"])), draw(texts)
    elif "f" in label:
        operator = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
        constant = draw(st.one_of(floats, st.integers(-3, 3), st.integers(-(2**63), 2**64)))
    else:
        operator = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "&"]))
        whole = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**64))
        constant = abs(draw(whole)) if operator == "&" else draw(st.one_of(whole, floats))
    return Condition(label, operator, constant, False, False, "", Span(0, 0))


filters = st.recursive(
    conditions(),
    lambda inner: st.builds(
        lambda joined, parts: joined(tuple(parts)),
        st.sampled_from([All, AnyOf]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)


class Thread:
    """A thread at a hit."""

    def __init__(self, number: int, other: int, text: str) -> None:
        self.number, self.other, self.text = number, other, text
        self.registers = {"di": number, "bx": 0x7000, "si": TEXT, "r8": len(text)}
        self.bytes = text.encode() + b"\0and more that is behind it"

    def read(self, address: int, size: int) -> bytes | None:
        """The memory of both numbers and of the text; the page ends after some bytes more."""
        start, raw = (0x7000, self.other.to_bytes(8, "little"))
        if address < start:
            start, raw = TEXT, self.bytes
        found = raw[address - start :][:size] if address >= start else b""
        return found if len(found) == size else None

    def value(self, label: str) -> Value:
        """What the reader has."""
        if label in TEXTS:
            return self.text[: TEXTS[label]]
        if "f" in label:
            bits = FLOATS[label.removeprefix("m")].bits
            _, read = meaning(Decode("float", bits), bits // 8)
            assert read is not None
            return read(self.other)
        number = self.other if label[0] == "m" else self.number
        bits, signed = SCALARS[label.removeprefix("m")].bits, "s" in label
        raw = (number & (1 << bits) - 1).to_bytes(bits // 8, "little")
        return int.from_bytes(raw, "little", signed=signed)

    def accepted(self, filter: Filter) -> bool:
        """What the reader says."""
        if isinstance(filter, Condition):
            return accepts(filter)(self.value(filter.expression))
        whole = all if isinstance(filter, All) else any
        return whole(self.accepted(part) for part in filter.parts)

    def recorded(self, found: Passing) -> bool:
        """Whether the program records the hit; the steps and their oracle agree."""
        assert X86 is not None
        context = bytearray(168)
        for name, value in self.registers.items():
            struct.pack_into("<Q", context, X86.registers[name], value)
        machine = BpfMachine(bytes(context), self.read, comm=self.text.encode())
        steps = filter_steps(found.condition, "sp", "ax")
        whole = steps_of([("n", Fetch(Register("di"), Scalar("u", 64)))], "sp", "ax")
        code = ring_record(whole, X86, RULES, MAPS, POINT, False, True, filter=steps)
        machine.run(code.instructions)
        state = State(self.registers, self.read, comm=self.text.encode())
        said = record(steps, state, 64).numbers
        assert (said is None or said[0] != 0) == bool(machine.submitted)
        return bool(machine.submitted)


numbers = st.one_of(st.integers(0, 3), st.integers(2**64 - 3, 2**64 - 1), st.integers(0, 2**64 - 1))
bits = st.one_of(
    numbers,
    st.sampled_from([0x7F800000, 0x7FC00000, 0xFFC00000, 0x80000000, 0x3DCCCCCD, 0xC0200000]),
    st.sampled_from([one << 48 for one in (0x7FF0, 0x7FF8, 0xFFF8, 0x8000, 0xC004)]),
    floats.map(lambda one: int.from_bytes(struct.pack("<d", one), "little")),
)


@given(filters, numbers, bits, st.text("ab", max_size=17))
def test_what_the_reader_accepts_is_recorded(
    filter: Filter, number: int, other: int, text: str
) -> None:
    found, thread = passing(PLAN, FIELDS, filter), Thread(number, other, text)
    if found is None:
        return
    recorded, accepted = thread.recorded(found), thread.accepted(filter)
    assert recorded or not accepted
    if found.whole:
        assert recorded == accepted


@pytest.mark.parametrize("label", ["c", "go", "cpp"])
def test_what_is_not_there_is_left_to_the_reader(label: str) -> None:
    condition = Condition(label, "==", "a" * 40, False, False, "", Span(0, 0))
    found = passing(PLAN, FIELDS, condition)
    assert found is not None
    assert Thread(0, 0, "a").recorded(found) == (label == "c")  # one of Go has another length
    assert Thread(0, 0, "a" * 40).recorded(found)


def test_what_no_number_is_has_to_be_read_all_the_same() -> None:
    condition = Condition("mu32", ">=", -1, False, False, "", Span(0, 0))
    found = passing(PLAN, FIELDS, condition)
    assert found is not None
    assert found.whole
    assert Thread(0, 5, "").recorded(found)
    lost = State({"bx": 0x7000}, lambda address, size: None)
    assert record(filter_steps(found.condition, "sp", "ax"), lost, 64).numbers is None


def test_an_order_of_other_signs_is_noticed() -> None:
    condition = Condition("s32", "<", 0, False, False, "", Span(0, 0))
    found = passing(PLAN, FIELDS, condition)
    assert found is not None
    assert Thread(2**32 - 1, 0, "").recorded(found)
    as_unsigned = EventValue("s32", Leaf("s32", Decode("integer", 32)))
    wrong = passing(PLAN.replaced(values=(as_unsigned,)), FIELDS, condition)
    assert wrong is not None
    assert not Thread(2**32 - 1, 0, "").recorded(wrong)


def test_what_is_no_number_is_below_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    condition, thread = (
        Condition("mf32", "<", 0, False, False, "", Span(0, 0)),
        Thread(0, 0xFFC00000, ""),
    )
    for is_noticed in (True, False):
        found = passing(PLAN, FIELDS, condition)
        assert found is not None
        assert thread.accepted(condition) is False
        assert thread.recorded(found) != is_noticed
        monkeypatch.setattr(floating_terms, "_is_none", lambda value: 0)


@pytest.mark.parametrize(("name", "passes"), [("a" * 15, True), ("a" * 14, False)])
def test_a_name_of_two_words_is_compared(name: str, passes: bool) -> None:
    condition = Condition("$comm", "==", "a" * 15, False, False, "", Span(0, 0))
    found = passing(PLAN, FIELDS, condition)
    assert found is not None
    assert found.whole
    assert Thread(0, 0, name).recorded(found) == passes
