"""Drawn programs by the engines of the running kernel: tracefs, eBPF and the oracles agree."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import fetchc
from fetchc.cli import main
from fetchc.conformance import (
    c_comparison,
    engines,
    go_comparison,
    go_drawing,
    machine,
    shown_values,
    written_programs,
)
from fetchc.conformance.c_programs import Build, build_c
from fetchc.conformance.child_processes import unavailable
from fetchc.conformance.engines import DIFFERENCES, ENGINES, UNREAD, Asked, agree, recorded
from fetchc.conformance.go_programs import GoBuild
from fetchc.conformance.results import state_of
from fetchc.conformance.rust_drawing import draw_rust
from fetchc.conformance.rust_programs import RustBuild, check_rust
from fetchc.conformance.shown_values import STEPS, WrittenWalk
from fetchc.conformance.written_programs import check_written
from fetchc.ir.evaluate import Fault, Outcome, evaluate
from fetchc.ir.fetch import Array, Deref, Fetch, Register, Scalar, Text
from fetchc.tracer.events import Plan
from tests.conformance.test_layouts import BUILDS
from tests.live.rustc import COMPILERS
from tests.support.seeds import seeds
from tests.support.toolchains import ALL_GO_VERSIONS, GO_VERSIONS, go_build, require
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live


def c_failures(build: Build, seed: str, families: int, functions: int, folder: Path) -> list[str]:
    """What is wrong in a program of layouts and one of signatures."""
    require_bpf()
    require(build.compiler)
    random = Random(f"engines/{seed}/{build}")
    layouts = [c_comparison.layouts(random, each, 24, plus=build.plus) for each in range(families)]
    signatures = [c_comparison.signatures(random, 0, functions, build.plus)]
    said = []
    for drawn in (layouts, signatures):
        tally, failures = c_comparison.check(drawn, build, folder, engines=ENGINES)
        assert tally.traced >= tally.compared > 0
        said += [f"{it.expression.text}: {it.fetcharg}, {it.got}, {it.expected}" for it in failures]
    return said


@pytest.mark.parametrize(
    "build",
    [Build("gcc", ("-O2", "-gdwarf-5")), Build("clang++", ("-O0", "-no-pie"), plus=True)],
    ids=str,
)
def test_the_engines_fetch_what_the_program_has(build: Build, tmp_path: Path) -> None:
    assert c_failures(build, "1", 1, 8, tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_the_engines_fetch_what_many_programs_have(build: Build, seed: int, tmp_path: Path) -> None:
    assert c_failures(build, str(seed), 9, 40, tmp_path) == []


def go_failures(version: str, seed: str, many: int, folder: Path) -> list[str]:
    require_bpf()
    require(f"go{version}")
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    build = go_build(version, folder)
    random = Random(f"engines/{seed}/{version}")
    said = []
    for types, probes in (
        go_drawing.draw(random, many, 24, build.generics),
        go_drawing.draw_signatures(random, many, build.generics),
    ):
        tally, failures = go_comparison.check(types, probes, build, folder, engines=ENGINES)
        assert tally.traced >= tally.compared > 0
        said += [f"{it.expression.text}: {it.fetcharg}, {it.got}, {it.expected}" for it in failures]
    return said


def test_the_engines_fetch_what_a_go_program_has(tmp_path: Path) -> None:
    assert go_failures(GO_VERSIONS[-1], "1", 6, tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_the_engines_fetch_what_many_go_programs_have(
    version: str, seed: int, tmp_path: Path
) -> None:
    assert go_failures(version, str(seed), 40, tmp_path) == []


def rust_failures(
    compiler: str, level: str, seed: str, types: int, functions: int, folder: Path
) -> list[str]:
    require_bpf()
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    build = RustBuild(compiler, ("-C", f"opt-level={level}"))
    drawn = draw_rust(Random(f"engines/{seed}/{level}"), types, functions, 14)
    tally, failures = check_rust(drawn, build, folder, ENGINES)
    assert tally.traced > tally.compared > 0
    return [f"{it.text} by {it.reader}: {it.got}, {it.expected}" for it in failures]


@pytest.mark.parametrize("compiler", COMPILERS[:1])
def test_the_engines_show_what_a_rust_program_writes(compiler: str, tmp_path: Path) -> None:
    assert rust_failures(compiler, "0", "1", 8, 6, tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("level", ["0", "1", "2", "s"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_engines_show_what_many_rust_programs_write(
    compiler: str, level: str, seed: int, tmp_path: Path
) -> None:
    assert rust_failures(compiler, level, str(seed), 20, 40, tmp_path) == []


@pytest.mark.parametrize("compiler", COMPILERS[:1])
def test_a_value_that_rust_does_not_write_is_noticed(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = shown_values.said

    def otherwise(printed: str) -> dict[str, list[list[object]]]:
        return {
            name: [[*one[1:], one[0]] for one in calls] for name, calls in said(printed).items()
        }

    monkeypatch.setattr(shown_values, "said", otherwise)
    wrong = rust_failures(compiler, "0", "1", 8, 6, tmp_path)
    assert all(any(f" by {one}: " in each for each in wrong) for one in (*ENGINES, STEPS))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_fetches_another_value_is_noticed(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right: Callable[[str, int, Asked], Plan] = engines._plan

    def wrong(group: str, number: int, asked: Asked) -> Plan:
        plan = right(group, number, asked)
        if engine == "tracefs":
            (line,) = plan.definitions
            return plan.replaced(definitions=(line.replace(" v=+", " v=+1"),))
        ((_, comm),) = plan.fields
        moved = Fetch(Deref(Register("sp"), 0), Scalar("u", 64))
        is_text = asked.fetch.store != Scalar("u", 64)
        return plan if is_text else plan.replaced(fields=((("v", moved), comm),))

    monkeypatch.setattr(engines, "_plan", wrong)
    said = c_failures(Build("gcc", ("-O1",)), "2", 2, 4, tmp_path)
    assert said
    assert all(f" by {engine}," in one for one in said)


def container_failures(build: Build | GoBuild | RustBuild, seed: str, folder: Path) -> int:
    require_bpf()
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    drawn = Random(f"containers/{seed}")
    tally, wrong, found = check_written(build, "containers", drawn, folder, ENGINES, small=True)
    assert tally.traced >= tally.compared > 0
    assert wrong == 0 or found is not None
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(
    "build",
    [
        Build("g++", ("-O2", "-no-pie"), plus=True),
        Build("clang++", ("-O0", "-stdlib=libc++"), plus=True),
    ],
    ids=str,
)
def test_the_engines_show_the_elements_of_containers_of_cpp(
    build: Build, seed: int, tmp_path: Path
) -> None:
    require(build.compiler)
    if "-stdlib=libc++" in build.options:
        require("libc++")
    assert container_failures(build, str(seed), tmp_path) == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("version", ALL_GO_VERSIONS)
def test_the_engines_show_the_elements_of_containers_of_go(
    version: str, seed: int, tmp_path: Path
) -> None:
    require(f"go{version}")
    assert container_failures(go_build(version, tmp_path), str(seed), tmp_path) == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_engines_show_the_elements_of_collections_of_rust(
    compiler: str, seed: int, tmp_path: Path
) -> None:
    build = RustBuild(compiler, ("-C", "opt-level=0"))
    assert container_failures(build, str(seed), tmp_path) == 0


def test_elements_that_the_program_does_not_have_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(f"go{GO_VERSIONS[-1]}")
    build = go_build(GO_VERSIONS[-1], tmp_path)
    monkeypatch.setattr(written_programs, "_FUNCTIONS", 1)
    monkeypatch.setattr(written_programs, "_EXPRESSIONS", 12)
    assert container_failures(build, "1", tmp_path) == 0
    right = shown_values.said

    def without_a_last_element(printed: str) -> dict[str, list[list[object]]]:
        found = right(printed)
        for each in itertools.chain.from_iterable(itertools.chain.from_iterable(found.values())):
            if isinstance(each, WrittenWalk) and each:
                del each[-1]
        return found

    monkeypatch.setattr(written_programs, "said", without_a_last_element)
    assert container_failures(build, "1", tmp_path) >= len(ENGINES)


NOWHERE = Deref(Register("sp"), 1 << 30)  # far above every stack
FAILING = [
    Fetch(Deref(NOWHERE, 8), Scalar("u", 64)),
    Fetch(Deref(NOWHERE, 8), Text()),
    Fetch(NOWHERE, Scalar("s", 16)),
    Fetch(NOWHERE, Text()),
    Fetch(NOWHERE, Array(Scalar("u", 8), 4)),
]


def test_what_no_engine_can_read_is_a_fault_or_explained(tmp_path: Path) -> None:
    require_bpf()
    require("gcc")
    source = "__attribute__((noipa)) void look(void) {} int main(void) { look(); return 0; }"
    program = build_c(source, Build("gcc", ("-O1",)), tmp_path)
    place = fetchc.open(str(program)).probe("look").definition((), "fetchc", "ev").split()[1]
    asked = [Asked(place, False, fetch) for fetch in FAILING]

    def run() -> None:
        subprocess.run([program], check=True)

    shown = recorded(ENGINES, asked, run)
    thread = machine.Machine({"sp": 1 << 46}, machine.Memory({}), 0)
    by_rules = [evaluate(fetch, state_of(thread)) for fetch in FAILING]
    assert set(shown["bpf"]) == {UNREAD}
    for engine in ENGINES:
        found = zip(FAILING, by_rules, shown[engine], strict=True)
        assert [
            got for one, wanted, got in found if not agree(engine, wanted, one.store, got)
        ] == []
        for fetch, wanted in zip(FAILING, by_rules, strict=True):
            assert not agree(engine, wanted, fetch.store, None)
            assert engine == "tracefs" or not agree(engine, wanted, fetch.store, "0")
    read = Outcome(0)
    assert not any(agree(engine, read, Scalar("u", 8), UNREAD) for engine in ENGINES)
    stale = [isinstance(one, Fault) for one in by_rules]
    assert {engine for engine, _ in DIFFERENCES} == set(ENGINES)
    assert stale == [True, True, False, False, False]


def test_the_command_says_how_many_were_traced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_bpf()
    require("gcc")
    monkeypatch.setattr("fetchc.conformance.suite._FUNCTIONS", 3)
    monkeypatch.setattr("fetchc.conformance.toolchains._C_OPTIONS", [("-O0", "-gdwarf-4")])
    words = ["conformance", "--cc", "gcc", "--only", "signatures", "--format", "json"]
    traced = {}
    for engine in ("bpf", "none"):
        assert main([*words, "--engine", engine]) == 0
        ((result,),) = [
            each["results"] for each in json.loads(capsys.readouterr().out)["toolchains"]
        ]
        traced[engine] = result["traced"] >= result["compared"] > 0
    assert traced == {"bpf": True, "none": False}
