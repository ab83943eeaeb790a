"""What Go keeps of parameters in registers where a call has to let its stack grow: all, or none.

Every function of a program, with the run time's, is held against a disassembler: what the code that
calls ``runtime.morestack`` stores before the call.
"""

from __future__ import annotations

import re
from pathlib import Path

import capstone
import pytest

from fetchc.abi import convention_for, entry_places
from fetchc.check.go_parameters import loses_registers_in_growth, lost_register_marker
from fetchc.check.probe_site import Site
from fetchc.code.disassembly import instructions
from fetchc.code.go_stack_check import after_stack_check
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.lang import language
from fetchc.program.entities import Function, InRegister, Pieces, Place
from fetchc.target.machines import Convention, GoRules, architecture
from tests.support import cross, qemu_user
from tests.support.cross import TARGETS, Target
from tests.support.cross_go import CALM
from tests.support.qemu_user import Emulator
from tests.support.toolchains import GO_VERSIONS, go_number

HERE = Target("x86_64", "", "", go="amd64")
RUNS = [
    *(("x86_64", version) for version in GO_VERSIONS if go_number(version) >= (1, 17)),
    *((name, "1.27") for name in ("aarch64", "riscv64", "ppc64le")),
    ("aarch64", "1.19"),
]
SOURCE = """package main

type pair struct { a int; b string; c float64 }

var room byte

//go:noinline
func fill(frame []byte) int { frame[0] = room; return int(frame[len(frame)-1]) }

//go:noinline
func none(a int, b string, c uint8, d float64) int { var frame [900]byte; return fill(frame[:]) }

//go:noinline
func floating(a, b float32) int { var frame [900]byte; return fill(frame[:]) }

//go:noinline
func last(a int, b string, c uint8) int { var frame [900]byte; return fill(frame[:]) + int(c) }

//go:noinline
func length(a int, b string) int { var frame [900]byte; return fill(frame[:]) + len(b) }

//go:noinline
func (p pair) member(a int) int { var frame [900]byte; return fill(frame[:]) + len(p.b) }

//go:noinline
func grown(a int, b string) int { var frame [60000]byte; return fill(frame[:]) }

//go:noinline
func leaf(a int, b string) int { return int(room) }

func main() {
	println(none(1, "a", 2, 3), floating(1, 2), last(1, "a", 2), length(1, "a"), leaf(1, "a"))
	println(pair{1, "a", 3}.member(1))
	done := make(chan int)
	go func() { done <- grown(1, "a") }()
	println(<-done)
}
"""
LOST = {"main.none", "main.grown"}
KEPT = {"main.last", "main.length", "main.pair.member", "main.leaf"}
# Bytes of frames about the limits of what an instruction has room for.
FRAMES = sorted(
    {
        *(100, 500, 900, 4096, 33000, 40000, 60000, 1 << 20, 5_000_000),
        *(base + more for base in (1 << 12, 1 << 15, 1 << 16, 1 << 17) for more in (-256, 72, 512)),
    }
)


def opened(name: str, version: str, folder: Path, source: str = SOURCE) -> DwarfProgram:
    reason = cross.unavailable_go(version)
    if reason:
        pytest.skip(reason)
    target = HERE if name == "x86_64" else TARGETS[name]
    return DwarfProgram(str(cross.build_go(target, version, source, folder)))


def registers(place: Place, names: dict[int, str]) -> set[str]:
    match place:
        case InRegister(register=register):
            return {names[register]} if register in names else set()
        case Pieces(pieces=pieces):
            return {name for piece in pieces for name in registers(piece.place, names)}
        case _:
            return set()


def whole(machine: str, name: str) -> str:
    """The kernel's name of the register that capstone calls ``name``, which may be a part of it."""
    if machine == "x86_64":
        short = {"al": "ax", "bl": "bx", "cl": "cx", "dil": "di", "sil": "si"}
        numbered = re.match(r"r\d+", name)
        return numbered[0] if numbered else short.get(name, name.lstrip("er"))
    if machine == "aarch64":
        return re.sub("^w", "x", name)
    return re.sub("^r", "gpr", name) if machine == "ppc64le" else name


def stored(program: DwarfProgram, function: Function, rules: GoRules) -> set[str]:
    """The registers that the code which lets the stack grow stores, by a disassembler alone."""
    assert function.size is not None
    assert rules.stack_check is not None
    code = program.code(function.address, function.size)
    behind = function.address + after_stack_check(code, rules.stack_check)
    every = list(instructions(code, function.address, program.architecture))
    if rules.stack_check.target:
        # The check's last instruction jumps over the code.
        start = 1 + max(
            i for i, one in enumerate(every) if one.address < behind and _leads(one) == behind
        )
    else:
        jump = next(one for one in every if one.address + one.size == behind)
        start = next(i for i, one in enumerate(every) if one.address == _leads(jump))
    found = set()
    for one in every[start:]:
        if one.mnemonic in ("call", "bl", "jal"):
            break
        for operand in one.operands:
            if operand.type == capstone.CS_OP_REG and ("(" in one.op_str or "[" in one.op_str):
                found.add(whole(program.architecture, one.reg_name(operand.reg)))
    return found


