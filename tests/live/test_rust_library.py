"""Rust's enums and library types: what a trace shows is what the program itself says of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.live.rustc import COMPILERS, builds, compiled
from tests.live.traced import trace
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = Path(__file__).parents[2] / "corpus/rust/library/main.rs"
AT_ONCE = 12  # expressions of one session: an event has room for so many bytes
# Up to Rust 1.66 a ring had no length of its own.
RING = {"a.ring", "a.ring.len()", "a.ring.capacity()", "a.ring[1]", "a.ring[4]", "a.no_ring"}


def printed(lines: list[str]) -> list[dict[str, Any]]:
    """What each call's expressions must give, by the lines of the program."""
    calls: list[dict[str, Any]] = [{}]
    for line in lines:
        if line.startswith("EVENT call"):
            calls.append({})
        elif line:
            one = json.loads(line.removeprefix("EVENT "))
            calls[-1][one["expression"]] = one["value"]
    return calls[:-1]


def differences(calls: list[dict[str, Any]], args: list[dict[str, Any]]) -> list[str]:
    """Where a traced value is not the one that the program printed, or no call was seen."""
    wrong = [] if len(calls) == len(args) else [f"{len(calls)} calls, {len(args)} events"]
    for call, seen in zip(calls, args, strict=False):
        wrong += [
            f"{expression} is {value!r}, not {call[expression]!r}"
            for expression, value in seen.items()
            if value != call[expression]
        ]
    return wrong


@pytest.mark.parametrize(("compiler", "level"), builds("0", "3"))
def test_every_value_is_what_the_program_printed(
    compiler: str, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    binary = compiled(compiler, SOURCE, tmp_path / "library", "-C", f"opt-level={level}")
    done = subprocess.run([binary], check=True, capture_output=True, text=True)
    addresses = {"a.boxed", "a.lent", "a.rc", "a.pin", "a.vec"}
    version = subprocess.run([compiler, "-V"], check=True, capture_output=True, text=True)
    old = int(version.stdout.split()[1].split(".")[1]) < 67
    taken = [one for one in printed(done.stdout.split("\n"))[0] if not (old and one in RING)]
    assert len(taken) >= 85
    place = ["--at", "body"] if level == "0" else []
    for low in range(0, len(taken), AT_ONCE):
        some = taken[low : low + AT_ONCE]
        seen = trace(
            capfd, *some, "-x", binary, "-f", "library::visit", *place,
            "--format", "jsonl", "--timeout", "200", "--", binary,
        )  # fmt: skip
        # Addresses are those of the run that was traced.
        calls = printed(seen.program)
        assert differences(calls, seen.args) == []
        assert not addresses.intersection(some) or any(seen.args[1][one] for one in some)


@pytest.mark.skipif(not COMPILERS, reason="no rustc here (.ci/setup brings it)")
def test_the_comparison_can_fail() -> None:
    call = {"a.shape": {"Circle": {"r": 7}}, "a.number": {"Some": 3}}
    assert differences([call], [dict(call)]) == []
    assert differences([call], []) == ["1 calls, 0 events"]
    assert differences([call], [{"a.number": "None"}]) == ["a.number is 'None', not {'Some': 3}"]
