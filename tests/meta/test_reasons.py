"""No control flow hangs on a diagnostic's code: what code branches on is its ``reason``.

A code is what people look up by ``fetchc explain``.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

# Where codes are data: a hint for people by what a definition lacks, and what `conformance`
# expects of a compiler's output.
DATA = {
    "conformance/c_comparison.py": 2,
    "conformance/go_comparison.py": 1,
    "driver/check_definitions.py": 1,
}

CODE = re.compile(r"FC[0-9]{2,4}")


def _names_code(node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Constant) and isinstance(one.value, str) and CODE.fullmatch(one.value)
        for one in ast.walk(node)
    )


def _is_code(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="code") | ast.Name(id="code"):
            return True
        case _:
            return False


def _compared(source: str) -> list[int]:
    """The lines that compare a code, match it, or look at how it begins."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                found = any(map(_is_code, (left, *others))) and _names_code(node)
            case ast.Match(subject=subject, cases=cases):
                found = _is_code(subject) and any(_names_code(one.pattern) for one in cases)
            case ast.Call(func=ast.Attribute(attr="startswith", value=value), args=arguments):
                found = _is_code(value) and any(map(_names_code, arguments))
            case _:
                found = False
        if found:
            assert isinstance(node, ast.expr | ast.stmt)
            lines.append(node.lineno)
    return lines


def test_no_code_is_compared() -> None:
    found = {}
    for path in sorted((CHECKOUT / "fetchc").rglob("*.py")):
        inside = path.relative_to(CHECKOUT / "fetchc")
        lines = _compared(path.read_text()) if inside.parts[0] != "diag" else []
        if lines:
            found[str(inside)] = len(lines)
    assert found == DATA


@pytest.mark.parametrize(
    "planted",
    [
        'refusal.diagnostics[0].code == "FC0309"',
        'refused.code not in ("FC0312", "FC0505")',
        'each.code.startswith("FC09")',
        'any(one.code in ("FC0501",) for one in problems)',
        'match problem.code:\n    case "FC0207" | "FC0104": pass',
    ],
)
def test_a_planted_comparison_is_noticed(planted: str) -> None:
    assert _compared(f"x = 1\n{planted}") == [2]


@pytest.mark.parametrize(
    "allowed",
    [
        'refusal.reason == "computed"',
        'Diagnostic("FC0309", what)',
        "operation.code in (0x23, 0x94)",
    ],
)
def test_what_is_no_comparison_is_none(allowed: str) -> None:
    assert _compared(allowed) == []
