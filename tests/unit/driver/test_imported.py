"""A function that a program only calls: the refusal names the library that has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.diag.diagnostic import CompileError, Diagnostic
from tests.support.programs import fixture
from tests.support.toolchains import require

SOURCE = """
#include <stdio.h>
int own(const char *text) { return puts(text); }
int main(int argc, char **argv) { return own(argv[0]); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    folder = tmp_path_factory.mktemp("imported")
    (folder / "main.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "main.c", "-o", "program"], cwd=folder, check=True, timeout=60)
    return folder / "program"


def refused(path: Path | str, function: str) -> Diagnostic:
    with pytest.raises(CompileError) as refusal:
        fetchc.open(str(path)).probe(function)
    return refusal.value.diagnostics[0]


def test_the_library_is_named(program: Path) -> None:
    diagnostic = refused(program, "puts")
    assert diagnostic.code == "FC0202"
    assert (
        diagnostic.message
        == f"`puts` is in a library that `{program}` loads, not in the file itself"
    )
    assert diagnostic.notes == ("it loads `libc.so.6`",)
    assert diagnostic.help is not None
    advised = diagnostic.help.partition("`-x ")[2].partition("`")[0]
    # What is advised works.
    assert fetchc.open(advised).probe("puts").function is not None


def test_other_names_are_not_imported(program: Path) -> None:
    assert "no function `putts`" in refused(program, "putts").message
    assert "no function `puts`" in refused(fixture("go/dnsforward/go1.27"), "puts").message


def test_the_overload_with_as_many_parameters_is_meant() -> None:
    path = fixture("cpp/addressbook/g++-O2")
    diagnostic = refused(path, "AddressBook::AddContact(std::string, std::string, std::string)")
    meant = "AddressBook::AddContact(std::string&, std::string&, std::string&)"
    assert diagnostic.help == f"did you mean `{meant}`?"
    diagnostic = refused(path, "AddressBook::AddContact(std::string, int)")
    assert diagnostic.help == "did you mean `AddressBook::AddContact(std::string const&, int)`?"


def test_a_point_and_a_distance_from_it() -> None:
    program = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5")))
    with pytest.raises(CompileError) as refusal:
        program.probe("main.c:17", at="+4")
    diagnostic = "a point in `-f` is whole: with `--at`, name the function there"
    assert refusal.value.diagnostics[0].help == diagnostic


def test_functions_of_the_program_come_before_those_of_libraries() -> None:
    diagnostic = refused(fixture("go/features/go1.27"), "Error")
    assert diagnostic.code == "FC0203"
    assert diagnostic.notes[0] == "`main.(*wrapped).Error`"


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("usdt:srv:request", "write `-f 'srv:request'`, and the file at `-x`"),
        ("usdt:/bin/server:srv:request", "write `-f 'srv:request'`, and the file at `-x`"),
        ("sdt_srv:request", "write `-f 'srv:request'`, and the file at `-x`"),
        ("uprobe:/bin/server:puts_all", "write `-f 'puts_all'`, and the file at `-x`"),
        ("ur:/bin/server:puts_all", "write `-f 'puts_all' --return`, and the file at `-x`"),
        ('u:/b/s:cpp:"A::f"', "write `-f 'A::f'`, and the file at `-x`"),
    ],
)
def test_probe_points_as_other_tools_write_them(program: Path, name: str, help: str) -> None:
    assert refused(program, name).help == help


def test_a_file_without_static_probes(program: Path) -> None:
    diagnostic = refused(program, "srv:request").help
    assert diagnostic is not None
    assert diagnostic.startswith("it has no static probes (USDT)")
