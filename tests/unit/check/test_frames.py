"""Frames that a register is the base of: built by the first instructions, gone before the last."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.code.disassembly import instruction_starts
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.quantities import Address
from tests.support.toolchains import require

SOURCE = """
extern int sink;
int sink;
__attribute__((noinline)) int twice(int x) { int twofold = 2 * x; sink = twofold; return sink; }
typedef __int128 wide;
__attribute__((noinline))
wide sum(wide a, int x, int y, int z, wide b) { return a + b + x + y + z; }
int main(int argc, char **argv) { return twice(argc) + (int)sum(argc, 1, 2, 3, argc); }
"""


def build(folder: Path, compiler: str, level: str) -> Path:
    require(compiler)
    (folder / "frames.c").write_text(SOURCE)
    flags = [compiler, "-g", level, "-o", "frames", "frames.c"]
    subprocess.run(flags, check=True, cwd=folder, timeout=60)
    return folder / "frames"


def refused(binary: Path, function: str, at: str, text: str) -> tuple[str, str, str | None]:
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(str(binary)).probe(function, at=at).compile(text)
    first = caught.value.diagnostics[0]
    return first.code, first.message.partition(": ")[2], first.help


def test_a_local_is_not_read_from_the_callers_frame(tmp_path: Path) -> None:
    pytest.importorskip("capstone", reason="no disassembler")
    binary = build(tmp_path, "clang", "-O0")
    program = DwarfProgram(str(binary))
    (twice,) = program.functions_named("twice")
    code = program.code(twice.address, twice.size or 0)
    starts = list(instruction_starts(code, Address(0), "x86_64"))
    body = program.body_address(twice) - twice.address
    code_, reason, help = refused(binary, "twice", f"+{starts[1]:#x}", "twofold")
    assert (code_, reason) == ("FC0401", f"the frame is built by the instructions up to +{body:#x}")
    assert help == "probe where its frame is built: `--at body`, or a line"
    for text in ("twofold", "x"):
        answer = refused(binary, "twice", f"+{starts[-1]:#x}", text)
        assert answer[:2] == ("FC0401", "the function's frame is no longer valid")
    inside = fetchc.open(str(binary)).probe("twice", at="%body").compile("twofold")
    assert "(%bp)" in inside.fetcharg


def test_gcc_measures_from_the_frame_address(tmp_path: Path) -> None:
    """Its places are right at each instruction, as the unwind table is."""
    binary = build(tmp_path, "gcc", "-O0")
    early = fetchc.open(str(binary)).probe("twice", at="+1").compile("twofold")
    assert early.fetcharg.endswith("(%sp):s32")


def test_halves_that_gcc_moves_first(tmp_path: Path) -> None:
    """gcc has one place for them all over the function, that of after its first instructions."""
    binary = build(tmp_path, "gcc", "-O2")
    probe = fetchc.open(str(binary)).probe("sum", kernel="6.1")
    line = probe.definition([probe.compile("a")], "g", "e")
    assert line.endswith("a_low=%di:u64 a_high=%si:s64")
    code, reason, _ = refused(binary, "sum", "+3", "a.low")
    assert (code, reason) == ("FC0401", "gcc does not describe where its two halves are")
