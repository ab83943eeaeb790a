"""Instruction boundaries and return instructions of machines other than x86."""

from __future__ import annotations

import pytest

from fetchc.code.disassembly import exits, instruction_starts, taken_off
from fetchc.diag.diagnostic import CompileError
from fetchc.quantities import Address
from fetchc.target.machines import return_instructions, tables_under

BASE = Address(0x1000)

# Each with the offsets of its instructions; the vector instructions are not in capstone 5.
CODE = {
    "aarch64": ("ff0301d1 e00300aa c0035fd6", [0, 4, 8]),
    "arm": ("04e02de5 04f09de4", [0, 4]),
    "riscv64": ("0111 13050500 8280", [0, 2, 6]),
    "ppc64le": ("f8ff21f8 2000804e", [0, 4]),
    "s390x": ("1812 eb6ff0300024 a7f4000a 07fe", [0, 2, 8, 12]),
}


@pytest.mark.parametrize("name", CODE)
def test_starts(name: str) -> None:
    text, offsets = CODE[name]
    starts = instruction_starts(bytes.fromhex(text), BASE, name)
    assert [start - BASE for start in starts] == offsets


@pytest.mark.parametrize("name", ["aarch64", "arm", "riscv64", "ppc64le"])
def test_returns(name: str) -> None:
    text, offsets = CODE[name]
    found = exits(bytes.fromhex(text), BASE, name)
    assert [address - BASE for address in found.returns] == offsets[-1:]
    assert not found.jumps


def test_constants_among_the_instructions_of_arm_are_none() -> None:
    # ldr r0, [pc, #8]; ldr r11, [pc, #8]; ldr pc, [sp], r11; UNDEF; 0xe49df004; 0x2eec
    code = bytes.fromhex("08009fe5 08b09fe5 0bf09de6 fdbcfaf7 04f09de4 ec2e0000")
    found = exits(code, BASE, "arm")
    assert found.returns == (BASE + 8,)
    assert found.jumps == ()
    assert exits(code[4:], BASE, "arm").returns == (BASE + 4, BASE + 12)  # nothing loads the first


def test_what_else_writes_the_program_counter_of_arm_jumps() -> None:
    code = bytes.fromhex("0ef0a0e1 02f19fe7 00f08ee2")  # mov pc, lr; ldr pc, [pc, r2, lsl #2]
    found = exits(code, BASE, "arm")
    assert found.jumps == (None, None)
    assert found.returns == (BASE + 8,)


def test_what_a_return_takes_off() -> None:
    big = bytes.fromhex("00b09fe5 0bf09de6 fdbcfaf7")  # the constant is what stands behind
    assert taken_off(big[:8] + bytes.fromhex("ec2e0000"), 4, "arm") == 0x2EEC
    assert taken_off(bytes.fromhex("0000a0e1 0bf09de6"), 4, "arm") is None
    assert taken_off(bytes.fromhex("0bf09de6"), 0, "arm") is None
    small = [taken_off(bytes.fromhex(text), 0, "arm") for text in ("1cf09de4", "00f08ee2")]
    assert small == [28, 0]
    assert taken_off(bytes.fromhex("0000a0e1"), 0, "arm") is None
    assert taken_off(b"\xc3", 0, "x86_64") == 0


def test_every_machine_says_what_it_returns_by() -> None:
    for name in tables_under("arch"):
        assert return_instructions(name.removeprefix("arch/"))


def test_bytes_that_are_no_instruction() -> None:
    with pytest.raises(CompileError, match=r"FC0206.*0x1000"):
        exits(bytes.fromhex("00000000"), BASE, "ppc64le")
