"""Line tables against pyelftools and readelf: every row of every unit."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from os.path import normpath
from pathlib import Path

import pytest
from elftools.dwarf.lineprogram import LineState
from elftools.elf.elffile import ELFFile

from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.line_tables import LineRow, file_name, rows
from fetchc.debuginfo.dwarf.units import Unit
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.quantities import Address
from tests.support.programs import described
from tests.support.toolchains import require

FIXTURES = described()
FLAVOURS = [
    ("gcc", "-O2", "-gdwarf-2", "-gstrict-dwarf"),
    ("gcc", "-O0", "-gdwarf-3"),
    ("gcc", "-O2", "-gdwarf-4"),
    ("gcc", "-O2", "-gdwarf-5", "-gz"),
    ("gcc", "-O2", "-gdwarf-5", "-gdwarf64"),
    ("gcc", "-O2", "-gdwarf-5", "-gno-as-loc-support"),
    ("clang", "-O2", "-gdwarf-4"),
    ("clang", "-O0", "-gdwarf-5"),
]
HEADER = "static inline int doubled(int n)\n{\n  return n * 2;\n}\n"
SOURCE = """#include "sub/part.h"
#include <string.h>
int length(const char *s)
{
  int n = strlen(s);
  return doubled(n);
}
int main(int argc, char **argv)
{
  for (int i = 0; i < argc; i++)
    if (length(argv[i]) > 3) return i;
  return 0;
}
"""

Answer = Callable[[DebugInfo, Unit], list[LineRow]]


def compiled(tmp_path: Path, flavour: tuple[str, ...]) -> Path:
    compiler, *flags = flavour
    require(compiler)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/part.h").write_text(HEADER)
    (tmp_path / "lines.c").write_text(SOURCE)
    command = [compiler, *flags, "-o", "lines", "lines.c"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "lines"


def answer(info: DebugInfo, unit: Unit) -> list[LineRow]:
    return list(rows(info, unit))


def linked(states: list[LineState]) -> list[LineState]:
    """All but the sequences from address 0 on: of code that the linker left out."""
    found, at_zero, starts = [], False, True
    for state in states:
        at_zero = state.address == 0 if starts else at_zero
        starts = bool(state.end_sequence)
        if not at_zero:
            found.append(state)
    return found


def differences(path: Path, said: Answer) -> tuple[list[str], int]:
    """Units whose rows ``said`` reads otherwise than pyelftools, and the number of rows."""
    info = DebugInfo(Elf(str(path)))
    wrong = []
    count = 0
    with path.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        for ours, theirs in zip(info.units(), dwarf.iter_CUs(), strict=True):
            program = dwarf.line_program_for_CU(theirs)
            if program is None:
                assert list(rows(info, ours)) == []
                continue
            states = [entry.state for entry in program.get_entries() if entry.state is not None]
            states = linked(states)
            expected = [
                LineRow(
                    Address(state.address),
                    state.file,
                    state.line,
                    bool(state.is_stmt),
                    bool(state.prologue_end),
                    bool(state.end_sequence),
                )
                for state in states
            ]
            count += len(expected)
            found = [_comparable(row) for row in said(info, ours)]
            if found != [_comparable(row) for row in expected]:
                wrong.append(f"unit at {ours.offset:#x}")
    return wrong, count


@pytest.mark.parametrize(
    "flavour",
    [flavour for flavour in FLAVOURS if "-gdwarf64" not in flavour],  # pyelftools 0.33 fails
    ids=" ".join,
)
def test_rows_of_compilers(tmp_path: Path, flavour: tuple[str, ...]) -> None:
    wrong, count = differences(compiled(tmp_path, flavour), answer)
    assert wrong == []
    assert count > 15


@pytest.mark.parametrize(
    "path",
    [path for path in FIXTURES if "miekg" not in path.parts],
    ids=lambda path: f"{path.parts[-3]}-{path.name}",
)
def test_rows_of_fixtures(path: Path) -> None:
    wrong, count = differences(path, answer)
    assert wrong == []
    assert count > 100


def test_the_comparison_sees_a_wrong_answer(tmp_path: Path) -> None:
    def without_prologues(info: DebugInfo, unit: Unit) -> list[LineRow]:
        return [
            LineRow(row.address, row.file, row.line, row.is_stmt, False, row.end_sequence)
            for row in rows(info, unit)
        ]

    def one_line_down(info: DebugInfo, unit: Unit) -> list[LineRow]:
        return [
            LineRow(row.address, row.file, row.line + 1, *_tail(row)) for row in rows(info, unit)
        ]

    path = compiled(tmp_path, FLAVOURS[-1])
    assert differences(path, without_prologues)[0] != []
    assert differences(path, one_line_down)[0] != []


def _comparable(row: LineRow) -> LineRow:
    # pyelftools clears is_stmt at the end of a sequence; the standard leaves it as it is.
    if row.end_sequence:
        return LineRow(row.address, row.file, row.line, False, False, True)
    return row


def _tail(row: LineRow) -> tuple[bool, bool, bool]:
    return row.is_stmt, row.prologue_end, row.end_sequence


@pytest.mark.parametrize("flavour", FLAVOURS, ids=" ".join)
def test_files_and_lines_are_those_of_readelf(tmp_path: Path, flavour: tuple[str, ...]) -> None:
    require("readelf")
    path = compiled(tmp_path, flavour)
    text = subprocess.run(
        ["readelf", "--wide", "--debug-dump=decodedline", path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.findall(r"^(\S+\.[ch])\s+(\d+)\s+(0x[0-9a-f]+)", text, re.MULTILINE)
    expected = {(name, int(line), int(address, 16)) for name, line, address in found}
    info = DebugInfo(Elf(str(path)))
    said = set()
    for unit in info.units():
        for row in rows(info, unit):
            name = file_name(info, unit, row.file)
            assert name is not None
            if not row.end_sequence:
                said.add((name.rpartition("/")[2], row.line, row.address))
    assert expected <= said | {entry for entry in expected if entry[1] == 0}
    assert {name for name, _, _ in expected} == {name for name, _, _ in said}
    assert len(expected) > 10


@pytest.mark.parametrize("flavour", FLAVOURS, ids=" ".join)
def test_the_path_of_a_file_is_absolute(tmp_path: Path, flavour: tuple[str, ...]) -> None:
    info = DebugInfo(Elf(str(compiled(tmp_path, flavour))))
    (unit,) = info.units()
    names = {normpath(file_name(info, unit, row.file) or "") for row in rows(info, unit)}
    assert names == {str(tmp_path / "lines.c"), str(tmp_path / "sub/part.h")}
    assert file_name(info, unit, 1000) is None
