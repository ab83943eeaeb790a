"""The rules of kernels, one at a time; what a version has is asked at its boundary."""

from __future__ import annotations

import pytest

from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
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
    Symbol,
    Text,
    Value,
    Word,
)
from fetchc.ir.fetch_rules import instructions, verify
from fetchc.target.kernel_versions import kernel

DI = Register("di")
LOAD = Deref(DI, 0)
U8 = Scalar("u", 8)


def codes(fetch: Fetch, version: str = "6.18", kind: str = "uprobe") -> list[str]:
    return [problem.code for problem in verify(fetch, kernel(version), kind)]


def deep(base: Value, levels: int, offset: int = 0) -> Value:
    for _ in range(levels):
        base = Deref(base, offset)
    return base


# Each with the first kernel that takes it; the one before must refuse it, FC0506.
FIRST: list[tuple[Value, Store, str, str]] = [
    (ReturnValue(), Word(), "3.9", "3.10"),
    (LOAD, Word(), "3.13", "3.14"),
    (StackPointer(), U8, "3.13", "3.14"),
    (StackEntry(1), U8, "3.13", "3.14"),
    (Deref(Absolute(8), 0), U8, "3.13", "3.14"),
    (Deref(Image(8), 0), U8, "3.13", "3.14"),
    (LOAD, Text(), "3.13", "3.14"),
    (LOAD, Bits(3, 0, 8), "3.13", "3.14"),
    (Comm(), Text(), "4.7", "4.8"),
    (DI, Scalar("x", 32), "4.8", "4.9"),
    (LOAD, Array(U8, 4), "4.19", "4.20"),
    (LOAD, Array(Text(), 4), "4.19", "4.20"),
    (Deref(DI, 0, user=True), Word(), "5.2", "5.3"),
    (LOAD, Text(user=True), "5.2", "5.3"),
    (Immediate(1), Word(), "5.3", "5.4"),
    (DI, Char(), "6.4", "6.5"),
]


@pytest.mark.parametrize(("value", "store", "before", "first"), FIRST)
def test_first_kernel(value: Value, store: Store, before: str, first: str) -> None:
    fetch = Fetch(value, store)
    assert set(codes(fetch, before, "uretprobe")) == {"FC0506"}
    problem = verify(fetch, kernel(before), "uretprobe")[0]
    assert f"Linux {first} was the first" in problem.notes
    assert codes(fetch, first, "uretprobe") == []


def test_registers_alone_work_from_the_first_kernel_on() -> None:
    assert codes(Fetch(DI, Word()), "3.5") == []
    assert codes(Fetch(DI, Scalar("s", 32)), "3.5") == []


@pytest.mark.parametrize(
    ("fetch", "code"),
    [
        (Fetch(ReturnValue(), Word()), "FC0507"),
        (Fetch(Deref(ReturnValue(), 0), Word()), "FC0507"),
        (Fetch(DI, Text()), "FC0507"),
        (Fetch(StackEntry(0), Text()), "FC0507"),
        (Fetch(Immediate(1), Text()), "FC0507"),
        (Fetch(DI, Array(U8, 2)), "FC0507"),
        (Fetch(Deref(DI, 0, user=True), Array(U8, 2)), "FC0507"),
        (Fetch(Comm(), Word()), "FC0507"),
        (Fetch(Comm(), Text(user=True)), "FC0507"),
        (Fetch(Deref(Comm(), 0), Word()), "FC0507"),
        (Fetch(Deref(Absolute(1), 0, user=True), Word()), "FC0507"),
        (Fetch(LOAD, Symbol()), "FC0507"),
        (Fetch(LOAD, Bits(8, 1, 8)), "FC0507"),
        (Fetch(LOAD, Bits(0, 0, 8)), "FC0507"),
        (Fetch(LOAD, Bits(3, -1, 8)), "FC0507"),
        (Fetch(LOAD, Bits(3, 0, 24)), "FC0507"),
        (Fetch(LOAD, Scalar("u", 128)), "FC0507"),
        (Fetch(LOAD, Scalar("f", 64)), "FC0507"),
        (Fetch(LOAD, Array(U8, 0)), "FC0505"),
        (Fetch(LOAD, Array(U8, 65)), "FC0505"),
        (Fetch(Absolute(1), Word()), "FC0405"),
        (Fetch(Image(1), Word()), "FC0405"),
        (Fetch(Deref(DI, 2**31), Word()), "FC0511"),
        (Fetch(Deref(DI, -(2**31) - 1), Word()), "FC0511"),
        (Fetch(Deref(Deref(DI, 2**32), 0), Word()), "FC0511"),
        (Fetch(StackEntry(2**32), Word()), "FC0511"),
        (Fetch(StackEntry(-1), Word()), "FC0511"),
        (Fetch(Immediate(2**64), Word()), "FC0511"),
        (Fetch(Deref(Absolute(2**64 - 1), 1), Word()), "FC0511"),
        (Fetch(Deref(Image(-(2**63)), -1), Word()), "FC0511"),
    ],
)
def test_refused(fetch: Fetch, code: str) -> None:
    assert codes(fetch) == [code]


