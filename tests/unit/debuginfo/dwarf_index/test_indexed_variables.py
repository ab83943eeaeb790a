"""Variables by the index: those that a search of all entries finds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import global_variables, name_index, name_index_format, name_index_scan
from fetchc.debuginfo.dwarf.constants import VARIABLES, DW_AT_name, DW_TAG_base_type
from fetchc.debuginfo.dwarf.dies import Die, entries
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from tests.support.cases import CORPUS
from tests.support.toolchains import require

C = "c/layouts/bin/gcc-O2-dwarf5"
CPP = "cpp/addressbook/bin/g++-O2"
FILES = (
    C,
    "c/layouts/bin/clang-O0-dwarf4",
    CPP,
    "cpp/addressbook/bin/clang++-O0",
    "go/dnsforward/bin/go1.15",
    "go/dnsforward/bin/go1.27",
)


def opened(file: str) -> DwarfProgram:
    return DwarfProgram(str(CORPUS / file))


def names(program: DwarfProgram) -> list[str]:
    """Plain names of variables, wherever they are."""
    found = {
        Die(unit, start).string(DW_AT_name)
        for unit in program._info.units()
        for start, declaration, _ in entries(unit)
        if declaration.tag in VARIABLES
    }
    return sorted(name for name in found if name)


def answers(program: DwarfProgram, asked: list[str]) -> dict[str, list[str]]:
    return {
        name: sorted(map(repr, program.global_variables(name, None)))
        for name in [*asked, "none", "ns::none"]
    }


def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are as big ones, and every name is worth an index."""
    monkeypatch.setattr(global_variables, "_INDEXED", 0)
    monkeypatch.setattr(name_index, "_BIG", 0)
    monkeypatch.setattr(name_index.NameIndex, "_is_frequent", lambda *_: True)


@pytest.mark.parametrize("file", FILES)
def test_it_has_what_a_search_finds(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = opened(file)
    asked = names(program)
    asked = asked[:: max(1, len(asked) // 100)]
    searched = answers(program, asked)
    assert any(searched.values())
    eager(monkeypatch)
    indexed = opened(file)
    assert answers(indexed, asked) == searched
    assert indexed._info.name_index._table is not None


SOURCES = {
    "one.cc": """
        extern char **environ;
        struct Shape { static int count; static const int limit = 7; static inline long made = 3; };
        int Shape::count = 5;
        namespace area { inline namespace v1 { int first = 1; namespace { int hidden = 2; } } }
        extern int twice;
        int use() { return Shape::count + area::first + area::hidden + twice + !environ; }
        int main() { static int local = 4; return use() + local; }
    """,
    "two.cc": """
        extern char **environ;
        struct Shape { static int count; static const int limit = 7; static inline long made = 3; };
        extern int twice;
        int twice = 2;
        static int own = 1;
        namespace area { namespace { int hidden = 8; } }
        int two() { return Shape::count + twice + own++ + area::hidden++ + !environ + Shape::made; }
    """,
    "three.cc": "static double own = 3; extern int twice; double three() { return own++ + twice; }",
}
ASKED = ["count", "limit", "made", "first", "hidden", "twice", "own", "environ", "local", "none"]
ASKED += ["Shape::count", "Shape::limit", "Shape::made", "area::first", "area::v1::first"]
ASKED += ["area::hidden", "area::none"]


@pytest.mark.parametrize("option", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_declared_here_and_defined_there(
    compiler: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(compiler)
    for name, source in SOURCES.items():
        (tmp_path / name).write_text(source)
    command = [compiler, "-std=c++17", option, "-o", "program", *SOURCES]
    subprocess.run(command, cwd=tmp_path, check=True)
    path = str(tmp_path / "program")

    def asked() -> dict[tuple[str, str], list[str]]:
        program = DwarfProgram(path)
        within = [program.functions_named(name)[0] for name in ("use", "two", "three")]
        return {
            (name, function.name if function else ""): sorted(
                map(repr, program.global_variables(name, function))
            )
            for name in ASKED
            for function in [None, *within]
        }

    searched = asked()
    assert sum(map(bool, searched.values())) > 40
    eager(monkeypatch)
    assert asked() == searched


def test_variables_that_are_left_out_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = names(opened(C))
    searched = answers(opened(C), asked)
    eager(monkeypatch)
    monkeypatch.setattr(name_index_scan, "_variable", lambda *_: None)
    assert answers(opened(C), asked) != searched


def test_a_scope_that_is_stepped_over_has_the_file_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As Fortran's modules are.
    asked = names(opened(CPP))
    searched = answers(opened(CPP), asked)
    eager(monkeypatch)
    monkeypatch.setattr(name_index_scan, "_STRANGE", frozenset({DW_TAG_base_type}))
    monkeypatch.setattr(name_index_scan, "NAMED", frozenset())
    monkeypatch.setattr(name_index_scan, "_variable", lambda *_: None)
    assert answers(opened(CPP), asked) == searched


def test_variables_are_no_types(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = set(opened(CPP).type_names())
    monkeypatch.setattr(name_index_format, "VARIABLES", frozenset())
    assert listed < set(opened(CPP).type_names())


@pytest.mark.parametrize(("places", "indexed"), [(1, True), (1000, False)])
def test_a_name_that_ends_many_others_is_worth_an_index(
    places: int, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_variables, "_INDEXED", 0)
    monkeypatch.setattr(name_index, "_BIG", 0)
    monkeypatch.setattr(name_index, "_FEW_PLACES", places)
    program = opened(C)
    found = program.global_variables("e", None)
    assert (program._info.name_index._table is not None) == indexed
    assert found == opened(C).global_variables("e", None)
