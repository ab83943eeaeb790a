"""Source lines and locals of a precompiled .NET program with an embedded PDB, as it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.traced import Traced, trace
from tests.support.dotnet import NET9, missing
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

LIBRARY = NET9 / "azmcp.dll"
FUNCTION = "CommandFactory.ConfigureCommands"
# In it, for each command of a group: a local is made in line 234 and used in 236.
INNER = "CommandFactory.cs:236"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that run the program, which builds its tree of commands and prints a help."""
    require_uprobes()
    if reason := missing(NET9):
        pytest.skip(reason)
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "DOTNET_TieredCompilation=0"]
    silent = ["sh", "-c", 'exec "$0" --help >/dev/null']  # its text is not to mix with the trace's
    return ["--", "env", *settings, *silent, str(NET9 / "azmcp")]


def traced(
    capfd: pytest.CaptureFixture[str], run: list[str], where: list[str], *expressions: str
) -> Traced:
    """A trace of the function."""
    wanted = ["-x", str(LIBRARY), "-f", FUNCTION, *where, "--format", "jsonl"]
    found = trace(capfd, *expressions, *wanted, *run)
    assert found.status == 0, found.errors
    return found


def test_parameters_and_locals_inside_of_a_method(
    run: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    entry = traced(capfd, run, [], "group.Name", "len(group.Commands._entries)").args
    inner = traced(capfd, run, ["--at", INNER], "group.Name", "cmd._specifiedName").args
    groups = [each["group.Name"] for each in entry]
    assert groups[:3] == ["azmcp", "cosmos", "database"]
    # The line is reached once for each command, with the parameter in another register by then.
    assert {each["group.Name"] for each in inner} <= set(groups)
    commands = {(each["group.Name"], each["cmd._specifiedName"]) for each in inner}
    assert {("database", "list"), ("item", "query"), ("subscription", "list")} <= commands


def test_a_local_has_no_place_at_the_entry(
    run: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    found = trace(capfd, "cmd", "-x", str(LIBRARY), "-f", FUNCTION, *run)
    assert found.status == 1
    assert "it is a local variable, and no statement has run at the entry" in found.errors
    assert "it is available at +0x" in found.errors
