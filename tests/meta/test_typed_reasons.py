"""Control flow in ``debuginfo`` follows exception types, never the code of a diagnostic."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "fetchc/debuginfo"


def compared_codes(text: str) -> list[str]:
    """Comparisons with texts that look like the code of a diagnostic."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and part.value[:2] == "FC"
        and part.value[2:].isdecimal()
    ]


def test_no_code_is_compared() -> None:
    found = {path.name: compared_codes(path.read_text()) for path in PACKAGE.rglob("*.py")}
    assert {name: codes for name, codes in found.items() if codes} == {}


def test_a_planted_comparison_is_noticed() -> None:
    assert compared_codes("if refused.code == 'FC0901': pass") != []
    assert compared_codes("if refused.code not in ('FC0908', 'FC0909'): raise") != []
    assert compared_codes("raise DebugInfoError('FC0901', path, what)") == []
