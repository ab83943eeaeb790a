"""What becomes of results that nobody takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.cli.output import Output
from fetchc.diag.diagnostic import CompileError, Diagnostic
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


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_name_that_is_no_text_on_a_full_disk(tmp_path: Path, unbuffered: str) -> None:
    binary = tmp_path / os.fsdecode(b"\xff")
    binary.symlink_to(fixture("c/layouts/gcc-O2-dwarf5"))
    command = ["-m", "fetchc", "compile", "r->i", "-f", "visit", "--format", "probe", "-x"]
    # A tree that has changed has bytecode again: else -v says that it is missing.
    written = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, *command, binary, "-v", "--kernel", "6.1"],
            stdout=full, stderr=subprocess.PIPE, encoding="utf-8", timeout=60, check=False,
            env=written | {"PYTHONIOENCODING": "utf-8:strict", "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    why = "error: standard output cannot be written: No space left on device\n"
    assert (done.stderr, done.returncode) == (why, 3)


@pytest.mark.parametrize(
    ("variable", "value", "painted"),
    [("TERM", "xterm", True), ("TERM", "dumb", False), ("NO_COLOR", "1", False)],
)
def test_what_a_terminal_is_painted_on(
    variable: str, value: str, painted: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Output("auto").diagnostics([Diagnostic("FC0201", "no variable")], "x")
    assert ("\x1b[" in capsys.readouterr().err) == painted


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = run("| head -n 1", "types")
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("-f", "nothing"), 1, "FC0202"),
        (("-f", "visit", "--kernel", "2.6"), 1, "FC0506"),
        (("-f", "visit", *["r->i"] * 200), 1, "FC0504"),
        (("-x", "nowhere", "-f", "visit"), 3, "FC0901"),
        (("-f", "visit", "--at", "+0x"), 1, "FC0101"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
def test_a_document_whatever_is_refused(
    words: tuple[str, ...], status: int, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = () if "-x" in words else ("-x", str(fixture("c/layouts/gcc-O2-dwarf5")))
    assert main(["compile", "r->i", *own, *words, "--format", "json"]) == status
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert [each["code"] for each in document["diagnostics"]] == [code]
    assert (document["probes"], document["binary"], printed.err) == ([], (own + words)[1], "")


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
    plain = "f\\x1b[2J\\u202eg"
    for terminal in (False, True):
        monkeypatch.setattr(sys.stdout, "isatty", lambda there=terminal: there)
        output = Output("never")
        output.line(f"{name}\n forged")
        output.lines([name, "a\nb", "plain"])
        output.lines([])
        output.say(f"{name}\nerror: forged", "another line")
        shown, said = capfd.readouterr()
        assert shown == f"{plain}\\n forged\n{plain}\na\\nb\nplain\n\n"
        assert said == f"{plain}\\nerror: forged\nanother line\n"


def test_a_definition_is_exact_or_refused(capfd: pytest.CaptureFixture[str]) -> None:
    output = Output("never")
    output.exact("p:g/e /bin/\u00e9:0x10\np:g/f /bin/x:0x20")
    for hidden in ("\x1b", "\u202e", "\r", "\x7f", "\u2028"):
        with pytest.raises(CompileError, match="FC0510: a path or name holds"):
            output.exact(f"p:g/e /bin/{hidden}x:0x10")
    sys.stdout.flush()
    assert capfd.readouterr().out == "p:g/e /bin/\u00e9:0x10\np:g/f /bin/x:0x20\n"
