"""The fragile core library of .NET Core 2.1, by a map: methods are where their pointers lead."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.diag.diagnostic import DebugInfoError
from tests.live.traced import trace
from tests.support.dotnet import NETCORE21, compiled, framework, host
from tests.support.toolchains import ROOT
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = ROOT / "corpus/dotnet/calls/pointers.cs"
CORE = framework(NETCORE21)
ENVIRONMENT = {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    output = compiled(SOURCE, tmp_path_factory.mktemp("pointers") / "pointers.dll")
    named = {"name": "Microsoft.NETCore.App", "version": NETCORE21.name}
    config = json.dumps({"runtimeOptions": {"framework": named}})
    output.with_suffix(".runtimeconfig.json").write_text(config)
    return output


@pytest.fixture(scope="module")
def folder(program: Path) -> Path:
    """A folder with the map, made of what the running program says of its library."""
    done = subprocess.run(
        [host(NETCORE21, program.parent), str(program), "where"],
        check=True, capture_output=True, text=True, timeout=60, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    base = min(int(one.split()[1].split("-")[0], 16) for one in lines if one.startswith("MAP "))
    text = ""
    for one in lines:
        if one.startswith("CODE "):
            _, code, name = one.split(" ", 2)
            text += f"{int(code, 16) - base:016x} 20 bool [System.Private.CoreLib] {name}\n"
    made = program.parent / f"System.Private.CoreLib.ni.{{{Assembly(CORE).module_id()}}}.map"
    made.write_text(text)
    return made.parent


def test_without_a_map_it_is_refused(program: Path) -> None:
    with pytest.raises(DebugInfoError, match="there is no map of it"):
        DotnetProgram(CORE).functions_named("Convert.FromBase64String")


def test_values(program: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where: list[str | Path] = ["-x", CORE, "--reference", folder, "-f", "Convert.FromBase64String"]
    run = ["env", *(f"{name}={value}" for name, value in ENVIRONMENT.items())]
    command: list[str | Path] = [*run, host(NETCORE21, program.parent), program]
    found = trace(capfd, "s", "s.Length", *where, "--format", "jsonl", "--", *command)
    assert found.status == 0, found.errors
    printed = [one.removeprefix("EVENT ").rstrip("\n") for one in found.program if "EVENT" in one]
    assert len(printed) == 3
    assert [[args["s"], args["s.Length"]] for args in found.args] == [[t, len(t)] for t in printed]


def test_all_lines_lead_to_their_methods(folder: Path) -> None:
    opened = DotnetProgram(CORE, (str(folder),))
    assert sorted(opened.function_names()) == [
        "System.Convert.FromBase64String(string)",
        "System.String.IsNullOrWhiteSpace(string)",
        "System.Version.TryParse(string, System.Version&)",
    ]


def test_a_map_of_another_build_is_refused(folder: Path, tmp_path: Path) -> None:
    (made,) = folder.glob("*.map")
    words = [line.split(None, 1) for line in made.read_text().splitlines()]
    moved = [f"{int(start, 16) + 8:x} {rest}\n" for start, rest in words]
    (tmp_path / made.name).write_text("".join(moved))
    with pytest.raises(DebugInfoError, match="the map is of another build: 3 of its 3 lines"):
        DotnetProgram(CORE, (str(tmp_path),))
