"""Programs with words of another size than their kernel's."""

from __future__ import annotations

import pytest

from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import (
    Array,
    Deref,
    Fetch,
    Image,
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
from fetchc.ir.fetch_rules import misread
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.target.machines import architecture

SP, ONE = Register("sp"), Deref(Register("sp"), 4)


@pytest.mark.parametrize(
    ("value", "store", "code"),
    [
        (ONE, Scalar("s", 32), None),
        (ONE, Scalar("u", 64), None),
        (ONE, Text(), None),  # an array of characters on the stack
        (ONE, Array(Scalar("u", 8), 4), None),
        (Deref(Image(64), 0), Scalar("s", 32), None),
        (SP, Word(), None),
        (StackPointer(), Word(), None),
        (ReturnValue(), Scalar("s", 32), None),
        (Deref(ONE, 8), Scalar("s", 32), "FC0408"),
        (Deref(ONE, 0), Text(), "FC0408"),
        (Deref(Deref(Image(64), 0), 4), Text(), "FC0408"),
        (ONE, Array(Text(), 2), "FC0408"),
        (StackEntry(1), Scalar("s", 32), "FC0408"),
        (Deref(StackEntry(1), 0), Scalar("s", 32), "FC0408"),
        (ONE, Word(), "FC0408"),
    ],
)
def test_a_32_bit_program(value: Value, store: Store, code: str | None) -> None:
    fetch = Fetch(value, store)
    found = misread(fetch, architecture("i386"), kernel("6.1"))
    assert (found.code if found else None) == code
    assert misread(fetch, architecture("i386"), kernel("6.1/32")) is None


def test_machines_that_a_kernel_does_not_probe() -> None:
    fetch = Fetch(ONE, Scalar("s", 32))
    arm = misread(fetch, architecture("arm"), kernel("6.1"))
    assert arm is not None
    assert arm.code == "FC0206"
    assert arm.help is not None
    assert "`--kernel 6.1/32`" in arm.help
    wide = misread(fetch, architecture("x86_64"), kernel("6.1/32"))
    assert wide is not None
    assert wide.code == "FC0506"
    assert misread(fetch, architecture("x86_64"), kernel("6.1/64")) is None


@pytest.mark.parametrize("text", ["6.1/31", "6.1/", "/32", "6.1/32/32"])
def test_widths_that_are_none(text: str) -> None:
    with pytest.raises(CompileError, match=f"`{text}` is not a kernel version"):
        kernel(text)


@pytest.mark.parametrize(
    ("machine", "word"), [("x86_64", 8), ("i686", 4), ("armv7l", 4), ("armv8l", 8), ("ia64", 8)]
)
def test_the_running_kernel(machine: str, word: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Running:
        release = "6.1.0-50"

    Running.machine = machine  # type: ignore[attr-defined]
    monkeypatch.setattr("os.uname", Running)
    assert kernel(running_version()).word_bytes == word
