"""What a run brings: how much was compared, and what was read wrong."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fetchc.conformance import machine
from fetchc.ir.evaluate import Fault, Outcome, State, evaluate
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import Array, Char, Decode, Fetch, Scalar, Store, Text, Word
from fetchc.ir.step_lowering import steps_of
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api.probe import Probe

__all__ = [
    "LIMITS",
    "REFUSED",
    "Change",
    "Reproducer",
    "Tally",
    "Value",
    "as_it_is",
    "by_steps",
    "decoded",
    "fetched",
    "place_of",
    "printed",
    "state_of",
    "without",
]

# The kernel's own limits: right wherever they are said, and counted.
LIMITS = frozenset(["FC0501", "FC0502"])
_TEXT_ROOM = 4096  # bytes, as tracefs has for a string
REFUSED = "none"  # in place of the fetch-arg where the expression was refused


class Tally:
    """How much was compared; ``refused`` counts the codes of right refusals.

    ``traced`` are the fetches that the engines of the running kernel have made, too.
    """

    def __init__(self) -> None:
        self.programs = 0
        self.types = 0
        self.functions = 0
        self.expressions = 0
        self.compared = 0
        self.traced = 0
        self.refused: Counter[str] = Counter()

    def add(self, other: Tally) -> None:
        """Count another program in."""
        self.programs += other.programs
        self.types += other.types
        self.functions += other.functions
        self.expressions += other.expressions
        self.compared += other.compared
        self.traced += other.traced
        self.refused += other.refused

    def __str__(self) -> str:
        refused = ", ".join(f"{code} {count}" for code, count in sorted(self.refused.items()))
        return (
            f"{self.types} types, {self.functions} functions, {self.expressions} expressions, "
            f"{self.compared} compared, {self.traced} traced, refused: {refused or 'none'}"
        )


def without(items: list[Any]) -> Iterator[Callable[[], None]]:
    """Take items out, many at once and then fewer; each time how to put them back."""
    many = len(items)
    while many:
        for start in range(len(items) - 1, -1, -many):
            first = max(0, start - many + 1)
            taken = items[first : start + 1]
            if taken:
                del items[first : start + 1]
                yield partial(_put_back, items, first, taken)
        many //= 2


def _put_back(items: list[Any], first: int, taken: list[Any]) -> None:
    items[first:first] = taken


class Reproducer(Record):
    """The smallest program found that shows a wrong value, and all that it takes to see it."""

    command: str  # that builds it
    source: str  # what of the program matters
    whole: str  # all of it
    function: str
    stage: str  # entry, inner: at the mark in the body, leave: where it returns
    expression: str
    fetcharg: str
    fetched: str
    program: str  # the value, as the program has it

    def __str__(self) -> str:
        return (
            f"{self.source}\n\n"
            f"built by:    {self.command}\n"
            f"function:    {self.function} ({self.stage})\n"
            f"expression:  {self.expression}\n"
            f"fetch-arg:   {self.fetcharg}\n"
            f"fetched:     {self.fetched}\n"
            f"the program: {self.program}"
        )


# ------------------------------------------------------------------------------
# From a fetch-arg to a value: its text on the machine, and its tree by ``ir.evaluate``.

Value = int | bytes | None
Change = Callable[[str, Decode], tuple[str, Decode]]


def as_it_is(text: str, decode: Decode) -> tuple[str, Decode]:
    """No change; a test of the test has others."""
    return text, decode


def fetched(
    text: str, decode: Decode, thread: machine.Machine, tree: Fetch | None = None
) -> list[Value] | str | None:
    """The values that the event holds, None where its bytes are stale.

    With ``tree`` it is evaluated, too, and so are the steps of an eBPF program for it; where they
    disagree, a string that says so.
    """
    shown = machine.run(text, thread)
    if tree is not None:
        state = state_of(thread)
        outcome = evaluate(tree, state)
        other = printed(outcome, tree.store)
        if other != shown:
            return f"{shown} by its text, {other} by `ir.evaluate`"
        if thread.word == machine.WORD and state.little_endian:  # where there are eBPF programs
            steps = by_steps(tree, state)
            if steps != (None if isinstance(outcome, Fault) or outcome.faulted else shown):
                return f"{shown} by its text, {steps} by `ir.evaluate_steps`"
    return None if shown is None else decoded(shown, decode)


def state_of(thread: machine.Machine) -> State:
    """The same registers and memory for the evaluators of fetches and steps."""
    return State(
        thread.registers,
        thread.memory.read,
        thread.bias,
        stack=thread.stack,
        result=thread.result,
        word_bytes=thread.word,
        little_endian=thread.order == "little",
    )


def by_steps(tree: Fetch, state: State) -> str | None:
    """What the record of an eBPF program shows; None where a load failed."""
    program = steps_of([("v", tree)], state.stack, state.result)
    (slot,) = program.slots
    found = record(program, state, _TEXT_ROOM)
    low, high = slot.at, slot.at + slot.size * (slot.count or 1)
    reads = [one for one in program.bits if one.low < high and low < one.high]
    if any(one.bit in found.faults for one in reads):
        return None
    for block in program.blocks:
        begin, end = struct.unpack_from("<HH", found.fixed, block.word)
        if max(low, block.low) < begin or end < min(high, block.high):
            return None
    if slot.text:
        texts = found.texts if slot.count is not None else found.texts[0]
        faulted = None in found.texts
        return None if faulted else printed(Outcome(texts), tree.store)
    numbers = [
        int.from_bytes(found.fixed[at : at + slot.size], "little", signed=slot.signed)
        for at in range(low, high, slot.size)
    ]
    value = numbers[0] if slot.count is None else tuple(numbers)
    return printed(Outcome(value), tree.store)


def place_of(point: Probe) -> str:
    """Where a probe is: FILE:OFFSET, as a definition has it."""
    return point.definition((), "fetchc", "ev").split()[1]


def printed(outcome: Outcome | Fault, store: Store) -> str | None:
    """What the event's line shows for an outcome; None for stale bytes."""
    if isinstance(outcome, Fault):
        return None
    if isinstance(outcome.value, tuple):
        assert isinstance(store, Array)
        return "{" + ",".join([_one(value, store.element) for value in outcome.value]) + "}"
    return _one(outcome.value, store)


def _one(value: Value, store: Store) -> str:
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


def decoded(shown: str, decode: Decode) -> list[Value]:
    """The values of what the event shows, as ``decode`` says."""
    if decode.kind == "text" and shown.startswith("{0x"):  # a counted text, in words
        numbers = [int(word, 0) for word in shown.strip("{}").split(",")]
        return [b"".join([number.to_bytes(8, "little") for number in numbers])]
    if decode.kind == "text":
        if decode.count is None:
            found = [shown]
        else:
            found = re.findall(r'"[^"]*"|\(fault\)', shown)
        return [
            None if it == "(fault)" else it[1:-1].encode("latin-1")[: decode.limit] for it in found
        ]
    words = shown.strip("{}").split(",")
    assert decode.bits is not None
    return [_number(int(word, 0), decode.kind, decode.bits, decode.signed) for word in words]


def _number(value: int, kind: str, bits: int, signed: bool) -> int | bytes:
    value %= 1 << bits
    if kind == "float":
        return value.to_bytes(bits // 8, "little")
    return value - (1 << bits) if signed and value >> (bits - 1) else value
