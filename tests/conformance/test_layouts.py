"""Random C types and expressions that walk them: fetched values against the compiler's own.

``FETCHC_SEEDS=1000-1040`` draws other types, ``FETCHC_HYPOTHESIS=long`` more of them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fetchc.check.indexing
from fetchc.conformance.c_comparison import Failure, check, layouts, reduced, reproducer
from fetchc.conformance.c_drawing import Family
from fetchc.conformance.c_programs import Build, Probe
from fetchc.conformance.results import Change, Tally
from fetchc.ir.fetch import Decode
from tests.support.seeds import seeds
from tests.support.toolchains import require

FAMILIES, EXPRESSIONS = 9, 24
GCC = Build("gcc", ("-O1",))

BUILDS = [
    Build("gcc", ("-O0", "-gdwarf-5")),
    Build("gcc", ("-O2", "-gdwarf-4")),
    Build("gcc", ("-O0", "-gdwarf-4", "-no-pie")),
    Build("gcc", ("-O2", "-gdwarf-5", "-fno-omit-frame-pointer")),
    Build("clang", ("-O0", "-gdwarf-4")),
    Build("clang", ("-O2", "-gdwarf-5")),
    Build("clang", ("-O0", "-gdwarf-5", "-fomit-frame-pointer")),
    Build("clang", ("-O2", "-gdwarf-4", "-no-pie")),
    Build("g++", ("-O0", "-gdwarf-4", "-no-pie"), plus=True),
    Build("g++", ("-O2", "-gdwarf-5"), plus=True),
    Build("clang++", ("-O0", "-gdwarf-5"), plus=True),
    Build("clang++", ("-O2", "-gdwarf-4"), plus=True),
]


def drawn(
    seed: str, families: int = FAMILIES, plus: bool = False
) -> list[tuple[Family, list[Probe]]]:
    """Families of types with their questions; the same ones for the same seed."""
    return [
        layouts(Random(f"{seed}/{number}"), number, EXPRESSIONS, plus=plus)
        for number in range(families)
    ]


def explained(failures: list[Failure], build: Build, at: Path) -> str:
    """The first failure in a small program, and how many more there are."""
    small = reproducer(*reduced(failures[0], build, at))
    return f"{len(failures)} wrong, the first:\n{small}"


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_values_are_as_the_program_tells_them(
    seed: int, build: Build, tmp_path: Path, tell: Callable[[Tally], None]
) -> None:
    require(build.compiler)
    name = f"{seed} {build}"
    tally, failures = check(drawn(name, plus=build.plus), build, tmp_path)
    tell(tally)
    assert not failures, explained(failures, build, tmp_path)
    assert tally.compared > 0.75 * tally.expressions


@given(st.randoms(use_true_random=False), st.sampled_from(BUILDS))
@settings(
    max_examples=settings().max_examples // 8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_small_programs(random: Random, build: Build) -> None:
    require(build.compiler)
    families = [layouts(random, 0, 8, roots=2, plus=build.plus)]
    with tempfile.TemporaryDirectory() as folder:
        _, failures = check(families, build, Path(folder))
        assert not failures, explained(failures, build, Path(folder))


def other_offset(text: str, decode: Decode) -> tuple[str, Decode]:
    changed = re.sub(r"[+-]\d+(?=\()", lambda found: f"{int(found[0]) + 1:+}", text, count=1)
    return changed, decode


def other_sign(text: str, decode: Decode) -> tuple[str, Decode]:
    bits, count = decode.bits, decode.count
    return text, Decode(decode.kind, bits, not decode.signed, count, limit=decode.limit)


def other_register(text: str, decode: Decode) -> tuple[str, Decode]:
    return text.replace("%di", "%si"), decode


def other_bit(text: str, decode: Decode) -> tuple[str, Decode]:
    return re.sub(r"b(\d+)@([1-9]\d*)/", lambda it: f"b{it[1]}@{int(it[2]) - 1}/", text), decode


def other_size(text: str, decode: Decode) -> tuple[str, Decode]:
    return re.sub(r":([usx])(16|32|64)", lambda it: f":{it[1]}{int(it[2]) // 2}", text), decode


@pytest.mark.parametrize(
    "falsified", [other_offset, other_register, other_bit, other_size, other_sign]
)
def test_a_wrong_emission_is_noticed(falsified: Change, tmp_path: Path) -> None:
    require(GCC.compiler)
    families = drawn("falsified", 3)
    tally, failures = check(families, GCC, tmp_path, falsified)
    assert 3 < len(failures) < tally.expressions
    expression = failures[0].expression
    small, filled = reduced(failures[0], GCC, tmp_path, falsified)
    found = reproducer(small, filled)
    assert found.expression == expression.text
    assert found.fetched != found.program
    assert found.expression in str(found)
    assert "-DSEED=" in found.command
    assert len(found.source) < len(drawn("falsified", 1)[0][0].source()) / 2


def test_a_missing_stride_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(GCC.compiler)
    right = fetchc.check.indexing.first_element

    def first(*given: object) -> tuple[object, object, int]:
        start, made, _ = right(*given)  # type: ignore[arg-type]
        return start, made, 1

    monkeypatch.setattr("fetchc.check.indexing.first_element", first)
    _, failures = check(drawn("falsified", 3), GCC, tmp_path)
    assert failures
    assert all("[" in failure.expression.text for failure in failures)


def test_the_tally_adds_up() -> None:
    whole, other = Tally(), Tally()
    other.types, other.functions, other.expressions, other.compared = 4, 5, 6, 2
    other.refused["FC0402"] = 3
    whole.add(other)
    whole.add(other)
    assert (
        str(whole)
        == "8 types, 10 functions, 12 expressions, 4 compared, 0 traced, refused: FC0402 6"
    )
