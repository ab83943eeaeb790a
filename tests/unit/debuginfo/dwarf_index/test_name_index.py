"""The index of names: what a walk over all entries finds, kept and mapped or as if it were not."""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ALLOCATIONGRANULARITY
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import constants, name_index, name_index_scan
from fetchc.debuginfo.dwarf.constants import DW_AT_declaration, DW_AT_name, DW_TAG_namespace
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.dwarf.languages import has_namespaces, is_c_family
from fetchc.debuginfo.dwarf.name_index_format import Scan
from fetchc.debuginfo.environment import CacheFolder, Environment
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


def opened(file: str, environment: Environment | None = None) -> DwarfProgram:
    return DwarfProgram(str(CORPUS / file), environment=environment or Environment())


def walked(program: DwarfProgram) -> Iterator[str]:
    """Names of types outside functions, entry by entry."""
    for unit in program._info.units():
        keywords = is_c_family(unit) and not has_namespaces(unit)
        yield from within(program, unit.top, "", keywords)


def within(program: DwarfProgram, parent: Die, scope: str, keywords: bool) -> Iterator[str]:
    for die in program._info.children(parent):
        namespace = die.tag == DW_TAG_namespace
        name = die.string(DW_AT_name) or ("(anonymous namespace)" if namespace else "")
        if not name or not (namespace or die.tag in constants.NAMED):
            continue
        if has_namespaces(die.unit) and die.tag in constants.NESTING:
            yield from within(program, die, f"{scope}{name}::", keywords)
        if not namespace and not die.flag(DW_AT_declaration):
            keyword = (
                f"{constants.KEYWORDS[die.tag]} "
                if keywords and die.tag in constants.KEYWORDS
                else ""
            )
            yield keyword + scope + name


@pytest.mark.parametrize("file", FILES)
def test_it_has_what_a_walk_finds(file: str) -> None:
    listed = list(opened(file).type_names())
    assert len(listed) == len(set(listed)) > 30
    assert set(listed) == set(walked(opened(file)))


def test_a_scope_that_is_not_entered_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index_scan, "NESTING", frozenset())
    assert set(opened(CPP).type_names()) < set(walked(opened(CPP)))


@pytest.fixture
def eager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CacheFolder:
    """Small files are indexed as big ones are; the cache is in the folder."""
    monkeypatch.setattr(name_index, "_BIG", 0)
    monkeypatch.setattr(name_index, "_LEAST_CACHED", 0)
    return CacheFolder(str(tmp_path / "cache"))


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows by one with each pass over all units."""
    made: list[object] = []
    plain = name_index_scan.scan

    def counted(*arguments: object) -> Scan:
        made.append(arguments)
        return plain(*arguments)  # type: ignore[arg-type]  # as they come

    monkeypatch.setattr(name_index_scan, "scan", counted)
    return made


@pytest.mark.parametrize("file", FILES)
def test_a_name_leads_to_the_types_that_a_search_finds(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching, indexed = opened(file), opened(file)
    known = list(opened(file).type_names())
    monkeypatch.setattr(name_index, "_BIG", 0)
    indexed.types_named("struct none", None)  # the first one is searched for
    plain = name_index.NameIndex.named
    for name in [*known[:: max(1, len(known) // 60)], "struct none", "none"]:
        monkeypatch.setattr(name_index.NameIndex, "named", plain)
        found = indexed.types_named(name, None)
        monkeypatch.setattr(name_index.NameIndex, "named", lambda *_: None)
        wanted = searching.types_named(name, None)
        assert [indexed.type(one) for one in found] == [searching.type(one) for one in wanted], name


def test_each_name_that_is_listed_is_found() -> None:
    program = opened("cpp/addressbook/bin/clang++-O0")
    names = list(program.type_names())
    assert any(", const " in name for name in names)  # qualifiers of an argument are of the name
    assert [name for name in names if not program.types_named(name, None)] == []


def test_the_second_search_makes_it_and_the_third_run_maps_it(
    eager: CacheFolder, passes: list[object]
) -> None:
    environment, folder = Environment(eager), Path(eager.path)
    found = opened(C, environment).types_named("struct record", None)
    assert len(found) == 1
    assert [file.stat().st_size for file in folder.iterdir()] == [0]
    for _ in range(3):
        assert opened(C, environment).types_named("struct record", None) == found
    assert len(passes) == 1
    (file,) = folder.iterdir()
    assert file.suffix == ".names"
    assert file.stat().st_mode & 0o777 == 0o600


def test_one_process_makes_it_for_its_second_search(passes: list[object]) -> None:
    program = opened(C)
    program.types_named("struct record", None)
    program.types_named("struct node", None)
    assert passes == []  # the file is small
    program._info.name_index.names()
    program._info.name_index.names()
    assert len(passes) == 1


def test_a_damaged_one_is_made_anew(eager: CacheFolder, passes: list[object]) -> None:
    environment = Environment(eager)
    listed = list(opened(CPP, environment).type_names())
    (file,) = Path(eager.path).iterdir()
    data = bytearray(file.read_bytes())
    data[ALLOCATIONGRANULARITY + 1000] ^= 1  # where the names of types are
    file.write_bytes(data)
    assert list(opened(CPP, environment).type_names()) == listed
    assert [note.rpartition(": ")[2] for note in eager.notes] == ["it is damaged"]
    assert list(opened(CPP, environment).type_names()) == listed
    assert len(passes) == 2


def test_an_interrupted_pass_leaves_nothing(
    eager: CacheFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(done: int, total: int) -> None:
        assert 0 < done <= total
        raise KeyboardInterrupt

    monkeypatch.setattr(name_index_scan, "_RELEASE", -1)
    with pytest.raises(KeyboardInterrupt):
        opened(C, Environment(eager, progress=interrupt)).type_names()
    assert not Path(eager.path).exists()
    assert "struct record" in opened(C, Environment(eager)).type_names()
