"""Jumps that may lead after a function's first instruction, against a disassembler's."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.check.probe_site import ProbePoint
from fetchc.code.disassembly import jump_targets
from fetchc.code.uprobe_instructions import is_emulated, may_be_jumped_to, unchanging_bytes
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.driver.emulated_points import at_emulated, is_single_stepped, next_emulated
from fetchc.driver.probe_points import PointRequest, find_site
from fetchc.target.kernel_versions import kernel
from fetchc.target.machines import Instruction, parse_instruction, table
from tests.support.toolchains import require

LIBRARY = Path("/lib/x86_64-linux-gnu/libc.so.6")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")


def encodings(version: str) -> list[Instruction]:
    tables = table("arch/x86_64")["emulated"]
    kinds = kernel(version).emulated("x86_64")
    return [parse_instruction(text) for kind in kinds for text in tables[kind]]


@pytest.mark.parametrize(
    ("code", "first"),
    [
        ("55", "4.19"), ("4157", "4.19"), ("90", "4.4"), ("e800000000", "4.4"), ("7405", "4.4"),
        ("0f8400000000", "4.4"), ("0f1f4000", "6.18"), ("6690", "6.18"),
        # One with another prefix, a pop, the NOP that becomes a call, and what is no branch.
        ("4855", None), ("5d", None), ("0f1f440000", None), ("f30f1efa", None), ("c3", None),
        ("4889f8", None), ("0f05", None),
    ],
)  # fmt: skip
def test_what_is_emulated_from_which_version_on(code: str, first: str | None) -> None:
    versions = ["4.3", "4.4", "4.18", "4.19", "6.17", "6.18", "7.3"]
    found = [one for one in versions if is_emulated(bytes.fromhex(code), encodings(one))]
    assert found == ([] if first is None else versions[versions.index(first) :])


@pytest.mark.parametrize(
    ("code", "size"),
    [("f30f1efa55", 4), ("90", 1), ("0f1f440000", 5), ("f30f1efb", 0), ("55", 0), ("4889c0", 0)],
)
def test_what_changes_nothing(code: str, size: int) -> None:
    raw = table("arch/x86_64")
    others = [parse_instruction(text) for text in raw["emulated"]["unchanging"]]
    assert unchanging_bytes(bytes.fromhex(code), raw["uprobes"], others) == size


@given(
    start=st.integers(0, 40), to=st.integers(1, 8), at=st.integers(0, 300),
    kind=st.sampled_from(["eb", "74", "e2", "e8", "e9", "0f84"]),
    filler=st.binary(min_size=320, max_size=320),
)  # fmt: skip
def test_a_jump_is_seen_wherever_it_is(
    start: int, to: int, at: int, kind: str, filler: bytes
) -> None:
    opcode = bytes.fromhex(kind)
    size = len(opcode) + (1 if kind in ("eb", "74", "e2") else 4)
    distance = start + to - (at + size)
    if size == 2 and not -128 <= distance < 128:
        return
    jump = opcode + distance.to_bytes(size - len(opcode), "little", signed=True)
    assert may_be_jumped_to(filler[:at] + jump + filler[at + size :], start, start + to)


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("f30f1efa 55 5d ebfc", True),  # to the push
        ("f30f1efa 55 5d ebf8", False),  # to the start
        ("f30f1efa 55 5d ebfd", False),  # after the push
        ("f30f1efa 55 0f85f9ffffff", True),
        ("f30f1efa 55 0f85f5ffffff", False),
        ("f30f1efa 55 5d c3", False),
        ("f30f1efa 55 e9", False),  # cut
    ],
)
def test_where_a_jump_leads(code: str, seen: bool) -> None:
    assert may_be_jumped_to(bytes.fromhex(code), 0, 4) == seen


def test_no_jump_of_real_code_is_missed() -> None:
    pytest.importorskip("capstone", reason="no disassembler")
    if not LIBRARY.exists():
        pytest.skip(f"no {LIBRARY} here")
    program = DwarfProgram(str(LIBRARY))
    found = 0
    for name in ("malloc", "strtol", "qsort_r", "getopt_long", "fnmatch", "vfprintf"):
        for function in program.functions_named(name)[:1]:
            code = program.code(function.address, function.size or 0)
            for target in jump_targets(code, function.address, "x86_64"):
                inside = 0 if target is None else target - function.address
                if 0 < inside < len(code):
                    found += 1
                    assert may_be_jumped_to(code, inside - 1, inside)
    assert found


SOURCE = """
__attribute__((noinline)) long first(long n) { __asm__ volatile("" ::: "memory"); return n + 1; }
__attribute__((noinline)) long plain(long n) { long k = first(n); return first(k) + n; }
__asm__(".text; .globl written; .type written,@function; written: endbr64; push %rbp; pop %rbp;"
        "ret; .size written, .-written");
__attribute__((noinline)) long twice(long n) { long k = first(n); return first(k) + n; }
__asm__(".globl within; .set within, twice + 4; .type within,@function");
"""


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> DwarfProgram:
    require("gcc")
    folder = tmp_path_factory.mktemp("emulated")
    (folder / "f.c").write_text(SOURCE)
    flags = ["-O2", "-g", "-fno-ipa-icf", "-fcf-protection=full", "-shared", "-fPIC", "-o", "f.so"]
    subprocess.run(["gcc", *flags, "f.c"], cwd=folder, check=True, timeout=60)
    return DwarfProgram(str(folder / "f.so"))


@pytest.mark.parametrize(
    ("name", "returns", "version", "moved"),
    [
        ("plain", False, "6.18", 4),
        ("plain", True, "6.18", 4),
        ("plain", False, "4.18", 0),  # emulates no push
        ("plain", False, "4.19", 4),
        ("first", False, "6.18", 0),  # no push
        ("written", False, "6.18", 0),  # somebody's assembly: who knows where it is entered
        ("twice", False, "6.18", 0),  # another symbol is at the push
    ],
)
def test_where_a_probe_moves(
    name: str, returns: bool, version: str, moved: int, program: DwarfProgram
) -> None:
    rules = kernel(version)
    found = find_site(program, PointRequest(name, None, returns, rules))
    assert is_single_stepped(found, rules)
    other = at_emulated(found, rules)
    assert other.site.address - found.site.address == moved
    assert other.site.replaced(address=found.site.address) == found.site
    assert (other.kind, other.warnings) == (found.kind, found.warnings)


def test_the_next_one_is_proposed(program: DwarfProgram) -> None:
    pytest.importorskip("capstone", reason="no disassembler")
    rules = kernel("6.18")
    found = [next_emulated(_entry(program, name), rules) for name in ("plain", "first", "twice")]
    assert found == [4, None, 4]


def _entry(program: DwarfProgram, name: str) -> ProbePoint:
    return find_site(program, PointRequest(name, None, False, kernel("6.18")))
