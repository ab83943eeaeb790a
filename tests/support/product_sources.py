"""The product's sources, for tests that look for a kind of code in all of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["matching_lines", "modules"]

PACKAGE = Path(__file__).parents[2] / "fetchc"


def modules() -> Iterator[tuple[Path, str]]:
    """Each module's path below the package, and its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE), path.read_text()


def matching_lines(source: str, matches: Callable[[ast.AST], bool]) -> list[int]:
    """The lines of the expressions and statements in ``source`` that ``matches`` accepts."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.expr | ast.stmt) and matches(node)
    ]
