"""Drawn layouts by both engines on each kernel: every value is the one that the program has."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

import fetchc
from fetchc.conformance.c_comparison import layouts
from fetchc.conformance.c_drawing import Family
from fetchc.conformance.c_programs import Probe
from fetchc.conformance.engines import ENGINES, UNREAD, Asked
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

_SECONDS = 300  # to boot with so many files, when the machine is busy
_FAMILIES, _EXPRESSIONS = 6, 24
_PATH = "/drawn"
_SCRIPT = "drawn_programs.py"
_TARGETS = {"x86_64": Target("x86_64", "x86_64-linux-none", "gcc")} | TARGETS
_BUILDS = (("-O2", "-gdwarf-5"), ("-O0", "-gdwarf-4"))


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


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
def test_the_engines_fetch_what_a_drawn_program_has(
    lab_kernel: LabKernel, seed: int, tmp_path: Path, tell: Callable[[object], None]
) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    target = _TARGETS[lab_kernel.machine.name]
    content = {**files(lab_kernel), _SCRIPT: (SOURCES / _SCRIPT).read_bytes()}
    with Guest(lab_kernel, content, _SECONDS) as guest:
        for options in _BUILDS:
            random = Random(f"{seed} {lab_kernel.label} {options}")
            drawn = [layouts(random, number, _EXPRESSIONS) for number in range(_FAMILIES)]
            source = c_source(drawn)
            program = cross.build(target, target.gcc, source, tmp_path, "-DPRINTED", *options)
            wanted = list(_wanted(drawn, program, lab_kernel.release))
            guest.put(_PATH, program.read_bytes())
            asked = [Asked(it.place, it.returning, it.part.fetch) for it in wanted]
            guest.put("/given", pickle.dumps((_PATH, asked)))
            answer = json.loads(
                guest.run(interpreter(lab_kernel), f"/{_SCRIPT}", "/given").splitlines()[-1]
            )
            values = _values(drawn, bytes.fromhex(answer["printed"]))
            assert differences(wanted, answer["shown"], values) == []
            tell(f"{lab_kernel.label}, {options[0]}: {len(wanted)} fetches by each engine")
            assert len(wanted) > 40
            moved = [*values[1:], values[0]]
            wrong = differences(wanted, answer["shown"], moved)
            assert all(any(f" by {engine} " in one for one in wrong) for engine in ENGINES)
