"""What a closure's code loads through the register that leads to its object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fetchc.code.go_closure_code import Fill, fills
from fetchc.program.entities import InMemory, InRegister
from fetchc.quantities import Address, DwarfRegister
from fetchc.target.machines import architecture, convention_tables, table

BASE = Address(0x1000)


REGISTERS = {"x86_64": "dx", "aarch64": "x26", "riscv64": "s10", "ppc64le": "gpr11", "arm": "r7"}


def filled(code: str, machine: str = "x86_64") -> tuple[Fill, ...]:
    known = architecture(machine)
    registers = known.registers.items()
    number = next(number for number, name in registers if name == REGISTERS[machine])
    return fills(bytes.fromhex(code.replace(" ", "")), BASE, known, DwarfRegister(number))


def known(code: str, machine: str = "x86_64") -> list[tuple[int, str, int, bool]]:
    """(after, room, offset in the object, whether its address) of what comes from the object."""
    shown = architecture(machine)
    return [
        (
            fill.behind - BASE,
            shown.shown(fill.room.register)
            + (f"+{fill.room.offset}" if isinstance(fill.room, InMemory) else ""),
            fill.content.offset,
            fill.content.address,
        )
        for fill in filled(code, machine)
        if fill.content is not None
    ]


@pytest.mark.parametrize(
    ("machine", "code"),
    [
        ("x86_64", "488b4a10 488d4a18 48894c2420"),  # mov 16(%rdx),%rcx; lea; mov %rcx,32(%rsp)
        (
            "aarch64",
            "410b40f9 41630091 e11300f9",
        ),  # ldr x1,[x26,#16]; add x1,x26,#24; str x1,[sp,#32]
        ("riscv64", "83350d01 93058d01 2330b102"),  # ld a1,16(s10); addi a1,s10,24; sd a1,32(sp)
        (
            "ppc64le",
            "1000 8be8 1800 8b38 2000 81f8",
        ),  # ld r4,16(r11); addi r4,r11,24; std r4,32(r1)
        ("arm", "10 10 97 e5 18 10 87 e2 20 10 8d e5"),  # ldr r1,[r7,#16]; add; str r1,[sp,#32]
    ],
)
def test_loads_addresses_and_slots_of_each_machine(machine: str, code: str) -> None:
    pointer = architecture(machine).shown(architecture(machine).stack_pointer)
    (first, second, third) = known(code, machine)
    assert first[2:] == (16, False)
    assert second[2:] == (24, True)
    assert third[1:] == (f"{pointer}+32", 24, True)
    assert first[1] == second[1]


def test_what_is_loaded_from_elsewhere_is_not_of_the_object() -> None:
    (fill,) = filled("488b4b10")  # mov 16(%rbx),%rcx
    assert fill == Fill(Address(BASE + 4), InRegister(DwarfRegister(2)), None)


def test_what_is_behind_a_pointer_of_the_object_is_not_in_it() -> None:
    assert known("488b4a10 488b4908") == [(4, "%cx", 16, False)]  # mov 16(%rdx),%rcx; 8(%rcx)


def test_a_copy_of_the_register_leads_to_the_object_too() -> None:
    # mov %rdx,%rcx; mov $0,%edx; mov 8(%rcx),%rbx; mov 8(%rdx),%rax
    assert known("4889d1 ba00000000 488b5908 488b4208") == [
        (3, "%cx", 0, True),
        (12, "%bx", 8, False),
    ]


def test_calls_change_registers_and_arguments_but_not_the_spilled_object() -> None:
    # mov %rdx,64(%rsp); mov 8(%rdx),%rcx; mov %rcx,8(%rsp); call; mov 8(%rsp),%rax;
    # mov 64(%rsp),%rdx; mov 16(%rdx),%rbx
    code = "4889542440 488b4a08 48894c2408 e800000000 488b442408 488b542440 488b5a10"
    assert known(code)[-2:] == [(29, "%dx", 0, True), (33, "%bx", 16, False)]
    assert not [shown for shown in known(code) if shown[1] == "%ax"]


def test_a_slot_that_is_written_over_holds_nothing() -> None:
    # mov %rdx,64(%rsp); movups %xmm15,56(%rsp); mov 64(%rsp),%rcx; mov 8(%rcx),%rbx
    assert known("4889542440 440f117c2438 488b4c2440 488b5908") == [(5, "%sp+64", 0, True)]


def test_behind_a_jump_the_state_is_that_of_a_way_there() -> None:
    # je 1f; mov $0,%edx; jmp 2f; 1: mov 8(%rdx),%rcx; 2: mov 16(%rdx),%rbx
    assert known("7407 ba00000000 eb04 488b4a08 488b5a10") == [(13, "%cx", 8, False)]


def test_code_that_no_way_leads_to_is_not_followed() -> None:
    assert known("c3 488b4a08") == []  # ret; mov 8(%rdx),%rcx


def test_an_unknown_machine_shows_nothing() -> None:
    s390x = architecture("s390x")
    assert fills(b"\0" * 8, BASE, s390x, DwarfRegister(12)) == ()


@pytest.mark.parametrize("machine", ["x86_64", "i386", "aarch64", "arm", "riscv64", "ppc64le"])
def test_every_machine_with_closures_has_its_instructions(machine: str) -> None:
    closures = [table(f"runtime/go/{raw['runtime']}")["closure"] for raw in go_conventions(machine)]
    assert closures
    assert all("register" in closure for closure in closures)
    assert machine in table("runtime/go/copying")


def go_conventions(machine: str) -> list[Mapping[str, Any]]:
    known = convention_tables(machine)
    return [raw for name, raw in known.items() if name.startswith("go-") and "runtime" in raw]
