"""The compiled tables: registers and conventions as the engines get them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fetchc.diag.diagnostic import CompileError
from fetchc.quantities import DwarfRegister
from fetchc.target.machines import EightbyteRules, architecture, convention, table, tables_under
from tests.support.toolchains import ROOT


def test_x86_64_registers() -> None:
    machine = architecture("x86_64")
    names = [
        "ax",
        "dx",
        "cx",
        "bx",
        "si",
        "di",
        "bp",
        "sp",
        "r8",
        "r9",
        "r10",
        "r11",
        "r12",
        "r13",
        "r14",
        "r15",
        "ip",
    ]
    assert [machine.registers[number] for number in range(17)] == names
    assert machine.named == {*names, "flags", "cs", "ss", "orig_ax"}
    assert machine.aliases["rdi"] == ("di", 64)
    assert machine.aliases["eax"] == ("ax", 32)
    assert machine.aliases["r8b"] == ("r8", 8)
    assert machine.shown(DwarfRegister(17)) == "%xmm0"
    assert machine.shown(DwarfRegister(7)) == "%sp"
    assert machine.shown(DwarfRegister(1000)) == "DWARF register 1000"
    assert (machine.stack_pointer, machine.entry_stack_bytes) == (7, 8)


@pytest.mark.parametrize("name", sorted(tables_under("arch")))
def test_tables_are_consistent(name: str) -> None:
    name = name.removeprefix("arch/")
    machine = architecture(name)
    assert len(set(machine.registers.values())) == len(machine.registers)
    assert not machine.registers.keys() & machine.unfetchable.keys()
    assert not machine.named & machine.aliases.keys()
    assert not machine.named & machine.refused.keys()
    assert not machine.refused.keys() & machine.aliases.keys()
    assert {kernel for kernel, _ in machine.aliases.values()} <= machine.named
    assert machine.registers[machine.stack_pointer] in ("sp", "gpr1", "r15")
    assert machine.result in machine.registers.values()
    assert machine.on_wide_kernel <= machine.named
    assert machine.word_bytes == 4 or not machine.on_wide_kernel
    assert hash(machine) == hash(architecture(name))


def test_ranges_of_names() -> None:
    machine = architecture("aarch64")
    assert [machine.registers[number] for number in (0, 9, 30)] == ["x0", "x9", "x30"]
    assert machine.unfetchable[95] == "v31"
    assert machine.aliases["w17"] == ("x17", 32)
    assert {"lr", "x30"} <= machine.named
    assert machine.refused["q31"] == "a vector register is not saved for a probe"
    assert architecture("riscv64").aliases["x18"] == ("s2", 64)


@pytest.mark.parametrize("name", sorted(tables_under("abi")))
def test_every_convention_loads(name: str) -> None:
    made = convention(name.removeprefix("abi/"))
    known = architecture(made.architecture)
    assert set(made.integer_registers) <= known.registers.keys()
    assert set(made.float_registers) <= known.unfetchable.keys()
    assert made.stack_offset >= known.entry_stack_bytes


def test_a_file_changes_only_what_it_says() -> None:
    base, old = convention("sysv-x86_64-clang"), convention("sysv-x86_64-clang16")
    assert isinstance(base.rules, EightbyteRules)
    assert isinstance(old.rules, EightbyteRules)
    assert (base.rules.wide_splits, old.rules.wide_splits) == (False, True)
    assert base.integer_registers == old.integer_registers


def test_unknown_names_list_the_known() -> None:
    with pytest.raises(CompileError) as caught:
        architecture("pdp11")
    assert caught.value.diagnostics[0].code == "FC0905"
    assert "x86_64" in caught.value.diagnostics[0].notes[0]


def test_sources_stay_in_the_files() -> None:
    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return {*value, *(k for inner in value.values() for k in keys(inner))}
        if isinstance(value, list):
            return {k for inner in value for k in keys(inner)}
        return set()

    assert "names" in keys(table("arch/x86_64"))
    assert all("source" not in keys(raw) for raw in tables_under("abi").values())


def test_every_table_of_facts_names_its_source() -> None:
    for path in sorted((ROOT / "targets").glob("a*/*.toml")):
        sections = path.read_text().split("\n[")[1:]
        for section in sections:
            title = section.partition("]")[0]
            if title not in ("applies", "stack_check.instructions"):
                assert "\nsource = " in section, f"{path}: [{title}]"


def test_loading_needs_nothing_slow() -> None:
    code = (
        "import sys, fetchc.abi, fetchc.target.machines as made\n"
        "made.convention('go-x86_64-regabi')\n"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    slow = {"tomllib", "dataclasses", "typing", "json", "pathlib", "capstone"}
    assert not slow & set(ran.stdout.split())


@pytest.mark.parametrize("given", ["../x", "arch/../x86_64", "", "/", "x86_64/"])
def test_what_is_no_machine_is_named_as_it_was_given(given: str) -> None:
    with pytest.raises(CompileError) as caught:
        table(f"arch/{given}")
    (refused,) = caught.value.diagnostics
    assert refused.message == f"`{given}` is not supported"
    assert "aarch64, arm, i386" in refused.notes[0]


def test_a_folder_that_is_none_is_refused() -> None:
    for name in ("none/x", "x", "", "/"):
        with pytest.raises(CompileError, match="is not supported"):
            table(name)
