"""Methods that a compiler took apart, by the names of the source: variables that outlive a step or
are captured, and members of the object that the method is of.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from tests.live.traced import trace
from tests.support.dotnet import ahead_of_time
from tests.support.toolchains import ROOT
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = ROOT / "corpus/dotnet/aot/steps.cs"
# The method that has the body, and which of its calls are first steps, which are not reported.
BODIES = {
    "Wait": ("Steps.<Wait>c__async0.MoveNext", (0, 4)),
    "Count": ("Steps.<Count>c__Iterator1.MoveNext", (0,)),
    "Captured": ("Steps.<Captured>c__AnonStorey2.<>m__0", ()),
}

ASKED = {
    "Wait": "sum note i__1 i__2 text retries handled this.label this.this.handled",
    "Count": "at each limit text handled label",
    "Captured": "x inner tag seen factor handled label",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly, with its code beside it."""
    require_uprobes()
    return ahead_of_time(SOURCE, tmp_path_factory.mktemp("steps") / "steps.exe")


def traced(
    method: str, program: Path, capfd: pytest.CaptureFixture[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What a trace of the method's body showed next to the program's own lines before each step."""
    body, first = BODIES[method]
    where: list[str | Path] = ["-x", program, "-f", body, "--format", "jsonl"]
    found = trace(capfd, *ASKED[method].split(), *where, "--", "mono", program)
    assert found.status == 0, found.errors
    lines = [json.loads(line.removeprefix("EVENT ")) for line in found.program]
    values = [each["values"] for each in lines if each["method"] == method]
    seen = [args for at, args in enumerate(found.args) if at not in first]
    assert len(seen) == len(values)
    pairs = zip(seen, values, strict=True)
    return [{name: args[name] for name in one} for args, one in pairs], values


@pytest.mark.parametrize("method", BODIES)
def test_values(method: str, program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen, printed = traced(method, program, capfd)
    assert len(printed) >= 2
    assert seen == printed


def test_a_listing_searches_for_no_address(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # All methods are in one unit of the debug information, which a search for an address reads up
    # to there: 3,400 methods took over a minute.
    def searched(opened: DwarfProgram, address: int) -> None:
        raise AssertionError(f"{address:#x} is searched for")

    monkeypatch.setattr(DwarfProgram, "function_at", searched)
    opened = DotnetProgram(str(program))
    listed = list(opened.precompiled())
    assert len(listed) > 15
    assert all(end > begin for _, begin, end in listed)
    (found,) = opened.functions_named("Steps.Wait")
    assert found.size


def test_a_wrong_value_is_noticed(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen, printed = traced("Count", program, capfd)
    printed[1]["handled"] += 1
    assert seen != printed
