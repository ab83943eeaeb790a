"""Go programs without debug information tell what those with it do: functions, layouts, returns.

Each program is built twice, with and without ``-ldflags='-s -w'``, plain and position-independent.
Every function of the stripped one has the name, address and size of the symbol table, and every
type that its run time describes the layout that DWARF states.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.go import rtype_names
from fetchc.driver.type_layouts import Layout
from fetchc.quantities import ByteOffset
from tests.support.programs import CORPUS
from tests.support.toolchains import ALL_GO_VERSIONS, go_environment, go_root, require

BARE = "-ldflags=-s -w"
PLAIN: tuple[str, ...] = ()
PIE = ("-buildmode=pie",)
RUNS = [
    *((version, "go/features", "amd64", PLAIN) for version in ALL_GO_VERSIONS),
    *((version, "go/features", "amd64", PIE) for version in ("1.15", "1.27")),
]
RUNS += [("1.15", "go/miekg", "amd64", PLAIN), ("1.27", "go/miekg", "amd64", PLAIN)]
RUNS += [("1.22", "go/features", machine, PLAIN) for machine in ("arm64", "riscv64", "386")]


def built(version: str, program: str, machine: str, folder: Path, *options: str) -> Path:
    """A corpus program as that Go builds it."""
    package = program.rpartition("/")[2]
    if not (folder / "src").exists():
        ignored = shutil.ignore_patterns("bin")
        shutil.copytree(CORPUS / program, folder / "src" / package, ignore=ignored)
    binary = folder / f"program{len(list(folder.iterdir()))}"
    command = [str(go_root(version) / "bin/go"), "build", *options, "-o", str(binary)]
    environment = go_environment(version, folder) | {"GOARCH": machine}
    subprocess.run([*command, package], cwd=folder, env=environment, check=True, timeout=280)
    return binary


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: "-".join(map(str, run)))
def twins(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[fetchc.Program, fetchc.Program]:
    """A program with its debug information, and without."""
    version, program, machine, options = request.param
    require(f"go{version}", *(["miekg"] if program.endswith("miekg") else []))
    folder = tmp_path_factory.mktemp("go")
    whole = built(version, program, machine, folder, *options)
    bare = built(version, program, machine, folder, *options, BARE)
    return fetchc.open(str(whole)), fetchc.open(str(bare))


def inside(program: fetchc.Program) -> DwarfProgram:
    known = program._program
    assert isinstance(known, DwarfProgram)
    return known


def symbols(program: fetchc.Program) -> dict[int, tuple[set[str], int]]:
    """Functions by address: their names, as tables for tracebacks have them, and their sizes."""
    found: dict[int, tuple[set[str], int]] = {}
    for symbol in inside(program)._elf.function_symbols():
        name = symbol.name.removesuffix(".abi0")
        names, _ = found.setdefault(symbol.address, (set(), 0))
        # Up to Go 1.20 the table has dots for type arguments, in all of them for a type's own dot.
        names |= {name, re.sub(r"\[.*\]", "[...]", name)}
        names.add(re.sub(r"\.(\d+)$", "·\\1", name.replace(".dwrap.", "·dwrap·")))  # 1.17's
        found[symbol.address] = names, max(symbol.size, found[symbol.address][1])
    return found


def differences(whole: fetchc.Program, bare: fetchc.Program) -> list[str]:
    """The functions that the two do not tell alike."""
    known, program, wrong = symbols(whole), inside(bare), []
    addresses = set()
    for name in program.function_names():
        for one in program.functions_named(name):
            addresses.add(int(one.address))
            names, size = known.get(one.address, (set(), 0))
            # What the linker puts between parts of the code has the size of the room for it.
            if one.symbol not in names or (one.size != size and ":" not in one.symbol):
                wrong.append(f"{one.symbol} {one.address:#x} {one.size}: {names} {size}")
    missing = [names for at, (names, _) in known.items() if at not in addresses]
    return wrong + [
        str(one) for one in missing if not one & {"runtime.etext", "go:buildid", "go.buildid"}
    ]


def test_functions_are_those_of_the_symbol_table(
    twins: tuple[fetchc.Program, fetchc.Program],
) -> None:
    whole, bare = twins
    assert len(list(bare.functions())) > 1000
    assert differences(whole, bare) == []


def test_entries_and_returns_are_the_same(twins: tuple[fetchc.Program, fetchc.Program]) -> None:
    whole, bare = twins
    compared = 0
    for name in bare.functions("main.*"):
        if "[...]" in name:
            continue  # Go 1.15 to 1.20 do not tell instances apart
        assert bare.probe(name).address == whole.probe(name).address
        try:
            sites = whole.probe(name, returns=True).each()
        except fetchc.CompileError:
            continue  # it never returns
        again = bare.probe(name, returns=True).each()
        assert [probe.address for probe, _ in again] == [probe.address for probe, _ in sites]
        compared += 1
    assert compared > 4


def shown(layout: Layout) -> list[object]:
    """Size and members of a layout, with the names of types as both sources spell them."""

    def alike(name: str) -> str:
        # The linker writes the package before each field of a structure without a name, DWARF
        # the shape of a type argument, and the run time's own pointers have a type there.
        if "struct {" in name or "interface {" in name:
            return "struct"
        table = ("*internal/abi.ITab", "*runtime.itab", "*internal/abi.Type", "unsafe.Pointer")
        return "a pointer" if name in table else name.replace("go.shape.", "")

    rows = [(row.name, row.offset, row.size, row.embedded, alike(row.type)) for row in layout.rows]
    return [layout.size, layout.kind, rows]


@cache
def unlike(whole: fetchc.Program, bare: fetchc.Program) -> tuple[list[str], int]:
    """Types that have another layout in the other program, and how many were compared."""
    wrong, compared = [], 0
    for name in bare.types():
        (found,) = bare.layouts(name)
        stated = whole.layouts(name)
        # C spells some numbers as Go does, and DWARF leaves out what only the run time refers to.
        if not stated or name in ("int", "uint"):
            continue
        compared += 1
        if shown(found) not in [shown(one) for one in stated]:
            wrong.append(f"{name}: {shown(found)} {shown(stated[0])}")
    return wrong, compared


def test_layouts_are_those_of_the_debug_information(
    twins: tuple[fetchc.Program, fetchc.Program],
) -> None:
    wrong, compared = unlike(*twins)
    assert wrong == []
    assert compared > 110


def test_a_wrong_offset_is_noticed(
    twins: tuple[fetchc.Program, fetchc.Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, bare = twins
    monkeypatch.setattr(rtype_names, "ByteOffset", lambda offset: ByteOffset(offset + 1))
    again = fetchc.open(bare.path)
    assert unlike(whole, again)[0]


def walks(program: fetchc.Program) -> list[object]:
    """What a trace fetches of the elements of two maps."""
    probe = program.probe("main.count")
    plans = [
        probe.plan([f"({name})($arg1)[:]"], "g", "e") for name in ("map[string]int", "main.set")
    ]
    return [plan.fields for plan in plans]


def test_maps_are_walked_as_with_debug_information(
    twins: tuple[fetchc.Program, fetchc.Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, bare = twins
    if not list(whole.functions("main.count")):
        pytest.skip("a program without these maps")
    assert walks(bare) == walks(whole)
    monkeypatch.setattr(rtype_names, "ByteOffset", lambda offset: ByteOffset(offset + 1))
    assert walks(fetchc.open(bare.path)) != walks(whole)
