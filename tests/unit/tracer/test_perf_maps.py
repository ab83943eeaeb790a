"""The merged map of a process and its symbols; the process is the one that tests run in."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.perf_map_format import MapLine, parse_lines
from fetchc.diag.diagnostic import CompileError, DebugInfoError, TracerError
from fetchc.tracer.perf_maps import Process, merge, symbol_file
from tests.support.cases import CORPUS

SAMPLE = CORPUS / "dotnet/echo/bin/sample.dll"
ECHO = "EchoProvider.calculateEchoValue"
NAME = "[sample] sample.Providers.EchoProvider::calculateEchoValue(string)[ReadyToRun]"
OFFSET = 0xA00


@pytest.fixture
def process() -> Iterator[Process]:
    """This process, with an image mapped as the runtime does it."""
    with SAMPLE.open("rb") as file:
        kind = mmap.PROT_READ | mmap.PROT_EXEC
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=kind)
    yield Process(os.getpid())
    mapped.close()


def begin(process: Process) -> int:
    (image,) = process.images
    return image.mappings[0].start + OFFSET


def test_addresses_and_names_lead_to_each_other(process: Process) -> None:
    (named,) = process.find(ECHO)
    assert (named.path, named.offset, named.start) == (str(SAMPLE), OFFSET, begin(process))
    for text in (f"{begin(process):#x}", f"{begin(process):X} 10 {NAME}"):
        assert process.find(text) == [named]
    (inside,) = process.find(f"{begin(process) + 3:#x}")
    assert (inside.start, inside.offset, inside.inside) == (named.start, OFFSET + 3, 3)


def test_what_is_no_method_is_reported(process: Process) -> None:
    with pytest.raises(CompileError, match=r"FC0202: no precompiled image of process"):
        process.find("Nobody.Called")
    with pytest.raises(CompileError, match=r"FC0206: process .* has no code at 0x1"):
        process.find("0x1")
    with pytest.raises(CompileError, match=r"FC0206: .*sample.dll:0x0, in no method there"):
        process.find(f"{process.images[0].mappings[0].start:#x}")


def test_code_that_was_compiled_while_running_is_in_no_file(process: Process) -> None:
    kind = mmap.PROT_READ | mmap.PROT_EXEC
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, 4096, flags=flags, prot=kind):
        known = {one.start for one in process.mappings}
        fresh = Process(process.pid)
        (start,) = {one.start for one in fresh.mappings if one.path == ""} - known
        with pytest.raises(CompileError, match=r"FC0906: .*was compiled at run time"):
            fresh.find(f"{start:x} 20 void [a] B::c()[Tier0]" if start else "")


def test_both_maps_become_one(process: Process, tmp_path: Path) -> None:
    path = tmp_path / f"perf-{process.pid}.map"
    with path.open("w") as own:
        own.write("7000 20 int32 [app] Prog::Main()[Tier0]\n0x10 1 stub\n8000 2")
        own.flush()
        for _ in range(2):  # the second time from the file that is still open
            merged = merge(process, str(tmp_path))
            assert (merged.path, merged.compiled, merged.precompiled) == (str(path), 2, 6)
            lines = parse_lines(str(path), path.read_bytes())
            assert lines == sorted(lines, key=lambda line: line.start)
            assert len(lines) == 8
            assert MapLine(begin(process), 16, NAME) in lines
            assert MapLine(0x7000, 0x20, "int32 [app] Prog::Main()[Tier0]") in lines
    assert sorted(os.listdir(tmp_path)) == [path.name, f"perf-{process.pid}.symbols"]
    symbols = str(tmp_path / f"perf-{process.pid}.symbols")
    with open(symbols + str(SAMPLE), "rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        found = {one.name: one["st_value"] for one in table.iter_symbols()}
    assert found[NAME] == OFFSET
    python = os.path.realpath("/proc/self/exe")
    assert os.path.realpath(symbols + python) == python


def test_without_a_map_of_its_own(process: Process, tmp_path: Path) -> None:
    assert merge(process, str(tmp_path)).compiled is None
    assert merge(process, str(tmp_path)).precompiled == 6  # over its own result


@pytest.mark.parametrize("kind", ["foreign", "link", "folder"])
def test_what_somebody_else_left_is_not_touched(
    process: Process, tmp_path: Path, kind: str
) -> None:
    name = tmp_path / f"perf-{process.pid}.map"
    target = tmp_path / "target"
    target.write_text("7000 20 somebody's\n")
    if kind == "foreign":
        name.write_text("7000 20 somebody's\n")
    elif kind == "link":
        name.symlink_to(target)
    else:
        (tmp_path / f"perf-{process.pid}.symbols").symlink_to(tmp_path)
    with pytest.raises(TracerError, match=r"FC0715: .* is not a map that this process writes"):
        merge(process, str(tmp_path))
    assert target.read_text() == "7000 20 somebody's\n"
    assert not [each for each in os.listdir(tmp_path) if each.endswith("tmp")]


def test_a_folder_that_cannot_be_written(process: Process, tmp_path: Path) -> None:
    with pytest.raises(TracerError, match=r"FC0715: .* cannot be written"):
        merge(process, str(tmp_path / "nowhere"))


def test_a_map_that_is_broken_is_reported(process: Process, tmp_path: Path) -> None:
    with (tmp_path / f"perf-{process.pid}.map").open("w") as own:
        own.write("nonsense\n")
        own.flush()
        with pytest.raises(DebugInfoError, match=r"line 1 is not a line of a perf map: 'nonsense'"):
            merge(process, str(tmp_path))


def test_no_such_process() -> None:
    with pytest.raises(TracerError, match=r"FC0707"):
        Process(1 << 22)


def test_a_file_of_symbols_is_read_by_others(tmp_path: Path) -> None:
    made = tmp_path / "symbols"
    made.write_bytes(symbol_file("x86_64", [(0x40, 8, "first"), (0x1000, 2, "a b(c)")]))
    symbols = {one.name: (one.address, one.size) for one in Elf(str(made)).function_symbols()}
    assert symbols == {"first": (0x40, 8), "a b(c)": (0x1000, 2)}


def test_a_process_without_code_of_net(tmp_path: Path) -> None:
    with pytest.raises(TracerError, match=r"FC0715: process \d+ has no code of \.NET"):
        merge(Process(os.getpid()), str(tmp_path))
    assert not os.listdir(tmp_path)
