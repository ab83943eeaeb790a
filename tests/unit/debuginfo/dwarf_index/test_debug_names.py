"""The index that clang writes (.debug_names), against a search of the bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import debug_names
from fetchc.debuginfo.dwarf.constants import NAMED, DW_TAG_subprogram
from fetchc.debuginfo.dwarf.debug_names import standard_names
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.name_index import indexed, searched
from tests.support.toolchains import require

FIRST = """
struct inner { int a; };
struct outer { struct inner *p; long b; };
enum colour { RED, GREEN };
union both { int i; float f; };
int use(struct outer *o, enum colour c, union both *u) {
    struct local { int z; } l = { 3 }, *pl = &l;
    return o->p->a + c + u->i + pl->z;
}
"""
SECOND = """
struct inner { int a; };
struct other { struct inner i; };
int use(void *, int, void *);
int main(int count, char **words) { return ((struct other *)words)->i.a + use(0, count, 0); }
"""
NAMES = ("inner", "outer", "colour", "both", "other", "int", "long", "nothing", "")


def built(folder: Path, second: str = "clang") -> Path:
    require("clang", second)
    for name, text, compiler in (("first", FIRST, "clang"), ("second", SECOND, second)):
        (folder / f"{name}.c").write_text(text)
        options = ["-gpubnames"] if compiler == "clang" else []
        command = [compiler, "-O0", "-gdwarf-5", *options, "-c", f"{name}.c"]
        subprocess.run(command, cwd=folder, check=True)
    subprocess.run(["clang", "-o", "program", "first.o", "second.o"], cwd=folder, check=True)
    return folder / "program"


def test_it_leads_to_what_a_search_finds(tmp_path: Path) -> None:
    path = built(tmp_path)
    assert indexed(path, NAMES) == searched(path, NAMES)
    assert len(searched(path, NAMES)["inner"]) == 2
    assert DwarfProgram(str(path))._info.name_index.named("local", NAMED) == []


def test_it_leads_to_functions_with_code(tmp_path: Path) -> None:
    info = DwarfProgram(str(built(tmp_path)))._info
    for name, count in (("use", 1), ("main", 1), ("inner", 0), ("none", 0), ("\ud800", 0)):
        found = info.find_named(name, frozenset({DW_TAG_subprogram}), definitions=True)
        wanted = [die.offset for die in found if info.ranges(die)]
        assert info.name_index.with_code(name) == wanted
        assert len(wanted) == count


def test_the_index_of_gdb_in_this_form_is_not_used(tmp_path: Path) -> None:
    # gdb 13 writes entries without places, under names with their scopes.
    require("gcc", "gdb", "gdb-add-index")
    (tmp_path / "first.c").write_text(FIRST)
    subprocess.run(["gcc", "-g", "-shared", "-o", "program", "first.c"], cwd=tmp_path, check=True)
    subprocess.run(["gdb-add-index", "-dwarf-5", "program"], cwd=tmp_path, check=True)
    path = tmp_path / "program"
    assert DwarfProgram(str(path))._elf.open_section(".debug_names") is not None
    assert all(found is None for found in indexed(path, NAMES).values())


def test_another_hash_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = built(tmp_path)
    monkeypatch.setattr(debug_names, "_HASH_FACTOR", 31)
    assert indexed(path, NAMES) != searched(path, NAMES)


def test_one_that_lacks_a_unit_is_not_used(tmp_path: Path) -> None:
    path = built(tmp_path, "gcc")
    assert standard_names(DwarfProgram(str(path))._info) is None
    assert all(found is None for found in indexed(path, NAMES).values())


def test_a_damaged_one_ends_in_an_error_or_an_answer(tmp_path: Path) -> None:
    path = built(tmp_path)
    header = DwarfProgram(str(path))._elf.debug_image.header(".debug_names")
    assert header is not None
    data = path.read_bytes()
    errors = 0
    for at in range(header.offset, header.offset + header.size, 3):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            indexed(tmp_path / "damaged", NAMES)
        except DebugInfoError as error:
            assert error.section in (".debug_names", ".debug_info", ".debug_str")  # noqa: PT017
            errors += 1
    assert errors > 10
