"""Actions of grammar/point.lark: probe points."""

from __future__ import annotations

import re

from fetchc.diag.diagnostic import reject
from fetchc.source import Span
from fetchc.syntax import point_tables
from fetchc.syntax.lalr import Unexpected, run
from fetchc.syntax.tree import Point, number, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.syntax.lalr import Token

__all__ = ["point_after_sign", "point_of"]

# What a function's name ends in when a point has two endings.
_ENDING = r"(?:\+\s*[0-9]\w*|(?<!:):\s*[0-9]\w*|%\s*(?:return|body|inline))\Z"


def point_after_sign(text: str, at: int) -> Point:
    """The point after the at sign at the position ``at``; raises CompileError."""
    return point_of(text, at + 1, Span(at, at + 1))


def point_of(text: str, position: int = 0, blame: Span | None = None) -> Point:
    """The point that ``text`` from ``position`` on spells; raises CompileError.

    ``blame`` is what to underline when there is none.
    """
    for at in range(position, len(text.rstrip())):
        code = ord(text[at])
        if code < 0x20 or code == 0x7F:  # all else can be in the bytes of a symbol's name
            raise reject(
                "FC0101",
                f"a control character (code {code}) in a probe point",
                Span(at, at + 1),
                "not printable",
            )
    try:
        point: Point = run(point_tables, "point", text, PointBuilder(), position)
    except Unexpected as problem:
        raise reject(
            "FC0101",
            "expected a probe point: a function, `FILE:LINE` or an address",
            problem.token.span if problem.token.text else blame or problem.token.span,
            "no point starts here" if problem.token.text else "a point is missing",
            help="write it as `main.run`, `main.run+4`, `main.go:17` or `0x401234`",
        ) from None
    return point


class PointBuilder:
    """Makes a :class:`Point`; see :mod:`fetchc.syntax.lalr` for how it is called."""

    __slots__ = ()

    def address(self, children: list[Token], span: Span) -> Point:
        """``0x401234``."""
        return Point(None, None, None, None, False, _number(children[0], 0), span)

    def function(self, children: list[Token], span: Span) -> Point:
        """A function alone."""
        return Point(_function(children[0]), None, None, None, False, None, span)

    def function_offset(self, children: list[Token], span: Span) -> Point:
        """``f+4``."""
        offset = _number(children[1], 1)
        return Point(_function(children[0]), offset, None, None, False, None, span)

    def function_line(self, children: list[Token], span: Span) -> Point:
        """``f:17``."""
        return Point(_function(children[0]), None, _line(children[1]), None, False, None, span)

    def function_return(self, children: list[Token], span: Span) -> Point:
        """``f%return``."""
        return Point(_function(children[0]), None, None, None, True, None, span)

    def function_part(self, children: list[Token], span: Span) -> Point:
        """``f%body``."""
        part = _word(children[1])
        return Point(_function(children[0]), None, None, None, False, None, span, part)

    def file_line(self, children: list[Token], span: Span) -> Point:
        """``main.go:17``."""
        return Point(None, None, _line(children[1]), children[0].text.rstrip(), False, None, span)

    def offset(self, children: list[Token], span: Span) -> Point:
        """``+4`` in the function that is named elsewhere."""
        return Point(None, _number(children[0], 1), None, None, False, None, span)

    def line(self, children: list[Token], span: Span) -> Point:
        """``:17``."""
        return Point(None, None, _line(children[0]), None, False, None, span)

    def returns(self, children: list[Token], span: Span) -> Point:
        """``%return``."""
        return Point(None, None, None, None, True, None, span)

    def part(self, children: list[Token], span: Span) -> Point:
        """``%body``."""
        return Point(None, None, None, None, False, None, span, _word(children[0]))


def _word(token: Token) -> str:
    return token.text[1:].strip()


def _function(token: Token) -> str:
    if re.search(_ENDING, token.text):
        raise reject(
            "FC0101",
            "a probe point has only one of `+OFFSET`, `:LINE` and `%return`",
            token.span,
            "has one of its own",
        )
    return token.text


def _number(token: Token, skip: int) -> int:
    text = token.text[skip:].lstrip()
    return number(text, Span(token.span.end - len(text), token.span.end))


def _line(token: Token) -> int:
    text = token.text[1:].lstrip()
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        span = Span(token.span.end - len(text), token.span.end)
        raise reject("FC0101", f"`{shown(text)}` is not a line number", span, "not a line number")
    return int(text)
