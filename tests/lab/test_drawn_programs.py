"""Drawn programs by both engines on each kernel: every value is the one that the program has."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

import fetchc
from fetchc.conformance import go_drawing
from fetchc.conformance.c_comparison import layouts
from fetchc.conformance.c_drawing import Family
from fetchc.conformance.c_programs import Probe
from fetchc.conformance.engines import ENGINES, UNREAD, Asked
from fetchc.conformance.go_comparison import combined, parts_of
from fetchc.conformance.go_drawing import GoExpression, GoProbe
from fetchc.conformance.go_programs import GoBuild, build_go, go_source, printed_of
from fetchc.conformance.results import decoded
from fetchc.driver.compile import Part
from fetchc.record import Record
from tests.support import cross
from tests.support.cross import TARGETS, Target
from tests.support.cross_layouts import STAGES, c_source, printed, wanted_of
from tests.support.kernel_lab import SOURCES, LabKernel
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python
from tests.support.seeds import seeds
from tests.support.toolchains import GO_VERSIONS, go_build, require

_SECONDS = 300  # to boot with so many files, when the machine is busy
_FAMILIES, _EXPRESSIONS = 6, 24
_PATH = "/drawn"
_SCRIPT = "drawn_programs.py"
_TARGETS = {"x86_64": Target("x86_64", "x86_64-linux-none", "gcc")} | TARGETS
_BUILDS = tuple(
    [(name, it) for name in ("gcc", "g++") for it in (("-O2", "-gdwarf-5"), ("-O0", "-gdwarf-4"))]
)
_GO_FUNCTIONS = 8


class _Wanted(Record):
    """A fetch, and at which of the printed values it has to be."""

    expression: str
    place: str
    returning: bool
    part: Part
    at: tuple[int, ...]


def _wanted(
    drawn: Sequence[tuple[Family, list[Probe]]], program: Path, release: str
) -> Iterator[_Wanted]:
    # What can be fetched; refusals are the matter of other tests.
    opened = fetchc.open(str(program))
    at = 0
    for probe in [probe for _, probes in drawn for probe in probes]:
        for stage in STAGES:
            returning = stage == "leave"
            if not probe.asked[stage]:
                continue
            point = opened.probe(f"probe_{probe.tag}", returns=returning, kernel=release)
            offset = point.definition((), "fetchc", "ev").split()[1].rpartition(":")[2]
            for expression in probe.asked[stage]:
                numbers = range(at, at := at + len(expression.items))
                try:
                    parts = wanted_of(point, expression, list(numbers))
                except fetchc.CompileError:
                    continue
                for part, places in parts:
                    given = tuple([place for place in places if isinstance(place, int)])
                    place = f"{_PATH}:{offset}"
                    yield _Wanted(expression.text, place, returning, part, given)


def _values(drawn: Sequence[tuple[Family, list[Probe]]], raw: bytes) -> list[int | bytes]:
    found: list[int | bytes] = []
    end = 0
    for probe in [probe for _, probes in drawn for probe in probes]:
        some, end = printed(lambda at, size: raw[at : at + size], end, "little", probe)
        found += some
    assert end == len(raw)
    return found


def differences(
    wanted: Sequence[_Wanted], shown: dict[str, list[str | None]], values: list[int | bytes]
) -> list[str]:
    """How what the engines have shown differs from what the program has printed."""
    found = []
    for engine in ENGINES:
        for each, text in zip(wanted, shown[engine], strict=True):
            got = text if text in (None, UNREAD) else decoded(text, each.part.decode)
            right = [values[at] for at in each.at]
            if got != right:
                what = f"{each.expression}: {each.part.body} by {engine}"
                found.append(f"{what} gives {got}, expected {right}")
    return found


class _GoWanted(Record):
    """The fetches of an expression, and what names the value that they have to give."""

    expression: GoExpression
    key: tuple[str, int]
    place: str
    parts: tuple[Part, ...]


def _wanted_of_go(probes: Sequence[GoProbe], program: Path, release: str) -> Iterator[_GoWanted]:
    opened = fetchc.open(str(program))
    for probe in probes:
        points = {
            "entry": opened.probe(probe.function, kernel=release),
            "leave": opened.probe(probe.function, returns=True, kernel=release),
        }
        for number, expression in enumerate(probe.expressions):
            ((point, _), *others) = points[expression.stage].each()
            if others:  # one of several returns: which, only the run knows
                continue
            try:
                parts = parts_of(point.compile(expression.text), expression)
            except fetchc.CompileError:
                continue
            offset = point.definition((), "fetchc", "ev").split()[1].rpartition(":")[2]
            key = probe.tag, number
            yield _GoWanted(expression, key, f"{_PATH}:{offset}", tuple(parts))


def go_differences(
    wanted: Sequence[_GoWanted],
    shown: dict[str, list[str | None]],
    values: dict[tuple[str, int], list[int | bytes]],
) -> list[str]:
    """As :func:`differences`, of a Go program, whose values have names."""
    found = []
    for engine in ENGINES:
        left = iter(shown[engine])
        for each in wanted:
            texts = [(next(left), part) for part in each.parts]
            read = [
                one if one in (None, UNREAD) else decoded(one, part.decode) for one, part in texts
            ]
            got = combined(each.expression, read)
            if got != values[each.key]:
                what = f"{each.expression.text}: {each.parts[0].body} by {engine}"
                found.append(f"{what} gives {got}, expected {values[each.key]}")
    return found


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
def test_the_engines_fetch_what_a_drawn_program_has(
    lab_kernel: LabKernel, seed: int, tmp_path: Path, tell: Callable[[object], None]
) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    content = {**files(lab_kernel), _SCRIPT: (SOURCES / _SCRIPT).read_bytes()}
    with Guest(lab_kernel, content, _SECONDS) as guest:
        for name, options in _BUILDS:
            random = Random(f"{seed} {lab_kernel.label} {name} {options}")
            numbers = range(_FAMILIES)
            drawn = [layouts(random, it, _EXPRESSIONS, plus=name == "g++") for it in numbers]
            target = _TARGETS[lab_kernel.machine.name]
            compiler = target.gcc.replace("gcc", name)
            source = c_source(drawn)
            program = cross.build(target, compiler, source, tmp_path, "-DPRINTED", *options)
            wanted = list(_wanted(drawn, program, lab_kernel.release))
            asked = [Asked(it.place, it.returning, it.part.fetch) for it in wanted]
            shown, printed = _recorded(guest, lab_kernel, program, asked)
            values = _values(drawn, printed)
            assert differences(wanted, shown, values) == []
            tell(f"{lab_kernel.label}, {compiler} {options[0]}: {len(wanted)} fetches each")
            assert len(wanted) > 40
            moved = [*values[1:], values[0]]
            wrong = differences(wanted, shown, moved)
            assert all(any(f" by {engine} " in one for one in wrong) for engine in ENGINES)
        for version in GO_VERSIONS[::3]:
            build = _go_build(lab_kernel, version, tmp_path)
            random = Random(f"{seed} {lab_kernel.label} {version}")
            for types, probes in (
                go_drawing.draw(random, _GO_FUNCTIONS, _EXPRESSIONS, build.generics),
                go_drawing.draw_signatures(random, _GO_FUNCTIONS, build.generics),
            ):
                program = build_go(go_source(types, probes), build, tmp_path)
                of_go = list(_wanted_of_go(probes, program, lab_kernel.release))
                asked = [Asked(it.place, False, part.fetch) for it in of_go for part in it.parts]
                shown, printed = _recorded(guest, lab_kernel, program, asked)
                _, by_name = printed_of(printed.decode())
                assert go_differences(of_go, shown, by_name) == []
                tell(f"{lab_kernel.label}, Go {version}: {len(asked)} fetches each")
                assert len(asked) > 40
                first, *others = by_name.values()
                turned = dict(zip(by_name, [*others, first], strict=True))
                wrong = go_differences(of_go, shown, turned)
                assert all(any(f" by {engine} " in one for one in wrong) for engine in ENGINES)


def _go_build(kernel: LabKernel, version: str, folder: Path) -> GoBuild:
    require(f"go{version}")
    build = go_build(version, folder)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[kernel.machine.name]
    return build.replaced(environment={**build.environment, "GOARCH": machine})


def _recorded(
    guest: Guest, kernel: LabKernel, program: Path, asked: Sequence[Asked]
) -> tuple[dict[str, list[str | None]], bytes]:
    # What each engine has of one run in the guest, and what that run printed.
    guest.put(_PATH, program.read_bytes())
    guest.put("/given", pickle.dumps((_PATH, list(asked))))
    answer = json.loads(guest.run(interpreter(kernel), f"/{_SCRIPT}", "/given").splitlines()[-1])
    return answer["shown"], bytes.fromhex(answer["printed"])
