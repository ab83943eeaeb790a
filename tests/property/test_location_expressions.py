"""A place, read on a made-up machine, is what running the expression there gives.

The interpreter below knows nothing of fetchc: numbers on a stack, as DWARF 5, section 2.5
says. An expression that fetchc calls absent proves nothing and is left out, but not too many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.expressions import Machine, evaluate, resolve_frame
from fetchc.debuginfo.dwarf.variables import simple_place
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import (
    Absent,
    Arithmetic,
    AtAddress,
    AtSymbol,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    Named,
    OnEntry,
    Pieces,
    Place,
    PointerTo,
    ThreadLocal,
)
from fetchc.quantities import Address, ByteOffset, DwarfRegister

WORD = 1 << 64
CFA = InMemory(DwarfRegister(7), ByteOffset(8))
FRAME_BASE = FrameRelative(ByteOffset(-16))
THREAD_POINTER, BLOCK = 0x7F5C_3000_1740, -0x68


def signed(word: int) -> int:
    return word - WORD if word >> 63 else word


def register(number: int) -> int:
    return (0x9E3779B97F4A7C15 * (number + 1)) % WORD


def word_at(address: int) -> int:
    return (0xC2B2AE3D27D4EB4F * ((address + 0x165667B1) % WORD)) % WORD


def frame_address() -> int:
    return (register(7) + 8) % WORD


def sleb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if (value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40):
            return bytes([*out, byte])
        out.append(byte | 0x80)


def uleb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


# An operation: its bytes, how many values it needs, and what it does to a list of numbers.
BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: lambda a, b: a & b,
    0x1C: lambda a, b: a - b,
    0x1E: lambda a, b: a * b,
    0x21: lambda a, b: a | b,
    0x22: lambda a, b: a + b,
    0x27: lambda a, b: a ^ b,
    0x24: lambda a, b: a << b if b < 64 else 0,
    0x25: lambda a, b: a >> b,
    0x26: lambda a, b: signed(a) >> b,
    0x2C: lambda a, b: signed(a) <= signed(b),
    0x2E: lambda a, b: a != b,
}
OPERATIONS = {
    **{"and": 0x1A, "minus": 0x1C, "mul": 0x1E, "or": 0x21, "plus": 0x22, "xor": 0x27},
    **{"shl": 0x24, "shr": 0x25, "shra": 0x26, "le": 0x2C, "ne": 0x2E},
}
Step = tuple[str, int, int]

pushes: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("breg"), st.integers(0, 31), st.integers(-300, 300)),
    st.tuples(st.just("fbreg"), st.just(0), st.integers(-300, 300)),
    st.tuples(st.just("cfa"), st.just(0), st.just(0)),
    st.tuples(st.just("addr"), st.just(0), st.integers(0, WORD - 1)),
    st.tuples(st.just("tls"), st.just(0), st.integers(0, 300)),
    st.tuples(st.just("consts"), st.just(0), st.integers(-WORD // 2, WORD // 2 - 1)),
    st.tuples(st.just("constu"), st.just(0), st.integers(0, WORD - 1)),
)
changes: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("plus_uconst"), st.just(0), st.integers(0, WORD - 1)),
    st.sampled_from([("deref", 0, 0), ("deref", 4, 0), ("neg", 0, 0), ("not", 0, 0)]),
    st.sampled_from([("dup", 0, 0), ("swap", 0, 0), ("over", 0, 0), ("rot", 0, 0)]),
    st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), st.just(0)),
)
steps = st.lists(st.one_of(pushes, changes), min_size=0, max_size=8)


def encoded(step: Step) -> bytes:
    kind, number, value = step
    if kind == "breg":
        return bytes([0x70 + number]) + sleb(value)
    if kind == "addr":
        return b"\x03" + value.to_bytes(8, "little")
    if kind == "tls":
        return b"\x10" + uleb(value) + b"\x9b"
    if kind == "binary":
        return bytes([number])
    plain = {"cfa": 0x9C, "deref": 6, "neg": 0x1F, "not": 0x20}
    plain |= {"dup": 0x12, "swap": 0x16, "over": 0x14, "rot": 0x17}
    if kind == "deref" and number:
        return bytes([0x94, number])
    if kind in plain:
        return bytes([plain[kind]])
    if kind == "fbreg":
        return b"\x91" + sleb(value)
    if kind == "consts":
        return b"\x11" + sleb(value)
    return bytes([0x10 if kind == "constu" else 0x23]) + uleb(value)


def run(step: Step, stack: list[int]) -> None:
    kind, number, value = step
    match kind:
        case "breg":
            stack.append(register(number) + value)
        case "fbreg":
            stack.append(frame_address() - 16 + value)
        case "cfa":
            stack.append(frame_address())
        case "tls":
            stack.append(THREAD_POINTER + BLOCK + value)
        case "addr" | "consts" | "constu":
            stack.append(value)
        case "plus_uconst":
            stack.append(stack.pop() + value)
        case "deref":
            stack.append(word_at(stack.pop() % WORD) % (1 << 8 * (number or 8)))
        case "neg":
            stack.append(-stack.pop())
        case "not":
            stack.append(~stack.pop())
        case "dup":
            stack.append(stack[-1])
        case "swap":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        case "over":
            stack.append(stack[-2])
        case "rot":
            stack[-3:] = [stack[-1], stack[-3], stack[-2]]
        case _:
            top, below = stack.pop(), stack.pop()
            stack.append(int(BINARY[number](below, top)))
    stack[-1] %= WORD


def needed(step: Step) -> int:
    kinds = {"swap": 2, "over": 2, "binary": 2, "rot": 3}
    return kinds.get(step[0], 0 if step[0] in PUSHED else 1)


PUSHED = ("breg", "fbreg", "cfa", "addr", "tls", "consts", "constu")


def address_of(place: Place) -> int | None:
    """Where an object in memory starts, on the made-up machine."""
    match place:
        case InMemory(number, offset):
            return (register(number) + offset) % WORD
        case AtAddress(address):
            return address
        case ThreadLocal(offset):
            return (THREAD_POINTER + offset) % WORD
        case Indirect(pointer, offset):
            at = address_of(pointer)
            return None if at is None else (word_at(at) + offset) % WORD
        case InRegister() | FrameRelative() | Constant() | Pieces() | PointerTo() | Absent():
            return None
        case Arithmetic():
            return None
        case AtSymbol() | Named() | OnEntry():
            raise AssertionError("no location expression names them")


MACHINE = Machine(
    8, 4, FRAME_BASE, thread_local=lambda offset: ThreadLocal(ByteOffset(BLOCK + offset))
)


def value_of(place: Place) -> int | None:
    """The word that is there, on the made-up machine."""
    if isinstance(place, InRegister):
        return register(place.register)
    if isinstance(place, Constant):
        return place.value % WORD
    if isinstance(place, PointerTo):
        start = address_of(place.target)
        return None if start is None else (start + place.offset) % WORD
    if isinstance(place, Arithmetic):
        operands = [value_of(one) for one in place.operands]
        if place.operation in ("neg", "not"):
            (operand,) = operands
            assert operand is not None
            return (-operand if place.operation == "neg" else ~operand) % WORD
        below, top = operands
        assert below is not None
        assert top is not None
        if place.operation == "deref_size":
            return below % (1 << 8 * top)
        return int(BINARY[OPERATIONS[place.operation]](below, top)) % WORD
    at = address_of(place)
    return None if at is None else word_at(at)


@given(pushes, steps, st.booleans())
def test_a_place_is_what_a_run_gives(first: Step, others: list[Step], as_value: bool) -> None:
    stack: list[int] = []
    raw = b""
    for step in [first, *others]:
        if len(stack) >= needed(step):
            raw += encoded(step)
            run(step, stack)
    cursor = Cursor("a.out", "expression", raw + (b"\x9f" if as_value else b""))
    described = resolve_frame(evaluate(cursor, MACHINE), CFA)
    if isinstance(described, Absent):
        event("absent")
        return
    event(type(described).__name__)
    found = value_of(described) if as_value else address_of(described)
    assert found == stack[-1]


@pytest.mark.parametrize("operation", sorted(BINARY))
def test_an_operation_is_what_a_run_gives(operation: int) -> None:
    for below, top in ((5, 3), (3, 5), (7, 7)):
        stack: list[int] = []
        raw = b""
        words: list[Step] = [("breg", below, 2), ("breg", top, -1), ("deref", 1, 0)]
        for step in [*words, ("binary", operation, 0)]:
            raw += encoded(step)
            run(step, stack)
        found = evaluate(Cursor("a.out", "expression", raw + b"\x9f"), Machine(8, 4, FRAME_BASE))
        assert value_of(found) == stack[-1]


def test_the_comparison_sees_a_wrong_place() -> None:
    right = InMemory(DwarfRegister(5), ByteOffset(8))
    wrong = InMemory(DwarfRegister(5), ByteOffset(16))
    assert address_of(right) != address_of(wrong)
    assert value_of(InRegister(DwarfRegister(5))) != value_of(right)
    assert address_of(Indirect(right, ByteOffset(0))) != address_of(right)
    five = InRegister(DwarfRegister(5))
    both = (five, Constant(3))
    assert value_of(Arithmetic("shl", both)) != value_of(Arithmetic("shl", both[::-1]))
    assert value_of(Arithmetic("shr", both)) != value_of(Arithmetic("shra", both))


@given(steps)
def test_no_sequence_ends_in_another_error(others: list[Step]) -> None:
    raw = b"".join(encoded(step) for step in others)
    located: str | None = "expression"
    try:
        evaluate(Cursor("a.out", "expression", raw), MACHINE)
    except DebugInfoError as error:
        located = error.section
    assert located == "expression"


SIMPLE = st.one_of(
    st.integers(0, 255).map(lambda code: bytes([code])),
    st.integers(-(1 << 40), 1 << 40).map(lambda number: b"\x91" + sleb(number)),
    st.binary(max_size=9).map(lambda rest: b"\x03" + rest),
    st.binary(max_size=4).map(lambda rest: b"\x91" + rest),
    st.binary(max_size=3),
)


class _Unit:
    # What a simple expression asks of its unit.
    address_size = 8
    little = True

    @property
    def info(self) -> Any:
        return self

    @property
    def elf(self) -> Any:
        return self

    def is_discarded(self, address: Address) -> bool:
        return address == 0


@given(SIMPLE, st.sampled_from([None, FRAME_BASE, CFA]))
def test_simple_expressions_need_no_run(expression: bytes, base: Place | None) -> None:
    unit: Any = _Unit()
    simple = simple_place(expression, unit, base)
    if simple is not None:
        event("simple")
        cursor = Cursor("file", "expression", expression)
        discarded = unit.is_discarded
        assert simple == evaluate(cursor, Machine(8, 4, base, discarded=discarded))


def test_what_compilers_write_is_simple() -> None:
    unit: Any = _Unit()
    for expression in (b"", b"\x55", b"\x9c", b"\x91\x70", b"\x03" + bytes(8)):
        assert simple_place(expression, unit, FRAME_BASE) is not None
