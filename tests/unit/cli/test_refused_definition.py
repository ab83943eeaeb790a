"""What the kernel refuses is shown with its place in the definition."""

from __future__ import annotations

import pytest

from fetchc.cli import main
from fetchc.diag.diagnostic import Diagnostic, Label, TracerError
from fetchc.source import Span


def test_the_place_is_in_the_definition(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        diagnostic = Diagnostic("FC0705", "the kernel refused it", Label(Span(9, 13), "here"))
        raise TracerError((diagnostic,), "p:g/e /b a=%zz")

    monkeypatch.setattr("fetchc.cli.list_command.find_tracefs", refuse)
    assert main(["list"]) == 4
    assert capsys.readouterr().err == (
        "error[FC0705]: the kernel refused it\n"
        "  --> <argument>:1:10\n"
        "   |\n"
        " 1 | p:g/e /b a=%zz\n"
        "   |          ^^^^ here\n"
    )