def _leads(jump: capstone.CsInsn) -> int:
    last = jump.operands[-1] if jump.operands else None
    if last is None or last.type != capstone.CS_OP_IMM:
        return -1
    # For RISC-V the test knows the distance.
    return int(last.imm if last.imm >= jump.address // 2 else jump.address + last.imm)


def compared(program: DwarfProgram) -> tuple[set[str], set[str], list[str]]:
    """Functions that lose their parameters and that keep them, and what is wrong with others."""
    machine = architecture(program.architecture)
    names = {int(number): name for number, name in machine.registers.items()}
    lost, kept, wrong = set(), set(), []
    for name in program.function_names():
        for function in program.functions_named(name):
            if function.symbol != name or function.language != "go" or not function.size:
                continue
            used: Convention = convention_for(program, function)
            site = Site(program, machine, language("go"), function, function.address, True, False)
            assert isinstance(used.rules, GoRules)
            places = entry_places(program, used, function)
            passed = {one for place in places for one in registers(place, names)}
            variables = program.parameters(function)
            if not passed or any(v.kind == "result" and not v.name for v in variables):
                continue
            code = program.code(function.address, function.size)
            assert used.rules.stack_check is not None
            if not after_stack_check(code, used.rules.stack_check):
                if loses_registers_in_growth(site, function):
                    wrong.append(f"{name} has no check")
                kept.add(name)
                continue
            found = stored(program, function, used.rules)
            if loses_registers_in_growth(site, function):
                lost.add(name)
                wrong += [f"{name} keeps {found}"] * bool(found & passed)
            else:
                kept.add(name)
                wrong += [f"{name} loses {passed - found}"] * (not passed <= found)
    return lost, kept, wrong


@pytest.mark.parametrize(("name", "version"), RUNS)
def test_all_registers_are_kept_or_none(name: str, version: str, tmp_path: Path) -> None:
    lost, kept, wrong = compared(opened(name, version, tmp_path))
    print(f"{name}, Go {version}: {len(lost)} functions lose their parameters, {len(kept)} do not")
    assert not wrong, "\n".join(wrong[:20])
    assert lost >= LOST
    assert kept >= KEPT
    assert len(kept) > 500
    assert len(lost) < 20


def test_a_wrong_answer_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = opened("x86_64", "1.27", tmp_path)
    monkeypatch.setattr(
        "tests.conformance.test_go_growth.loses_registers_in_growth", lambda *_: False
    )
    assert "main.none loses" in "\n".join(compared(program)[2])


@pytest.mark.parametrize(
    ("name", "version"),
    [("aarch64", "1.19"), ("aarch64", "1.27"), ("riscv64", "1.27"), ("ppc64le", "1.27")],
)
def test_a_register_tells_the_call_that_lost_them(name: str, version: str, tmp_path: Path) -> None:
    reason = qemu_user.unavailable(name)
    if reason:
        pytest.skip(reason)
    program = opened(name, version, tmp_path)
    machine = architecture(name)
    printed = []
    for symbol in ("main.grown", "main.fill"):
        (function,) = program.functions_named(symbol)
        site = Site(program, machine, language("go"), function, function.address, True, False)
        printed.append((function, lost_register_marker(site, function)))
    grown, found = printed[0]
    assert found is not None
    assert printed[1][1] is None
    register, address = found
    check = convention_for(program, grown).rules
    assert isinstance(check, GoRules)
    assert check.stack_check is not None
    behind = after_stack_check(program.code(grown.address, 128), check.stack_check)
    with Emulator(name, Path(program.path), CALM) as emulator:
        first = emulator.until(grown.address)
        assert first.registers[machine.registers[register]] != address
        argument = convention_for(program, grown).integer_registers[0]
        assert first.registers[machine.registers[argument]] == 1
        second = emulator.until(grown.address + behind)
        assert second.registers[machine.registers[register]] == address
        emulator.finish()


@pytest.mark.parametrize(
    ("name", "version"),
    [
        *(("x86_64", version) for version in ("1.15", "1.27")),
        *((name, "1.27") for name in ("aarch64", "riscv64", "ppc64le", "i386", "arm")),
    ],
)
def test_frames_of_every_size_have_a_check(name: str, version: str, tmp_path: Path) -> None:
    head, _, _ = SOURCE.partition("//go:noinline\nfunc none")
    body = "(a int) int {{ var frame [{size}]byte; return fill(frame[:]) }}"
    functions = [f"//go:noinline\nfunc f{size}{body.format(size=size)}" for size in FRAMES]
    calls = "\n".join(f"println(f{size}(1))" for size in FRAMES)
    source = "\n\n".join([head, *functions, f"func main() {{ {calls} }}", ""])
    program = opened(name, version, tmp_path, source)
    machine = architecture(name)
    for size in FRAMES:
        (function,) = program.functions_named(f"main.f{size}")
        used = convention_for(program, function)
        assert isinstance(used.rules, GoRules)
        assert used.rules.stack_check is not None
        code = program.code(function.address, 128)
        assert after_stack_check(code, used.rules.stack_check), size
        site = Site(program, machine, language("go"), function, function.address, True, False)
        assert loses_registers_in_growth(site, function) == bool(used.integer_registers), size
