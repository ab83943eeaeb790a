"""Rust by every compiler that is here, with and without optimization: traced against printed."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = Path(__file__).parents[2] / "corpus/rust/requests/main.rs"
# Debian's, and a newer one where somebody installed it: the library changes between them.
COMPILERS = dict.fromkeys(filter(None, ("/usr/bin/rustc", shutil.which("rustc"))))
# Parameters that the optimiser may take apart; of strings and slices it knows the length.
TAKEN_APART = {"n", "o.discriminant"}
HALVES = {"s", "v"}


@dataclass
class Call:
    """One call as the program tells it: what each expression must give."""

    function: str
    values: dict[str, Any] = field(default_factory=dict)


def calls(lines: list[str]) -> list[Call]:
    """The calls that the EVENT lines tell of, in order."""
    found: list[Call] = []
    printed: dict[str, Any] = {}
    for line in lines:
        words = line.removeprefix("EVENT ")
        if words.startswith("{"):
            printed |= json.loads(words)["values"]
        else:
            found.append(Call(words.split()[0], printed))
            printed = {}
    return found


def shown(value: Any) -> Any:
    """A value of the trace as the program writes it."""
    return value["name"] if isinstance(value, dict) and "name" in value else value


def differences(printed: list[Call], args: list[dict[str, Any]]) -> list[str]:
    """Where a traced value is not the one that the program printed, or no call was seen."""
    wrong = [] if len(printed) == len(args) else [f"{len(printed)} calls, {len(args)} events"]
    for call, seen in zip(printed, args, strict=False):
        wrong += [
            f"{call.function}: {expression} is {seen[expression]!r}, not {value!r}"
            for expression, value in call.values.items()
            if expression in seen and shown(seen[expression]) != value
        ]
    return wrong


@pytest.mark.parametrize("level", ["0", "3"])
@pytest.mark.parametrize("compiler", [pytest.param(one, id=str(one)) for one in COMPILERS])
def test_every_value_is_what_the_program_printed(
    compiler: str, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    binary = tmp_path / "requests"
    command = [compiler, "--crate-name", "requests", "-g", "-C", f"opt-level={level}", str(SOURCE)]
    subprocess.run([*command, "-o", str(binary)], check=True, capture_output=True)
    printed = calls(
        subprocess.run([binary], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
    )
    program = fetchc.open(str(binary))
    compared = 0
    for name in ("handle", "visit"):
        own = [call for call in printed if call.function == name]
        at = "body" if level == "0" else None
        probe = program.probe(f"requests::{name}", at=at)
        taken, refused = [], []
        there = dict.fromkeys(each for call in own for each in call.values)
        for expression in there if level == "0" else there.keys() - HALVES:
            try:
                probe.compile(expression)
                taken.append(expression)
            except fetchc.CompileError:
                refused.append(expression)
        assert set(refused) <= (set() if level == "0" else TAKEN_APART)
        place = ["--at", at] if at else []
        told_by_trace = trace(
            capfd, *taken, "-x", binary, "-f", f"requests::{name}", *place,
            "--format", "jsonl", "--timeout", "200", "--", binary,
        )  # fmt: skip
        assert differences(own, told_by_trace.args) == []
        compared += sum(expression in taken for call in own for expression in call.values)
    assert compared >= 120


@pytest.mark.skipif(not COMPILERS, reason="no rustc here (.ci/setup brings it)")
def test_the_comparison_can_fail() -> None:
    printed = [Call("handle", {"n": 3, "color": "Red"}), Call("handle", {"n": 4})]
    right: list[dict[str, Any]] = [{"n": 3, "color": {"name": "Red", "value": 3}}, {"n": 4}]
    assert differences(printed, right) == []
    assert differences(printed, right[:1]) == ["2 calls, 1 events"]
    wrong: list[dict[str, Any]] = [{"n": 3, "color": {"name": None, "value": 4}}, {"n": 5}]
    assert differences(printed, wrong) == [
        "handle: color is {'name': None, 'value': 4}, not 'Red'",
        "handle: n is 5, not 4",
    ]
