"""The line that tells how far a long reading is."""

from __future__ import annotations

import pytest

from fetchc.cli import progress
from fetchc.cli.progress import ERASE, Progress


def test_it_says_nothing_at_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENT_SECONDS", 600)
    shown = Progress()
    for done in (1, 50, 100):
        shown(done, 100)
    assert capsys.readouterr().err == ""


def test_it_goes_away_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENT_SECONDS", -1)
    shown = Progress()
    shown(50, 100)
    half = f"{ERASE}reading [{'#' * 15}{' ' * 15}] 50 %"
    assert capsys.readouterr().err == half
    shown(100, 100)
    assert capsys.readouterr().err == ERASE
