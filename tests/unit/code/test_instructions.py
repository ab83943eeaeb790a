"""Instruction boundaries by a disassembler."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from fetchc.code.disassembly import (
    exits,
    falls_through,
    ignores,
    is_instruction_start,
    jump_targets,
    stack_accesses,
    taken,
    written,
)
from fetchc.diag.diagnostic import CompileError
from fetchc.quantities import Address

BASE = Address(0x401000)
CODE = bytes.fromhex("55 4889e5 b801000000 5d c3")  # push; mov; mov $1; pop; ret


def test_starts_and_middles() -> None:
    answers = [
        is_instruction_start(CODE, BASE, Address(BASE + offset), "x86_64")
        for offset in range(len(CODE))
    ]
    assert [offset for offset, answer in enumerate(answers) if answer] == [0, 1, 4, 9, 10]


def test_outside_the_function() -> None:
    assert not is_instruction_start(CODE, BASE, Address(BASE + len(CODE)), "x86_64")
    assert not is_instruction_start(CODE, BASE, Address(BASE - 1), "x86_64")


def test_undecodable_bytes_are_refused() -> None:
    with pytest.raises(CompileError, match=r"FC0206.*0x401001"):
        is_instruction_start(b"\x55\x06\x06\x06", BASE, Address(BASE + 3), "x86_64")


def test_unknown_machine_is_refused() -> None:
    with pytest.raises(CompileError, match="FC0905"):
        is_instruction_start(CODE, BASE, BASE, "pdp11")


def test_without_capstone_the_help_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "capstone", None)
    with pytest.raises(CompileError) as caught:
        is_instruction_start(CODE, BASE, BASE, "x86_64")
    assert caught.value.diagnostics[0].help == "install it: pip install capstone"
    asked: list[Callable[[], object]] = [
        lambda: list(stack_accesses(CODE, BASE, "x86_64")),
        lambda: ignores(CODE, BASE, "x86_64", "%ax"),
        lambda: jump_targets(CODE, BASE, "x86_64"),
        lambda: exits(CODE, BASE, "x86_64"),
        lambda: falls_through(CODE, BASE, "x86_64"),
        lambda: taken(CODE, BASE, "x86_64"),
        lambda: written(CODE, BASE, "x86_64"),
    ]
    for ask in asked:
        with pytest.raises(CompileError, match="FC0905"):
            ask()
