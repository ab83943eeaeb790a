"""Functions by the index: the entries that a walk over all of them finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import (
    inlined_subroutines,
    name_index,
    name_index_format,
    name_index_scan,
)
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.dwarf.name_index_format import CODE, INLINED
from fetchc.debuginfo.dwarf.qualified_names import declaration, qualified_name
from fetchc.quantities import DieOffset
from tests.support.cases import CORPUS

C = "c/layouts/bin/gcc-O2-dwarf5"
CPP = "cpp/addressbook/bin/g++-O2"
FILES = (
    C,
    "c/layouts/bin/gcc-O0-dwarf4",
    "c/layouts/bin/clang-O0-dwarf4",
    CPP,
    "cpp/addressbook/bin/clang++-O0",
    "go/dnsforward/bin/go1.15",
    "go/dnsforward/bin/go1.27",
)
SCOPES = {c.DW_TAG_namespace, c.DW_TAG_structure_type, c.DW_TAG_class_type, c.DW_TAG_union_type}


def opened(file: str) -> DwarfProgram:
    return DwarfProgram(str(CORPUS / file))


def within(program: DwarfProgram, parent: Die) -> Iterator[Die]:
    for die in program._info.children(parent):
        if die.tag == c.DW_TAG_subprogram:
            yield die
        elif die.tag in SCOPES:
            yield from within(program, die)


def walked(program: DwarfProgram) -> dict[str, list[tuple[int, int]]]:
    """By name: where entries are that are no mere declarations, and their kinds."""
    found: dict[str, list[tuple[int, int]]] = {}
    for unit in program._info.units():
        for die in within(program, unit.top):
            name = declaration(program._info, die).string(c.DW_AT_name)
            if name is not None and not die.has(c.DW_AT_declaration):
                kind = CODE * bool(die.has(c.DW_AT_low_pc) or die.has(c.DW_AT_ranges))
                kind |= INLINED * die.has(c.DW_AT_inline)
                found.setdefault(name, []).append((die.offset, kind))
    return found


def indexed(program: DwarfProgram, names: list[str]) -> dict[str, list[tuple[int, int]]]:
    found = {name: program._info.name_index.functions(name) for name in names}
    return {name: [(int(at), kind) for at, kind in rows] for name, rows in found.items() if rows}


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "_BIG", 0)
    monkeypatch.setattr(name_index.NameIndex, "_is_frequent", lambda *_: True)


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize("file", FILES)
def test_it_has_what_a_walk_finds(file: str) -> None:
    wanted = walked(opened(file))
    assert len(wanted) > 10
    assert indexed(opened(file), [*wanted, "none"]) == wanted


@pytest.mark.usefixtures("_eager")
def test_names_behind_references_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = walked(opened(CPP))
    monkeypatch.setattr(name_index_format, "_MOST", 0)
    assert indexed(opened(CPP), list(wanted)) == wanted  # read in another way
    monkeypatch.setattr(name_index_format, "_read", lambda *_: None)
    assert indexed(opened(CPP), list(wanted)) != wanted


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize(
    ("file", "known", "missing"),
    [(C, name_index_format.ALL_FUNCTIONS, []), (CPP, name_index_format.OUTER_FUNCTIONS, None)],
)
def test_what_is_missing_tells_in_some_languages(
    file: str, known: int, missing: list[object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = opened(file)
    assert program._info.name_index.functions("none") == missing
    assert program._info.name_index.functions("main")
    assert program._info.name_index._table is not None
    assert program._info.name_index._table.function_coverage == known
    monkeypatch.setattr(
        name_index_scan, "function_coverage", lambda *_: name_index_format.NO_FUNCTIONS
    )
    assert opened(file)._info.name_index.functions("main") is None


def answers(program: DwarfProgram, names: list[str]) -> dict[str, object]:
    """What is said of functions of these names where no symbol is asked."""
    info, code_map = program._info, program.code_map()
    assert code_map is not None

    def linked(linkage: str) -> list[Die]:
        found = map(info.function_at, program.elf.symbol_addresses(linkage))
        return [die for die in found if die is not None]

    return {
        name: (
            {die.offset for die in inlined_subroutines.concrete(info, name, linked)},
            inlined_subroutines.is_only_inlined(info, name),
            code_map.instances(name),
        )
        for name in names
    }


@pytest.mark.parametrize("file", FILES)
def test_functions_are_those_that_a_search_finds(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = opened(file)
    names = list(walked(program))
    if len(names) > 20:
        names = names[:: len(names) // 20]
    offsets = [DieOffset(at) for rows in walked(program).values() for at, _ in rows]
    entries = map(program._info.die, offsets[:: len(offsets) // 20 + 1])
    whole = {qualified_name(program._info, die) for die in entries}
    asked = [*names, *sorted(whole), "none", "ns::none", "\ud800"]
    searched = answers(program, asked)
    monkeypatch.setattr(name_index, "_BIG", 0)
    monkeypatch.setattr(name_index.NameIndex, "_is_frequent", lambda *_: True)
    assert answers(opened(file), asked) == searched
