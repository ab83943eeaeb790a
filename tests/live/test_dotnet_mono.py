"""A program of our own, compiled ahead of time by Mono: each value is what it printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.live.traced import trace
from tests.support.dotnet import ahead_of_time
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
    "Parts": (
        "Server.Parts",
        ["some", "some[1]", "words", "waiting", "waiting[1]", "named", "named.Count"],
    ),
    "Plain": ("Server.Plain", ["first", "big.C", "last"]),
    # Code that all classes share; a register of its own tells it their types.
    "Hold": (
        "Holder<__Canon>.Hold", ["(string)next", "count", "(string)this.Held", "this.Tail"],
    ),
    "Join": ("Holder.Pair.Join", ["(string)first", "between", "(string)last"]),
    "Choose": ("Holder.Choose", ["(string)key", "of.Count", "at"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly, with its code beside it."""
    require_uprobes()
    return ahead_of_time(SOURCE, tmp_path_factory.mktemp("aot") / "aot.exe")


@pytest.mark.parametrize("method", METHODS)
def test_values(method: str, program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    function, expressions = METHODS[method]
    where: list[str | Path] = ["-x", program, "-f", function, "--format", "jsonl"]
    found = trace(capfd, *expressions, *where, "--", "mono", program)
    assert found.status == 0, found.errors
    seen = [[args[one] for one in expressions] for args in found.args]
    lines = [json.loads(line.removeprefix("EVENT ")) for line in found.program]
    printed = [each["values"] for each in lines if each["method"] == method]
    assert len(printed) >= 3
    assert seen == printed


@pytest.mark.parametrize("method", ["Corner", "Halved"])
def test_results(method: str, program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where: list[str | Path] = ["-x", program, "-f", f"Server.{method}", "--format", "jsonl"]
    risk = ["--return", "--unsafe-return"]
    found = trace(capfd, "$retval", *risk, *where, "--", "mono", program)
    assert found.status == 0, found.errors
    lines = [json.loads(line.removeprefix("EVENT ")) for line in found.program]
    printed = [each["values"][0] for each in lines if each["method"] == method]
    assert len(printed) == 3
    assert [args["$retval"] for args in found.args] == printed


@pytest.mark.parametrize("method", ["Plain", "Make"])
def test_a_result_whose_address_is_lost_is_refused(
    method: str, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from fetchc.cli import main

    # Mono leaves in the register of results whatever it computed last.
    where = ["-x", str(program), "-f", f"Server.{method}", "--return", "--unsafe-return"]
    assert main(["compile", "$retval.C", *where]) == 1
    assert "no register keeps its address" in capfd.readouterr().err


def test_methods_of_one_symbol_are_not_taken_for_each_other(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from fetchc.cli import main

    assert main(["compile", "value", "-x", str(program), "-f", "Server.Same(int)"]) == 3
    assert "Mono's symbols do not distinguish it from another method" in capfd.readouterr().err


def test_the_compiled_file_itself_is_refused_by_its_debug_information(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from fetchc.cli import main

    assert main(["compile", "last", "-x", f"{program}.so", "-f", "Server_Plain_int_Big_int"]) == 1
    assert "no calling convention is known for C# of Mono" in capfd.readouterr().err
