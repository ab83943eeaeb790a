"""The LALR(1) parser: it runs the tables that ``.ci/regen_tables.py`` generates from a grammar.

Lark compiles the tables. Importing Lark costs more than a whole ``compile``, so this module
replaces its parser; tests/property/test_lalr.py compares the two.

A state is an index of ``STATES``; its dictionary gives for a symbol the next state, or
-1 - the number of the rule to reduce by. The builder has a method for each action of a
rule, called with the values that the rule selects and the span that it covers.
"""

from __future__ import annotations

from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Tables(Protocol):
        """A generated module of tables."""

        PATTERN: str
        SPELLED: frozenset[str] | None
        IGNORED: frozenset[str]
        STARTS: dict[str, tuple[int, int]]
        RULES: tuple[tuple[str, int, str, tuple[int, ...]], ...]
        STATES: tuple[dict[str, int], ...]


__all__ = ["END", "Token", "Unexpected", "run"]

END = "$END"  # Lark's name of the symbol after the last token


class Token(Record):
    """A token; ``kind`` is the name of its terminal in the grammar."""

    kind: str
    text: str
    span: Span


class Unexpected(Exception):
    """A syntax error at ``token``, with the parser's stack of states ``states``.

    ``token.kind`` is empty where no terminal matches, and :data:`END` at the end.
    :mod:`fetchc.syntax.syntax_errors` turns it into a diagnostic.
    """

    def __init__(self, states: list[int], token: Token) -> None:
        super().__init__(states, token)
        self.states = states
        self.token = token


def run(tables: Tables, start: str, text: str, builder: object, position: int = 0) -> Any:
    """The value that ``builder`` makes of ``text[position:]``; raises :class:`Unexpected`."""
    tokens = _plain_tokens(tables, text) if position == 0 else None
    match: Any = None
    if tokens is None:
        import re  # most strings are plain; this import and compiling the pattern are expensive

        match = re.compile(tables.PATTERN).match
    rules, moves = tables.RULES, tables.STATES
    state, last = tables.STARTS[start]
    states = [state]
    values: list[Any] = []
    spans: list[Span] = []
    while True:
        if tokens is not None:
            token = tokens.pop()
        else:
            token = _token(match, tables.IGNORED, text, position, states)
            position = token.span.end
        while True:
            move = moves[state].get(token.kind)
            if move is None:
                raise Unexpected(states, token)
            if move >= 0:
                break
            symbol, count, action, selected = rules[-1 - move]
            first = len(values) - count
            if action:
                span = Span(spans[first].start, spans[-1].end)
                value = getattr(builder, action)([values[first + at] for at in selected], span)
            else:
                value, span = values[first + selected[0]], spans[first + selected[0]]
            del states[first + 1 :], values[first:], spans[first:]
            state = moves[states[-1]][symbol]
            states.append(state)
            values.append(value)
            spans.append(span)
            if state == last and token.kind == END:
                return value
        state = move
        states.append(state)
        values.append(token)
        spans.append(token.span)


_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_SIGNS = {".": "DOT", "[": "LSQB", "]": "RSQB"}


def _plain_tokens(tables: Tables, text: str) -> list[Token] | None:
    """The tokens of a plain string, the last one first; None for any other string.

    Plain is ``r->list[2].name``: ASCII names that no terminal spells out, numbers, ``->``,
    dots and brackets, without blanks. Only NAME, INTEGER and the signs' own terminals can
    match there, so the pattern, whose compilation costs more than the rest of the parse, is
    not needed.
    """
    if tables.SPELLED is None:
        return None
    tokens = []
    at, end = 0, len(text)
    while at < end:
        character = text[at]
        stop = at + 1
        if character in _WORD:
            while stop < end and text[stop] in _WORD:
                stop += 1
            word = text[at:stop]
            kind = "INTEGER" if character.isdecimal() else "NAME"
            if word in tables.SPELLED:
                return None
            if kind == "INTEGER" and (not word.isdecimal() or text[stop : stop + 1] == "."):
                return None  # it may be a NUMBER
        elif text.startswith("[]", at):
            return None  # a terminal of its own
        elif character in _SIGNS:
            kind = _SIGNS[character]
        elif text.startswith("->", at):
            kind, stop = "_ARROW", at + 2
        else:
            return None
        tokens.append(Token(kind, text[at:stop], Span(at, stop)))
        at = stop
    tokens.append(Token(END, "", Span(end, end)))
    tokens.reverse()
    return tokens


def _token(
    match: Any, ignored: frozenset[str], text: str, position: int, states: list[int]
) -> Token:
    while position < len(text):
        found = match(text, position)
        if found is None:
            raise Unexpected(states, Token("", text[position], Span(position, position + 1)))
        kind = found.lastgroup
        if kind not in ignored:
            return Token(kind, found[0], Span(position, found.end()))
        position = found.end()
    return Token(END, "", Span(position, position))
