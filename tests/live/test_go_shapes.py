"""Go functions that use less than they take: what is shown at the entry and at a line was passed.

``FETCHC_SEEDS=1000-1040`` draws other programs, ``FETCHC_GO`` and ``FETCHC_LONG=1`` more versions.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.go_shapes import GoShapes
from tests.support.seeds import seeds
from tests.support.toolchains import GO_VERSIONS, go_number
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

_LONG = bool(os.environ.get("FETCHC_LONG") or os.environ.get("FETCHC_GO"))
VERSIONS = GO_VERSIONS if _LONG else ("1.19", "1.27")
FUNCTIONS = 40 if _LONG else 12
CEILING = 0.03  # of the numbers and pointers that are passed, those refused
_PART = 24  # expressions of one probe

Printed = dict[tuple[str, str], list[dict[str, Any]]]


def printed(output: str) -> Printed:
    """What the program printed, by function and place."""
    found: Printed = {}
    for line in output.splitlines():
        one = json.loads(line)
        found.setdefault((one["f"], one["at"]), []).append(one["args"])
    return found


def unlike(where: str, shown: list[dict[str, Any]], right: list[dict[str, Any]]) -> list[str]:
    """What the events of a probe show that is not what the program has there."""
    if len(shown) != len(right):
        return [f"{where}: {len(shown)} events, not {len(right)}"]
    return [
        f"{where}: {text} is {value!r}, not {one[text]!r}"
        for event, one in zip(shown, right, strict=True)
        for text, value in event.items()
        if value != one[text]
    ]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("flags", [(), ("-gcflags=-N -l",)], ids=["optimised", "-N"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_shown_was_passed(
    version: str, flags: tuple[str, ...], seed: int, tmp_path: Path
) -> None:
    require_uprobes()
    shapes = GoShapes(f"{seed} {version} {flags}", FUNCTIONS, bool(flags))
    binary = go_program(version, tmp_path, shapes.source(), *flags, name="shapes")
    program = fetchc.open(str(binary))
    refused: Counter[str] = Counter()
    probes: dict[str, tuple[str, str, fetchc.Probe, list[Any]]] = {}
    missing, needed = [], 0
    for one in shapes.functions:
        # Up to 1.21 blank parameters are in no debug information, and shift the others: the
        # runtime's tables show that there are none where ten numbers are all. Up to 1.16 it has no
        # such tables, and what optimised code does not use has no location that shows it.
        listed = go_number(version) > (1, 16) or bool(flags)
        certain = go_number(version) > (1, 21) or (listed and not (one.blanks or one.words > 10))
        for at in ("entry", "line"):
            known = certain and (at == "entry" or bool(flags))
            probe = program.probe(one.name, at=f":{one.line}" if at == "line" else None)
            found = []
            for text in one.asked:
                try:
                    found.append(probe.asked(text))
                except fetchc.CompileError as error:
                    code = error.diagnostics[0].code
                    refused[f"{at} {code}"] += 1
                    if text in one.scalars and known:
                        missing.append(f"{one.name} {at} {text}: {code}")
            needed += len(one.scalars) * known
            for part in range(0, len(found), _PART):
                probes[f"p{len(probes)}"] = (one.name, at, probe, found[part : part + _PART])
    output, events = watched(
        lambda group: [
            probe.plan(found, group, event) for event, (_, _, probe, found) in probes.items()
        ],
        [binary],
    )
    expected = printed(output)
    wrong, compared = [], 0
    for event, (name, at, _, _) in probes.items():
        shown = [one.args for one in events if one.name == event]
        compared += sum(len(args) for args in shown)
        wrong += unlike(f"{name} {at}", shown, expected[name, at])
    print(f"Go {version} {flags} seed {seed}: {compared} values, refused {dict(refused)}")
    print("wrong:", *wrong, sep="\n  ")
    print(f"of {needed} numbers and pointers {len(missing)}:", *missing, sep="\n  ")
    assert wrong == []
    assert compared > 10 * FUNCTIONS
    assert needed or go_number(version) < (1, 17)  # else the ceiling says nothing
    assert len(missing) <= CEILING * needed


def test_a_wrong_value_is_noticed() -> None:
    assert unlike("f entry", [{"v0": 3}], [{"v0": 3, "v1": "a"}]) == []
    assert unlike("f entry", [{"v0": 3}], [{"v0": 4}]) == ["f entry: v0 is 3, not 4"]
    assert unlike("f entry", [], [{"v0": 4}]) == ["f entry: 0 events, not 1"]
