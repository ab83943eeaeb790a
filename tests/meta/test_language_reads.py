"""Which language a function is of decides nothing outside ``lang``: facts of its record do.

``debuginfo`` maps DW_AT_language to the keys of these records, so it compares them, too.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

# How often a module still reads which language it is. Numbers only go down.
STILL_READ = {
    "abi/placement.py": 1,
}


def _is_language(node: ast.expr) -> bool:
    """``function.language``, ``program.main_language()``, and the name of a record."""
    match node:
        case ast.Attribute(attr="language") | ast.Call(func=ast.Attribute(attr="main_language")):
            return True
        case ast.Attribute(attr="name", value=ast.Attribute(attr="language")):
            return True
        case ast.Attribute(attr="name", value=ast.Name(id="language" | "rules")):
            return True
        case _:
            return False


def _reads(source: str) -> list[int]:
    """The lines that compare a language, match or look it up, or name one by its key."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                found = any(_is_language(one) for one in (left, *others))
            case ast.Match(subject=subject):
                found = _is_language(subject)
            case ast.Subscript(slice=key):
                found = _is_language(key)
            case ast.Call(func=ast.Attribute(attr="get" | "startswith"), args=arguments):
                assert isinstance(node.func, ast.Attribute)
                found = any(_is_language(one) for one in (node.func.value, *arguments))
            case ast.Call(func=ast.Name(id="language"), args=[key]):
                found = any(isinstance(one, ast.Constant) for one in ast.walk(key))
            case _:
                found = False
        if found:
            assert isinstance(node, ast.expr | ast.stmt)
            lines.append(node.lineno)
    return lines


def test_no_module_outside_lang_reads_which_language_it_is() -> None:
    found = Counter[str]()
    for path in sorted((CHECKOUT / "fetchc").rglob("*.py")):
        inside = path.relative_to(CHECKOUT / "fetchc")
        if inside.parts[0] not in ("lang", "debuginfo"):
            found[str(inside)] = len(_reads(path.read_text()))
    assert {module: count for module, count in found.items() if count} == STILL_READ


@pytest.mark.parametrize(
    "planted",
    [
        'function.language == "go"',
        'function.language not in ("c", "c++")',
        'program.main_language() == "rust"',
        'site.language.name != ".NET"',
        'rules.name == "Go"',
        "TABLE[function.language]",
        "TABLE.get(site.language.name)",
        'function.language.startswith("c")',
        'language("c")',
        'language(function.language if function is not None else "c")',
        'match function.language:\n    case "go": pass',
    ],
)
def test_a_planted_read_is_noticed(planted: str) -> None:
    assert _reads(f"x = 1\n{planted}") == [2]


@pytest.mark.parametrize(
    "allowed",
    [
        "language(function.language)",
        "site.language.word_int and len(path) == 1",
        'f"{site.language.name} has no convention"',
        'variable.name == "this"',
    ],
)
def test_what_is_no_read_is_none(allowed: str) -> None:
    assert _reads(allowed) == []
