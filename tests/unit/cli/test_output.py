"""What becomes of results that nobody takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.programs import fixture


def run(redirection: str, *options: str) -> subprocess.CompletedProcess[str]:
    binary = str(fixture("c/layouts/gcc-O2-dwarf5"))
    command = [sys.executable, "-m", "fetchc", *options, "-x", binary]
    shell = ["sh", "-c", f'"$@" {redirection}', "sh", *command]
    return subprocess.run(shell, capture_output=True, encoding="utf-8", timeout=60, check=False)


@pytest.mark.parametrize(
    ("redirection", "why"),
    [(">&-", "it is closed"), (">/dev/full", "No space left on device")],
)
@pytest.mark.parametrize(
    "options", [("functions",), ("types",), ("compile", "r->i", "-f", "visit")], ids=" ".join
)
def test_standard_output_that_takes_nothing(
    redirection: str, why: str, options: tuple[str, ...]
) -> None:
    done = run(redirection, *options)
    assert done.stderr == f"error: standard output cannot be written: {why}\n"
    assert done.returncode == 3


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = run("| head -n 1", "types")
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)
