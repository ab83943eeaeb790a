"""Parameters of drawn C# methods, most of them on the stack: they are what the program prints.

``FETCHC_SEEDS=7-9`` draws other programs, ``FETCHC_CSHARP=25`` more methods.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

import fetchc
from fetchc.conformance import shown_values
from fetchc.conformance.dotnet_programs import MonoBuild, check_dotnet, draw_dotnet
from fetchc.conformance.engines import ENGINES
from tests.support.dotnet import require_mono
from tests.support.seeds import seeds
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live

METHODS = int(os.environ.get("FETCHC_CSHARP", "4"))


def checked(seed: int, folder: Path) -> list[str]:
    """What is wrong, in words."""
    require_bpf()
    require_mono()
    program = draw_dotnet(Random(seed), METHODS)
    tally, failures = check_dotnet(program, MonoBuild("mono"), folder, ENGINES)
    refused = sum(tally.refused.values())
    assert tally.traced > tally.expressions > 0
    assert refused <= 0.03 * tally.traced, tally.refused
    opened = fetchc.open(str(folder / "drawn.exe"))
    on_stack = 0
    for probe in program.probes:
        definitions = [
            opened.probe(probe.function).plan([text], "fetchc_drawn").definitions[0]
            for text in probe.texts
        ]
        on_stack += sum("(%sp)" in one for one in definitions)
    assert on_stack > 4 * METHODS
    return [f"{it.probe.name} {it.text} by {it.reader}: {it.got}" for it in failures]


@pytest.mark.parametrize("seed", seeds())
def test_parameters(seed: int, tmp_path: Path) -> None:
    assert checked(seed, tmp_path) == []


@pytest.mark.long
def test_a_value_that_the_program_does_not_print_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = shown_values.said

    def turned(printed: str) -> dict[str, list[list[object]]]:
        found = right(printed)
        return {name: [[*one[1:], one[0]] for one in calls] for name, calls in found.items()}

    monkeypatch.setattr(shown_values, "said", turned)
    wrong = checked(1, tmp_path)
    assert all(any(f" by {engine}: " in one for one in wrong) for engine in ENGINES)
