"""Rules of frames by Go's pcsp and .sframe, against the call-frame information of the same code."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import call_frames
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.sframe import stack_trace_table
from fetchc.debuginfo.unwind_tables import UnwindTables
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, FrameRelative, InMemory
from fetchc.quantities import Address, DwarfRegister
from fetchc.target.machines import architecture
from tests.support.elfwriter import elf_file
from tests.support.programs import fixture
from tests.support.toolchains import require

MACHINE = architecture("x86_64")
IP, BP = DwarfRegister(16), DwarfRegister(6)

SOURCE = """
#define NOINLINE __attribute__((noinline, noclone, noipa))
NOINLINE int outside(int);
NOINLINE int leaf(int n) { return n + 1; }
NOINLINE int many(int a, int b)
{
    int x = outside(a), y = outside(b);
    return x * y + outside(x + y);
}
NOINLINE int array(int n) { char room[n]; outside(room[n / 2]); return room[0]; }
NOINLINE int big(int n) { char room[70000]; room[n] = n; outside(room[n + 1]); return room[n]; }
NOINLINE int outside(int n) { __asm__ volatile(""); return n; }
int main(int argc, char **argv) { return many(argc, leaf(argc)) + array(argc) + big(argc); }
"""


def functions(elf: Elf) -> list[tuple[int, int]]:
    return [(int(one.address), int(one.size)) for one in elf.function_symbols() if one.size]


# ------------------------------------------------------------------------------
# Go.


@pytest.mark.parametrize("name", ["dnsforward/go1.15", "dnsforward/go1.22", "dnsforward/go1.27"])
def test_frames_of_go_are_those_of_its_call_frame_information(name: str) -> None:
    elf = Elf(str(fixture(f"go/{name}")))
    tables = UnwindTables(elf)
    compared = ends = 0
    for start, size in functions(elf)[5::40]:
        for address in (start, start + size // 3, start + size // 2, start + size - 1):
            found = tables.row(Address(address))
            wanted = call_frames.row(elf, Address(address), Address(start))
            if isinstance(found, str) or wanted is None:
                continue
            if isinstance(dict(found.registers)[IP], Absent):
                ends += 1
                continue
            assert found.cfa == wanted.cfa, hex(address)
            assert dict(found.registers)[IP] == FrameRelative(-8)  # type: ignore[arg-type]
            compared += 1
    assert compared > 100


def test_where_a_stack_of_go_begins_and_ends() -> None:
    elf = Elf(str(fixture("go/dnsforward/go1.27")))
    tables = UnwindTables(elf)
    (goexit,) = [one for one in elf.function_symbols() if one.name.startswith("runtime.goexit.")]
    row = tables.row(Address(goexit.address + 1))
    assert isinstance(row, call_frames.Row)
    assert isinstance(dict(row.registers)[IP], Absent)
    (switch,) = elf.symbols_named("runtime.systemstack.abi0")
    assert tables.row(Address(switch.address + 40)) == "runtime.systemstack switches stacks"


# ------------------------------------------------------------------------------
# The stack trace format.


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with both .sframe and .eh_frame."""
    require("gcc")
    folder = tmp_path_factory.mktemp("sframe")
    (folder / "program.c").write_text(SOURCE)
    command = ["gcc", "-O2", "-g", "-Wa,--gsframe", "program.c", "-o", "program"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    if made.returncode:
        pytest.skip("the assembler does not write .sframe")
    return folder / "program"


def sections(elf: Elf) -> tuple[bytes, Address]:
    data, address = elf.section(".sframe"), elf.section_address(".sframe")
    assert data is not None
    assert address is not None
    return bytes(data), address


def of_version(data: bytes, address: int, version: int) -> bytes:
    """A section of version 1 or 2, written in another version: its functions and rows."""
    magic, old, flags, machine, fp, ra, more = struct.unpack_from("<HBBBbbB", data)
    count, rows, size, descriptors, entries = struct.unpack_from("<5I", data, 8)
    head = 28 + more
    step = {1: 17, 2: 20}[old]
    listed = []
    for number in range(count):
        at = head + descriptors + number * step
        start, length, first, number_of_rows, info = struct.unpack_from("<iIIIB", data, at)
        absolute = start + address + (at if flags & 4 else 0)
        listed.append((absolute, length, first, number_of_rows, info))
    body = data[head + entries : head + entries + size]
    width = {1: 17, 2: 20, 3: 16}[version]
    made, attributes = b"", b""
    for number, (start, length, first, number_of_rows, info) in enumerate(listed):
        place = start - address - (28 + number * width if version == 3 else 0)
        if version == 3:
            # Attributes stand before each function's rows.
            made += struct.pack("<qII", place, length, len(attributes))
            stop = min([one[2] for one in listed if one[2] > first], default=len(body))
            attributes += struct.pack("<HBBB", number_of_rows, info, 0, 16) + body[first:stop]
        else:
            made += struct.pack("<iIIIB", place, length, first, number_of_rows, info)
            made += struct.pack("<BH", 16, 0) if version == 2 else b""
    body = attributes if version == 3 else body
    counts = struct.pack("<5I", count, rows, len(body), 0, len(made))
    kind = 4 if version == 3 else 0
    return struct.pack("<HBBBbbB", magic, version, kind, machine, fp, ra, 0) + counts + made + body


@pytest.mark.parametrize("version", [1, 2, 3])
def test_stack_trace_format_has_the_rules_of_the_call_frame_information(
    program: Path, version: int, tmp_path: Path
) -> None:
    real = Elf(str(program))
    data, address = sections(real)
    if data[2] != version:
        data = of_version(data, address, version)
    text = {".sframe": data}
    (tmp_path / "copy").write_bytes(elf_file(text, addresses={".sframe": address}))
    table = stack_trace_table(Elf(str(tmp_path / "copy")))
    assert table is not None
    compared = 0
    for name in ("leaf", "many", "array", "big", "outside", "main"):
        (symbol,) = real.symbols_named(name)
        for at in range(symbol.address, symbol.address + symbol.size):
            wanted = call_frames.row(real, Address(at))
            found = table.row(Address(at), MACHINE)
            assert wanted is not None
            assert found is not None, hex(at)
            assert found.cfa == wanted.cfa, hex(at)
            assert dict(found.registers)[IP] == dict(wanted.registers)[IP]
            assert dict(found.registers).get(BP) == dict(wanted.registers).get(BP)
            compared += 1
    assert compared > 150
    assert table.row(Address(8), MACHINE) is None


def test_a_wrong_offset_would_be_noticed(program: Path) -> None:
    real = Elf(str(program))
    (symbol,) = real.symbols_named("many")
    row = call_frames.row(real, Address(symbol.address + symbol.size // 2))
    assert row is not None
    assert isinstance(row.cfa, InMemory)
    table = stack_trace_table(real)
    assert table is not None
    first = table.row(Address(symbol.address), MACHINE)
    assert first is not None
    assert first.cfa != row.cfa


def test_it_is_used_where_there_is_nothing_else(program: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    remove = ["--remove-section=.eh_frame", "--remove-section=.debug_frame"]
    subprocess.run(["objcopy", *remove, program, copied], check=True, capture_output=True)
    elf = Elf(str(copied))
    (symbol,) = elf.symbols_named("many")
    found = UnwindTables(elf).row(Address(symbol.address))
    assert isinstance(found, call_frames.Row)
    assert UnwindTables(elf).row(Address(8)) == "no unwind information"


@pytest.mark.parametrize(
    ("at", "content"),
    [(0, b"\x00\x00"), (2, b"\x09"), (4, b"\x02"), (8, b"\xff\xff\xff\x0f"), (24, b"\xff" * 4)],
)
def test_a_damaged_section_is_an_error_with_its_place(
    program: Path, tmp_path: Path, at: int, content: bytes
) -> None:
    real = Elf(str(program))
    data, address = sections(real)
    damaged = bytearray(data)
    damaged[at : at + len(content)] = content
    made = elf_file({".sframe": bytes(damaged)}, addresses={".sframe": address})
    (tmp_path / "copy").write_bytes(made)
    table = stack_trace_table(Elf(str(tmp_path / "copy")))
    (symbol,) = real.symbols_named("many")
    assert table is not None
    with pytest.raises(DebugInfoError) as refused:
        table.row(symbol.address, MACHINE)
    assert refused.value.section == ".sframe"


def test_any_damage_ends_in_a_located_error(program: Path, tmp_path: Path) -> None:
    real = Elf(str(program))
    data, address = sections(real)
    (symbol,) = real.symbols_named("big")
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        made = elf_file({".sframe": bytes(damaged)}, addresses={".sframe": address})
        (tmp_path / "copy").write_bytes(made)
        found = UnwindTables(Elf(str(tmp_path / "copy"))).row(Address(symbol.address + 20))
        assert isinstance(found, str | call_frames.Row)
