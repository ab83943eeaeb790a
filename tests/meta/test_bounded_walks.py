"""A walk along types has a bound: what a stranger wrote can lead to itself.

``while isinstance(made, QualifiedType)`` never ends where a qualifier's target is the qualifier.
Such a walk is ``Site.steps``, or counts its steps (``for _ in range(_DEEPEST)``).
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fetchc.program import types

PACKAGE = Path(__file__).parents[2] / "fetchc"
TYPES = frozenset(name for name in types.__all__ if name.endswith("Type"))


def unbounded(source: str) -> list[int]:
    """The lines of ``while`` loops that go on as long as something is of a kind of type."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.While):
            continue
        kinds = [
            name.id
            for call in ast.walk(node.test)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "isinstance"
            for name in ast.walk(call.args[1])
            if isinstance(name, ast.Name)
        ]
        if not TYPES.isdisjoint(kinds):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_walk_is_as_long_as_a_chain_of_types(path: Path) -> None:
    assert unbounded(path.read_text()) == []


def test_an_unbounded_walk_is_seen() -> None:
    assert {"QualifiedType", "StructType"} <= TYPES
    loop = (
        "while isinstance(made, NamedType | QualifiedType):\n    made = program.type(made.target)"
    )
    assert unbounded(loop) == [1]
    assert unbounded("while x and not isinstance(x, (int, StructType)):\n    pass") == [1]
    assert unbounded("while isinstance(node, Convert):\n    node = node.base") == []
