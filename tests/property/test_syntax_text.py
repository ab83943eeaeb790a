"""Any text parses or is refused with a place inside it; what parses has a canonical text."""

from __future__ import annotations

import random

from hypothesis import example, given
from hypothesis import strategies as st

from fetchc.diag.diagnostic import CompileError
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.expression_parser import parse_argument, parse_point, parse_type
from fetchc.syntax.tree import Argument
from fetchc.syntax.unparse import unparse, unparse_point, unparse_type
from tests.support.sentences import WORDS, broken, sentence

PIECES = sorted({word for words in WORDS.values() for word in words}) + list("()[].,:*&-+/<>=@%$ ")
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from([*PIECES, "->", "::", "sizeof"]), max_size=25).map("".join),
    st.text(alphabet="()[]{}<>*&-+/.:@$%='\"ax0 \0\n\udc80é", max_size=300),
)


def _fields(record: Record) -> list[object]:
    names: tuple[str, ...] = type(record).__match_args__
    return [getattr(record, name) for name in names]


def without_spans(value: object) -> object:
    """A tree as nested tuples, with its class names and without places."""
    if isinstance(value, Record):
        fields = _fields(value)
        shown = [without_spans(field) for field in fields if not isinstance(field, Span)]
        return (type(value).__name__, *shown)
    if isinstance(value, tuple):
        return tuple(without_spans(item) for item in value)
    return value


def check_refusal(text: str, error: CompileError) -> None:
    """One diagnostic, of the syntax, that can be printed and points into the text."""
    (diagnostic,) = error.diagnostics
    assert diagnostic.code in {"FC0101", "FC0102", "FC0103", "FC0104", "FC0207"}
    assert diagnostic.message.isprintable()
    assert len(diagnostic.message) < 300
    assert diagnostic.primary is not None
    assert len(diagnostic.primary.text.split()) <= 8
    span = diagnostic.primary.span
    assert 0 <= span.start <= span.end <= len(text)


def check_spans(text: str, value: object, within: Span) -> None:
    """Every node lies within the node above it."""
    if isinstance(value, Span):
        assert within.start <= value.start <= value.end <= within.end
    elif isinstance(value, Record):
        span = getattr(value, "span", within)
        assert isinstance(span, Span)
        assert within.start <= span.start <= span.end <= within.end
        for field in _fields(value):
            check_spans(text, field, span)
    elif isinstance(value, tuple):
        for item in value:
            check_spans(text, item, within)


def check(text: str) -> None:
    try:
        tree = parse_argument(text)
    except CompileError as error:
        check_refusal(text, error)
        return
    check_spans(text, tree, Span(0, len(text)))
    canonical = unparse(tree)
    again = parse_argument(canonical)
    assert unparse(again) == canonical
    assert without_spans(again) == without_spans(tree)


@given(TEXTS)
@example("x@" + " " * 4000 + "f+")
@example("a/" * 2000)
@example("(" * 199 + "a")
@example("\udcff")
@example("([12]a.b[,][])*c")
@example("(a[][,][])b")
@example("sizeof((*chan<- int, long))")
def test_any_text_parses_or_is_refused(text: str) -> None:
    check(text)


@given(st.integers(0, 1 << 32))
def test_sentences_and_broken_sentences(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(10):
        text = sentence("expression", "argument", choose)
        check(text)
        check(broken(text, choose))


@given(TEXTS)
def test_any_point_parses_or_is_refused(text: str) -> None:
    try:
        point = parse_point(text)
    except CompileError as error:
        check_refusal(text, error)
        return
    canonical = unparse_point(point)
    assert without_spans(parse_point(canonical)) == without_spans(point)


@given(TEXTS)
def test_any_type_parses_or_is_refused(text: str) -> None:
    try:
        type = parse_type(text)
    except CompileError as error:
        check_refusal(text, error)
        return
    canonical = unparse_type(type)
    assert without_spans(parse_type(canonical)) == without_spans(type)


def test_checks_can_fail() -> None:
    tree = parse_argument("a.b")
    moved = Argument(tree.name, tree.expression, None, None, Span(0, 1))
    try:
        check_spans("a.b", moved, Span(0, 3))
    except AssertionError:
        return
    raise RuntimeError("a node outside of its parent was not seen")
