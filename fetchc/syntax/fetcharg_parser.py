"""Read fetch-args as people and programs wrote them for the kernel: grammar/fetcharg.lark.

The tree keeps every piece as text with its place, wrong pieces too, so that the check of the
kernel's rules can report every mistake at its place.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax import fetcharg_tables
from fetchc.syntax.lalr import Token, Unexpected, run
from fetchc.syntax.tree import LENGTH

__all__ = ["FetchText", "Leaf", "Load", "Part", "Piece", "kernel_number", "read_fetch"]


class Piece(Record):
    """Some text and its place."""

    text: str
    span: Span


class Leaf(Record):
    """What is no load; ``kind`` is register, variable, at, immediate, unopened or other.

    ``unopened`` is a sign with no bracket after it, ``other`` what begins like no fetch.
    """

    kind: str
    text: str
    span: Span


class Load(Record):
    """``+8(inner)``; ``opening`` is all up to the bracket, ``inner`` None where nothing is in it.

    ``closed`` says whether its own bracket ends it; ``tail`` is what follows that.
    """

    opening: Piece
    inner: Part | None
    closed: bool
    tail: Piece | None
    span: Span


Part = Leaf | Load


class FetchText(Record):
    """A fetch-arg; None is what is not written. ``type`` begins after the colon.

    ``name`` is without its equals sign, ``body`` the place of everything after that: the
    text whose length the kernel bounds.
    """

    name: Piece | None
    fetch: Part | None
    type: Piece | None
    body: Span


def read_fetch(text: str, start: int = 0) -> FetchText:
    """The tree of a fetch-arg without blanks; places count from ``start``.

    Raises CompileError: FC0104 for nothing, FC0102 for more than a line can hold, FC0101
    for a blank and for a bracket that has no opening bracket.
    """
    if not text:
        raise reject("FC0104", "the fetch-arg is empty", Span(start, start), "nothing here")
    if len(text) > LENGTH:
        span = Span(start + LENGTH, start + len(text))
        raise reject("FC0102", f"the fetch-arg has {len(text)} characters", span, "too long")
    for at, character in enumerate(text):
        if character.isspace() or character == "\0":
            raise reject(
                "FC0101",
                "a fetch-arg holds no blanks: they end it",
                Span(start + at, start + at + 1),
                "ends here for the kernel",
            )
    try:
        tree: FetchText = run(fetcharg_tables, "argument", text, _Builder(start))
    except Unexpected as problem:
        at = problem.token.span.start + start
        what = problem.token.text[:1]
        span = Span(at, at + 1)
        message = (
            f"`{what}` has no opening bracket" if what == ")" else f"`{what}` is not valid here"
        )
        label = "nothing is open here" if what == ")" else "not expected here"
        raise reject("FC0101", message, span, label) from None
    return tree


def kernel_number(text: str, sign: bool = True) -> int | None:
    """A number as the kernel's ``kstrtol`` reads it with base 0; None where it does not.

    A sign if ``sign`` allows one, then ``0x`` and hexadecimal digits, a leading 0 and
    octal ones, or decimal ones. Of any size that a line can have: the caller knows the width.
    Source: lib/kstrtox.c.
    """
    negative = sign and text[:1] == "-"
    digits = text[1:] if text[:1] == "-" and sign else text.removeprefix("+")
    base, allowed = 10, "0123456789"
    if digits[:2] in ("0x", "0X"):
        base, allowed, digits = 16, "0123456789abcdefABCDEF", digits[2:]
    elif digits[:1] == "0":
        base, allowed = 8, "01234567"
    if not digits or digits.strip(allowed) or len(digits) > LENGTH:
        return None
    value = int(digits, base)
    return -value if negative else value


class _Builder:
    """Makes a :class:`FetchText`; see :mod:`fetchc.syntax.lalr` for how it is called."""

    __slots__ = ("_start",)

    def __init__(self, start: int) -> None:
        self._start = start

    def named(self, children: list[object], span: Span) -> FetchText:
        """``name=body``."""
        token, made = children
        assert isinstance(made, FetchText)
        return FetchText(self._name(token), made.fetch, made.type, made.body)

    def named_nothing(self, children: list[Token], span: Span) -> FetchText:
        """``name=``."""
        end = self._place(span).end
        return FetchText(self._name(children[0]), None, None, Span(end, end))

    def unnamed(self, children: list[FetchText], span: Span) -> FetchText:
        """A body alone."""
        return children[0]

    def untyped(self, children: list[Part], span: Span) -> FetchText:
        """A fetch without a type."""
        return FetchText(None, children[0], None, self._place(span))

    def typed(self, children: list[object], span: Span) -> FetchText:
        """``fetch:type``."""
        fetch, token = children
        assert isinstance(fetch, Leaf | Load)
        return FetchText(None, fetch, self._piece(token, 1), self._place(span))

    def type_alone(self, children: list[Token], span: Span) -> FetchText:
        """``:type``."""
        return FetchText(None, None, self._piece(children[0], 1), self._place(span))

    def load(self, children: list[object], span: Span) -> Load:
        """``+8(inner)``."""
        return self._load(children[0], children[1], True, None, span)

    def load_with_tail(self, children: list[object], span: Span) -> Load:
        """``+8(inner)tail``."""
        return self._load(children[0], children[1], True, children[2], span)

    def load_nothing(self, children: list[object], span: Span) -> Load:
        """``+8()``, perhaps with a tail."""
        return self._load(children[0], None, True, children[1] if len(children) > 1 else None, span)

    def load_open(self, children: list[object], span: Span) -> Load:
        """``+8(inner``."""
        return self._load(children[0], children[1], False, None, span)

    def load_nothing_open(self, children: list[object], span: Span) -> Load:
        """``+8(``."""
        return self._load(children[0], None, False, None, span)

    def leaf(self, children: list[Leaf], span: Span) -> Leaf:
        """What is no load."""
        return children[0]

    def register(self, children: list[Token], span: Span) -> Leaf:
        """``%di``."""
        return self._leaf("register", children[0])

    def variable(self, children: list[Token], span: Span) -> Leaf:
        """``$stack``."""
        return self._leaf("variable", children[0])

    def at(self, children: list[Token], span: Span) -> Leaf:
        """``@0x4000``."""
        return self._leaf("at", children[0])

    def immediate(self, children: list[Token], span: Span) -> Leaf:
        r"""``\8``."""
        return self._leaf("immediate", children[0])

    def unopened(self, children: list[Token], span: Span) -> Leaf:
        """``+8``."""
        return self._leaf("unopened", children[0])

    def other(self, children: list[Token], span: Span) -> Leaf:
        """Anything else."""
        return self._leaf("other", children[0])

    def _leaf(self, kind: str, token: Token) -> Leaf:
        return Leaf(kind, token.text, self._place(token.span))

    def _load(self, opening: object, inner: object, closed: bool, tail: object, span: Span) -> Load:
        assert inner is None or isinstance(inner, Leaf | Load)
        after = None if tail is None else self._piece(tail)
        return Load(self._piece(opening), inner, closed, after, self._place(span))

    def _name(self, token: object) -> Piece:
        piece = self._piece(token)
        return Piece(piece.text[:-1], Span(piece.span.start, piece.span.end - 1))

    def _piece(self, token: object, skip: int = 0) -> Piece:
        assert isinstance(token, Token)
        place = self._place(token.span)
        return Piece(token.text[skip:], Span(place.start + skip, place.end))

    def _place(self, span: Span) -> Span:
        return Span(span.start + self._start, span.end + self._start)