def test_every_cause_is_reported() -> None:
    fetch = Fetch(Deref(ReturnValue(), 2**40), Array(Bits(9, 0, 8), 65))
    assert sorted(codes(fetch)) == ["FC0505", "FC0507", "FC0507", "FC0511"]


def test_registers_of_the_machine() -> None:
    known = frozenset(["di", "sp"])
    assert verify(Fetch(DI, Word()), kernel("6.18"), registers=known) == ()
    (problem,) = verify(Fetch(Register("rdi"), Word()), kernel("6.18"), registers=known)
    assert (problem.code, "%rdi" in problem.message) == ("FC0512", True)


# Measured on 5.10, 6.1, 6.12, 6.18 and 7.2: the most dereferences above a base, by store.
@pytest.mark.parametrize(
    ("base", "store", "most"),
    [
        (DI, Word(), 14),
        (DI, U8, 14),
        (StackEntry(0), Word(), 14),
        (DI, Bits(1, 0, 8), 13),
        (DI, Array(U8, 2), 13),
        (DI, Array(Bits(1, 0, 8), 2), 12),
        (DI, Array(Text(), 2), 12),
        (DI, Text(), 14),
        (Deref(Absolute(1), 0), Word(), 13),
        (Deref(Image(1), 0), Word(), 13),
    ],
)
def test_instructions(base: Value, store: Store, most: int) -> None:
    rules = kernel("6.18")
    assert rules.instructions is not None
    assert instructions(Fetch(deep(base, most), store), rules) == rules.instructions
    assert "FC0502" in codes(Fetch(deep(base, most + 1), store))
    assert "FC0502" not in codes(Fetch(deep(base, most), store))
    assert "FC0502" not in codes(Fetch(deep(base, most + 1), store), "4.19")


def test_a_value_that_is_not_loaded_costs_its_store() -> None:
    rules = kernel("6.18")
    assert instructions(Fetch(DI, Word()), rules) == 2
    assert instructions(Fetch(Comm(), Text()), rules) == 2
    assert instructions(Fetch(DI, Bits(1, 0, 8)), rules) == 3


def test_nesting_of_7_3() -> None:
    eight, nine = Fetch(deep(DI, 8), Word()), Fetch(deep(DI, 9), Word())
    assert codes(eight, "7.3") == []
    assert codes(nine, "7.3") == ["FC0502"]
    assert codes(nine, "7.2") == []
    # @ is no nesting
    assert codes(Fetch(deep(Deref(Image(1), 0), 8), Word()), "7.3") == []


def test_too_deep_says_by_how_much() -> None:
    (problem,) = verify(Fetch(deep(DI, 16), Array(Text(), 2)), kernel("6.18"))
    assert "follows 12 for this value, 4 fewer" in problem.notes[0]


@pytest.mark.parametrize(("store", "refused"), [(Word(), []), (Char(), ["FC0501"])])
def test_length_of_the_body(store: Store, refused: list[str]) -> None:
    fetch = Fetch(deep(DI, 6, 1234567), store)  # 63 bytes as a word
    assert codes(fetch) == refused
    assert codes(fetch, "7.3") == []


def test_too_long_says_what_fits() -> None:
    (problem,) = verify(Fetch(deep(DI, 9, 12345), Text()), kernel("6.18"))
    assert problem.code == "FC0501"
    assert problem.message == "the fetch-arg takes 82 bytes"
    assert problem.notes[0] == "Linux 6.18 takes 63 bytes"
    assert "`" + "+12345(" * 7 + "%di" + ")" * 7 + "`" in problem.notes[1]


def test_a_very_long_chain_ends() -> None:
    chain = deep(DI, 100_000, 8)
    assert codes(Fetch(chain, Word())) == ["FC0502"]
    assert codes(Fetch(chain, Word()), "4.4") == ["FC0501"]
