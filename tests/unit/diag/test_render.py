"""Diagnostics as text: exact layouts, and that no text from outside can disturb them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.diag.diagnostic import Diagnostic, Label
from fetchc.diag.render import printable, render
from fetchc.source import Span

FIELD = Diagnostic(
    "FC0302",
    "`dns.Question` has no field `Nam`",
    Label(Span(20, 23), "unknown field"),
    (Label(Span(5, 19), "this is a `dns.Question` of 24 bytes"),),
    ("its fields are Name string (+0), Qtype uint16 (+16), Qclass uint16 (+18)",),
    "a field with a similar name exists: `Name`",
    "./coredns .debug_info+0x4a1b2",
)


def test_a_span_is_that_of_the_first_label() -> None:
    assert FIELD.span == Span(20, 23)
    assert Diagnostic("FC0902", "not an ELF file").span is None


def test_every_part_in_its_order() -> None:
    assert (
        render(FIELD, "name=r->Question[0].Nam", "<arg 1>")
        == """\
error[FC0302]: `dns.Question` has no field `Nam`
  --> <arg 1>:1:21
   |
 1 | name=r->Question[0].Nam
   |                     ^^^ unknown field
   |      -------------- this is a `dns.Question` of 24 bytes
   = note: its fields are Name string (+0), Qtype uint16 (+16), Qclass uint16 (+18)
   = help: a field with a similar name exists: `Name`
   = from: ./coredns .debug_info+0x4a1b2"""
    )


def test_a_file_that_cannot_be_read_has_no_place_in_the_text() -> None:
    diagnostic = Diagnostic("FC0901", "/bin/nothing: no such file", help="check the path")
    assert (
        render(diagnostic, "r->id")
        == """\
error[FC0901]: /bin/nothing: no such file
   = help: check the path"""
    )


def test_a_warning_says_so() -> None:
    diagnostic = Diagnostic("FC0601", "it runs on", Label(Span(0, 1), ""))
    assert (
        render(diagnostic, "s")
        == """\
warning[FC0601]: it runs on
  --> <argument>:1:1
   |
 1 | s
   | ^"""
    )


def test_the_end_of_the_text_can_be_marked() -> None:
    diagnostic = Diagnostic("FC0101", "unclosed `[`", Label(Span(2, 2), "expected `]`"))
    assert render(diagnostic, "a[").splitlines()[3:] == [
        " 1 | a[",
        "   |   ^ expected `]`",
    ]


def test_an_empty_text_is_not_shown() -> None:
    diagnostic = Diagnostic("FC0104", "the expression is empty", Label(Span(0, 0), "here"))
    assert render(diagnostic, "") == "error[FC0104]: the expression is empty"


@pytest.mark.parametrize(
    ("text", "line", "marks"),
    [
        ("a\tb.c", " 1 | a    b.c", "   |        ^ here"),
        ("世.c", " 1 | 世.c", "   |    ^ here"),  # a wide character takes two columns
        ("e\u0301.c", " 1 | e\u0301.c", "   |   ^ here"),  # a combining one takes none
        ("\x1b[2J.c", r" 1 | \x1b[2J.c", "   |         ^ here"),
        ("\u202ea.c", r" 1 | \u202ea.c", "   |         ^ here"),
        ("\udc80.c", r" 1 | \udc80.c", "   |        ^ here"),
    ],
)
def test_the_mark_stands_below_its_character(text: str, line: str, marks: str) -> None:
    end = len(text)
    diagnostic = Diagnostic("FC0302", "m", Label(Span(end - 1, end), "here"))
    assert render(diagnostic, text).splitlines()[3:] == [line, marks]


def test_a_long_text_is_cut_to_what_the_labels_are_about() -> None:
    text = "a" * 4000 + ".wrong" + "b" * 4000
    diagnostic = Diagnostic(
        "FC0302",
        "no member `wrong`",
        Label(Span(4001, 4006), "unknown"),
        (Label(Span(4000, 4001), "near"), Label(Span(10, 12), "far away")),
    )
    assert render(diagnostic, text).splitlines() == [
        "error[FC0302]: no member `wrong`",
        "  --> <argument>:1:4002",
        "   |",
        " 1 | ..." + "a" * 23 + ".wrong" + "b" * 59 + "...",
        "   | " + " " * 27 + "^^^^^ unknown",
        "   | " + " " * 26 + "- near",
        "   = note: at 1:11: far away",
    ]


def test_names_from_outside_cannot_reach_the_terminal() -> None:
    evil = "\x1b[31m\r\n\u202e"
    diagnostic = Diagnostic("FC0201", evil, Label(Span(0, 1), evil), (), (evil,), evil, evil)
    assert render(diagnostic, evil, evil).count("\n") == 7
    assert re.search("[\x1b\r\u202e]", render(diagnostic, evil, evil)) is None


def test_colours_add_nothing_but_colours() -> None:
    text = "name=r->Question[0].Nam"
    colored = render(FIELD, text, color=True)
    assert colored.startswith("\x1b[1;31merror[FC0302]\x1b[0m\x1b[1m: `dns")
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render(FIELD, text)


def test_printable_keeps_what_prints() -> None:
    assert printable("naïve 世界") == "naïve 世界"
    assert printable("a\x00b") == r"a\x00b"


@given(st.data())
def test_any_text_and_spans_give_bounded_printable_lines(data: st.DataObject) -> None:
    text = data.draw(st.text(st.characters(exclude_categories=()), min_size=1, max_size=300))
    position = st.integers(0, len(text) + 3)
    span = st.tuples(position, position).map(lambda ends: Span(min(ends), max(ends)))
    labels = data.draw(st.lists(span.map(lambda span: Label(span, "x")), min_size=1, max_size=4))
    rendered = render(Diagnostic("FC0101", "m", labels[0], tuple(labels[1:])), text)
    lines = rendered.splitlines()
    assert all(line.isprintable() and len(line) < 110 + len(text) // 50 for line in lines)
    # The first label is always shown, and every other one is either marked or listed.
    assert any(re.match(r"   \| +[\^-]+ x", line) for line in lines)
    assert sum(line.endswith(" x") for line in lines[4:]) == len(labels)
