"""From the text of an argument to its tree."""

from __future__ import annotations

from fetchc.syntax.tree import Argument, Expression, Point, TypeName

__all__ = ["as_type", "parse_argument", "parse_point", "parse_type"]


def parse_argument(text: str) -> Argument:
    """The tree of an argument; raises CompileError (FC0101, FC0102, FC0104, FC0207)."""
    raise NotImplementedError(text)


def parse_point(text: str) -> Point:
    """The tree of a probe point alone, as ``--at`` takes it; raises CompileError."""
    raise NotImplementedError(text)


def parse_type(text: str) -> TypeName:
    """The tree of a type's name alone; raises CompileError."""
    raise NotImplementedError(text)


def as_type(expression: Expression) -> TypeName | None:
    """An expression read as a type's name (``msg``, ``dns.Msg``), None where it cannot be one."""
    raise NotImplementedError(expression)
