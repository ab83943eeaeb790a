"""Exported symbols by their versions, in a library that has no other symbols."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.elf.elf_file import Elf
from tests.support.toolchains import require

SOURCE = """
int old(int n) { return n; }
int new(int n) { return n + 1; }
int only(int n) { return n + 2; }
__asm__(".symver old,answer@V1\\n.symver new,answer@@V2");
"""
VERSIONS = "V1 { global: answer; local: *; }; V2 { global: answer; only; } V1;\n"


@pytest.fixture(scope="module", name="library")
def library_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    where = tmp_path_factory.mktemp("versions")
    (where / "answer.c").write_text(SOURCE)
    (where / "answer.map").write_text(VERSIONS)
    command = ["gcc", "-shared", "-fPIC", "-O1", "-s", "-fno-toplevel-reorder", "answer.c"]
    command += ["-Wl,--version-script=answer.map", "-o", "answer.so"]
    subprocess.run(command, cwd=where, check=True, timeout=60)
    return where / "answer.so"


def _addresses(library: Path) -> dict[str, int]:
    listed = subprocess.run(
        ["readelf", "-W", "--dyn-syms", library], capture_output=True, check=True, text=True
    )
    rows = re.findall(r": ([0-9a-f]+) +\d+ FUNC .* (\w+@\S+)$", listed.stdout, re.MULTILINE)
    return {name: int(address, 16) for address, name in rows if int(address, 16)}


def test_each_version_is_another_function(library: Path) -> None:
    known = _addresses(library)
    assert set(known) == {"answer@V1", "answer@@V2", "only@@V2"}
    program = fetchc.open(str(library))
    for name, address in known.items():
        assert program.probe(name).address == address
    assert program.probe("answer@V2").address == known["answer@@V2"]
    assert program.probe("only").address == known["only@@V2"]


def test_a_name_alone_is_that_of_both(library: Path) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(str(library)).probe("answer")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "FC0203"
    assert {note.split("`")[1] for note in diagnostic.notes} == {"answer@@V2", "answer@V1"}
    assert diagnostic.help in [f"use a full name: `answer{one}`" for one in ("@V1", "@@V2")]


@pytest.mark.parametrize("name", ["answer@V3", "answer@", "answer@@V1@", "@V1", "other@V1"])
def test_other_versions_are_unknown(library: Path, name: str) -> None:
    with pytest.raises(fetchc.CompileError, match="no function"):
        fetchc.open(str(library)).probe(name)


def test_a_table_of_versions_that_is_cut_ends_in_an_error(library: Path, tmp_path: Path) -> None:
    data = bytearray(library.read_bytes())
    listed = subprocess.run(
        ["readelf", "-W", "-S", library], capture_output=True, check=True, text=True
    )
    found = re.search(r"\.gnu\.version_d\s+\S+\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", listed.stdout)
    assert found is not None
    start = int(found[1], 16)
    data[start + 16 : start + 20] = (1 << 30).to_bytes(4, "little")  # vd_next of the first one
    broken = tmp_path / "broken.so"
    broken.write_bytes(data)
    with pytest.raises(fetchc.DebugInfoError) as caught:
        Elf(str(broken)).version("answer", next(iter(_addresses(library).values())))  # type: ignore[arg-type]
    assert caught.value.section == ".gnu.version_d"
