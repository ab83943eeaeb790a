"""Location lists and expressions against pyelftools: every variable of real files."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from elftools.common.exceptions import ELFParseError
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.locationlists import (
    BaseAddressEntry,
    LocationEntry,
    LocationParser,
)
from elftools.elf.elffile import ELFFile

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dies import Die, LocationListRef
from fetchc.debuginfo.dwarf.expressions import operation_name, operations
from fetchc.debuginfo.dwarf.location_lists import Entry, entries
from fetchc.debuginfo.dwarf.units import Unit
from fetchc.debuginfo.dwarf.variable_extents import extents
from fetchc.debuginfo.dwarf.variables import place_at
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.program.entities import Absent, Place
from fetchc.quantities import Address, DieOffset
from tests.support.programs import described
from tests.support.toolchains import require

FIXTURES = described()
LOCATION = 0x02
FRAME_BASE = 0x40
ATTRIBUTES = {"DW_AT_location": LOCATION, "DW_AT_frame_base": FRAME_BASE}

SOURCE = """
struct pair { long a, b; }; __thread int tls = 3; static int table[8]; int global = 4;
__attribute__((noinline)) int sink(int a, long b) { return a + table[b & 7] + tls; }
static inline int twice(int n) { int m = n * 2; return sink(m, n) + m; }
int sum(struct pair p, char *s, int n, double d)
{ int total = 0; for (int i = 0; i < n; i++) { int c = s[i]; total += twice(c) + p.a; }
  struct pair q = { p.b, total }; return sink(q.a, q.b) + (int)d + global; }
int main(int argc, char **argv)
{ struct pair p = { argc, 5 }; table[argc & 7] = 9; return sum(p, argv[0], argc, argc * 1.5); }
"""

FLAVOURS = [
    ("gcc", "-O2", "-gdwarf-2", "-gstrict-dwarf"),
    ("gcc", "-O2", "-gdwarf-3"),
    ("gcc", "-O2", "-gdwarf-4"),
    ("gcc", "-O2", "-gdwarf-5"),
    ("gcc", "-O2", "-gdwarf-5", "-gdwarf64"),
    ("gcc", "-O2", "-gdwarf-5", "-fno-merge-debug-strings", "-gz", "-flto"),
    ("gcc", "-O0", "-gdwarf-5"),
    ("clang", "-O2", "-gdwarf-4"),
    ("clang", "-O2", "-gdwarf-5"),
    ("clang", "-O2", "-gdwarf-5", "-ffunction-sections", "-gz"),
]

# What is known of a place only where one asks at an address.
UNFOLLOWED = (
    Absent("computed", "it points at a variable that the compiler does not store in memory"),
    Absent("computed", "it is what a register held on entry and not stored in memory"),
)

Lists = Callable[[DebugInfo, Unit, LocationListRef], Iterable[Entry]]


def compiled(tmp_path: Path, flavour: tuple[str, ...]) -> Path:
    compiler, *flags = flavour
    require(compiler)
    source, out = tmp_path / "places.c", tmp_path / "places"
    source.write_text(SOURCE)
    subprocess.run([compiler, *flags, "-o", out, source], check=True, capture_output=True)
    return out


def lists_of_pyelftools(path: Path) -> Iterator[tuple[int, int, list[tuple[int, int, bytes]]]]:
    """Entry, attribute and (start, end, expression) of each list, empty ranges left out."""
    with path.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        parser = LocationParser(dwarf.location_lists())
        for unit in dwarf.iter_CUs():
            low = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
            for die in unit.iter_DIEs():
                for name, attribute in ATTRIBUTES.items():
                    value = die.attributes.get(name)
                    if value is None or not parser.attribute_has_location(value, unit["version"]):
                        continue
                    found = parser.parse_from_attribute(value, unit["version"], die)
                    if not isinstance(found, list):
                        continue
                    yield die.offset, attribute, list(_absolute(found, low.value if low else 0))


def _absolute(found: Sequence[object], base: int) -> Iterator[tuple[int, int, bytes]]:
    for entry in found:
        if isinstance(entry, BaseAddressEntry):
            base = entry.base_address
        elif isinstance(entry, LocationEntry):
            add = 0 if entry.is_absolute else base
            if entry.begin_offset < entry.end_offset:
                expression = bytes(entry.loc_expr)
                yield entry.begin_offset + add, entry.end_offset + add, expression


def differences(path: Path, lists: Lists) -> tuple[list[str], int]:
    """Lists that ``lists`` reads otherwise than pyelftools, and how many there were."""
    info = DebugInfo(Elf(str(path)))
    wrong = []
    count = 0
    for offset, attribute, expected in lists_of_pyelftools(path):
        count += 1
        die = info.die(DieOffset(offset))
        reference = die.location(attribute)
        assert isinstance(reference, LocationListRef)
        said = [(e.start, e.end, e.expression) for e in lists(info, die.unit, reference)]
        if said != expected:
            wrong.append(f"{offset:#x} {attribute:#x}: {said} instead of {expected}")
    return wrong, count


@pytest.mark.parametrize("flavour", FLAVOURS, ids=" ".join)
def test_compilers(tmp_path: Path, flavour: tuple[str, ...]) -> None:
    wrong, count = differences(compiled(tmp_path, flavour), entries)
    assert wrong == []
    assert count > 5 or "-O0" in flavour


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_fixtures(path: Path) -> None:
    wrong, count = differences(path, entries)
    assert wrong == []
    assert count > 10 or "O0" in path.name


def all_lists(path: Path) -> list[list[tuple[int, int, bytes]]]:
    info = DebugInfo(Elf(str(path)))
    found: list[list[tuple[int, int, bytes]]] = []
    for die, _ in variables(info):
        reference = die.location(LOCATION)
        if isinstance(reference, LocationListRef):
            found.append(
                [(e.start, e.end, e.expression) for e in entries(info, die.unit, reference)]
            )
    return found


def test_view_pairs_are_passed_over(tmp_path: Path) -> None:
    # pyelftools 0.33 ends in an error at DW_LLE_GNU_view_pair; the lists are otherwise those
    # that gcc writes with the views in an attribute of their own.
    plain = all_lists(compiled(tmp_path, ("gcc", "-O2", "-gdwarf-5")))
    path = compiled(tmp_path, ("gcc", "-O2", "-gdwarf-5", "-gvariable-location-views=incompat5"))
    with pytest.raises(ELFParseError):
        list(lists_of_pyelftools(path))
    assert all_lists(path) == plain
    assert len(plain) > 5


def test_the_comparison_sees_a_wrong_answer(tmp_path: Path) -> None:
    def late(info: DebugInfo, unit: Unit, reference: LocationListRef) -> tuple[Entry, ...]:
        first, *others = entries(info, unit, reference)
        start = Address(first.start + 1)
        return (Entry(start, first.end, first.expression, first.offset), *others)

    def short(info: DebugInfo, unit: Unit, reference: LocationListRef) -> tuple[Entry, ...]:
        return tuple(entries(info, unit, reference))[:-1]

    path = compiled(tmp_path, FLAVOURS[3])
    assert differences(path, late)[0] != []
    assert differences(path, short)[0] != []


def expressions(path: Path) -> Iterator[tuple[bytes, int, list[str]]]:
    """Every different expression of a file, its offset size, and pyelftools' operation names."""
    seen = set()
    with path.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        units = list(dwarf.iter_CUs())
        parser = DWARFExprParser(units[0].structs)
        reference_size = units[0].structs.dwarf_format // 8
        for unit in units:
            for die in unit.iter_DIEs():
                for value in die.attributes.values():
                    if value.form == "DW_FORM_exprloc" and bytes(value.value) not in seen:
                        seen.add(bytes(value.value))
                        names = [operation.op_name for operation in parser.parse_expr(value.value)]
                        yield bytes(value.value), reference_size, names
        for _, _, found in lists_of_pyelftools(path):
            for _, _, expression in found:
                if expression not in seen:
                    seen.add(expression)
                    names = [op.op_name for op in parser.parse_expr(list(expression))]
                    yield expression, reference_size, names


