"""A fetch evaluated as a tree gives what its text gives on a machine of its own."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fetchc.conformance import machine
from fetchc.ir.evaluate import Fault, Outcome, State, evaluate
from fetchc.ir.fetch import (
    Array,
    Bits,
    Char,
    Deref,
    Fetch,
    Register,
    Scalar,
    Store,
    Text,
    Word,
    body,
)
from fetchc.ir.fetch_rules import verify
from fetchc.target.kernel_versions import kernel
from tests.support import fetches

KERNEL = kernel("6.18")


def shown(outcome: Outcome | Fault, store: Store) -> str | None:
    """The line of the event for an outcome; None for stale bytes."""
    if isinstance(outcome, Fault):
        return None
    if isinstance(outcome.value, tuple):
        assert isinstance(store, Array)
        element = store.element
        return "{" + ",".join([one(value, element) for value in outcome.value]) + "}"
    return one(outcome.value, store)


def one(value: int | bytes | None, store: Store) -> str:
    match value, store:
        case None, Text():
            return "(fault)"
        case bytes(), Text():
            return f'"{value.decode("latin-1")}"'
        case int(), Char():
            return f"'{chr(value)}'"
        case int(), Word() | Scalar("x", _):
            return f"{value:#x}"
        case int(), _:
            return str(value)
        case _:
            raise AssertionError((value, store))


def both(fetch: Fetch, text: str, seed: int, returning: bool) -> tuple[str | None, str | None]:
    memory, registers = fetches.memory(seed)
    state = State(registers, memory.read, fetches.BIAS, b"task")
    thread = machine.Machine(registers, memory, fetches.BIAS, "task", returning)
    return shown(evaluate(fetch, state), fetch.store), machine.run(text, thread)


@given(fetches.fetches(returning=True), st.integers(0, 50))
def test_tree_and_text_give_the_same_value(fetch: Fetch, seed: int) -> None:
    assume(not verify(fetch, KERNEL, "uretprobe"))
    tree, text = both(fetch, body(fetch), seed, returning=True)
    assert tree == text


WRONG: list[tuple[str, str, Store]] = [
    ("+8", "+16", Word()),
    ("u16", "s16", Scalar("u", 16)),
    ("b5@3", "b5@2", Bits(5, 3, 16)),
    ("string", "ustring[1]", Text()),
    ("[3]", "[2]", Array(Scalar("x", 8), 3)),
    ("%di", "%si", Scalar("x", 64)),
]


@pytest.mark.parametrize(("right", "wrong", "store"), WRONG)
def test_a_wrong_text_is_noticed(right: str, wrong: str, store: Store) -> None:
    fetch = Fetch(Deref(Deref(Register("di"), 0), 8), store)
    text = body(fetch)
    assert right in text
    pairs = [both(fetch, text.replace(right, wrong), seed, returning=False) for seed in range(30)]
    assert any(tree != other for tree, other in pairs)
    pairs = [both(fetch, text, seed, returning=False) for seed in range(30)]
    assert all(tree == other for tree, other in pairs)


@given(fetches.fetches(returning=True, wild=True, longest=16), st.booleans())
def test_verify_accepts_only_what_the_machine_reads_as_meant(fetch: Fetch, returning: bool) -> None:
    if verify(fetch, KERNEL, "uretprobe" if returning else "uprobe"):
        return
    program = machine.parse(body(fetch), returning)
    assert program.count == (fetch.store.count if isinstance(fetch.store, Array) else 0)


@given(fetches.fetches(wild=True, longest=16))
def test_every_problem_has_a_code_and_a_message(fetch: Fetch) -> None:
    for version in ("3.5", "4.4", "5.10", "6.18", "7.3"):
        for problem in verify(fetch, kernel(version)):
            assert problem.code.startswith(("FC05", "FC0405"))
            assert problem.message
            assert problem.message[-1] != "."
