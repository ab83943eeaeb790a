"""Values of many kinds in a program of our own, compiled ahead of time by Mono: each is what it
printed.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from tests.live.traced import trace
from tests.support.dotnet import ahead_of_time
from tests.support.toolchains import ROOT
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = ROOT / "corpus/dotnet/aot/values.cs"
METHODS = ["Fields", "Collections", "Stacks", "Arguments", "More", "Seen"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly, with its code beside it."""
    require_uprobes()
    return ahead_of_time(SOURCE, tmp_path_factory.mktemp("values") / "values.exe")


def traced(
    method: str, program: Path, capfd: pytest.CaptureFixture[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What a trace of the method showed, and what the program printed of it."""
    run = ["mono", str(program)]
    done = subprocess.run(run, check=True, timeout=60, capture_output=True, encoding="utf-8")
    expressions = list(_printed(method, done.stdout.splitlines())[0])
    where: list[str | Path] = ["-x", program, "-f", f"Values.{method}", "--format", "jsonl"]
    found = trace(capfd, *expressions, *where, "--", *run)
    assert found.status == 0, found.errors
    return found.args, _printed(method, found.program)


def _printed(method: str, lines: list[str]) -> list[dict[str, Any]]:
    expected = [json.loads(line.removeprefix("EVENT ")) for line in lines]
    return [each["values"] for each in expected if each["method"] == method]


@pytest.mark.parametrize("method", METHODS)
def test_values(method: str, program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen, expected = traced(method, program, capfd)
    assert len(expected) >= 3
    assert seen == expected


@pytest.mark.parametrize(
    ("method", "expression", "nulls"),
    [
        ("Seen", "shape", 8),
        ("Seen", "(string)any", 3),
        ("Seen", "shape.Label", 0),
        ("Fields", "all.Maybe", 1),
        ("Fields", "all.Entry.Value", 1),
    ],
)
def test_filters_that_ask_for_null(
    method: str, expression: str, nulls: int, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where: list[str | Path] = ["-x", program, "-f", f"Values.{method}", "--format", "jsonl"]
    found = {}
    for symbol in ("==", "!="):
        condition = ["--filter", f"{expression} {symbol} null"]
        seen = trace(capfd, expression, *where, *condition, "--", "mono", program)
        assert seen.status == 0, seen.errors
        found[symbol] = [args[expression] for args in seen.args]
    assert found["=="] == [None] * nulls
    assert len(found["!="]) > 0
    assert None not in found["!="]


def test_a_wrong_value_is_noticed(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen, expected = traced("Arguments", program, capfd)
    expected[1]["price"] += "0"
    assert seen != expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("all.Grid[1,2]", ["FC0304", "a fetch-arg cannot multiply"]),
        ("all.Grid[1]", ["FC0304", "`int[,]` takes 2 indices, not 1"]),
        ("all.Jagged[1,2]", ["FC0304", "`int[][]` takes 1 index, not 2", "write `a[1][2]`"]),
        ("all.Grid[0,-2]", ["FC0303", "the index -2 is before the first element"]),
        ("all.Map.Count", ["FC0312", "it is `_count` minus `_freeCount`"]),
        ("(Circle[])all.Arrays", ["FC0302", "`Array`"]),
        ("Outer.Inner.Shared", ["FC0401", "it is a static field, which the runtime puts where"]),
        ("Outer.Inner.Missing", ["FC0201", "no variable `Outer`"]),
        ("(Oval)all.Thing", ["FC0204", "no type `Oval`"]),
    ],
)
def test_refusals(
    expression: str, expected: list[str], program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["-x", str(program), "-f", "Values.Fields"]
    assert main(["compile", expression, *where]) == 1
    printed = capfd.readouterr()
    assert printed.out == ""
    for part in expected:
        assert part in printed.err


def test_constants_are_numbers(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = ["-x", str(program), "-f", "Values.Fields"]
    assert main(["compile", "Rights.Own", "Level.Low", *where]) == 0
    assert capfd.readouterr().out.split() == ["\\128:u8", "\\-5000000000:s64"]


def test_both_numbers_of_a_difference_in_a_definition(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["-x", str(program), "-f", "Values.Fields", "--format", "probe"]
    assert main(["compile", "n=all.Map.Count", *where]) == 0
    words = capfd.readouterr().out.split()
    assert words[2:] == ["n_count=+64(+104(%di)):s32", "n_freeCount=+72(+104(%di)):s32"]
