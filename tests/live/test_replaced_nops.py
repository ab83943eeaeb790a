"""NOPs that a kernel replaces by a call: which those are, and that no probe harms a program.

The programs judge themselves (tests/support/nops.py): what a function keeps below the stack pointer
is there at its end, and a child of fork() that calls it lives.
"""

from __future__ import annotations

import platform
import random
import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.code.disassembly import instruction_starts
from fetchc.code.uprobe_instructions import nop_bytes
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.target.machines import table
from tests.support.nops import CALLS, FORMS, IN_CHILD, around, leaf, source
from tests.support.seeds import seeds
from tests.support.toolchains import require
from tests.support.tracefs import Session, require_uprobes

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="NOPs of x86-64"),
]

FUNCTIONS = 8  # of a random program


def build(folder: Path, functions: dict[str, list[str]]) -> Path:
    require_uprobes()
    require("gcc")
    pytest.importorskip("capstone", reason="no disassembler")
    (folder / "nops.c").write_text(source(functions))
    flags = ["gcc", "-O1", "-no-pie", "nops.c", "-o", "nops"]
    subprocess.run(flags, cwd=folder, check=True, timeout=60)
    return folder / "nops"


def drawn(folder: Path, seed: int) -> Path:
    draw = random.Random(seed)
    return build(folder, {f"leaf{number}": leaf(draw) for number in range(FUNCTIONS)})


def harmed(output: str) -> set[str]:
    lines = [line.split() for line in output.splitlines()]
    return {name for name, bad, status in lines if (bad, status) != ("0", "0")}


def starts(binary: Path, function: str) -> list[int]:
    program = DwarfProgram(str(binary))
    (found,) = program.functions_named(function)
    code = program.code(found.address, found.size or 0)
    return [start - found.address for start in instruction_starts(code, found.address, "x86_64")]


def test_the_table_is_the_kernels(tmp_path: Path) -> None:
    binary = build(tmp_path, {name: around(code) for name, code in FORMS.items()})
    program = fetchc.open(str(binary))
    with Session() as session:
        for name in FORMS:
            # By the rules of a kernel that replaces none, so that each of them is probed.
            probe = program.probe(name, at=f"+{starts(binary, name)[6]}", kernel="6.12")
            session.add(probe.definition([], session.group))
        seen = harmed(session.run([binary]))
        hits = {name: len(session.hits(name)) for name in FORMS}
    size = kernel(running_version()).replaced_nop("x86_64")
    rules = table("arch/x86_64")["uprobes"]
    sizes = {name: nop_bytes(bytes.fromhex(code), rules) for name, code in FORMS.items()}
    assert seen == {name for name, its in sizes.items() if size and its == size}
    assert {name for name in FORMS if hits[name] < CALLS + IN_CHILD} <= seen


@pytest.mark.parametrize("seed", seeds())
def test_no_probe_harms_a_leaf(tmp_path: Path, seed: int) -> None:
    binary = drawn(tmp_path, seed)
    program = fetchc.open(str(binary))
    taken: set[str] = set()  # an entry and an offset may come to one address
    codes: set[str] = set()
    refused = 0
    with Session() as session:
        for number in range(FUNCTIONS):
            name = f"leaf{number}"
            for at in starts(binary, name):
                try:
                    probe = program.probe(name, at=f"+{at}")
                except fetchc.CompileError as refusal:
                    codes.add(refusal.diagnostics[0].code)
                    refused += 1
                    continue
                taken.add(probe.definition([], session.group, "taken"))
        for definition in sorted(taken):
            session.add(definition)
        assert harmed(session.run([binary])) == set(), seed
    assert codes <= {"FC0516"}
    assert len(taken) > refused


@pytest.mark.parametrize("seed", seeds())
def test_an_entry_is_hit_once_a_call(tmp_path: Path, seed: int) -> None:
    binary = drawn(tmp_path, seed)
    program = fetchc.open(str(binary))
    with Session() as session:
        entered = []
        whys: set[str] = set()
        for number in range(FUNCTIONS):
            try:
                probe = program.probe(f"leaf{number}")
            except fetchc.CompileError as refusal:
                whys.add(refusal.diagnostics[0].notes[-1])
                continue
            session.add(probe.definition([], session.group, f"leaf{number}"))
            entered.append(f"leaf{number}")
        assert harmed(session.run([binary])) == set(), seed
        hits = [len(session.hits(name)) for name in entered]
    assert hits == [CALLS + IN_CHILD] * len(entered)
    assert whys <= {"a jump may lead to the instruction after it"}
    assert len(entered) > FUNCTIONS // 2


def test_the_judge_sees_harm(tmp_path: Path) -> None:
    if not kernel(running_version()).replaced_nop("x86_64"):
        pytest.skip("the running kernel replaces no NOP with harm")
    binary = build(tmp_path, {"first": [".byte 0x0f,0x1f,0x44,0,0", "mov $0x1234567,%eax", "ret"]})
    program = fetchc.open(str(binary))
    for version, wanted in (("6.12", {"first"}), (None, set())):
        probe = program.probe("first", kernel=version)
        with Session() as session:
            session.add(probe.definition([], session.group))
            assert harmed(session.run([binary])) == wanted


def test_returns_of_a_function_that_begins_with_one(tmp_path: Path) -> None:
    functions = {"first": [".byte 0x0f,0x1f,0x44,0,0", "mov $0x1234567,%eax", "ret"]}
    binary = build(tmp_path, functions)
    probe = fetchc.open(str(binary)).probe("first", returns=True)
    with Session() as session:
        session.add(probe.definition([probe.compile("$retval")], session.group))
        assert harmed(session.run([binary])) == set()
        values = [next(iter(hit.values.values())) for hit in session.hits("first")]
    assert [int(value, 0) for value in values] == [0x1234567] * (CALLS + IN_CHILD)
