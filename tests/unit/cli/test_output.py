"""What becomes of results that nobody takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fetchc.cli import main
from fetchc.cli.output import Output
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


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(
    ("options", "status", "printed"),
    [
        (("compile", "r->i", "-f", "visit"), 0, "+8(%di):s32\n"),
        (("compile", "nothing", "-f", "visit"), 1, ""),
        (("functions", "nothing"), 1, ""),
        (("compile", "r->i"), 1, ""),
        (("compile", "--nonsense"), 2, ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_standard_error_that_takes_nothing(
    redirection: str, options: tuple[str, ...], status: int, printed: str
) -> None:
    done = run(redirection, *options)
    assert (done.returncode, done.stdout) == (status, printed)


@pytest.mark.parametrize("options", [("--help",), ("--version",), ("compile", "--help")])
def test_help_that_nobody_can_take(options: tuple[str, ...]) -> None:
    done = run(">/dev/full", *options)
    assert done.stderr == "error: standard output cannot be written: No space left on device\n"
    assert done.returncode == 3


def test_what_is_said_cannot_change_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "\x1b[31m\u202e*", "-x", str(fixture("c/layouts/gcc-O2-dwarf5"))])
    assert "`\\x1b[31m\\u202e*`" in capsys.readouterr().err
    assert main(["compile", "--\x1b[31m"]) == 2
    assert capsys.readouterr().err.startswith("error: there is no option `--\\x1b[31m`\nusage:")


def test_names_cannot_change_the_terminal_that_shows_them(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    name = "f\x1b[2J\u202eg"
    Output("never").line(name)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    Output("never").line(f"{name}\n second line")
    shown = capfd.readouterr().out
    assert shown == f"{name}\nf\\x1b[2J\\u202eg\n second line\n"
