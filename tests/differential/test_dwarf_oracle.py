"""Every attribute of every entry of real files, against pyelftools.

Values, forms, resolved strings and addresses, references, code ranges, and the two searches
(function by address, entry by name) on files of several compilers, versions and containers.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from elftools.dwarf import enums
from elftools.dwarf.ranges import BaseAddressEntry
from elftools.elf.elffile import ELFFile

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dies import Die, LocationListRef
from fetchc.debuginfo.dwarf.forms import (
    ADDRESS_FORMS,
    BLOCK_FORMS,
    CONSTANT_FORMS,
    LOCAL_REFERENCE_FORMS,
    STRING_INDEX_FORMS,
)
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.separate.debug_file_search import Search
from tests.support.programs import fixture
from tests.support.toolchains import require
from tests.support.typed_programs import build

Value = int | bytes | bool
Row = tuple[int, int, bool, tuple[tuple[int, int, Value], ...], tuple[tuple[int, int], ...]]
"""Offset, tag, children, (attribute, form, value)s, code ranges."""

STRING_FORMS = STRING_INDEX_FORMS | {c.DW_FORM_string, c.DW_FORM_strp, c.DW_FORM_line_strp}
FLAG_FORMS = {c.DW_FORM_flag, c.DW_FORM_flag_present}
REFERENCE_FORMS = LOCAL_REFERENCE_FORMS | {c.DW_FORM_ref_addr, c.DW_FORM_ref_sig8}
LISTS = {c.DW_FORM_rnglistx: ".debug_rnglists", c.DW_FORM_loclistx: ".debug_loclists"}
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


def number(table: Any, name: object) -> int:
    """The standard's number of a name; pyelftools keeps a number that it does not know."""
    return int(table[name]) if isinstance(name, str) else int(str(name))


class Oracle:
    """One file as pyelftools reads it."""

    def __init__(self, path: Path) -> None:
        elf: Any = ELFFile(BytesIO(path.read_bytes()))
        self.dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
        self.info_size = self.dwarf.debug_info_sec.size
        self.units = [(unit, 0) for unit in self.dwarf.iter_CUs()]
        self.units += [(unit, self.info_size) for unit in self.dwarf.iter_TUs()]
        self.signatures: dict[int, int] = {}
        for unit, base in self.units:
            if "signature" in unit.header:
                self.signatures[unit["signature"]] = base + unit.cu_offset + unit["type_offset"]
            elif "type_signature" in unit.header:
                self.signatures[unit["type_signature"]] = (
                    base + unit.cu_offset + unit["type_offset"]
                )

    def rows(self) -> Iterator[Row]:
        """Every entry in order."""
        for unit, base in self.units:
            for die in unit.iter_DIEs():
                if die.is_null():
                    continue
                values = [
                    (
                        number(enums.ENUM_DW_AT, attribute.name),
                        number(enums.ENUM_DW_FORM, attribute.form),
                        self.value(unit, base, attribute),
                    )
                    for attribute in die.attributes.values()
                ]
                tag = number(enums.ENUM_DW_TAG, die.tag)
                yield (
                    base + die.offset,
                    tag,
                    die.has_children,
                    tuple(values),
                    tuple(self.ranges(unit, die)),
                )
            unit._diecache, unit._dielist, unit._diemap = {}, [], []

    def value(self, unit: Any, base: int, attribute: Any) -> Value:
        """The attribute's value, references as offsets of entries."""
        form, value = attribute.form, attribute.value
        if form == "DW_FORM_ref_sig8":
            return self.signatures[int(value)]
        if form == "DW_FORM_ref_addr":
            return int(value)
        if form.startswith("DW_FORM_ref"):
            return base + int(unit.cu_offset) + int(value)
        if form == "DW_FORM_data16":
            return int.from_bytes(bytes(value), "little")
        if isinstance(value, list):
            return bytes(value)
        if isinstance(value, int):
            return int(value) if not isinstance(value, bool) else value
        return bytes(value)

    def ranges(self, unit: Any, die: Any) -> Iterator[tuple[int, int]]:
        """Code ranges that are not empty."""
        high = die.attributes.get("DW_AT_high_pc")
        if high is not None and "DW_AT_low_pc" in die.attributes:
            low = die.attributes["DW_AT_low_pc"].value
            absolute = high.form == "DW_FORM_addr" or high.form.startswith("DW_FORM_addrx")
            end = high.value if absolute else low + high.value
            if low < end:
                yield low, end
        elif "DW_AT_ranges" in die.attributes:
            top = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
            base = 0 if top is None else top.value
            offset = die.attributes["DW_AT_ranges"].value
            for entry in self.dwarf.range_lists().get_range_list_at_offset(offset, unit):
                if isinstance(entry, BaseAddressEntry):
                    base = entry.base_address
                    continue
                shift = 0 if entry.is_absolute else base
                low, end = entry.begin_offset + shift, entry.end_offset + shift
                if low < end:
                    yield low, end


def our_value(info: DebugInfo, die: Die, attribute: int, form: int) -> Value | None:
    """What the reader's accessors give for the attribute, chosen by its form."""
    if form in STRING_FORMS:
        return die.string_bytes(attribute)
    if form in ADDRESS_FORMS:
        return die.address(attribute)
    if form in BLOCK_FORMS:
        return die.block(attribute)
    if form in FLAG_FORMS:
        return die.flag(attribute)
    if form in REFERENCE_FORMS:
        target = info.follow(die, attribute)
        return None if target is None else target.offset
    if form in CONSTANT_FORMS:
        return die.constant(attribute)
    raw = die.raw(attribute)
    if form in LISTS:
        assert isinstance(raw, int)
        listed = die.unit.tables.list_offset(LISTS[form], raw)
        if form == c.DW_FORM_loclistx:
            assert die.location(attribute) == LocationListRef(listed)
        return listed
    return raw


def our_rows(info: DebugInfo, starts: frozenset[int] | None = None) -> Iterator[Row]:
    """Every entry in order, found by going from parents to children.

    ``starts`` chooses the units that start at these offsets.
    """
    for unit in info.units():
        if starts is not None and unit.offset not in starts:
            continue
        stack = [iter((unit.top,))]
        while stack:
            die = next(stack[-1], None)
            if die is None:
                stack.pop()
                continue
            values = []
            for attribute, form in die.attributes():
                value = our_value(info, die, attribute, form)
                assert value is not None, (die, attribute, form)
                values.append((attribute, form, value))
            yield die.offset, die.tag, die.has_children, tuple(values), info.ranges(die)
            stack.append(info.children(die))


def differences(ours: Iterator[Row], theirs: Iterator[Row]) -> list[tuple[Row | None, Row | None]]:
    """The first entries that differ, at most five."""
    found: list[tuple[Row | None, Row | None]] = []
    while len(found) < 5:
        mine, other = next(ours, None), next(theirs, None)
        if mine is None and other is None:
            break
        if mine != other:
            found.append((mine, other))
    return found


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
