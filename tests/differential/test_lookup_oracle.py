"""Finding entries by address and by name, against a walk over all of them by pyelftools.

Searching bytes is what makes look-ups fast; the walk tells whether what was found is an entry.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from fetchc.debuginfo.dwarf import constants as dw
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.quantities import Address
from tests.support.programs import fixture
from tests.support.toolchains import require

SOURCE = """
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <functional>
#include <algorithm>
struct record { std::string name; std::map<std::string, std::vector<int>> values; };
int main(int argc, char **argv)
{
    std::vector<std::unique_ptr<record>> all;
    for (int i = 0; i < argc; i++) {
        all.push_back(std::make_unique<record>());
        all.back()->name = argv[i];
        all.back()->values[argv[i]].push_back(i);
    }
    std::function<bool(const std::unique_ptr<record> &, const std::unique_ptr<record> &)> less =
        [](const auto &a, const auto &b) { return a->name < b->name; };
    std::sort(all.begin(), all.end(), less);
    return (int)all.size();
}
"""
TAGS = {
    "DW_TAG_structure_type": dw.DW_TAG_structure_type,
    "DW_TAG_class_type": dw.DW_TAG_class_type,
    "DW_TAG_typedef": dw.DW_TAG_typedef,
    "DW_TAG_variable": dw.DW_TAG_variable,
    "DW_TAG_subprogram": dw.DW_TAG_subprogram,
    "DW_TAG_base_type": dw.DW_TAG_base_type,
}
BUILDS = [
    ("g++", "-gdwarf-5", "-O0"),
    ("g++", "-gdwarf-4", "-O2"),
    ("clang++", "-gdwarf-4", "-O1"),
]
FUNCTIONS = 200
NAMES = 100  # of each file; one takes a search through all of it
Names = dict[tuple[str, int], set[int]]


def everything(path: Path) -> tuple[dict[int, set[int]], Names, set[int]]:
    """Functions by address; entries by name and tag; those that only declare."""
    functions: dict[int, set[int]] = defaultdict(set)  # assembly has several at one
    names: Names = defaultdict(set)
    declarations: set[int] = set()
    with path.open("rb") as stream:
        for unit in ELFFile(stream).get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
            for die in unit.iter_DIEs():
                if die.tag not in TAGS:
                    continue
                attributes = die.attributes
                if "DW_AT_declaration" in attributes:
                    declarations.add(die.offset)
                if "DW_AT_name" in attributes:
                    name = attributes["DW_AT_name"].value.decode("utf-8", "surrogateescape")
                    names[name, TAGS[die.tag]].add(die.offset)
                low = attributes.get("DW_AT_low_pc")
                if die.tag == "DW_TAG_subprogram" and low is not None:
                    functions[low.value].add(die.offset)
    return functions, names, declarations


@pytest.fixture(scope="module", params=[*BUILDS, "go/dnsforward/go1.27"], ids=str)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if isinstance(request.param, str):
        return fixture(request.param)
    require(request.param[0])
    directory = tmp_path_factory.mktemp("lookup")
    (directory / "program.cc").write_text(SOURCE)
    command = [*request.param, "-o", "program", "program.cc"]
    subprocess.run(command, cwd=directory, check=True, timeout=120)
    return directory / "program"


def disagreements(path: Path, spoil: int = 0) -> tuple[int, list[str]]:
    """Entries asked for, and what differs; ``spoil`` is added to the oracle's offsets."""
    functions, names, declarations = everything(path)
    info = DebugInfo(Elf(str(path)))
    wrong: list[str] = []
    addresses = sorted(functions)[:: max(1, len(functions) // FUNCTIONS)]
    for address in addresses:
        offsets = functions[address]
        at = info.function_at(Address(address))
        if at is None or at.offset + spoil not in offsets:
            wrong.append(f"{address:#x}: {at and at.offset} for {sorted(offsets)}")
    asked = sorted(names)[:: max(1, len(names) // NAMES)]
    for name, tag in asked:
        expected = names[name, tag]
        for definitions in (False, True):
            if definitions:
                expected = expected - declarations
            named = info.find_named(name, frozenset((tag,)), definitions=definitions)
            found = [die.offset + spoil for die in named]
            if len(found) != len(set(found)) or set(found) != expected:
                wrong.append(f"{name}: {sorted(found)} for {sorted(expected)}")
    return len(addresses) + len(asked), wrong


def test_lookups_find_what_a_walk_finds(path: Path) -> None:
    asked, wrong = disagreements(path)
    assert wrong == []
    assert asked > 100


def test_an_entry_moved_by_a_byte_is_noticed(path: Path) -> None:
    _, wrong = disagreements(path, spoil=1)
    assert len(wrong) > 100
