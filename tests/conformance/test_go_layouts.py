"""Random Go types and expressions that walk them: fetched values against the program's own.

``FETCHC_SEEDS=1000-1003`` draws other types.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from fetchc.conformance.child_processes import unavailable
from fetchc.conformance.go_comparison import GoFailure, check, reduced, reproducer
from fetchc.conformance.go_drawing import GoExpression, draw, draw_signatures
from fetchc.conformance.go_programs import GoBuild
from fetchc.conformance.results import Change, Tally
from fetchc.ir.fetch import Decode
from tests.support.seeds import seeds
from tests.support.toolchains import GO_VERSIONS, go_build, require

TYPES, EXPRESSIONS, FUNCTIONS = 40, 24, 60
UNOPTIMISED = ("-gcflags=-N -l",)


def build_or_skip(version: str, folder: Path, *options: str) -> GoBuild:
    require(f"go{version}")
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    return go_build(version, folder, *options)


def explained(failures: list[GoFailure], build: GoBuild, folder: Path) -> str:
    small, salt = reduced(failures[0], build, folder)
    return f"{len(failures)} wrong, the first:\n{reproducer(small, build, salt)}"


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("options", [(), UNOPTIMISED], ids=["optimised", "unoptimised"])
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_values_are_as_the_program_tells_them(
    seed: int,
    version: str,
    options: tuple[str, ...],
    tmp_path: Path,
    tell: Callable[[Tally], None],
) -> None:
    build = build_or_skip(version, tmp_path, *options)
    types, probes = draw(Random(f"{seed} {build}"), TYPES, EXPRESSIONS, build.generics)
    tally, failures = check(types, probes, build, tmp_path)
    tell(tally)
    assert not failures, explained(failures, build, tmp_path)
    assert tally.compared > 0.8 * tally.expressions


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_every_part_of_a_signature_is_there(
    seed: int, version: str, tmp_path: Path, tell: Callable[[Tally], None]
) -> None:
    build = build_or_skip(version, tmp_path)
    types, probes = draw_signatures(Random(f"{seed} {build}"), FUNCTIONS, build.generics)
    tally, failures = check(types, probes, build, tmp_path)
    tell(tally)
    assert not failures, explained(failures, build, tmp_path)
    assert tally.compared > 3 * FUNCTIONS
    expressions = [expression for probe in probes for expression in probe.expressions]
    assert sum(expression.stage == "leave" for expression in expressions) > FUNCTIONS
    assert sum(".(" in expression.text for expression in expressions) > 3
    assert sum(captured(expression) for expression in expressions) > 10
    assert (sum(probe.generic for probe in probes) > 5) == build.generics


def captured(expression: GoExpression) -> bool:
    return expression.text.lstrip("(*&lencap").startswith("k")


def result(expression: GoExpression) -> bool:
    return expression.stage == "leave"


def other_offset(text: str, decode: Decode) -> tuple[str, Decode]:
    changed = re.sub(r"[+-]\d+(?=\()", lambda found: f"{int(found[0]) + 1:+}", text, count=1)
    return changed, decode


def other_register(text: str, decode: Decode) -> tuple[str, Decode]:
    return text.replace("%ax", "%bx"), decode


def other_sign(text: str, decode: Decode) -> tuple[str, Decode]:
    return text, Decode(decode.kind, decode.bits, not decode.signed, decode.count)


def other_context(text: str, decode: Decode) -> tuple[str, Decode]:
    return text.replace("%dx", "%di"), decode


@pytest.mark.parametrize(
    ("asked", "falsified"), [(result, other_register), (captured, other_context)]
)
def test_a_wrong_result_or_captured_variable_is_noticed(
    asked: Callable[[GoExpression], bool], falsified: Change, tmp_path: Path
) -> None:
    build = build_or_skip("1.27", tmp_path)
    types, probes = draw_signatures(Random("falsified"), FUNCTIONS, build.generics)
    for probe in probes:
        probe.expressions = [it for it in probe.expressions if asked(it)]
    tally, failures = check(types, probes, build, tmp_path, falsified)
    assert 3 < len(failures) <= tally.compared
    small, _ = reduced(failures[0], build, tmp_path, falsified)
    assert asked(small.expression)
    assert small.expression.text == failures[0].expression.text
    if asked is result:  # $ret1 stays the second
        assert len(small.probe.results) == len(failures[0].probe.results)


@pytest.mark.parametrize("falsified", [other_offset, other_register, other_sign])
def test_a_wrong_emission_is_noticed(falsified: Change, tmp_path: Path) -> None:
    build = build_or_skip("1.22", tmp_path)
    types, probes = draw(Random("falsified types"), 8, EXPRESSIONS, build.generics)
    tally, failures = check(types, probes, build, tmp_path, falsified)
    assert 3 < len(failures) < tally.expressions
    expression = failures[0].expression
    small, salt = reduced(failures[0], build, tmp_path, falsified)
    found = reproducer(small, build, salt)
    assert found.expression == expression.text
    assert found.fetched != found.program
    assert found.source.count("\n") <= 8
    assert len(small.probe.parameters) == 1
