"""Each promise of docs/security.md names its test, and the test is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/security.md").read_text()
NAMED = re.compile(r"`(tests/[\w/.]+)(?:::(\w+))?`")


def rows(page: str) -> list[list[str]]:
    """The cells of each row of a table whose last column is ``test``."""
    found: list[list[str]] = []
    promised = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if not cells:
            promised = False
        elif cells[-1] == "test":
            promised = True
        elif promised and set("".join(cells)) != {"-"}:
            found.append(cells)
    return found


def missing(path: str, function: str) -> bool:
    """Whether there is no such test file, or folder of some, or no such function in it."""
    place = CHECKOUT / path
    if place.is_dir():
        return not any(place.rglob("test_*.py"))
    if not place.is_file():
        return True
    return bool(function) and f"def {function}(" not in place.read_text()


def test_every_promise_names_a_test() -> None:
    found = rows(PAGE)
    assert len(found) > 30
    for *promise, test in found:
        assert all(promise)
        assert NAMED.search(test), promise


@pytest.mark.parametrize(("path", "function"), sorted(set(NAMED.findall(PAGE))))
def test_a_test_that_is_named_is_there(path: str, function: str) -> None:
    assert not missing(path, function)


def test_what_is_not_promised_is_said() -> None:
    # After each table, or nothing is left over.
    assert PAGE.count("Not promised:") >= 3


def test_a_promise_without_a_test_is_seen() -> None:
    page = "| promise | test |\n|---|---|\n| Nothing is. | |\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert rows(page) == [["Nothing is.", ""]]
    assert missing("tests/meta/test_nothing.py", "")
    assert missing("tests/meta/test_security_promises.py", "test_nothing")
    assert missing("docs", "")
    assert not missing("tests/meta/test_security_promises.py", "test_every_promise_names_a_test")
