"""The grammars of fetch-args and definitions: the driver against Lark, and any text at all."""

from __future__ import annotations

import types
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.driver.check_definitions import check_definition
from fetchc.resources import data_path
from fetchc.syntax import definition_tables, fetcharg_tables
from fetchc.syntax.lalr import Token, Unexpected, run
from fetchc.target.kernel_versions import kernel

if TYPE_CHECKING:
    from fetchc.syntax.lalr import Tables

PIECES = ["+0(", "-8(", "+u4(", "+", ")", ")", "(", "%di", "$stack", "@0x10", "\\1", '\\"a"', ":u8"]
PIECES += ["[4]", "[", "]", "a=", "=", ":", "foo", "9", "p", "p:g/e", "r", "/", " ", "/bin/x:0x10"]
PIECES += ["#", "-", "\t", "é", '"']
texts = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@cache
def oracle(grammar: str, start: str) -> lark.Lark:
    return lark.Lark.open(
        str(Path(data_path("grammar"), f"{grammar}.lark")),
        parser="lalr",
        lexer="basic",
        start=start,
        maybe_placeholders=False,
    )


class Trees:
    """A builder that makes what Lark makes: nested tuples instead of ``lark.Tree``."""

    def __getattr__(self, name: str) -> Any:
        return lambda parts, span: (name, *[plain(part) for part in parts])


def plain(value: Any) -> Any:
    if isinstance(value, Token):
        return (value.text, value.span.start)
    if isinstance(value, lark.Token):
        return (str(value), value.start_pos)
    if isinstance(value, lark.Tree):
        return (str(value.data), *[plain(child) for child in value.children])
    return value


def disagreement(module: Tables, grammar: str, start: str, text: str) -> str | None:
    try:
        expected = plain(oracle(grammar, start).parse(text, start=start))
    except lark.exceptions.UnexpectedInput:
        expected = None
    try:
        got = run(module, start, text, Trees())
    except Unexpected:
        got = None
    return None if expected == got else f"{text!r}: Lark {expected}, driver {got}"


@given(texts)
def test_driver_agrees_with_lark(text: str) -> None:
    for module, grammar, start in (
        (fetcharg_tables, "fetcharg", "argument"),
        (definition_tables, "definition", "definition"),
    ):
        assert (found := disagreement(module, grammar, start, text)) is None, found


def test_a_wrong_table_is_seen() -> None:
    names = fetcharg_tables.__all__
    wrong: Any = types.SimpleNamespace(**{name: getattr(fetcharg_tables, name) for name in names})
    wrong.PATTERN = fetcharg_tables.PATTERN.replace("(?P<OPEN>[+-]", "(?P<OPEN>[+]")
    assert wrong.PATTERN != fetcharg_tables.PATTERN
    assert disagreement(wrong, "fetcharg", "argument", "-8(%di)") is not None
    assert disagreement(fetcharg_tables, "fetcharg", "argument", "-8(%di)") is None


@pytest.mark.parametrize("version", ["3.5", "6.12", "7.3"])
@given(text=st.one_of(texts, st.text(max_size=40)))
def test_any_text_has_a_verdict_with_places(version: str, text: str) -> None:
    checked = check_definition(text, kernel(version))
    for problem in checked.problems + checked.warnings:
        assert problem.primary is not None
        assert 0 <= problem.primary.span.start <= problem.primary.span.end <= len(text)
