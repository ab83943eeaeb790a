"""Call-frame information against pyelftools: every row of every entry looked at."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from fetchc.debuginfo.dwarf.call_frames import Row, row
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.program.entities import Absent, FrameRelative, Indirect, InMemory, InRegister
from fetchc.quantities import Address, ByteOffset, DwarfRegister
from tests.support.programs import described

FIXTURES = described()

SOURCE = """
int deep(int n, char *p) { char b[n + 1]; b[0] = *p; return n ? deep(n - 1, b) + b[n / 2] : 0; }
int many(int a, int b, int c, int d, int e, int f, int g, int h)
{ int volatile v[40]; for (int i = 0; i < 40; i++) v[i] = a + b * c + d - e + f * g + h + i;
  return v[a % 40]; }
__attribute__((noinline)) void use(void *a, void *b) { __asm__ volatile("" :: "r"(a), "r"(b)); }
int realigned(int n, int b, int c, int d, int e, int f, int g)
{ int big __attribute__((aligned(64))); char v[n]; use(&big, v); return g; }
int main(int argc, char **argv)
{
  return deep(argc, argv[0]) + many(1, 2, 3, 4, 5, 6, 7, argc) + realigned(argc, 1, 2, 3, 4, 5, 6);
}
"""

GNU_ARGS_SIZE = 0x2E

Answer = Callable[[Elf, Address, Address], Row | None]


def rows(path: Path, every: int) -> Iterator[tuple[int, int, int, dict[Any, Any]]]:
    """Function start, first and last address, and rules, as pyelftools decodes them."""
    with path.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        entries = []
        if dwarf.has_EH_CFI():
            entries += dwarf.EH_CFI_entries()
        if dwarf.has_CFI():
            entries += dwarf.CFI_entries()
        for entry in [entry for entry in entries if isinstance(entry, FDE)][::every]:
            if any(instruction.opcode == GNU_ARGS_SIZE for instruction in entry.instructions):
                continue  # pyelftools 0.33 ends in a ValueError here
            start = entry.header["initial_location"]
            end = start + entry.header["address_range"]
            table = entry.get_decoded().table
            for at, rules in enumerate(table):
                stop = table[at + 1]["pc"] if at + 1 < len(table) else end
                if rules["pc"] < min(stop, end):
                    yield start, rules["pc"], min(stop, end) - 1, rules


def differences(path: Path, answer: Answer, every: int = 1) -> tuple[list[str], int]:
    """What ``answer`` says otherwise than pyelftools, and how many rows were compared."""
    elf = Elf(str(path))
    wrong = []
    count = 0
    for start, first, last, rules in rows(path, every):
        for address in {first, last}:
            count += 1
            said = answer(elf, Address(address), Address(start))
            if said is None:
                wrong.append(f"{address:#x}: no rules")
                continue
            wrong += [f"{address:#x}: {what}" for what in _unlike(said, rules)]
    return wrong, count


def _unlike(said: Row, rules: dict[Any, Any]) -> Iterator[str]:
    cfa = rules.get("cfa")
    if cfa is None or cfa.expr is not None:
        if not isinstance(said.cfa, Indirect | Absent):
            yield f"CFA {said.cfa} instead of an expression"
    elif said.cfa != InMemory(DwarfRegister(cfa.reg), ByteOffset(cfa.offset)):
        yield f"CFA {said.cfa} instead of {cfa.reg} {cfa.offset:+d}"
    registers = {number: rule for number, rule in rules.items() if isinstance(number, int)}
    ours = dict(said.registers)
    if set(ours) != set(registers):
        yield f"registers {sorted(ours)} instead of {sorted(registers)}"
    for number, rule in registers.items():
        place = ours.get(DwarfRegister(number))
        expected: object = place
        if rule.type == "OFFSET":
            expected = FrameRelative(ByteOffset(rule.arg))
        elif rule.type == "SAME_VALUE":
            expected = InRegister(DwarfRegister(number))
        elif rule.type == "REGISTER":
            expected = InRegister(DwarfRegister(rule.arg))
        elif rule.type in ("UNDEFINED", "VAL_OFFSET", "VAL_EXPRESSION"):
            expected = place if isinstance(place, Absent) else "absent"
        if place != expected:
            yield f"register {number} {place} instead of {expected}"


def by_address(elf: Elf, address: Address, start: Address) -> Row | None:
    return row(elf, address)


def by_function(elf: Elf, address: Address, start: Address) -> Row | None:
    return row(elf, address, start)


def compiled(tmp_path: Path, compiler: str, *flags: str) -> Path:
    if which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    source = tmp_path / "frames.c"
    source.write_text(SOURCE)
    out = tmp_path / "frames"
    subprocess.run([compiler, "-g", *flags, "-o", out, source], check=True, capture_output=True)
    return out


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_fixtures(path: Path) -> None:
    wrong, count = differences(path, by_function, 1 + path.stat().st_size // 300_000)
    assert wrong == []
    assert count > 50


@pytest.mark.parametrize("name", ["libc.so.6", "libstdc++.so.6"])
def test_libraries_of_the_system(name: str) -> None:
    found = sorted(Path("/usr/lib").glob(f"*-linux-gnu/{name}"))
    if not found:
        pytest.skip(f"no {name} below /usr/lib")
    wrong, count = differences(found[0], by_address, 17)
    assert wrong == []
    assert count > 1000


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize(
    "flags",
    [
        ("-Wl,--no-eh-frame-hdr",),
        ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
        ("-fomit-frame-pointer", "-gz"),
    ],
    ids=["no-header", "debug-frame", "compressed"],
)
def test_kinds_of_tables(tmp_path: Path, compiler: str, level: str, flags: tuple[str, ...]) -> None:
    path = compiled(tmp_path, compiler, level, *flags)
    for answer in (by_address, by_function):
        wrong, count = differences(path, answer)
        assert wrong == []
        assert count > 20


def test_a_realigned_stack_has_a_frame_address_in_memory(tmp_path: Path) -> None:
    path = compiled(tmp_path, "gcc", "-O2")
    elf = Elf(str(path))
    found = [row(elf, Address(first)) for _, first, _, _ in rows(path, 1)]
    assert any(isinstance(said.cfa, Indirect) for said in found if said is not None)


def test_the_comparison_sees_a_wrong_answer(tmp_path: Path) -> None:
    def moved(elf: Elf, address: Address, start: Address) -> Row | None:
        said = row(elf, address)
        if said is None or not isinstance(said.cfa, InMemory):
            return said
        cfa = InMemory(said.cfa.register, ByteOffset(said.cfa.offset + 8))
        return Row(cfa, said.registers, said.return_register, said.signal_frame)

    def late(elf: Elf, address: Address, start: Address) -> Row | None:
        return row(elf, Address(address + 1))

    def without_registers(elf: Elf, address: Address, start: Address) -> Row | None:
        said = row(elf, address)
        return said and Row(said.cfa, (), said.return_register, said.signal_frame)

    path = compiled(tmp_path, "gcc", "-O2")
    for liar in (moved, late, without_registers):
        assert differences(path, liar)[0] != []
