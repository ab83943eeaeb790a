"""Every case of the corpus, word for word: standard output, diagnostics, exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.cli import main
from tests.support.cases import CORPUS, Case, all_cases, blessed


@pytest.mark.parametrize(
    "case", all_cases(), ids=lambda case: f"{case.path.relative_to(CORPUS)}:{case.name}"
)
def test_case(
    case: Case,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(CORPUS)
    monkeypatch.setenv("NO_COLOR", "1")
    status = main(case.arguments())
    printed = capsys.readouterr()
    expect, error = _shown(printed.out), _shown(printed.err)
    if request.config.getoption("--bless"):
        assert status in (0, 1, 3), error  # a usage error or a bug is no answer
        text = case.path.read_text()
        new = blessed(text, case.index, expect, error)
        if new != text:
            case.path.write_text(new)
        return
    assert error == case.error
    assert expect == case.expect
    assert status == case.status


def _shown(output: str) -> str:
    # Definitions hold the whole path of the traced file: the same on every machine.
    return output.removesuffix("\n").replace(str(Path(CORPUS).resolve()), "CORPUS")
