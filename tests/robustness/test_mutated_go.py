"""Damaged tables of Go programs without debug information: an answer or a located error, soon."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.go import pclntab
from fetchc.debuginfo.go.moduledata import Memory
from fetchc.debuginfo.go.stripped_program import StrippedGoProgram
from fetchc.quantities import Address
from tests.support.programs import fixture

ROUNDS, SECONDS = 12, 4.0  # of a program, for one round
CODES = ("FC0902", "FC0903", "FC0904", "FC0905")
BINARIES = ["go1.15", "go1.22", "go1.27", "go1.27-pie"]
EXPRESSION = "(*main.Msg)($arg4).Question[0].Qtype"

Area = tuple[int, int]
"""Where something is in the file: its offset and its size."""


def areas(path: Path) -> dict[str, Area]:
    """The function table, the types and the module of a program."""
    program = fetchc.open(str(path))._program
    assert isinstance(program, StrippedGoProgram)
    table, known = program._table, program._runtime_shapes.descriptors
    offset = program.file_offset
    names = (offset(Address(table.address + table.names)), 4096)
    functions = (offset(Address(table.address + table.functions)), table.count * 44)
    return {
        "header": (offset(table.address), 80),
        "names": names,
        "functions": functions,
        "types": (offset(Address(known.start)), known.end - known.start),
        "module": (offset(Address(known.module.address)), 400),
    }


def questions(path: Path) -> list[Callable[[], object]]:
    """What is asked of a program, each from the beginning."""

    def opened() -> fetchc.Program:
        return fetchc.open(str(path))

    return [
        lambda: list(opened().functions()),
        lambda: list(opened().types()),
        lambda: opened().layouts("main.Msg"),
        lambda: opened().probe("main.(*server).handle", kernel="6.1").compile(EXPRESSION).fetcharg,
        lambda: opened().probe("main.find", returns=True, kernel="6.1").each(),
        lambda: opened().probe("main.find", kernel="6.1").compile("$goid").fetcharg,
    ]


def answered(path: Path) -> int:
    """How many questions were answered; only a located error may stand for an answer."""
    count = 0
    for question in questions(path):
        start = time.process_time()
        try:
            question()
            count += 1
        except fetchc.DebugInfoError as refused:
            if refused.code not in CODES or not refused.path:
                raise AssertionError("an error without a place") from refused
        except fetchc.CompileError:
            pass  # there is no such function or type any more
        assert time.process_time() - start < SECONDS
    return count


@pytest.mark.parametrize("area", ["header", "names", "functions", "types", "module"])
@pytest.mark.parametrize("binary", BINARIES)
def test_flipped_bytes(binary: str, area: str, tmp_path: Path) -> None:
    whole = fixture(f"go/stripped/{binary}")
    assert answered(whole) == len(questions(whole))
    offset, size = areas(whole)[area]
    chosen = random.Random(f"{binary} {area}")
    refused = 0
    for _ in range(ROUNDS):
        raw = bytearray(whole.read_bytes())
        for _ in range(chosen.choice((1, 1, 4, 64))):
            raw[offset + chosen.randrange(size)] = chosen.choice((0, 0xFF, chosen.randrange(256)))
        damaged = tmp_path / "damaged"
        damaged.write_bytes(raw)
        refused += answered(damaged) < len(questions(damaged))
    assert refused or area == "names"  # of which nearly all are not asked for


@pytest.mark.parametrize("binary", BINARIES)
def test_cut_files(binary: str, tmp_path: Path) -> None:
    raw = fixture(f"go/stripped/{binary}").read_bytes()
    chosen = random.Random(binary)
    for _ in range(8):
        cut = tmp_path / "cut"
        cut.write_bytes(raw[: chosen.randrange(64, len(raw))])
        answered(cut)


@pytest.mark.parametrize("binary", BINARIES)
def test_an_address_that_is_not_in_both_places_is_refused(binary: str, tmp_path: Path) -> None:
    path = fixture(f"go/stripped/{binary}")
    program = fetchc.open(str(path))._program
    assert isinstance(program, StrippedGoProgram)
    (row,) = program._table.named("main.find")
    at = program.file_offset(Address(program._table.address + row.offset))
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    (tmp_path / "moved").write_bytes(raw)
    opened = fetchc.open(str(tmp_path / "moved"))
    with pytest.raises(fetchc.DebugInfoError, match="a row that is not that of") as caught:
        opened.probe("main.find")
    assert (caught.value.code, caught.value.section) == ("FC0904", ".gopclntab")


@pytest.mark.parametrize("binary", BINARIES)
def test_names_of_sections_do_not_matter(binary: str, tmp_path: Path) -> None:
    path = fixture(f"go/stripped/{binary}")
    raw = path.read_bytes()
    for name in (
        b".gopclntab\0",
        b".go.buildinfo\0",
        b".typelink\0",
        b".noptrdata\0",
        b".go.module\0",
    ):
        raw = raw.replace(name, b".x" + bytes(len(name) - 2))
    (tmp_path / "renamed").write_bytes(raw)
    # The answers about probes hold the program itself, which is another one here.
    for plain, renamed in zip(
        questions(path)[:4], questions(tmp_path / "renamed")[:4], strict=True
    ):
        assert renamed() == plain()


def test_a_library_of_c_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(memory: Memory) -> list[Address]:
        raise AssertionError(memory.elf)

    monkeypatch.setattr(pclntab, "_beginnings", searched)
    for name, is_searched in (("c/layouts/gcc-O2-dwarf5", False), ("go/stripped/go1.27", True)):
        path = fixture(name)
        monkeypatch.setattr(pclntab, "_SECTIONS", ())
        memory = Memory(Elf(str(path)), "x86_64")
        if is_searched:
            with pytest.raises(AssertionError):
                pclntab.function_table(memory)
        else:
            assert pclntab.function_table(memory) is None


@pytest.mark.parametrize("binary", BINARIES)
def test_a_packed_program_is_no_go_program(binary: str, tmp_path: Path) -> None:
    # Packers leave the program's segments compressed: nothing of its tables is to be seen.
    raw = bytearray(fixture(f"go/stripped/{binary}").read_bytes())
    offset = areas(fixture(f"go/stripped/{binary}"))["header"][0]
    raw[offset : offset + 16] = bytes(range(16))
    raw = raw.replace(b".gopclntab\0", b".packed\0\0\0\0")
    (tmp_path / "packed").write_bytes(raw)
    opened = fetchc.open(str(tmp_path / "packed"))
    assert not isinstance(opened._program, StrippedGoProgram)
    with pytest.raises(fetchc.CompileError) as caught:
        opened.probe("main.find")
    assert caught.value.diagnostics[0].code == "FC0202"


def test_a_program_of_a_later_go_is_refused(tmp_path: Path) -> None:
    raw = fixture("go/stripped/go1.27").read_bytes().replace(b"go1.27.3", b"go1.39.3")
    (tmp_path / "later").write_bytes(raw)
    opened = fetchc.open(str(tmp_path / "later"))
    with pytest.raises(fetchc.DebugInfoError, match=r"Go 1\.39 is not read"):
        opened.probe("main.find", kernel="6.1")


def test_types_in_a_circle_are_refused(tmp_path: Path) -> None:
    # *main.Msg, whose element becomes itself.
    path = fixture("go/stripped/go1.22")
    program = fetchc.open(str(path))._program
    assert isinstance(program, StrippedGoProgram)
    known = program._runtime_shapes.descriptors
    pointer = next(one for one in known.every() if one.name == "*main.Msg")
    at = program.file_offset(Address(pointer.address + 48))
    raw = bytearray(path.read_bytes())
    raw[at : at + 8] = struct.pack("<Q", pointer.address)
    (tmp_path / "circle").write_bytes(raw)
    opened = fetchc.open(str(tmp_path / "circle"))
    with pytest.raises(fetchc.DebugInfoError, match="nested too deeply"):
        opened.layouts("main.Msg")