@pytest.mark.parametrize("flavour", [FLAVOURS[3], FLAVOURS[4], FLAVOURS[9]], ids=" ".join)
def test_operations_have_the_same_names_and_lengths(
    tmp_path: Path, flavour: tuple[str, ...]
) -> None:
    count = 0
    for raw, reference_size, expected in expressions(compiled(tmp_path, flavour)):
        found = operations(Cursor("places", "expression", raw), 8, reference_size)
        assert [operation_name(operation.code) for operation in found] == expected
        count += 1
    assert count > 10


def variables(info: DebugInfo) -> Iterator[tuple[Die, Die]]:
    """Each parameter and variable in a function with code, and the function."""
    for unit in info.units():
        for function in _functions(info, unit.top):
            yield from ((die, function) for die in _within(info, function))


def _functions(info: DebugInfo, parent: Die) -> Iterator[Die]:
    for die in info.children(parent):
        if die.tag == 0x2E and info.ranges(die):
            yield die
        elif die.tag == 0x39:  # a namespace: all of Rust is in some
            yield from _functions(info, die)


def _within(info: DebugInfo, parent: Die) -> Iterator[Die]:
    for die in info.children(parent):
        if die.tag in (0x05, 0x34):
            yield die
        yield from _within(info, die)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_the_place_at_an_address_is_that_of_its_extent(path: Path) -> None:
    info = DebugInfo(Elf(str(path)))
    seen: list[Place] = []
    for position, (die, function) in enumerate(variables(info)):
        if position % (1 + path.stat().st_size // 300_000):
            continue
        found = extents(info, die, function)
        for extent in found:
            if extent.place in UNFOLLOWED:
                continue
            # Where ranges overlap, the list's first counts for an address.
            first = next(e for e in found if e.start <= extent.start < e.end)
            if first.place not in UNFOLLOWED:
                assert place_at(info, die, function, extent.start) == first.place
            last = next(e for e in found if e.start <= extent.end - 1 < e.end)
            if last.place not in UNFOLLOWED:
                assert place_at(info, die, function, Address(extent.end - 1)) == last.place
            seen.append(extent.place)
    assert len([place for place in seen if not isinstance(place, Absent)]) > 40
