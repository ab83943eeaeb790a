"""Random C types and expressions that walk them: fetched values against the compiler's own.

``FETCHC_SEEDS=1000-1040`` draws other types, ``FETCHC_HYPOTHESIS=long`` more of them.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fetchc.check.indices
from fetchc.conformance.c.check import Change, Failure, Tally, check, probes_of
from fetchc.conformance.c.draw import draw
from fetchc.conformance.c.program import Probe
from fetchc.conformance.c.reduce import reduced, report
from fetchc.conformance.c.types import Family
from fetchc.ir.decode import Decode
from tests.support.toolchains import require

FAMILIES, EXPRESSIONS = 9, 24

RUNS = [
    ("gcc", ("-O0", "-gdwarf-5")),
    ("gcc", ("-O2", "-gdwarf-4")),
    ("gcc", ("-O0", "-gdwarf-4", "-no-pie")),
    ("gcc", ("-O2", "-gdwarf-5", "-fno-omit-frame-pointer")),
    ("clang", ("-O0", "-gdwarf-4")),
    ("clang", ("-O2", "-gdwarf-5")),
    ("clang", ("-O0", "-gdwarf-5", "-fomit-frame-pointer")),
    ("clang", ("-O2", "-gdwarf-4", "-no-pie")),
]


def seeds() -> list[int]:
    first, _, last = os.environ.get("FETCHC_SEEDS", "1").partition("-")
    return list(range(int(first), int(last or first) + 1))


def drawn(seed: str, families: int = FAMILIES) -> list[tuple[Family, list[Probe]]]:
    """Families of types with their questions; the same ones for the same seed."""
    found = []
    for number in range(families):
        random = Random(f"{seed}/{number}")
        family = draw(random, number)
        found.append((family, probes_of(random, family, EXPRESSIONS)))
    return found


def explained(failures: list[Failure], compiler: str, options: tuple[str, ...], at: Path) -> str:
    """The first failure in a small program, and how many more there are."""
    small = reduced(failures[0], compiler, options, at)
    return f"{len(failures)} wrong, the first:\n{report(small, compiler, options)}"


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(("compiler", "options"), RUNS)
def test_values_are_as_the_program_tells_them(
    seed: int, compiler: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    require(compiler)
    name = f"{seed} {compiler} {' '.join(options)}"
    tally, failures = check(drawn(name), compiler, options, tmp_path)
    print(f"seed {name}: {tally}")
    assert not failures, explained(failures, compiler, options, tmp_path)
    assert tally.compared > 0.8 * tally.expressions


@given(st.randoms(use_true_random=False), st.sampled_from(RUNS))
@settings(
    max_examples=settings().max_examples // 8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_small_programs(random: Random, run: tuple[str, tuple[str, ...]]) -> None:
    compiler, options = run
    require(compiler)
    family = draw(random, 0, roots=2)
    families = [(family, probes_of(random, family, 8))]
    with tempfile.TemporaryDirectory() as folder:
        _, failures = check(families, compiler, options, Path(folder))
        assert not failures, explained(failures, compiler, options, Path(folder))


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
    require("gcc")
    families = drawn("falsified", 3)
    tally, failures = check(families, "gcc", ("-O1",), tmp_path, falsified)
    assert 3 < len(failures) < tally.expressions
    small = reduced(failures[0], "gcc", ("-O1",), tmp_path, falsified)
    text = report(small, "gcc", ("-O1",))
    assert "fetch-arg:" in text
    assert small.expression.text in text
    assert len(small.family.source()) < len(drawn("falsified", 1)[0][0].source())


def test_a_missing_stride_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("gcc")
    right = fetchc.check.indices.first

    def first(*given: object) -> tuple[object, object, int]:
        start, made, _ = right(*given)  # type: ignore[arg-type]
        return start, made, 1

    monkeypatch.setattr("fetchc.check.indices.first", first)
    _, failures = check(drawn("falsified", 3), "gcc", ("-O1",), tmp_path)
    assert failures
    assert all("[" in failure.expression.text for failure in failures)


def test_the_tally_adds_up() -> None:
    whole = Tally(1, 2, 3)
    whole.add(Tally(4, 5, 6))
    assert str(whole) == "5 types, 7 expressions, 9 compared, refused: none"
