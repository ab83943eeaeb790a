"""Programs of Go and C: each function by its own language's convention, however it was linked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.toolchains import go_environment, go_root, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
package main

/*
struct pair { int left; long right; };
static __attribute__((noinline)) long twice(struct pair *p, int n)
{
	__asm__ volatile("");
	return p->left + 2 * n + p->right;
}
*/
import "C"
import "os"

type entry struct {
	name string
	n    int
}

var sink interface{}

//go:noinline
func handle(e *entry, n int) int {
	p := C.struct_pair{left: C.int(e.n), right: 5}
	sink = e
	return int(C.twice(&p, C.int(n)))
}

//export Exported
func Exported(n C.int) C.int { return C.int(handle(&entry{"exported", 3}, int(n))) }

func main() {
	for n := 20; n < 23; n++ {
		println(handle(&entry{"cgo", len(os.Args) + n}, n))
	}
}
"""
VERSIONS = ("1.15", "1.22")
# How it is linked, and whether the C in it has debug information.
LINKED = {
    "whole": ((), True),
    "without-dwarf": (("-ldflags=-w",), True),
    "stripped": (("-ldflags=-s -w",), False),
    "stripped-pie": (("-buildmode=pie", "-ldflags=-s -w"), False),
}


def build(version: str, folder: Path, *options: str) -> Path:
    require(f"go{version}", "gcc")
    source, program = folder / "main.go", folder / "mixed"
    source.write_text(SOURCE)
    go = str(go_root(version) / "bin/go")
    command = [go, "build", *options, "-o", str(program), str(source)]
    environment = go_environment(version, folder) | {"CGO_ENABLED": "1", "CC": "gcc"}
    subprocess.run(command, env=environment, cwd=folder, check=True, timeout=280)
    return program


@pytest.mark.parametrize("linked", LINKED)
@pytest.mark.parametrize("version", VERSIONS)
def test_each_function_by_its_own_convention(version: str, linked: str, tmp_path: Path) -> None:
    require_uprobes()
    options, known = LINKED[linked]
    path = build(version, tmp_path, *options)
    program = fetchc.open(str(path))
    handle = program.probe("main.handle")
    pointer = "(*main.entry)($arg1)" if linked != "whole" else "e"
    wanted = [f"{pointer}.name", f"{pointer}.n", "$arg2"]
    plans = [(handle, wanted, "handle")]
    if known:
        plans.append((program.probe("twice"), ["p->left", "p->right", "n", "$arg2"], "twice"))
    else:
        with pytest.raises(fetchc.CompileError) as caught:
            program.probe("twice")
        assert caught.value.diagnostics[0].code == "FC0202"
    _, events = watched(
        lambda group: [probe.plan(texts, group, name) for probe, texts, name in plans], [path]
    )
    hits = [event.args for event in events if event.name == "handle"]
    calls = [tuple(hit[label] for label in wanted) for hit in hits]
    assert calls == [("cgo", 1 + n, n) for n in range(20, 23)]
    inside = [event.args for event in events if event.name == "twice"]
    if known:
        assert [(one["p->left"], one["p->right"], one["n"]) for one in inside] == [
            (1 + n, 5, n) for n in range(20, 23)
        ]
        assert [int(str(one["$arg2"])) & 0xFFFFFFFF for one in inside] == [20, 21, 22]


@pytest.mark.parametrize("mode", ["c-shared", "plugin"])
def test_shared_builds_without_debug_information(mode: str, tmp_path: Path) -> None:
    path = build("1.22", tmp_path, f"-buildmode={mode}", "-ldflags=-s -w")
    program = fetchc.open(str(path))
    (name,) = [one for one in program.functions("*.handle") if "entry" not in one]
    assert (name == "main.handle") == (mode == "c-shared")
    probe = program.probe(name, kernel="6.1")
    assert probe.compile("$arg2").fetcharg == "%bx:u64"
    # What C calls is a function of C.
    assert program.probe("Exported", kernel="6.1").compile("$arg1").fetcharg == "%di:u64"
    if mode == "c-shared":
        assert probe.compile("(*main.entry)($arg1).n").fetcharg == "+16(%ax):s64"
