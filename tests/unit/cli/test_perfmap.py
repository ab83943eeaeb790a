"""``fetchc perfmap``: what is printed of an image, and what is no question."""

from __future__ import annotations

import io
import json
import os

import pytest

from fetchc.cli import main
from tests.support.cases import CORPUS

SAMPLE = str(CORPUS / "dotnet/echo/bin/sample.dll")
PID, PARENT = str(os.getpid()), str(os.getppid())
NAME = "[sample] sample.Providers.EchoProvider::calculateEchoValue(string)[ReadyToRun]"
LINE = f"{SAMPLE}:0xa00  0000000000040000 10 {NAME}\n"


def test_names_numbers_and_lines_lead_to_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["calculateEchoValue", "40000", "0xa00", f"40000 10 {NAME}"]
    assert main(["perfmap", "find", *asked, "-x", SAMPLE]) == 0
    assert capsys.readouterr().out == LINE * 4
    given = f"40000 10 {NAME}\n\na00 10 {NAME}\n".encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert main(["perfmap", "find", "-", "-x", SAMPLE]) == 0
    assert capsys.readouterr().out == LINE * 2


def test_lines_that_are_no_text_are_names_like_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff 1 2\n"), "utf-8"))
    assert main(["perfmap", "find", "-", "-x", SAMPLE]) == 1
    assert "no function `\\udcff 1 2`" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", None)
    for command in (["perfmap", "find", "-", "-x", SAMPLE], ["check", "-"]):
        assert main(command) == 3
        assert "error[FC0901]: -: cannot be read" in capsys.readouterr().err


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perfmap", "find", "40000", "-x", SAMPLE, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found == {
        "image": SAMPLE, "offset": 0xA00, "start": 0x40000, "size": 16, "inside": 0,
        "name": "sample.Providers.EchoProvider.calculateEchoValue(string)",
    }  # fmt: skip


def test_refusals_do_not_end_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perfmap", "find", "0x1", "Nobody.Called", "40000", "-x", SAMPLE]) == 1
    printed = capsys.readouterr()
    assert printed.out == LINE
    assert "error[FC0206]: no method" in printed.err
    assert "error[FC0202]: no function `Nobody.Called`" in printed.err


def test_a_program_of_c_has_no_such_map(capsys: pytest.CaptureFixture[str]) -> None:
    c = str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5")
    assert main(["perfmap", "find", "visit", "-x", c]) == 3
    assert "error[FC0902]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["merge"], ["merge", "12", "13"], ["merge", "x"], ["find", "x"], ["find", "-x", SAMPLE],
        ["find", "x", "-x", SAMPLE, "-p", PID], ["show", PID], ["merge", PID, "-p", PID],
        ["find", "x", "-p", PID, "-p", PARENT],
    ],
)  # fmt: skip
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perfmap", *arguments]) == 2
    assert "usage: fetchc perfmap find" in capsys.readouterr().err
