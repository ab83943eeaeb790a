"""A program of NativeAOT without debug information is reported as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from tests.support.elfwriter import elf_file


@pytest.mark.parametrize(("section", "recognized"), [("__managedcode", True), (".text", False)])
def test_a_stripped_program_of_nativeaot(tmp_path: Path, section: str, recognized: bool) -> None:
    path = tmp_path / "app"
    path.write_bytes(elf_file({section: b"\xc3" * 16}))
    notes, help = DwarfProgram(str(path)).debug_info_advice()
    assert ("NativeAOT" in "".join(notes)) is recognized
    assert ("ReadyToRun" in help) is recognized
