"""The ways out of a function: by every instruction, never by bytes that look like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.code.disassembly import exits, instruction_starts
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import CompileError
from fetchc.quantities import Address
from tests.support.programs import fixture, fixtures

BASE = Address(0x401000)


def test_a_return_inside_another_instruction_is_none() -> None:
    code = bytes.fromhex("b8c3c3c3c3 c3 48c7c0c3000000 c3")  # mov $0xc3c3c3c3; ret; mov $0xc3; ret
    assert exits(code, BASE, "x86_64").returns == (BASE + 5, BASE + 13)


def test_jumps_out_are_distinguished_from_jumps_within() -> None:
    # je +0; jmp +2 (within); nop; nop; jmp far ahead; jmp *rax
    code = bytes.fromhex("7400 eb02 9090 e9fb0f0000 ffe0")
    found = exits(code, BASE, "x86_64")
    assert found.returns == ()
    assert found.jumps == (BASE + 11 + 0xFFB, None)


def test_calls_have_their_targets() -> None:
    code = bytes.fromhex("e8fb000000 ffd0 c3")  # call +0xfb; call *rax; ret
    found = exits(code, BASE, "x86_64")
    assert found.calls == {BASE + 0x100, None}
    assert found.returns == (BASE + 7,)


def test_a_jump_by_a_table_stays_inside() -> None:
    code = bytes.fromhex("ff24c1 c3")  # jmp *(%rcx,%rax,8): what Go 1.19 and later make of a switch
    found = exits(code, BASE, "x86_64")
    assert (found.jumps, found.by_table) == ((), True)


def test_a_jump_by_distances_is_of_a_switch() -> None:
    # movslq (%rdx,%rax,4),%rax; add %rdx,%rax; notrack jmp *%rax; ret: gcc -fPIE
    switch = "48630482 4801d0"
    assert exits(bytes.fromhex(f"{switch} 3effe0 c3"), BASE, "x86_64").jumps == ()
    pointer = "488b04c2 ffe0"  # mov (%rdx,%rax,8),%rax; jmp *%rax: one of many functions
    assert exits(bytes.fromhex(pointer), BASE, "x86_64").jumps == (None,)


def test_bytes_that_are_no_instruction_are_refused() -> None:
    with pytest.raises(CompileError, match=r"FC0206.*0x401001"):
        exits(b"\xc3\x06\x06", BASE, "x86_64")


@pytest.mark.parametrize("name", fixtures("go/features"))
def test_whole_programs_are_read_without_a_gap(name: str) -> None:
    # Every jump inside a function leads to the start of an instruction: nothing was read askew.
    path: Path = fixture(name)
    program = DwarfProgram(str(path))
    count = 0
    for function in [f for n in program.function_names() if n.startswith("main.")
                     for f in program.functions_named(n)]:  # fmt: skip
        if function.size is None:
            continue
        code = program.code(function.address, function.size)
        starts = set(instruction_starts(code, function.address, "x86_64"))
        found = exits(code, function.address, "x86_64")
        assert set(found.returns) <= starts
        assert {code[at - function.address] for at in found.returns} <= {0xC3}
        count += len(found.returns)
    assert count > 30
