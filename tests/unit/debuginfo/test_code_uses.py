"""Calls and addresses in a file's code: what names a function, found in one pass for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf.call_sites import CodeUses
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.quantities import Address
from fetchc.target.machines import call_rules
from tests.support.elfwriter import Load, elf_file

START, FAR = 0x1000, 0x9000
CALL, LEA = b"\xe8", b"\x48\x8d\x3d"  # call; lea rdi


def names(at: int, opcode: bytes, target: int) -> bytes:
    """An instruction at ``at`` that names ``target`` by its distance."""
    end = at + len(opcode) + 4
    return opcode + (target - end).to_bytes(4, "little", signed=True)


def code_uses(directory: Path, *loads: Load) -> CodeUses:
    path = directory / "code"
    path.write_bytes(elf_file({}, loads=loads))
    rules = call_rules("x86_64")
    assert rules is not None
    return CodeUses(Elf(str(path)), rules)


def assembled(*parts: tuple[bytes, int]) -> bytes:
    code = b""
    for opcode, target in parts:
        code += names(START + len(code), opcode, target)
    return code


def test_calls_are_found_by_what_they_call(tmp_path: Path) -> None:
    code = assembled((CALL, START), (CALL, FAR), (LEA, START + 3), (CALL, START))
    code += CALL + b"\0\0"  # the segment ends within
    found = code_uses(tmp_path, Load(START, code), Load(FAR, names(FAR, CALL, START)))
    assert [*found.calls(Address(START))] == [START + 5, START + 22, FAR + 5]
    assert [*found.calls(Address(FAR))] == [START + 10]
    assert [*found.calls(Address(START + 1))] == []
    assert found.takes_address(Address(START + 3), 1)
    assert not found.takes_address(Address(START), 1)


def test_a_function_that_takes_its_own_address_is_not_stored(tmp_path: Path) -> None:
    code = assembled((LEA, START))
    found = code_uses(tmp_path, Load(START, code))
    assert not found.takes_address(Address(START), len(code))
    outside = assembled((CALL, FAR), (LEA, START))
    found = code_uses(tmp_path, Load(START, outside))
    assert found.takes_address(Address(START), 5)


def test_what_leads_out_of_the_code_is_not_kept(tmp_path: Path) -> None:
    data = Load(FAR, names(FAR, CALL, START), flags=6)
    found = code_uses(tmp_path, Load(START, assembled((CALL, FAR), (CALL, START - 8))), data)
    assert [*found.calls(Address(FAR))] == []
    assert [*found.calls(Address(START - 8))] == []
    assert [*found.calls(Address(START))] == []


def test_the_code_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = Elf.read

    def counted(elf: Elf, address: Address, size: int) -> bytes:
        read.append(address)
        return original(elf, address, size)

    monkeypatch.setattr(Elf, "read", counted)
    found = code_uses(tmp_path, Load(START, assembled((CALL, START), (CALL, START + 5))))
    assert read == []
    assert [[*found.calls(Address(START + at))] for at in (0, 5)] == [[START + 5], [START + 10]]
    assert read == [START]


def test_a_segment_behind_all_addresses(tmp_path: Path) -> None:
    last = (1 << 64) - 8
    found = code_uses(tmp_path, Load(last, names(0, CALL, 0) * 2))
    assert [*found.calls(Address(last))] == []
