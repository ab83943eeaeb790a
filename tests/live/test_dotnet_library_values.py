"""Values of many kinds in methods of the class library, on running runtimes: each is what the
program printed.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.live.traced import trace
from tests.support.dotnet import (
    NET8,
    NET9,
    NETCORE31,
    bundled,
    compiled,
    framework,
    host,
    missing,
)
from tests.support.toolchains import ROOT
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = ROOT / "corpus/dotnet/calls/values.cs"
LATE = ROOT / "corpus/dotnet/calls/late.cs"
# The name that the program prints, and the function.
METHODS = {
    "Decimal.Round": "Decimal.Round(decimal, int)",
    "DateTime.Compare": "DateTime.Compare(DateTime, DateTime)",
    "DateTimeOffset.Compare": "DateTimeOffset.Compare(DateTimeOffset, DateTimeOffset)",
    "TimeSpan.Compare": "TimeSpan.Compare(TimeSpan, TimeSpan)",
    "Guid.Equals": "Guid.Equals(object)",
    "Array.Reverse": "Array.Reverse(Array)",
    "MemoryStream.WriteAsync": "MemoryStream.WriteAsync(ReadOnlyMemory<byte>, CancellationToken)",
    "StreamWriter.WriteAsync": "StreamWriter.WriteAsync(ReadOnlyMemory<char>, CancellationToken)",
    "Dictionary.Remove": "Dictionary<__Canon, __Canon>.Remove(__Canon)",
}
NEWER = {
    "HashSet.Remove": "HashSet<__Canon>.Remove(__Canon)",
    "DateOnly.ToLongDateString": "DateOnly.ToLongDateString()",
    "TimeOnly.ToLongTimeString": "TimeOnly.ToLongTimeString()",
    "PriorityQueue": "Decimal.Equals(object)",
    "OrderedDictionary": "DateTime.Equals(object)",
}
ENVIRONMENT = {
    "COMPlus_TieredCompilation": "0",  # all of the code stays what it is; up to .NET 5
    "DOTNET_TieredCompilation": "0",
    "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
}
FREED = {
    "Array.Reverse": "Array.Reverse(Array)",
    "Decimal.Equals": "Decimal.Equals(object)",
    "Guid.Equals": "Guid.Equals(object)",
}
Seen = list[dict[str, Any]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled against the library of 2.1, which newer runtimes have too."""
    require_uprobes()
    return compiled(SOURCE, tmp_path_factory.mktemp("values") / "values.dll")


def run(runtime: Path, program: Path) -> list[str]:
    """The words that run the program."""
    if runtime == NET8:
        return [str(bundled(program)), "newer"]
    version = "9.0.1" if runtime == NET9 else runtime.name
    config = program.with_suffix(f".{version}.json")
    named = {"name": "Microsoft.NETCore.App", "version": version}
    config.write_text(json.dumps({"runtimeOptions": {"framework": named}}))
    words = [host(runtime, program.parent), "exec", "--runtimeconfig", str(config), str(program)]
    return [*words, "newer"] if runtime == NET9 else words


def expected(method: str, lines: list[str]) -> Seen:
    """What the program printed of a method's calls."""
    events = [json.loads(line.removeprefix("EVENT ")) for line in lines]
    return [each["values"] for each in events if each["method"] == method]


def traced(
    runtime: Path, program: Path, method: str, capfd: pytest.CaptureFixture[str]
) -> tuple[Seen, Seen]:
    """What a trace of the method showed, and what the program printed of it."""
    if reason := missing(runtime):
        pytest.skip(reason)
    words = run(runtime, program)
    done = subprocess.run(
        words,
        env={**os.environ, **ENVIRONMENT},
        check=True,
        timeout=60,
        capture_output=True,
        encoding="utf-8",
    )
    expressions = list(expected(method, done.stdout.splitlines())[0])
    function = {**METHODS, **NEWER, **FREED}[method]
    library = framework(runtime)
    if runtime == NET8:
        library = f"{words[0]}:System.Private.CoreLib"
    where = ["-x", library, "-f", function, "--format", "jsonl"]
    settings = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
    # Where a type has the assembly's own name: that of the program is beside it. The core library
    # refers to no other one of the runtime.
    where += ["--reference", str(program.parent), "--reference", str(runtime)]
    found = trace(capfd, *expressions, *where, "--", "env", *settings, *words)
    assert found.status == 0, found.errors
    printed = expected(method, found.program)
    # The runtime itself calls some of them before the program begins.
    return found.args[-len(printed) :], printed


@pytest.mark.parametrize("runtime", [NETCORE31, NET8, NET9])
@pytest.mark.parametrize("method", METHODS)
def test_values(
    method: str, runtime: Path, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen, printed = traced(runtime, program, method, capfd)
    assert len(printed) >= 3
    assert seen == printed


@pytest.mark.parametrize("runtime", [NET8, NET9])
@pytest.mark.parametrize("method", NEWER)
def test_values_of_newer_types(
    method: str, runtime: Path, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen, printed = traced(runtime, program, method, capfd)
    assert len(printed) >= 3
    assert seen == printed


@pytest.mark.parametrize("runtime", [NET8, NET9])
@pytest.mark.parametrize("method", FREED)
def test_zeros_of_memory_that_the_collector_has_given_back(
    method: str, runtime: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    seen, printed = traced(runtime, compiled(LATE, tmp_path / "late.dll"), method, capfd)
    assert len(printed) == 3
    assert seen == printed


def test_another_value_is_noticed(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen, printed = traced(NETCORE31, program, "Guid.Equals", capfd)
    assert printed[0]["(int)o"] == 7
    printed[0]["(int)o"] = 8
    assert seen != printed
