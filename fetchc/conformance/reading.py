"""From a fetch-arg to a value: its text on the machine, and its tree by ``ir.evaluate``."""

from __future__ import annotations

import re
from collections.abc import Callable

from fetchc.conformance import machine
from fetchc.ir.evaluate import Fault, Outcome, State, evaluate
from fetchc.ir.fetch import Array, Char, Decode, Fetch, Scalar, Store, Text, Word

__all__ = ["Change", "Value", "as_it_is", "decoded", "fetched", "printed"]

Value = int | bytes | None
Change = Callable[[str, Decode], tuple[str, Decode]]


def as_it_is(text: str, decode: Decode) -> tuple[str, Decode]:
    """No change; a test of the test has others."""
    return text, decode


def fetched(
    text: str, decode: Decode, thread: machine.Machine, tree: Fetch | None = None
) -> list[Value] | str | None:
    """The values that the event holds, None where its bytes are stale.

    With ``tree`` both ways are gone; where they disagree, a text that says so.
    """
    shown = machine.run(text, thread)
    if tree is not None:
        state = State(
            thread.registers,
            thread.memory.read,
            thread.bias,
            stack=thread.stack,
            result=thread.result,
            word_bytes=thread.word,
            little_endian=thread.order == "little",
        )
        other = printed(evaluate(tree, state), tree.store)
        if other != shown:
            return f"{shown} by its text, {other} by `ir.evaluate`"
    return None if shown is None else decoded(shown, decode)


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
