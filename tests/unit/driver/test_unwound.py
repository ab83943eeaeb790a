"""Return probes of what exceptions may leave: the unwinder does not get past them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

THROWING = """
__attribute__((noinline)) int leave(int k) { if (k > 2) throw k; return k + 1; }
int main(int c, char **) { try { return leave(c + 5); } catch (int e) { return 0; } }
"""
PLAIN = """
__attribute__((noinline)) int leave(int k) { return k + 1; }
int main(int c, char **) { return leave(c); }
"""


def codes(folder: Path, source: str, *options: str, function: str = "leave") -> list[str]:
    """What is said of a return probe of the function."""
    require("g++")
    (folder / "one.cc").write_text(source)
    command = ["g++", "-O1", *options, "one.cc", "-o", "one"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    point = fetchc.open(str(folder / "one")).probe(function, returns=True, kernel="6.1")
    return [one.code for one in point.warnings]


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [(THROWING, ("-g",), ["FC0621"]), (THROWING, (), ["FC0621"]), (PLAIN, ("-g",), [])],
)
def test_an_exception_ends_the_program(
    tmp_path: Path, source: str, options: tuple[str, ...], told: list[str]
) -> None:
    function = "leave" if options else "_Z5leavei"
    assert codes(tmp_path, source, *options, function=function) == told


def test_a_function_compiled_without_exceptions_is_left_by_none(tmp_path: Path) -> None:
    (tmp_path / "quiet.cc").write_text("int quiet(int k) { return k + 2; }\n")
    command = ["g++", "-g", "-O1", "-fno-exceptions", "-c", "quiet.cc"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    assert codes(tmp_path, THROWING, "-g", "quiet.o", function="quiet") == []


def test_the_entry_is_probed_without_that(tmp_path: Path) -> None:
    codes(tmp_path, THROWING, "-g")
    assert fetchc.open(str(tmp_path / "one")).probe("leave", kernel="6.1").warnings == ()
