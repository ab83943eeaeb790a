"""Faults and truncation as measured on Linux 6.18 (the rest is in tests/property)."""

from __future__ import annotations

import pytest

from fetchc.conformance.machine import Memory
from fetchc.ir.evaluate import Fault, Outcome, State, evaluate
from fetchc.ir.fetch import (
    Array,
    Bits,
    Comm,
    Deref,
    Fetch,
    Image,
    Immediate,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Store,
    Text,
    Value,
    Word,
)

DI, SI = Register("di"), Register("si")
PAGE = 0x1000


def word(value: int) -> bytes:
    return value.to_bytes(8, "little")


# A page of pointers: to a string, NULL, to the last 2 bytes of the page of strings; and so on.
DATA = word(2 * PAGE) + word(0) + word(2 * PAGE + 14) + word(0x1122334455667788) + word(PAGE + 8)
MEMORY = Memory({PAGE: DATA, 2 * PAGE: b"one\0two\0\xe9\xff\0xyyzz"})
REGISTERS = {"di": PAGE, "si": 0x1122334455667788, "sp": PAGE + 24, "ax": 7}
STATE = State(REGISTERS, MEMORY.read, bias=PAGE - 16, comm=b"task")


@pytest.mark.parametrize(
    ("value", "store", "expected"),
    [
        (SI, Scalar("u", 8), 0x88),
        (SI, Scalar("s", 8), 0x88 - 256),
        (SI, Bits(4, 4, 16), 0x8),
        (SI, Word(), 0x1122334455667788),
        (Immediate(-1), Word(), 2**64 - 1),
        (Immediate(-1), Scalar("s", 32), -1),
        (StackPointer(), Word(), PAGE + 24),
        (StackEntry(0), Word(), 0x1122334455667788),
        (StackEntry(2**30), Word(), 0),  # an unreadable stack word is 0
        (ReturnValue(), Scalar("u", 64), 7),
        (Deref(DI, 24), Scalar("x", 16), 0x7788),
        (Deref(Image(40), 0), Scalar("x", 32), 0x55667788),
        (Deref(Deref(DI, 0), 4), Text(), b"two"),
        (Deref(Deref(DI, 0), 8), Text(), b"\xe9\xff"),
        (Deref(DI, 24), Array(Scalar("u", 8), 3), (0x88, 0x77, 0x66)),
        (Deref(Deref(DI, 0), 0), Bits(3, 4, 8), 6),
        (Comm(), Text(), b"task"),
    ],
)
def test_values(value: Value, store: Store, expected: object) -> None:
    assert evaluate(Fetch(value, store), STATE) == Outcome(expected)  # type: ignore[arg-type]


def test_last_load_bad() -> None:
    null = Deref(Deref(DI, 8), 24)
    assert evaluate(Fetch(null, Scalar("s", 32)), STATE) == Outcome(0, faulted=True)
    assert evaluate(Fetch(null, Text()), STATE) == Outcome(None, faulted=True)


def test_partly_there() -> None:
    partly = Fetch(Deref(Deref(DI, 16), 0), Scalar("x", 32))
    assert evaluate(partly, STATE) == Outcome(0x7A7A, faulted=True)
    no_nul = Fetch(Deref(Deref(DI, 16), 0), Text())
    assert evaluate(no_nul, STATE) == Outcome(None, faulted=True)


def test_inner_load_bad() -> None:
    for store in (Word(), Text(), Array(Scalar("u", 8), 2)):
        assert evaluate(Fetch(Deref(Deref(Deref(DI, 8), 24), 0), store), STATE) == Fault(24)


def test_list_of_texts() -> None:
    assert evaluate(Fetch(Deref(DI, 0), Array(Text(), 2)), STATE) == Outcome((b"one", None), True)
    assert evaluate(Fetch(Deref(DI, 32), Array(Text(), 2)), STATE) == Fault(PAGE + 40)


def test_text_without_an_end() -> None:
    for length, expected in ((4095, b"a" * 4095), (4096, None)):
        memory = Memory({PAGE + 1: b"a" * length + b"\0"})
        state = State({"di": PAGE + 1}, memory.read)
        assert evaluate(Fetch(Deref(DI, 0), Text()), state).value == expected  # type: ignore[union-attr]


def test_a_reader_that_says_none() -> None:
    state = State({"di": 0}, lambda address, size: None)
    assert evaluate(Fetch(Deref(DI, 0), Word()), state) == Outcome(0, faulted=True)
