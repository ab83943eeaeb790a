"""Tables of offsets of Go's standard library by version, as the library itself reflects on them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.answers.version_tables import standard_version
from fetchc.cli import main
from tests.support.toolchains import go_environment, go_root, require

# Structures that instrumentation agents read, and all that they lead to.
SOURCE = """package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
)

var out = bufio.NewWriter(os.Stdout)
var seen = map[reflect.Type]bool{}

func show(one reflect.Type) {
	if seen[one] {
		return
	}
	seen[one] = true
	switch one.Kind() {
	case reflect.Ptr, reflect.Slice, reflect.Array, reflect.Map:
		show(one.Elem())
	case reflect.Struct:
		for i := 0; i < one.NumField(); i++ {
			if one.Name() != "" {
				field := one.Field(i)
				name := one.PkgPath() + "." + one.Name() + "." + field.Name
				fmt.Fprintln(out, name, field.Offset)
			}
			show(one.Field(i).Type)
		}
	}
}

func main() {
	mux := http.NewServeMux()
	if len(os.Args) > 1 {
		fmt.Println(http.ListenAndServe(os.Args[1], mux))
	}
	for _, one := range []interface{}{http.Request{}, http.Server{}, *mux, net.TCPAddr{}, *out} {
		show(reflect.TypeOf(one))
	}
	out.Flush()
}
"""
MINORS = range(19, 28) if "FETCHC_LONG" in os.environ else (22, 27)
ABSENT = {"net/http.Request.Pattern": 23, "net/http.Request.pat": 22}  # since 1.N


@pytest.fixture(scope="module", name="printed")
def printed_(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, dict[str, int]]:
    """By program what it prints: each member's offset."""
    found = {}
    for minor in MINORS:
        require(f"go1.{minor}")
        folder = tmp_path_factory.mktemp(f"go{minor}")
        (folder / "main.go").write_text(SOURCE)
        environment = go_environment(f"1.{minor}", folder)
        command = [str(go_root(f"1.{minor}") / "bin/go"), "build", "-o", "program", "main.go"]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        done = subprocess.run([folder / "program"], capture_output=True, text=True, check=True)
        lines = (line.rpartition(" ") for line in done.stdout.splitlines())
        found[folder / "program"] = {name: int(offset) for name, _, offset in lines}
    return found


def test_the_table_of_each_version_is_what_its_programs_print(
    printed: dict[Path, dict[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [word for path in printed for word in ("-x", str(path))]
    members = sorted({name for each in printed.values() for name in each if "._" not in name})
    assert len(members) > 100
    path = tmp_path / "table.json"
    assert main(["offsets", *members, "--format", "otel-go", "--into", str(path), *named]) == 0
    table = read(path)
    for program, own in printed.items():
        info = fetchc.open(program).build_info()
        assert info is not None
        version = standard_version(info.version)
        types = {name.rpartition(".")[0] for name in own}
        asked = [name for name in members if name.rpartition(".")[0] in types]
        wrong = {name for name in asked if table[name][version] != own.get(name)}
        assert not wrong, version
        assert len(asked) > 100
        for name, since in ABSENT.items():
            assert (table[name][version] is None) == (int(version.split(".")[1]) < since)
    capsys.readouterr()
    assert main(["offsets", "--verify", str(path), *named]) == 0
    path.write_text(path.read_text().replace('"offset": 56', '"offset": 57'))
    assert main(["offsets", "--verify", str(path), *named]) == 1
    assert "net/http.Request.Header" in capsys.readouterr().out


def read(path: Path) -> dict[str, dict[str, int | None]]:
    """By member and version the offset, of a table of the form otel-go."""
    found: dict[str, dict[str, int | None]] = {}
    for module in json.loads(path.read_text()):
        assert module["module"] == "std"
        for package in module["packages"]:
            for struct in package["structs"]:
                for field in struct["fields"]:
                    name = f"{package['package']}.{struct['struct']}.{field['field']}"
                    found[name] = {
                        version: group["offset"]
                        for group in field["offsets"]
                        for version in group["versions"]
                    }
    return found
