"""The parsers of arguments, probe points and types: from a string to its tree."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.source import Span
from fetchc.syntax import expression_tables, type_actions
from fetchc.syntax.expression_actions import Builder
from fetchc.syntax.lalr import Unexpected, run
from fetchc.syntax.tree import (
    BRACKETS,
    DEPTH,
    LENGTH,
    Argument,
    Expression,
    Point,
    TypeName,
    depth_exceeds,
    too_deep,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["as_type", "parse_argument", "parse_point", "parse_type", "written"]


def parse_argument(text: str) -> Argument:
    """The tree of an argument; raises CompileError (FC0101, FC0102, FC0104, FC0207)."""
    result: Argument = _parse("argument", text)
    return result


def written(argument: Argument, text: str) -> tuple[int, int]:
    """Start and end in ``text`` of the expression with its parentheses and format."""
    # A tree has no node for `(e)`: the span of an expression excludes its parentheses.
    start, end = argument.expression.span.start, argument.expression.span.end
    while True:
        before, after = text[:start].rstrip(), text[end:].lstrip()
        if not (before.endswith("(") and after.startswith(")")):
            break
        start, end = len(before) - 1, len(text) - len(after) + 1
    return start, end if argument.format is None else argument.format.span.end


def parse_point(text: str) -> Point:
    """The tree of a probe point alone, as ``--at`` takes it; raises CompileError."""
    from fetchc.syntax.point_parser import point_of

    _check(text)
    if not text.strip():
        raise reject("FC0104", "the probe point is empty", Span(0, len(text)), "nothing here")
    return point_of(text)


def parse_type(text: str) -> TypeName:
    """The tree of a type's name alone; raises CompileError."""
    result: TypeName = _parse("type", text)
    return result


def as_type(expression: Expression) -> TypeName | None:
    """An expression read as a type's name (``msg``, ``dns.Msg``), None where it cannot be one."""
    return type_actions.as_type(expression, {})


def _parse(start: str, text: str) -> Any:
    if not text.strip():
        raise reject("FC0104", f"the {_what(start)} is empty", Span(0, len(text)), "nothing here")
    _check(text)
    builder = Builder(text)
    try:
        result = run(expression_tables, start, text, builder)
    except Unexpected as problem:
        from fetchc.syntax.syntax_errors import explain

        raise explain(text, start, problem) from None
    if len(text) > DEPTH and depth_exceeds(result):
        raise too_deep(result.span)
    builder.finish()
    return result


def _what(start: str) -> str:
    return "expression" if start == "argument" else start


def _check_characters(text: str) -> None:
    # Lone surrogates, which JSON can spell, are FC0101. Those of bytes that are not UTF-8 (PEP 383)
    # are characters of names.
    if text.isascii():
        return
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as half:
        what = f"half a character (U+{ord(text[half.start]):04X})"
        raise reject("FC0101", what, Span(half.start, half.start + 1), "not a character") from None


def _check(text: str) -> None:
    if len(text) > LENGTH:
        raise reject(
            "FC0102",
            f"the expression has {len(text)} characters, more than {LENGTH}",
            Span(LENGTH, len(text)),
            "too long",
        )
    _check_characters(text)
    if text.count("(") + text.count("[") <= BRACKETS:
        return
    depth = 0
    for at, character in enumerate(text):
        if character in "([":
            depth += 1
            if depth > BRACKETS:
                raise reject(
                    "FC0102",
                    f"more than {BRACKETS} brackets are open at once",
                    Span(at, at + 1),
                    "too deep",
                )
        elif character in ")]":
            depth -= 1
