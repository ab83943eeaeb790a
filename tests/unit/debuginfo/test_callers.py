"""Calls of a function: which of them tell what it was entered with, and when none may."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.code.disassembly import instruction_starts
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.program.entities import (
    Absent,
    AtAddress,
    Callers,
    Constant,
    Indirect,
    InMemory,
    InRegister,
    OnEntry,
    Place,
    PointerTo,
)
from fetchc.quantities import Address, ByteOffset, DwarfRegister
from tests.support.toolchains import require

DI, SI, SP = DwarfRegister(5), DwarfRegister(4), DwarfRegister(7)
SOURCE = """
#define KEPT __attribute__((noipa))
extern int elsewhere(int), (*pointer)(int); extern volatile int sink;
volatile int sink; int (*pointer)(int);
KEPT int elsewhere(int n) { sink = n; return n; }
struct pair { long a, b; } pair;
KEPT int plain(int n, struct pair *p) { sink = n; sink = p->b; return sink; }
KEPT int once(int n) { struct pair own = {n, n}; int r = plain(n + 3, &own); sink++; return r; }
KEPT int twice(int n) { int r = plain(159, &pair); sink++; return r + plain(n, (void *)8); }
KEPT int to_pointer(int n) { sink = n; sink = 2; return pointer(n - 1); }
KEPT int to_file(int n) { sink = n; sink = 2; return puts((void *)0); }
KEPT int first(int n); KEPT int second(int n) { sink = n; return n > 3 ? first(n - 1) : 0; }
KEPT int first(int n) { sink = n; sink = 2; return second(n - 1); }
KEPT int to_known(int n) { sink = n; sink = 2; return elsewhere(n); }
__attribute__((noipa, noreturn)) void dies(int n) { sink = n; for (;;) sink++; }
KEPT int loses(int n) { sink = n; elsewhere(1); return sink; }
KEPT int only(int n) { sink = n; sink = 3; return 0; }
int main(int argc, char **argv)
{
  once(argc); twice(argc); to_pointer(11); to_file(12); first(13); to_known(14); loses(15);
  pointer = only; pointer(3);
  if (argc > 5) dies(15);
  return sink;
}
"""


def build(folder: Path, *flags: str) -> DwarfProgram:
    require("gcc")
    (folder / "calls.c").write_text(SOURCE)
    command = ["gcc", "-w", "-O2", "-g", *flags, "calls.c", "-o", "calls"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return DwarfProgram(str(folder / "calls"))


@pytest.fixture(name="program", scope="module")
def program_(tmp_path_factory: pytest.TempPathFactory) -> DwarfProgram:
    return build(tmp_path_factory.mktemp("calls"))


def pointer_to(target: Place) -> PointerTo:
    return PointerTo(target, ByteOffset(0))


def callers(program: DwarfProgram, name: str, offset: int = 0) -> Callers:
    (function,) = program.functions_named(name)
    return program.evidence.callers(function, Address(function.address + offset))


def test_what_is_passed_is_in_terms_of_the_probe(program: DwarfProgram) -> None:
    found = callers(program, "plain")
    assert found.return_address == InMemory(SP, ByteOffset(0))
    own, constant, null = found.calls
    # `own` begins where the call pushed the return address after.
    assert dict(own.values) == {
        DI: pointer_to(Indirect(OnEntry(DI), ByteOffset(3))),
        SI: pointer_to(InMemory(SP, ByteOffset(8))),
    }
    (pair,) = program.elf.symbol_addresses("pair")
    assert dict(constant.values) == {
        DI: Constant(159),
        SI: pointer_to(AtAddress(pair)),
    }  # 08 9f: DW_OP_const1u 0x9f
    passed = dict(null.values)
    assert isinstance(passed[DI], InRegister)  # which `twice` has kept it in for the second call
    assert (passed[SI], null.outer) == (Constant(8), None)
    assert own.outer is not None
    assert isinstance(own.outer.return_address, InMemory)
    assert own.outer.return_address.offset > 8
    (once,) = own.outer.calls
    assert isinstance(dict(once.values)[DI], InRegister)  # argc, as main has kept it


def test_places_move_with_the_probe(program: DwarfProgram) -> None:
    """After the first push everything is further from the stack pointer."""
    (function,) = program.functions_named("once")
    code = program.code(function.address, function.size or 0)
    starts = list(instruction_starts(code, Address(0), "x86_64"))
    inside = callers(program, "once", starts[len(starts) // 2])
    assert isinstance(inside.return_address, InMemory)
    assert inside.return_address.offset > 0
    (call,) = inside.calls
    assert call.returns_to == callers(program, "once").calls[0].returns_to


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("to_pointer", "may end in a call through a pointer, from where it may be entered again"),
        ("to_file", "may end in another file, from where it may be entered again"),
        ("first", "may be entered again by a call in place of its end"),
        ("second", "may be entered again by a call in place of its end"),
        ("dies", "need not keep its caller's registers"),
    ],
)
def test_what_may_be_entered_otherwise_tells_nothing(
    program: DwarfProgram, name: str, reason: str
) -> None:
    found = callers(program, name)
    assert (found.calls, found.reason) == ((), f"`{name}` {reason}")
    assert isinstance(found.return_address, Absent)


def test_a_known_end_is_looked_through(program: DwarfProgram) -> None:
    (call,) = callers(program, "to_known").calls
    assert dict(call.values) == {DI: Constant(14)}
    (call,) = callers(program, "elsewhere").calls  # not that by a jump, nor through a pointer
    assert dict(call.values) == {DI: Constant(1)}


def test_unoptimised_code_tells_nothing(tmp_path: Path) -> None:
    found = callers(build(tmp_path, "-O0"), "plain")
    assert found.reason == "no direct call of `plain` in the file is described"


def test_a_lone_fetch_arg_is_refused_with_where_it_can_be_had(tmp_path: Path) -> None:
    program = build(tmp_path)
    (function,) = program.functions_named("loses")
    (n,) = program.parameters(function)
    code = program.code(function.address, function.size or 0)
    at = next(
        start
        for start in instruction_starts(code, function.address, "x86_64")
        if isinstance(program.place(n, function, start), OnEntry)
    )
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(program.path).probe("loses", at=f"+{at - function.address:#x}").compile("n")
    (refusal,) = caught.value.diagnostics
    assert refusal.code == "FC0406"
    assert refusal.message == (
        "`n` cannot be fetched here: it is what %di held on entry and not stored in memory"
    )
    assert refusal.notes[-1] == "only `fetchc trace` finds out what its callers pass"
    assert refusal.help == "probe the function's entry: leave out `--at`"
    assert program.place(n, function, function.address) == InRegister(DI)
