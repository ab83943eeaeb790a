"""A program of our own, compiled ahead of time by Mono: each value is what it printed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.live.traced import trace
from tests.support.toolchains import ROOT
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = ROOT / "corpus/dotnet/aot/aot.cs"
METHODS = {
    "calculateEchoValue": ("EchoProvider.calculateEchoValue", ["echo"]),
    "Handle": (
        "Server.Handle",
        [
            "request.Name", "request.Age", "request.At.Y", "request.Numbers.Count",
            "request.Numbers", "request.Words.Length", "request.Words", "request.Last",
            "request.Next.Age", "at.X", "at.Y", "colour", "small",
        ],
    ),
    "Make": ("Server.Make", ["request.Age", "wide.A", "wide.B", "wide.C", "last"]),
    "Spread": ("Server.Spread", ["real.I", "a", "b", "wide.A", "wide.C", "c"]),
    "Plain": ("Server.Plain", ["first", "big.C", "last"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly, with its code beside it."""
    require_uprobes()
    for tool in ("mcs", "mono", "as", "ld"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}: .ci/setup installs it")
    assembly = tmp_path_factory.mktemp("aot") / "aot.exe"
    compiler = ["mcs", "-debug", f"-out:{assembly}", str(SOURCE)]
    ahead = ["mono", "--debug", f"--aot=dwarfdebug,outfile={assembly}.so", str(assembly)]
    for command in (compiler, ahead):
        subprocess.run(command, check=True, timeout=120, capture_output=True)
    return assembly


@pytest.mark.parametrize("method", METHODS)
def test_values(method: str, program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    function, expressions = METHODS[method]
    where: list[str | Path] = ["-x", program, "-f", function, "--format", "jsonl"]
    found = trace(capfd, *expressions, *where, "--", "mono", program)
    assert found.status == 0, found.errors
    seen = [[args[one] for one in expressions] for args in found.args]
    lines = [json.loads(line.removeprefix("EVENT ")) for line in found.program]
    told = [each["values"] for each in lines if each["method"] == method]
    assert len(told) >= 3
    assert seen == told


def test_the_compiled_file_itself_is_refused_by_its_debug_information(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from fetchc.cli import main

    assert main(["compile", "last", "-x", f"{program}.so", "-f", "Server_Plain_int_Big_int"]) == 3
    assert "no calling convention is known for C# of Mono" in capfd.readouterr().err
