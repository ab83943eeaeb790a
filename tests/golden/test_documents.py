"""The examples in README.md and docs/ print what the page shows, word for word."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.cli import main
from tests.support.examples import examples

CHECKOUT = Path(__file__).parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


def _examples() -> Iterator[tuple[Path, str, str]]:
    # Page and line, command, output: first standard output, then diagnostics.
    for page in PAGES:
        for command, output in examples(page.read_text()):
            yield page, command, output


@pytest.mark.parametrize(
    ("page", "command", "output"),
    [
        pytest.param(*it, id=f"{it[0].relative_to(CHECKOUT)}-{number}")
        for number, it in enumerate(_examples())
    ],
)
def test_example(
    page: Path,
    command: str,
    output: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setenv("NO_COLOR", "1")
    words = shlex.split(command)
    assert words[0] == "fetchc", page
    status = main(words[1:])
    printed = capsys.readouterr()
    shown = (printed.out + printed.err).replace(str(CHECKOUT), "/src/fetchc")
    if request.config.getoption("--bless"):
        text = page.read_text()
        page.write_text(text.replace(f"$ {command}\n{output}", f"$ {command}\n{shown}"))
        return
    assert shown == output
    assert status == (1 if "error[" in output else 0)


def test_pages_have_examples() -> None:
    assert len(list(_examples())) > 5
