"""The Go toolchain's own compiler and `go` command, built with debug information, at their work.

What they work on is small and known: so are the names and numbers that probes must show.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import fetchc
from fetchc.tracer.events import Event
from tests.live.watching import watched
from tests.support.toolchains import GO_VERSIONS, go_environment, go_root, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

# The parser of 1.15 knows no type parameters.
VERSIONS = tuple([version for version in GO_VERSIONS if version != "1.15"][-2:])
SOURCE = """package tiny

type pair struct{ left, right int32 }

func (p *pair) sum() int32 { return p.left + p.right }

func add(a, b int) int { return a + b }

func Loop(values []string, seen map[string]int) (total int) {
	for i, value := range values {
		if seen[value] > i {
			total += len(value)
		}
	}
	return add(total, 1)
}

func Made(n int) *pair { return &pair{int32(n), 2} }
"""
DECLARED = ["sum", "add", "Loop", "Made"]
COMPILED = {"(*pair).sum", "add", "Loop", "Made"}


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> object:
    """``cmd/compile`` and ``cmd/go`` of a version, built from its own source."""
    folder = tmp_path_factory.mktemp("tools")

    @cache
    def built(version: str, name: str) -> Path:
        require(f"go{version}")
        program = folder / f"{name}-{version}"
        command = [str(go_root(version) / "bin/go"), "build", "-o", str(program), f"cmd/{name}"]
        environment = go_environment(version, folder)
        subprocess.run(command, env=environment, cwd=folder, check=True, timeout=580)
        return program

    return built


def values(events: list[Event], name: str, label: str) -> list[object]:
    found = [event for event in events if event.name == name]
    assert not [event.faults for event in found if event.faults]
    return [event.args[label] for event in found]


# One of the two for each: they take long to build.
@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS[:1])
def test_the_compiler_on_a_small_package(version: str, tool: object, tmp_path: Path) -> None:
    require_uprobes()
    assert callable(tool)
    compiler = tool(version, "compile")
    (tmp_path / "tiny.go").write_text(SOURCE)
    command = [str(compiler), "-p", "tiny", "-o"]
    plain = subprocess.run([*command, tmp_path / "plain.a", tmp_path / "tiny.go"], timeout=60)
    assert plain.returncode == 0
    program = fetchc.open(str(compiler))
    package = "cmd/compile/internal"
    compile_function = program.probe(f"{package}/ssa.Compile")
    parsed = program.probe(f"{package}/syntax.(*parser).funcDeclOrNil", returns=True)
    opened = program.probe(f"{package}/syntax.Parse")
    _, events = watched(
        lambda group: [
            compile_function.plan(["f.Name", "len(f.Blocks)", "$goid"], group, "compiled"),
            parsed.plan(["$ret0.Name.Value", "len($ret0.TParamList)"], group, "declared"),
            opened.plan(["base.filename", "base.line"], group, "opened"),
        ],
        [*command, tmp_path / "traced.a", tmp_path / "tiny.go"],
    )
    compiled = values(events, "compiled", "f.Name")
    assert set(compiled) >= COMPILED  # and what the compiler makes for types
    blocks = values(events, "compiled", "len(f.Blocks)")
    assert all(isinstance(one, int) and 0 < one < 100 for one in blocks)
    assert all(values(events, "compiled", "$goid"))
    assert values(events, "declared", "$ret0.Name.Value") == DECLARED
    assert set(values(events, "declared", "len($ret0.TParamList)")) == {0}
    (file,) = values(events, "opened", "base.filename")
    assert file == str(tmp_path / "tiny.go")
    # The probes changed nothing of what it made.
    assert (tmp_path / "traced.a").read_bytes() == (tmp_path / "plain.a").read_bytes()


@pytest.mark.parametrize("version", VERSIONS[-1:])
def test_the_go_command_at_a_small_build(version: str, tool: object, tmp_path: Path) -> None:
    require_uprobes()
    assert callable(tool)
    go = tool(version, "go")
    environment = go_environment(version, tmp_path)
    package = tmp_path / "src/example.com/tiny"
    package.mkdir(parents=True)
    (package / "main.go").write_text('package main\n\nfunc main() { println("tiny") }\n')
    listed = subprocess.run(
        [go, "list", "-deps", "example.com/tiny"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    program = fetchc.open(str(go))
    build = program.probe("cmd/go/internal/work.(*Builder).build")
    settings = [f"{key}={value}" for key, value in environment.items()]
    _, events = watched(
        lambda group: [build.plan(["a.Package.ImportPath", "a.Mode"], group, "build")],
        ["env", "-C", str(tmp_path), *settings, go, "build", "-o", "out", "example.com/tiny"],
    )
    paths = Counter(values(events, "build", "a.Package.ImportPath"))
    assert set(paths) == set(listed.stdout.split()) - {"unsafe"}  # which has no code
    assert set(paths.values()) == {1}
    assert set(values(events, "build", "a.Mode")) == {"build"}
    printed = subprocess.run([tmp_path / "out"], capture_output=True, text=True, check=True)
    assert printed.stderr == "tiny\n"
    assert os.access(tmp_path / "out", os.X_OK)
