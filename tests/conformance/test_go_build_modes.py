"""Go plugins and shared libraries for C without debug information: types and functions of them.

A plugin's types refer to each other by symbols that the loader looks up. Every type that the run
time describes must have the layout that DWARF states in the same build with debug information.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.conformance.test_go_stripped import shown
from tests.support.toolchains import go_environment, go_root, require

BARE = "-ldflags=-s -w"
SOURCE = """
package main

// static int twice(int n) { return 2 * n; }
import "C"
import "os"

type request struct {
	path  string
	codes []int16
	inner map[string]*request
	file  *os.File
	any   interface{}
}

var kept interface{}

//go:noinline
func look(x interface{}) { kept = x }

//export Handle
func Handle(n int) int {
	kept = &request{path: os.Args[0], any: n, inner: map[string]*request{}}
	look(kept)
	return int(C.twice(C.int(n)))
}

func main() {}
"""


def built(version: str, mode: str, folder: Path, *options: str) -> fetchc.Program:
    package = folder / "src/served"  # a plugin is called after its package's path
    package.mkdir(parents=True, exist_ok=True)
    (package / "main.go").write_text(SOURCE)
    library = folder / f"library{len(list(folder.iterdir()))}.so"
    go = [str(go_root(version) / "bin/go"), "build", f"-buildmode={mode}", *options]
    environment = go_environment(version, folder) | {"CGO_ENABLED": "1", "CC": "gcc"}
    command = [*go, "-o", str(library), "served"]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=280)
    return fetchc.open(str(library))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["plugin", "c-shared"])
@pytest.mark.parametrize("version", ["1.22", "1.27"])
def test_layouts_are_those_of_the_debug_information(
    version: str, mode: str, tmp_path: Path
) -> None:
    require(f"go{version}", "gcc")
    whole, bare = built(version, mode, tmp_path), built(version, mode, tmp_path, BARE)
    compared = []
    for name in bare.types():
        (found,) = bare.layouts(name)
        stated = whole.layouts(name)
        if stated and name not in ("int", "uint"):  # C spells some numbers as Go does
            assert shown(found) in [shown(one) for one in stated], name
            compared.append(name)
    assert len(compared) > 100
    assert any(name.endswith(".request") for name in compared)
    both = sorted(set(bare.functions("os.*")) & set(whole.functions("os.*")))
    assert len(both) > 5
    for name in both:
        assert bare.probe(name).address == whole.probe(name).address, name
    (look,) = [name for name in whole.functions("*.look") if not name.startswith("local.")]
    probe = whole.probe(look, kernel="6.1")
    argument = probe.compile("x.(*request)")
    assert "FC0607" not in [one.code for one in argument.warnings]
    # Where the types of this file begin, not those of the program that loads it.
    begin = bare.probe(look, kernel="6.1").compile("runtime.firstmoduledata.types").fetcharg
    assert f"_types={begin}" in probe.definition([argument])
