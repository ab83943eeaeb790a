"""The index that gdb adds to a program (.gdb_index), against a search of the bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import gdb_index
from fetchc.debuginfo.dwarf.constants import NAMED
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import DieOffset
from tests.support.name_index import indexed, searched
from tests.support.toolchains import require

FIRST = """
namespace shop { struct inner { int a; }; struct outer { inner *p; long b; }; }
enum colour { RED, GREEN };
union both { int i; float f; };
template<class T> struct box { T held; };
int use(shop::outer *o, colour c, both *u, box<long> *b) {
    struct local { int z; } l = { 3 };
    return o->p->a + c + u->i + l.z + b->held;
}
"""
SECOND = """
struct inner { char name[8]; int a; };
struct other { inner i; };
int main(int count, char **words) { return ((other *)words)->i.a; }
"""
NAMES = ("inner", "outer", "colour", "both", "other", "box<long>", "long", "nothing", "")


def built(folder: Path) -> Path:
    require("g++", "gdb", "gdb-add-index")
    for name, text in (("first", FIRST), ("second", SECOND)):
        (folder / f"{name}.cc").write_text(text)
        command = ["g++", "-O0", "-g", "-c", f"{name}.cc"]
        subprocess.run(command, cwd=folder, check=True)
    subprocess.run(["g++", "-o", "program", "first.o", "second.o"], cwd=folder, check=True)
    subprocess.run(["gdb-add-index", "program"], cwd=folder, check=True)
    return folder / "program"


def answers(path: Path) -> dict[str, list[DieOffset]]:
    return {name: sorted(found or []) for name, found in indexed(path, NAMES).items()}


def expected(path: Path) -> dict[str, list[DieOffset]]:
    return {name: sorted(found) for name, found in searched(path, NAMES).items()}


def test_it_leads_to_what_a_search_finds(tmp_path: Path) -> None:
    path = built(tmp_path)
    assert answers(path) == expected(path)
    assert len(expected(path)["inner"]) == 2
    assert DwarfProgram(str(path))._info.name_index.named("local", NAMED) == []


def test_another_hash_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = built(tmp_path)
    monkeypatch.setattr(gdb_index, "_HASH_FACTOR", 31)
    assert answers(path) != expected(path)


def test_one_that_lacks_a_unit_is_not_used(tmp_path: Path) -> None:
    path = built(tmp_path)
    assert gdb_index.gdb_names(DwarfProgram(str(path))._info) is not None
    (tmp_path / "third.cc").write_text("struct third { int a; } third;")
    for command in (
        ["objcopy", "--dump-section", ".gdb_index=index", "program", "copy"],
        ["g++", "-g", "-o", "more", "first.o", "second.o", "third.cc"],
        ["objcopy", "--add-section", ".gdb_index=index", "more"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)
    assert gdb_index.gdb_names(DwarfProgram(str(tmp_path / "more"))._info) is None


def test_one_that_a_linker_made_is_not_used(tmp_path: Path) -> None:
    # gold lists all units, and the names of those alone that have .debug_gnu_pubnames.
    require("clang", "ld.gold")
    (tmp_path / "program.c").write_text("struct shape { int a; } shape; int main(void) {}")
    command = ["clang", "-g", "-fuse-ld=gold", "-Wl,--gdb-index", "-o", "program", "program.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    path = tmp_path / "program"
    assert DwarfProgram(str(path))._elf.open_section(".gdb_index") is not None
    assert len(searched(path, ["shape"])["shape"]) == 1
    assert indexed(path, ["shape"]) == {"shape": None}


def test_a_damaged_one_ends_in_an_error_or_an_answer(tmp_path: Path) -> None:
    path = built(tmp_path)
    header = DwarfProgram(str(path))._elf.debug_image.header(".gdb_index")
    assert header is not None
    data = path.read_bytes()
    errors = 0
    for at in range(header.offset, header.offset + header.size, 7):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            answers(tmp_path / "damaged")
        except DebugInfoError as error:
            assert error.section == ".gdb_index"  # noqa: PT017
            errors += 1
    assert errors > 5
