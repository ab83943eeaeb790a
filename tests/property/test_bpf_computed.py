"""A number that an eBPF program computes is the one that the reader computes, or it has none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.emit.bpf_counting import Counted, Entry, fits, key_bytes, keyed_record
from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import (
    Maps,
    Point,
)
from fetchc.ir import arithmetic, term_operators
from fetchc.ir.arithmetic import DOUBLE, RULES, TRUTH, Number
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import Decode, Deref, Fetch, Register, Scalar
from fetchc.ir.step_lowering import Totals, counting_steps, steps_of
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.tracer.bpf.computed_terms import multiples, numeral
from fetchc.tracer.computed_values import operation
from fetchc.tracer.number_values import meaning
from fetchc.tracer.value_shapes import Guard, Leaf, OperandShape, OperationShape
from tests.support.bpf_machine import BpfMachine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.events import Value
    from fetchc.tracer.structure_values import Faults, Make
    from fetchc.tracer.value_shapes import Shape

X86, RULES_OF_KERNEL = bpf_machine("x86_64"), bpf_rules((6, 18))
NUMBERS = [Number(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)]
FLOATING = [Number(32, True, True), Number(64, True, True)]
FIELD_NUMBERS = [*NUMBERS, *FLOATING]
WHOLE = ("+", "-", "*", "/", "%", "&", "|", "^", "&^", "min", "max")
ORDERS = ("==", "!=", "<", "<=", ">", ">=")
# Numbers of each kind in two registers, and in memory that may not be there.
PLACES: dict[str, Register | Deref] = {
    "di": Register("di"),
    "si": Register("si"),
    "m": Deref(Deref(Register("bx"), 8), 16),
}
FIELDS = {
    f"{name}{at}": Fetch(place, Scalar("s" if one.signed else "u", one.bits))
    for name, place in PLACES.items()
    for at, one in enumerate(FIELD_NUMBERS)
}
INTEGERS = sorted(name for name in FIELDS if int(name[-1]) < len(NUMBERS))
MEMORY = 0x7000
COUNTING = 9


def leaf(name: str) -> OperandShape:
    """The operand of a field."""
    number = FIELD_NUMBERS[int(name[-1])]
    guards = (Guard("p"),) if name[0] == "m" else ()
    kind = "float" if number.floating else "integer"
    return OperandShape(Leaf(name, Decode(kind, number.bits, number.signed), guards=guards), number)


floats = st.one_of(
    st.sampled_from([0.1, -2.5, 2**-149, 1e39, -0.0]),
    st.floats(),
    st.floats(width=32),
)


@st.composite
def constants(draw: st.DrawFn) -> OperandShape:
    number = draw(st.sampled_from(NUMBERS))
    low = -(1 << number.bits - 1) if number.signed else 0
    high = low + (1 << number.bits) - 1
    edges = [one for one in (low, low + 1, high, 0, 1, 2, 7, -1) if low <= one <= high]
    return OperandShape(draw(st.one_of(st.sampled_from(edges), st.integers(low, high))), number)


@st.composite
def float_comparisons(draw: st.DrawFn) -> OperandShape:
    """Two floating-point numbers that are compared, one of them maybe a constant."""
    names = st.sampled_from([f"{place}{at}" for place in PLACES for at in (8, 9)])
    other = st.builds(OperandShape, st.one_of(floats, st.integers(-3, 3)), st.just(DOUBLE))
    operands = [leaf(draw(names)), draw(st.one_of(names.map(leaf), other))]
    number = draw(st.sampled_from(FLOATING)) if operands[0].number.bits == 32 else DOUBLE
    if draw(st.booleans()):
        operands.reverse()
    operator, rules = draw(st.sampled_from(ORDERS)), draw(st.sampled_from(sorted(RULES)))
    shape = OperationShape(operator, tuple(operands), number, rules, TRUTH, Decode("integer", 1))
    return OperandShape(shape, TRUTH)


def operations(inner: st.SearchStrategy[OperandShape]) -> st.SearchStrategy[OperandShape]:
    """An operator of such operands."""

    @st.composite
    def one(draw: st.DrawFn) -> OperandShape:
        number, rules = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(sorted(RULES)))
        operator = draw(st.sampled_from([*WHOLE, *ORDERS, "<<", ">>", "-1", "~", "!", "convert",
                                         "?:", "&&", "||", "[]"]))  # fmt: skip
        count = {"-1": 1, "~": 1, "!": 1, "convert": 1, "?:": 3, "[]": 4}.get(operator, 2)
        operands = [draw(inner) for _ in range(count)]
        result = number
        if operator in ("&&", "||"):
            number = TRUTH
        if operator in (*ORDERS, "!", "&&", "||"):
            result = draw(st.sampled_from([TRUTH, Number(32, True)]))
        decode = Decode("integer", result.bits, result.signed)
        shape = OperationShape(operator[0] if operator == "-1" else operator, tuple(operands),
                               number, rules, result, decode)  # fmt: skip
        return OperandShape(shape, result)

    return one()


trees = st.recursive(
    st.one_of(st.sampled_from(INTEGERS).map(leaf), constants(), float_comparisons()),
    operations,
    max_leaves=6,
).filter(lambda one: isinstance(one.value, OperationShape))
values = st.one_of(
    st.integers(0, 3), st.integers(2**64 - 3, 2**64 - 1), st.integers(0, 2**64 - 1),
    st.sampled_from([1 << bit for bit in (7, 8, 15, 16, 31, 32, 63)]),
    st.sampled_from([(1 << bit) - 1 for bit in (7, 8, 15, 16, 31, 32, 63)]),
    st.sampled_from([0x7F800000, 0x7FC00000, 0xFFC00000, 0x3DCCCCCD, 0xC0200000]),
    st.sampled_from([one << 48 for one in (0x7FF0, 0x7FF8, 0xFFF8, 0xC004)]),
)  # fmt: skip


class Thread:
    """A thread at a hit."""

    def __init__(self, first: int, second: int, third: int | None) -> None:
        self.registers = {"di": first, "si": second, "bx": MEMORY}
        self.third = third

    def read(self, address: int, size: int) -> bytes | None:
        """A pointer, and the number after it, if that is there."""
        pointer = MEMORY if self.third is not None else 0
        raw = {8: pointer, 16: self.third or 0}.get(address - MEMORY)
        return None if raw is None else raw.to_bytes(8, "little")[:size]

    def maker(self, shape: Shape) -> Make:
        """What the reader has of a field."""
        assert isinstance(shape, Leaf)
        name, number = shape.field, FIELD_NUMBERS[int(shape.field[-1])]
        raw = self.third if name[0] == "m" else self.registers[name[:2]]

        def make(data: bytes, faults: Faults) -> Value:
            if raw is None:
                faults.append("")
                return None
            if number.floating:
                _, read = meaning(shape.decode, number.bits // 8)
                assert read is not None
                return read(raw)
            return arithmetic.converted(raw, number, RULES["c"])

        return make

    def value(self, shape: OperationShape) -> int | None:
        """What the reader computes."""
        found = operation(shape, self.maker, "", lambda address: address)(b"", [])
        assert found is None or isinstance(found, int)
        return None if found is None else int(found)

    def counted(self, totals: Totals, signed: bool) -> tuple[int, int] | None:
        """The sum and the linear bucket of the map's one entry; None: the hit is recorded.

        The steps and their oracle agree.
        """
        assert X86 is not None
        program = counting_steps([], totals, "sp", "ax")
        context = bytearray(168)
        for name, value in self.registers.items():
            struct.pack_into("<Q", context, X86.registers[name], value)
        machine = BpfMachine(
            bytes(context), self.read, counting=COUNTING, key_size=key_bytes(program),
            value_size=Entry.at(1),
        )  # fmt: skip
        if not fits(program, X86, RULES_OF_KERNEL):
            return None
        whole = steps_of([("n", Fetch(Register("di"), Scalar("u", 64)))], "sp", "ax")
        code = ring_record(
            whole, X86, RULES_OF_KERNEL, Maps(5, 6), Point(77, 0x1234, False), False, True,
            Counted(program, COUNTING),
        )  # fmt: skip
        machine.run(code.instructions)
        said = record(program, State(self.registers, self.read), 64).numbers
        assert (said is None) == bool(machine.submitted)
        assert len(machine.submitted) + len(machine.entries) == 1
        for key, place in machine.entries.items():
            (step,) = struct.unpack_from("<q", keyed_record(program, key), program.slots[0].at)
            low, high = struct.unpack_from("<Qq", machine.values, place + Entry.at(0))
            total = (high << 32) + low
            assert said == (total if signed else total & (1 << 64) - 1,)
            return said[0], step
        return None


def check(shape: OperationShape, thread: Thread, step: int) -> None:
    found, wanted = numeral(shape, FIELDS), thread.value(shape)
    if found is None:
        return
    signed = found.number.signed
    computed = (("step", (multiples(found, step),), Scalar("s", 64)),)
    totals = Totals(computed, ((found.term, 8, signed),), ())
    got = thread.counted(totals, signed)
    bucket = None if wanted is None else (wanted // step & (1 << 64) - 1)
    assert (got and (got[0], got[1] & (1 << 64) - 1)) == (
        None if wanted is None else (wanted, bucket)
    )


@given(trees, values, values, st.one_of(st.none(), values), st.integers(1, 50))
def test_a_program_computes_as_the_reader_does(
    tree: OperandShape, first: int, second: int, third: int | None, step: int
) -> None:
    assert isinstance(tree.value, OperationShape)
    check(tree.value, Thread(first, second, third), step)


def test_what_is_shifted_out_has_to_be_read_all_the_same() -> None:
    number = NUMBERS[0]
    count = OperandShape(127, number)
    shape = OperationShape(
        "<<", (leaf("m0"), count), number, "go", number, Decode("integer", 8, True)
    )
    for third in (None, 5):
        check(shape, Thread(0, 0, third), 1)


def test_a_wrong_sign_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    number = NUMBERS[0]
    shape = OperationShape("/", (leaf("di0"), leaf("si0")), number, "c", number,
                           Decode("integer", 8, True))  # fmt: skip
    thread = Thread(-7 & 0xFF, 2, None)
    check(shape, thread, 3)
    monkeypatch.setattr(term_operators, "_magnitude", lambda term: term)
    with pytest.raises(AssertionError):
        check(shape, thread, 3)
