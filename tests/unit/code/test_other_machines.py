"""Instruction boundaries and return instructions of machines other than x86."""

from __future__ import annotations

import pytest

from fetchc.code.instructions import exits, instruction_starts
from fetchc.diag.errors import CompileError
from fetchc.target.load import return_instructions, tables_under
from fetchc.units import Address

BASE = Address(0x1000)

# Each with the offsets of its instructions; the vector instructions are not in capstone 5.
CODE = {
    "aarch64": ("ff0301d1 e00300aa c0035fd6", [0, 4, 8]),
    "arm": ("04e02de5 1eff2fe1", [0, 4]),
    "riscv64": ("0111 13050500 8280", [0, 2, 6]),
    "ppc64le": ("f8ff21f8 2000804e", [0, 4]),
    "s390x": ("1812 eb6ff0300024 a7f4000a 07fe", [0, 2, 8, 12]),
}


@pytest.mark.parametrize("name", CODE)
def test_starts(name: str) -> None:
    text, offsets = CODE[name]
    starts = instruction_starts(bytes.fromhex(text), BASE, name)
    assert [start - BASE for start in starts] == offsets


@pytest.mark.parametrize("name", ["aarch64", "riscv64", "ppc64le"])
def test_returns(name: str) -> None:
    text, offsets = CODE[name]
    found = exits(bytes.fromhex(text), BASE, name)
    assert [address - BASE for address in found.returns] == offsets[-1:]
    assert not found.jumps


def test_arm_has_no_return_that_can_be_probed() -> None:
    assert exits(bytes.fromhex("04f09de4"), BASE, "arm").returns == ()
    assert return_instructions("arm") == ()


def test_every_machine_says_what_it_returns_by() -> None:
    for name in tables_under("arch"):
        plain = name.removeprefix("arch/")
        assert bool(return_instructions(plain)) == (plain != "arm")


def test_bytes_that_are_no_instruction() -> None:
    with pytest.raises(CompileError, match=r"FC0206.*0x1000"):
        exits(bytes.fromhex("00000000"), BASE, "ppc64le")
