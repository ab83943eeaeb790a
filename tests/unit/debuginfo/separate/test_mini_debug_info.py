"""Mini debug information: symbols in an ELF file, packed by xz, inside of the program."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.separate import debug_file_search
from fetchc.debuginfo.separate.debug_file_search import Search
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from tests.support.debug_files import OWN, by_build_id, debug_file, note
from tests.support.elfwriter import Sym, elf_file

INSIDE = elf_file({}, symbols=[Sym("hidden", 0x1000, 16), Sym("data", 0x3000, 8, 1)])


def program(path: Path, packed: bytes, **how: int) -> Elf:
    sections = {".gnu_debugdata": packed, ".note.gnu.build-id": note(OWN)}
    (path / "program").write_bytes(elf_file(sections, **how))  # type: ignore[arg-type]
    return Elf(str(path / "program"))


def test_its_symbols_are_those_of_the_program(tmp_path: Path) -> None:
    elf = program(tmp_path, lzma.compress(INSIDE))
    (found,) = elf.symbols_named("hidden")
    assert (found.address, found.size) == (0x1000, 16)
    assert elf.symbols_at(Address(0x1000)) == (found,)
    assert [symbol.name for symbol in elf.function_symbols()] == ["hidden"]
    assert elf.exported("hidden") == ()


def test_what_is_exported_is_not_in_it_again(tmp_path: Path) -> None:
    inside = lzma.compress(INSIDE)
    content = elf_file({".gnu_debugdata": inside}, symbols=[Sym("shown", 0x2000, 8)])
    (tmp_path / "program").write_bytes(content.replace(b".symtab", b".dynsym"))
    elf = Elf(str(tmp_path / "program"))
    assert [symbol.name for symbol in elf.function_symbols()] == ["hidden", "shown"]
    assert [symbol.address for symbol in elf.symbols_named("shown")] == [0x2000]


@pytest.mark.parametrize(
    ("packed", "what"),
    [
        (b"\0" * 40, "damaged xz stream"),
        (lzma.compress(INSIDE)[:-20], "damaged xz stream (cut off)"),
        (lzma.compress(b"not a program"), "not an ELF file"),
        (lzma.compress(b""), "not an ELF file"),
        (lzma.compress(elf_file({}, machine=183)), "for another machine"),
        (lzma.compress(elf_file({}, bits=32)), "for another machine"),
    ],
)
def test_what_is_damaged_is_refused(packed: bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(DebugInfoError) as refused:
        program(tmp_path, packed).symbols_named("hidden")
    assert what in str(refused.value)
    assert ".gnu_debugdata" in str(refused.value)


def test_a_small_section_does_not_become_a_big_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debug_file_search, "_MOST", 1 << 16)
    with pytest.raises(DebugInfoError, match="more than is read"):
        program(tmp_path, lzma.compress(bytes(1 << 20))).symbols_named("hidden")
    monkeypatch.setattr(debug_file_search, "_MEMORY", 1 << 16)
    with pytest.raises(DebugInfoError, match="damaged xz stream"):
        program(tmp_path, lzma.compress(INSIDE)).symbols_named("hidden")


def test_a_whole_table_elsewhere_is_taken_instead(tmp_path: Path) -> None:
    path = by_build_id(tmp_path)
    debug_file(path)
    named = {".note.gnu.build-id": note(OWN), ".debug_info": b"info"}
    path.write_bytes(elf_file(named, symbols=[Sym("whole", 0x1000)]))
    program(tmp_path, lzma.compress(INSIDE))
    elf = Elf(str(tmp_path / "program"), Search(roots=(str(tmp_path),)))
    assert elf.symbols_named("whole") != ()
    assert elf.symbols_named("hidden") == ()
