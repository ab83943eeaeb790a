"""Every attribute of every entry of real files, against pyelftools.

Values, forms, resolved strings and addresses, references, code ranges, and the two searches
(function by address, entry by name) on files of several compilers, versions and containers.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from fetchc.conformance.dwarf_comparison import Oracle, Row, Value, differences, our_rows
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.separate.debug_file_search import Search
from tests.support.programs import fixture
from tests.support.toolchains import require
from tests.support.typed_programs import build

NAMED = frozenset(
    (
        c.DW_TAG_structure_type,
        c.DW_TAG_class_type,
        c.DW_TAG_union_type,
        c.DW_TAG_enumeration_type,
        c.DW_TAG_typedef,
        c.DW_TAG_base_type,
        c.DW_TAG_subprogram,
        c.DW_TAG_variable,
        c.DW_TAG_namespace,
    )
)

BUILDS = [
    ("gcc", "-gdwarf-2", "-gstrict-dwarf", "-O0"),
    ("gcc", "-gdwarf-3", "-O2"),
    ("gcc", "-gdwarf-4", "-O2", "-fdebug-types-section"),
    ("gcc", "-gdwarf-5", "-O2", "-gdwarf64"),
    ("gcc", "-gdwarf-5", "-O2", "-flto"),
    ("gcc", "-gdwarf-5", "-O1", "-freorder-blocks-and-partition", "-gz"),
    ("gcc", "-gdwarf-4", "-O0", "-gdwarf64"),
    ("clang", "-gdwarf-2", "-O0"),
    ("clang", "-gdwarf-4", "-O2"),
    ("clang", "-gdwarf-5", "-O2"),
    ("clang", "-gdwarf-5", "-O0", "-gz"),
    ("g++", "-gdwarf-4", "-O2", "-fdebug-types-section"),
    ("g++", "-gdwarf-5", "-O2", "-fdebug-types-section"),
    ("g++", "-gdwarf-5", "-O0"),
    ("clang++", "-gdwarf-5", "-O1"),
    ("clang++", "-gdwarf-5", "-O0", "-fdebug-types-section"),
]
FIXTURES = ["go/dnsforward/go1.15", "go/dnsforward/go1.27"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("oracle")


@cache
def info_of(path: Path) -> DebugInfo:
    return DebugInfo(Elf(str(path)))


def compare(path: Path, oracle: Path | None = None) -> int:
    """How many entries were compared; they must all be equal."""
    rows = list(Oracle(oracle or path).rows())
    assert differences(our_rows(info_of(path)), iter(rows)) == []
    return len(rows)


@pytest.mark.parametrize("flags", BUILDS, ids=" ".join)
def test_every_entry_equals_pyelftools(directory: Path, flags: tuple[str, ...]) -> None:
    assert compare(build(directory, *flags)) > 100


@pytest.mark.parametrize("name", FIXTURES)
def test_every_entry_of_go_equals_pyelftools(name: str) -> None:
    path = fixture(name)
    info = info_of(path)
    oracle = Oracle(path)
    # The program's own unit and the first of the run time's: all of them would take minutes.
    oracle.units = [
        (unit, base)
        for at, (unit, base) in enumerate(oracle.units)
        if at < 12 or unit.get_top_DIE().attributes["DW_AT_name"].value == b"main"
    ]
    starts = frozenset([unit.cu_offset for unit, _ in oracle.units])
    ours = our_rows(info, starts)
    rows = list(oracle.rows())
    assert len(rows) > 1000
    assert differences(ours, iter(rows)) == []


@pytest.mark.parametrize("how", ["zlib", "zlib-gnu", "zlib-gabi"])
def test_compressed_sections_read_like_plain_ones(directory: Path, how: str) -> None:
    require("objcopy")
    plain = build(directory, "gcc", "-gdwarf-5", "-O2")
    packed = directory / f"packed-{how}"
    command = ["objcopy", f"--compress-debug-sections={how}", str(plain), str(packed)]
    subprocess.run(command, check=True, timeout=60)
    names = [section.name for section in sections(packed)]
    assert (".zdebug_info" in names) == (how == "zlib-gnu")
    assert compare(packed, oracle=plain) > 100


def sections(path: Path) -> list[Any]:
    with path.open("rb") as file:
        elf: Any = ELFFile(file)
        return list(elf.iter_sections())


@pytest.mark.parametrize("place", ["beside", ".debug", "root", "build-id"])
def test_separate_debug_file_reads_like_the_program(tmp_path: Path, place: str) -> None:
    require("objcopy", "strip")
    flags = ["-Wl,--build-id=sha1" if place == "build-id" else "-Wl,--build-id=none"]
    full = build(tmp_path, "gcc", "-gdwarf-5", "-O1", *flags)
    program = tmp_path / "stripped"
    where = {
        "beside": tmp_path,
        ".debug": tmp_path / ".debug",
        "root": tmp_path / "root" / str(tmp_path.resolve())[1:],
        "build-id": tmp_path / "root/.build-id",
    }[place]
    identifier = Elf(str(full)).build_id()
    name = "stripped.debug"
    if place == "build-id":
        assert identifier is not None
        where, name = where / identifier[:2], f"{identifier[2:]}.debug"
    where.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", full, where / name], check=True, timeout=60)
    shutil.copy(full, program)
    link = [] if place == "build-id" else [f"--add-gnu-debuglink={where / name}"]
    subprocess.run(["objcopy", "--strip-all", *link, program], check=True, timeout=60)
    elf = Elf(str(program), Search(roots=(str(tmp_path / "root"),)))
    assert elf.debug_path == str(where / name)
    rows = list(Oracle(full).rows())
    assert differences(our_rows(DebugInfo(elf)), iter(rows)) == []
    assert elf.symbols_named("main") == Elf(str(full)).symbols_named("main") != ()


def functions(rows: list[Row]) -> dict[int, set[int]]:
    """Start of a range of a concrete function -> entries that say so."""
    found: dict[int, set[int]] = defaultdict(set)
    for offset, tag, _, _, ranges in rows:
        if tag == c.DW_TAG_subprogram:
            for low, _ in ranges:
                found[low].add(offset)
    return found


SEARCHED = [
    ("gcc", "-gdwarf-4", "-O2", "-fdebug-types-section"),
    ("gcc", "-gdwarf-5", "-O2", "-flto"),
    ("gcc", "-gdwarf-5", "-O1", "-freorder-blocks-and-partition", "-gz"),
    ("clang", "-gdwarf-2", "-O0"),
    ("clang", "-gdwarf-5", "-O2"),
    ("g++", "-gdwarf-5", "-O0"),
    ("g++", "-gdwarf-5", "-O2", "-gdwarf64"),
    ("clang++", "-gdwarf-5", "-O1"),
]


@pytest.mark.parametrize("flags", SEARCHED, ids=" ".join)
def test_functions_are_found_by_address(directory: Path, flags: tuple[str, ...]) -> None:
    path = build(directory, *flags)
    info = info_of(path)
    expected = functions(list(Oracle(path).rows()))
    assert expected
    for address, offsets in expected.items():
        found = info.function_at(address)  # type: ignore[arg-type]  # a plain number
        assert found is not None, hex(address)
        assert found.offset in offsets
        if address + 1 not in expected:
            assert info.function_at(address + 1) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("flags", SEARCHED, ids=" ".join)
def test_entries_are_found_by_name(directory: Path, flags: tuple[str, ...]) -> None:
    path = build(directory, *flags)
    info = info_of(path)
    expected: dict[bytes, set[int]] = defaultdict(set)
    definitions: dict[bytes, set[int]] = defaultdict(set)
    for offset, tag, _, values, _ in Oracle(path).rows():
        attributes = {attribute: value for attribute, _, value in values}
        name = attributes.get(c.DW_AT_name)
        if tag in NAMED and isinstance(name, bytes):
            expected[name].add(offset)
            if c.DW_AT_declaration not in attributes:
                definitions[name].add(offset)
    assert len(expected) > 20
    for name in expected:
        text = name.decode()
        found = [die.offset for die in info.find_named(text, NAMED)]
        assert set(found) == expected[name], text
        assert len(found) == len(set(found)), text
        defined = {die.offset for die in info.find_named(text, NAMED, definitions=True)}
        assert defined == definitions[name], text
    assert list(info.find_named("no such name", NAMED)) == []


def test_go_functions_and_types_are_found() -> None:
    path = fixture("go/dnsforward/go1.27")
    info = info_of(path)
    for symbol in info.elf.symbols_named("main.(*server).handleRequest"):
        found = info.function_at(symbol.address)
        assert found is not None
        assert found.string(c.DW_AT_name) == symbol.name
        named = list(info.find_named(symbol.name, frozenset((c.DW_TAG_subprogram,))))
        assert found in named
    names = {"main.Msg", "Msg", "string", "int"}
    tags = frozenset((c.DW_TAG_structure_type, c.DW_TAG_base_type, c.DW_TAG_typedef))
    for name in names:
        found_names = [die.string(c.DW_AT_name) for die in info.find_named(name, tags)]
        assert set(found_names) <= {name}
        assert found_names or name == "Msg"


def test_ancestors_are_the_way_from_the_unit(directory: Path) -> None:
    path = build(directory, "g++", "-gdwarf-5", "-O0")
    info = info_of(path)
    oracle = Oracle(path)
    count = 0
    for unit, base in oracle.units:
        for die in unit.iter_DIEs():
            if die.is_null():
                continue
            expected: list[int] = []
            parent = die.get_parent()
            while parent is not None:
                expected.insert(0, base + parent.offset)
                parent = parent.get_parent()
            ours = info.ancestors(info.die(base + die.offset))
            assert [above.offset for above in ours] == expected
            count += 1
    assert count > 100


def wrong(row: Row, change: str) -> Row:
    """The row with one thing changed."""
    offset, tag, children, values, ranges = row
    attribute, form, value = values[-1]
    if change == "value":
        assert value is not None
        changed: Value = value + 1 if isinstance(value, int) else value + b"!"
        return offset, tag, children, (*values[:-1], (attribute, form, changed)), ranges
    if change == "form":
        return offset, tag, children, (*values[:-1], (attribute, form + 1, value)), ranges
    if change == "ranges":
        return offset, tag, children, values, (*ranges, (1, 2))
    return offset + 1, tag, children, values, ranges


@pytest.mark.parametrize("change", ["value", "form", "ranges", "offset", "missing"])
def test_the_comparison_sees_a_wrong_answer(directory: Path, change: str) -> None:
    path = build(directory, "gcc", "-gdwarf-5", "-O2", "-gdwarf64")
    rows = list(Oracle(path).rows())
    at = len(rows) // 2
    spoilt = rows[:at] + ([] if change == "missing" else [wrong(rows[at], change)]) + rows[at + 1 :]
    assert differences(our_rows(info_of(path)), iter(spoilt)) != []
