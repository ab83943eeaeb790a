"""Every option that takes a string, with strings of its grammar: a proper answer, in time.

``python -m tests.support.fuzzing.grammars 60 1`` goes on for an hour.
"""

from __future__ import annotations

import random

import pytest

from fetchc.syntax.expression_parser import parse_argument
from tests.support.fuzzing import grammars

ROUNDS = 150


def test_nothing_is_found() -> None:
    assert list(grammars.found(1, 0, ROUNDS)) == []


def test_no_option_is_left_out() -> None:
    assert grammars.unlike() == set()


def test_an_option_without_texts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(grammars.TEXTS, "filters")
    assert grammars.unlike() == {"filters"}


def test_a_traceback_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options: object) -> None:
        raise IndexError("beyond")

    monkeypatch.setattr(grammars, "request", broken)
    assert {wrong for _, wrong in grammars.found(1, 0, 60)} == {"IndexError: beyond"}


def test_most_texts_parse() -> None:
    # The generator is of no use if all that it makes stops at the parser.
    import fetchc

    source, parsed = random.Random(1), 0
    for _ in range(200):
        try:
            parse_argument(grammars.drawn(source, "expression"))
            parsed += 1
        except fetchc.CompileError:
            continue
    assert parsed > 20
