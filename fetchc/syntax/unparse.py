"""From a tree back to canonical text, for diagnostics and round trips."""

from __future__ import annotations

from fetchc.syntax.tree import Argument, Expression, TypeName

__all__ = ["unparse", "unparse_type"]


def unparse(node: Argument | Expression) -> str:
    """Canonical text of an argument or expression; parsing it gives the same tree again."""
    raise NotImplementedError(node)


def unparse_type(type: TypeName) -> str:
    """Canonical text of a type's name, in the spelling of its language."""
    raise NotImplementedError(type)
