"""Package variables as Go source within a package names them, whatever its import path."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.lang.go_language import GO
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import Function
from fetchc.quantities import Address
from tests.support.programs import fixture
from tests.support.toolchains import require

COMPILER = compiler_of("Go cmd/compile go1.27")


def function(name: str, symbol: str) -> Function:
    return Function(name, symbol, Address(0x1000), None, None, "go", COMPILER, True)


@pytest.mark.parametrize(
    ("name", "symbol", "package"),
    [
        ("main.f", "main.f", "main"),
        ("a.b/c/v2.(*T).M", "a.b/c/v2.(*T).M", "a.b/c/v2"),
        # The linker escapes the dots of the last element only.
        ("a.b/yaml.v3.(*T).M", "a.b/yaml%2ev3.(*T).M", "a.b/yaml.v3"),
        ("a.b/yaml.v3.Map[go.shape.int]", "a.b/yaml%2ev3.Map[go.shape.int]", "a.b/yaml.v3"),
    ],
)
def test_a_plain_name_is_looked_for_in_the_functions_package(
    name: str, symbol: str, package: str
) -> None:
    assert GO.global_names("counter", function(name, symbol)) == (f"{package}.counter",)


def test_a_qualified_name_is_looked_for_as_it_is() -> None:
    within = function("a.b/dns.f", "a.b/dns.f")
    assert GO.global_names("dns.Id", within) == ("dns.Id",)
    assert GO.global_names("other.Id", within) == ("other.Id",)


def test_the_second_symbol_that_plugins_have_names_no_package_of_its_own(tmp_path: Path) -> None:
    # Go's linker calls it so in whatever is loaded dynamically, and it comes first.
    require("objcopy")
    program, path = fixture("go/features/go1.27"), tmp_path / "program"
    (found,) = DwarfProgram(str(program)).functions_named("main.apply")
    start = Elf(str(program)).section_address(".text")
    assert start is not None
    added = f"local.main.apply=.text:{found.address - start:#x},local,function"
    command = ["objcopy", f"--add-symbol={added}", str(program), str(path)]
    subprocess.run(command, check=True, timeout=60)
    assert fetchc.open(str(path)).probe("apply").compile("errMissing.tab").fetcharg
