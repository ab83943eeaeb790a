"""No control flow hangs on a diagnostic's code: what code branches on is its ``reason``.

A code is what people look up by ``fetchc explain``.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.product_sources import matching_lines, modules

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


def _compares_code(node: ast.AST) -> bool:
    """Whether it compares a code, matches it, or looks at how it begins."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return any(map(_is_code, (left, *others))) and _names_code(node)
        case ast.Match(subject=subject, cases=cases):
            return _is_code(subject) and any(_names_code(one.pattern) for one in cases)
        case ast.Call(func=ast.Attribute(attr="startswith", value=value), args=arguments):
            return _is_code(value) and any(map(_names_code, arguments))
        case _:
            return False


def test_no_code_is_compared() -> None:
    found = {
        str(path): len(lines)
        for path, source in modules()
        if path.parts[0] != "diag" and (lines := matching_lines(source, _compares_code))
    }
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
    assert matching_lines(f"x = 1\n{planted}", _compares_code) == [2]


@pytest.mark.parametrize(
    "allowed",
    [
        'refusal.reason == "computed"',
        'Diagnostic("FC0309", what)',
        "operation.code in (0x23, 0x94)",
    ],
)
def test_what_is_no_comparison_is_none(allowed: str) -> None:
    assert matching_lines(allowed, _compares_code) == []
