"""Globs: what they match, as a plain matcher says, and in how much time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.syntax.globs import glob_pattern


def plain(glob: str, text: str) -> bool:
    """Whether ``text`` matches, by trying all that a star can stand for."""
    if not glob:
        return not text
    if glob[0] == "*":
        return any(plain(glob[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and glob[0] in ("?", text[0]) and plain(glob[1:], text[1:])


@given(st.text("ab*?", max_size=8), st.text("ab\n", max_size=8))
def test_any_glob(glob: str, text: str) -> None:
    assert (glob_pattern(glob).fullmatch(text) is not None) == plain(glob, text)


@pytest.mark.parametrize("text", ["main.(*server)[a-z].x", "a\\b", "^a|b$", "%2e{3}"])
def test_no_other_character_is_special(text: str) -> None:
    assert glob_pattern(text).fullmatch(text)
    assert not glob_pattern(text).fullmatch("main.(*server)x.x")
    assert glob_pattern("*" + text[1:]).fullmatch(text)


@pytest.mark.parametrize("glob", ["*" * 5000 + "b", "*a" * 200 + "b", "*a*" * 200 + "b"])
def test_many_stars_take_no_longer(glob: str) -> None:
    start = time.process_time()
    assert not glob_pattern(glob).fullmatch("a" * 1000)
    assert glob_pattern(glob).fullmatch("a" * 1000 + "b")
    assert time.process_time() - start < 1
