"""Sentences of the grammars in grammar/, and broken ones; Lark's own parsers of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import lark

from fetchc.resources import data_path

_ENDLESS = 1 << 30

# Terminals whose text the grammar does not spell out.
WORDS: dict[str, list[str]] = {
    "NAME": ["a", "Name", "größe", "ns::var", "~r0", "char", "u8", "map", "struct"],
    "PATH": ["github.com/miekg/dns.Msg", "a-b/c.d", "gopkg.in/yaml%2ev3.Node"],
    "INTEGER": ["0", "12", "0x1f"],
    "NUMBER": ["2.5", "1e3"],
    "EQUAL": ["==", "!="],
    "ORDER": ["<=", ">="],
    "_OPEN": ["<"],
    "_CLOSE": [">"],
    "_REFERENCE": ["&"],
    "_NULLABLE": ["?"],
    "SPECIAL": ["$retval", "$arg1"],
    "REGISTER": ["%ax"],
    "CALL": ["len(", "ns::f (", "int("],
    "SIZEOF": ["sizeof(", "sizeof ("],
    "OFFSETOF": ["offsetof("],
    "CONTAINER_OF": ["container_of("],
    "LINE": ["@12", ":17"],  # the expression's, the point's
    "POINT": ["@ main.f", "@0x12", "@12.c:5"],
    "KEYWORD": ["struct ", "enum "],
    "WORDS": ["unsigned long", "long  long int"],
    "EMPTY": ["interface{}", "struct { }"],
    "RANK": ["[]", "[ , ]"],
    "AS": [" as "],
    "STRING": ['"key"', r'"a \" \x41"', '""'],
    "CHARACTER": ["'x'", r"'\n'", r"'\x1b'"],
    "QUOTED": ["'main.c'::count", "'f(int)'::ns::n"],
    "NAMED_CAST": ["static_cast", "reinterpret_cast"],
    "CAST_WORD": ["(char)", "( const int )"],
    "MAP": ["map"],
    "CHAN": ["chan "],
    "CHAN_SEND": ["chan<-"],
    "CHAN_RECEIVE": ["<-chan"],
    "ADDRESS": ["0x401000"],
    "FILE": ["src/main.go"],
    "FUNCTION": ["main.(*T).f", "ns::f(int)"],
    "OFFSET": ["+4"],
    "RETURN": ["%return"],
    "PART": ["%body", "% inline"],
}


@cache
def oracle(grammar: str, start: str) -> lark.Lark:
    return lark.Lark.open(
        str(Path(data_path("grammar"), f"{grammar}.lark")),
        parser="lalr",
        lexer="basic",
        start=["argument", "type"] if grammar == "expression" else start,
        maybe_placeholders=False,
    )


@cache
def productions(grammar: str, start: str) -> dict[str, list[list[tuple[str, str | None]]]]:
    """By symbol, what it can be: pairs of a symbol and, of a string terminal, its text."""
    parser = oracle(grammar, start)
    fixed = {
        terminal.name: terminal.pattern.value
        for terminal in parser.terminals
        if isinstance(terminal.pattern, lark.lexer.PatternStr)
    }
    found: dict[str, list[list[tuple[str, str | None]]]] = {}
    for rule in parser.rules:
        expansion = [(symbol.name, fixed.get(symbol.name)) for symbol in rule.expansion]
        found.setdefault(str(rule.origin.name), []).append(expansion)
    return found


def sentence(
    grammar: str, start: str, choose: random.Random, words: Mapping[str, Sequence[str]] = WORDS
) -> str:
    """A sentence of the grammar. The shortest productions are taken often, deep down always."""
    rules = productions(grammar, start)
    shortest = _shortest(grammar, start)
    pieces: list[str] = []
    pending: list[tuple[str, str | None]] = [(start, None)]
    steps = 0
    while pending:
        symbol, text = pending.pop()
        if text is not None:
            pieces.append(text)
        elif symbol in rules:
            steps += 1
            options = rules[symbol]
            if steps > 60 or choose.random() < 0.35:
                options = [min(options, key=lambda expansion: _length(expansion, shortest))]
            pending.extend(reversed(choose.choice(options)))
        else:
            pieces.append(choose.choice(words[symbol.removeprefix("types__")]))
        if choose.random() < 0.3:
            pieces.append(" ")
    return "".join(pieces)


@cache
def _shortest(grammar: str, start: str) -> dict[str, int]:
    """By symbol, how many rules its shortest derivation takes: who follows it comes to an end."""
    rules = productions(grammar, start)
    found: dict[str, int] = {}
    changed = True
    while changed:
        changed = False
        for symbol, expansions in rules.items():
            least = min(_length(expansion, found, rules) for expansion in expansions)
            if least < found.get(symbol, _ENDLESS):
                found[symbol] = least
                changed = True
    return found


def _length(
    expansion: list[tuple[str, str | None]],
    shortest: dict[str, int],
    rules: Mapping[str, object] | None = None,
) -> int:
    unknown = _ENDLESS if rules is not None else 0
    return 1 + sum(
        shortest.get(symbol, unknown if rules is None or symbol in rules else 0)
        for symbol, text in expansion
        if text is None
    )


def broken(text: str, choose: random.Random) -> str:
    """A string with a piece left out, doubled, swapped or put in."""
    at, to = sorted(choose.choices(range(len(text) + 1), k=2))
    to = min(to, at + 4)
    piece = text[at:to]
    return choose.choice(
        [
            text[:at] + text[to:],
            text[:at] + piece + piece + text[to:],
            text[:at]
            + choose.choice(["(", ")", "[", "]", ".", "->", "*", " ", "a", "5"])
            + text[at:],
            text[:at] + choose.choice(["@", ":", "=", ",", "<", ">", "&", "?", "\0"]) + text[to:],
        ]
    )
