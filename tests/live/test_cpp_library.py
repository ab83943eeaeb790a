"""Objects of both C++ libraries under ``fetchc trace``: every value is what the program printed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.cpp_library import PARAMETERS, built, has_old_lists, printed
from tests.live.traced import trace

pytestmark = pytest.mark.live

FUNCTIONS = ("texts", "holders", "counted", "pointed", "operator()")


@pytest.fixture(scope="module", params=PARAMETERS)
def program(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return built("main.cc", request.param, tmp_path_factory.mktemp("library"))


def _symbol(program: Path) -> str:
    # Both compilers have a name of their own for a lambda.
    listed = subprocess.run(["nm", program], capture_output=True, check=True, encoding="utf-8")
    symbols = [line.split()[-1] for line in listed.stdout.splitlines()]
    return next(one for one in symbols if "Maker4make" in one and "clEi" in one)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_are_what_the_program_printed(
    capfd: pytest.CaptureFixture[str], program: Path, function: str
) -> None:
    calls = printed(program)[function]
    if function == "counted" and has_old_lists(program):
        refused = "of.list.size()"
        with pytest.raises(fetchc.CompileError, match="does not count"):
            fetchc.open(str(program)).probe(function).compile(refused)
        calls = [{text: one[text] for text in one if text != refused} for one in calls]
    assert len(calls) == 3
    assert all(calls)
    where = _symbol(program) if function == "operator()" else function
    done = trace(capfd, *calls[0], "-x", program, "-f", where, "--format", "jsonl", "--", program)
    assert done.args == calls, done.errors
