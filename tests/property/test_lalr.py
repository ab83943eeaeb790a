"""The LALR parser and its tables against Lark, on sentences of the grammar and on broken ones."""

from __future__ import annotations

import random
import types
from typing import TYPE_CHECKING, Any

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.syntax import expression_tables, point_tables
from fetchc.syntax.lalr import Token, Unexpected, run
from fetchc.syntax.syntax_errors import accepted
from tests.support.sentences import broken, oracle, sentence

if TYPE_CHECKING:
    from fetchc.syntax.lalr import Tables


class Trees:
    """A builder that makes what Lark makes: nested tuples instead of ``lark.Tree``."""

    def __getattr__(self, name: str) -> Any:
        return lambda parts, span: (name, *[_plain(part) for part in parts])


def _plain(value: Any) -> Any:
    if isinstance(value, Token):
        return (value.text, value.span.start)
    if isinstance(value, lark.Token):
        return (str(value), value.start_pos)
    if isinstance(value, lark.Tree):
        name = str(value.data).removeprefix("types__")
        return (name, *[_plain(child) for child in value.children])
    return value


def by_lark(grammar: str, start: str, text: str) -> Any:
    """The tree, or None where Lark refuses the text."""
    try:
        return _plain(oracle(grammar, start).parse(text, start=start))
    except lark.exceptions.UnexpectedInput:
        return None


def by_driver(module: Tables, start: str, text: str) -> Any:
    """The tree, or None where the driver refuses the text."""
    try:
        return _plain(run(module, start, text, Trees()))
    except Unexpected:
        return None


def disagreement(module: Tables, grammar: str, start: str, text: str) -> str | None:
    """What the two say of a string, where it is not the same."""
    expected, got = by_lark(grammar, start, text), by_driver(module, start, text)
    return None if expected == got else f"{text!r}: Lark {expected}, driver {got}"


CASES = [
    (expression_tables, "expression", "argument"),
    (expression_tables, "expression", "type"),
    (point_tables, "point", "point"),
]


@pytest.mark.parametrize(("module", "grammar", "start"), CASES, ids=[case[2] for case in CASES])
@given(seed=st.integers(0, 1 << 32))
def test_driver_agrees_with_lark(module: Tables, grammar: str, start: str, seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(10):
        text = sentence(grammar, start, choose)
        assert (found := disagreement(module, grammar, start, text)) is None, found
        text = broken(text, choose)
        assert (found := disagreement(module, grammar, start, text)) is None, found


def accepted_by_both(text: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """The terminals that Lark and the driver accept where ``text`` has a syntax error.

    Without those that Lark's ``accepts()`` passes over: what a grammar imports without a name of
    its own is called ``types__WORDS``, and Lark takes the lower-case letters for a rule's name.
    """
    parser = oracle("expression", "argument")
    imported = {name.partition("__")[2] for name in (str(t.name) for t in parser.terminals)}
    try:
        parser.parse(text, start="argument")
    except lark.exceptions.UnexpectedToken as error:
        with pytest.raises(Unexpected) as caught:
            run(expression_tables, "argument", text, Trees())
        return frozenset(error.accepts), accepted(caught.value.states) - imported
    except lark.exceptions.UnexpectedCharacters:
        pass
    return None


@given(seed=st.integers(0, 1 << 32))
def test_driver_accepts_after_an_error_what_lark_accepts(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(10):
        text = broken(sentence("expression", "argument", choose), choose)
        if (both := accepted_by_both(text)) is not None:
            assert both[0] == both[1], text


@pytest.mark.parametrize("text", ["a b", "f(a b", "a[b c", "(a<b c", "x as b c", "a->", "(T *)"])
def test_accepted_terminals_are_not_those_of_the_state(text: str) -> None:
    both = accepted_by_both(text)
    assert both is not None
    assert both[0] == both[1] != frozenset()


@pytest.mark.parametrize(("grammar", "start"), [case[1:] for case in CASES])
def test_sentences_reach_every_rule(grammar: str, start: str) -> None:
    choose = random.Random(2)
    actions: set[str] = set()
    accepted = 0
    for _ in range(4000):
        tree = by_lark(grammar, start, sentence(grammar, start, choose))
        accepted += tree is not None
        stack = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, tuple):
                actions.add(node[0])
                stack.extend(node[1:])
    # Blanks that the generator leaves out join tokens, so that not each one parses.
    assert accepted > 300
    parser = oracle(grammar, start)
    wanted = {str(rule.alias).removeprefix("types__") for rule in parser.rules if rule.alias}
    unreached = {
        "argument": {"integer"},  # spelled the same as an expression's number
        "type": wanted,  # the other start reaches the rest
        "point": set(),
    }[start]
    assert wanted - actions <= unreached


PIECES = ["a", "chan", "map", "const", "int", "struct", "x1", "0", "0x1f", "08", "_"]
PIECES += ["->", ".", "[", "]", "-", ">", "é"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_plain_texts_agree_with_lark(text: str) -> None:
    for start in ("argument", "type"):
        assert (found := disagreement(expression_tables, "expression", start, text)) is None, found


@pytest.mark.parametrize("text", ["const.a", "chan[0]a", "map[a]b", "a.const", "volatile"])
def test_words_of_the_grammar_are_not_plain(text: str) -> None:
    assert disagreement(expression_tables, "expression", "type", text) is None
    unaware: Any = types.SimpleNamespace(
        **{name: getattr(expression_tables, name) for name in expression_tables.__all__}
    )
    unaware.SPELLED = frozenset()
    assert disagreement(unaware, "expression", "type", text) is not None or text == "a.const"


@pytest.mark.parametrize("which", ["rule", "move", "pattern"])
def test_a_wrong_table_is_seen(which: str) -> None:
    wrong: Any = types.SimpleNamespace(
        **{name: getattr(expression_tables, name) for name in expression_tables.__all__}
    )
    if which == "rule":
        wrong.RULES = tuple(
            (symbol, count, {"add": "subtract"}.get(action, action), kept)
            for symbol, count, action, kept in expression_tables.RULES
        )
    elif which == "move":
        wrong.STATES = tuple(
            {symbol: move for symbol, move in moves.items() if symbol != "_ARROW"}
            for moves in expression_tables.STATES
        )
    else:
        wrong.PATTERN = expression_tables.PATTERN.replace("0-9]\\w*", "0-9]+")
        assert wrong.PATTERN != expression_tables.PATTERN
    texts = ["a+b", "a->b", "0x12+1"]  # the last not plain, so that the pattern reads it
    assert any(disagreement(wrong, "expression", "argument", text) for text in texts)
    assert not any(
        disagreement(expression_tables, "expression", "argument", text) for text in texts
    )
