"""Methods of the class library on running runtimes: each value is what the program printed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.traced import BPF, trace
from tests.support.dotnet import NET9, NETCORE21, NETCORE31, compiled, framework, host, missing
from tests.support.toolchains import ROOT
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = ROOT / "corpus/dotnet/calls/calls.cs"
CORE = "System.Private.CoreLib"
# Library, method, expressions whose values the program prints.
METHODS = {
    "IsNullOrWhiteSpace": (CORE, "String.IsNullOrWhiteSpace", ["value"]),
    "Uri": ("System.Private.Uri", "System.Uri..ctor(string)", ["uriString"]),
    "ToBase64String": (CORE, "Convert.ToBase64String(byte[])", ["inArray.Length", "inArray"]),
    "RemoveAt": (CORE, "List<int>.RemoveAt", ["this.Count", "index", "this"]),
    "CompareTo": (
        CORE,
        "Guid.CompareTo(Guid)",
        ["this._a", "value._a", "value._b", "value._c", "value._d", "value._k"],
    ),
    "IndexOf": (
        CORE,
        "Array.IndexOf(Array, object, int, int)",
        ["(int)value", "startIndex", "count"],
    ),
    "Join": (
        CORE,
        "String.Join(string, string[])",
        ["value.Length", "value[0]", "value[2]", "value", "value[1:3]"],
    ),
}
ENVIRONMENT = (
    "COMPlus_TieredCompilation=0",  # up to .NET 5
    "DOTNET_TieredCompilation=0",
    "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1",
)
# A method inside of the library, which newer ones do not have.
INNER = {
    "TryParse": (CORE, "Number.TryParseInt32IntegerStyle", ["value", "value.Length", "value[0:2]"])
}
LONGEST = 2048 if BPF else 128  # units of a string that a trace shows


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled against the library of 2.1, which newer runtimes have too."""
    require_uprobes()
    return compiled(SOURCE, tmp_path_factory.mktemp("calls") / "calls.dll")


def traced(
    runtime: Path,
    program: Path,
    method: str,
    capfd: pytest.CaptureFixture[str],
    result: str = "",
    *options: str,
) -> tuple[list[list[Any]], list[list[Any]]]:
    """What a trace of the method showed, and what the program printed of it.

    ``result``: that is asked for, and not what the program prints.
    """
    if reason := missing(runtime):
        pytest.skip(reason)
    library, function, expressions = {**METHODS, **INNER}[method]
    expressions = [result] if result else expressions
    version = "9.0.1" if runtime == NET9 else runtime.name
    config = program.with_suffix(f".{version}.json")
    named = {"name": "Microsoft.NETCore.App", "version": version}
    config.write_text(json.dumps({"runtimeOptions": {"framework": named}}))
    mode = "older" if runtime == NETCORE21 else "newer"
    # All of the code stays what it is: without this the runtime replaces some.
    run: list[str | Path] = ["env", *ENVIRONMENT]
    command = [
        *run,
        host(runtime, program.parent),
        "exec",
        "--runtimeconfig",
        config,
        program,
        mode,
    ]
    where = ["-x", framework(runtime, library), "-f", function, "--format", "jsonl", *options]
    found = trace(capfd, *expressions, *where, "--", *command)
    assert found.status == 0, found.errors
    seen = [[args[one] for one in expressions] for args in found.args]
    printed = [json.loads(line.removeprefix("EVENT ")) for line in found.program]
    return seen, [each["values"] for each in printed if each["method"] == method]


def shown(value: Any) -> Any:
    """What a trace shows of a value: the beginning of what is long."""
    return value[:LONGEST] if isinstance(value, str) else value


@pytest.mark.parametrize("runtime", [NETCORE31, NET9])
@pytest.mark.parametrize("method", METHODS)
def test_values(
    method: str, runtime: Path, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen, printed = traced(runtime, program, method, capfd)
    assert len(printed) >= 2
    # The runtime itself calls some of them before the program begins.
    behind = seen[-len(printed) :]
    assert [[shown(one) for one in values] for values in printed] == behind


def test_a_span_of_characters_is_a_text(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen, printed = traced(NETCORE31, program, "TryParse", capfd)
    assert len(printed) == 3
    # The program prints the last one as numbers.
    assert seen[-3:] == [[*values[:2], "".join(map(chr, values[2]))] for values in printed]


def test_a_wrong_value_is_noticed(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen, printed = traced(NETCORE31, program, "Join", capfd)
    printed[0][1] += "!"
    assert printed != seen[-len(printed) :]


def test_values_on_2_1(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen, printed = traced(NETCORE21, program, "Uri", capfd)
    assert len(printed) == 4
    assert seen == printed


@pytest.mark.parametrize("runtime", [NETCORE31, NET9])
def test_results_at_ones_own_risk(
    runtime: Path, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Nothing throws through it here.
    how = ("--return", "--unsafe-return")
    seen, printed = traced(runtime, program, "ToBase64String", capfd, "$retval", *how)
    expected = [[base64.b64encode(bytes(values[1])).decode()] for values in printed]
    assert len(expected) >= 2
    assert seen[-len(printed) :] == expected
