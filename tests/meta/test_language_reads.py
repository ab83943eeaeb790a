"""Which language a function is of decides nothing outside ``lang``: facts of its record do.

``debuginfo`` maps DW_AT_language to the keys of these records, so it compares them, too.
"""

from __future__ import annotations

import ast

import pytest

from tests.support.product_sources import matching_lines, modules

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


def _reads_language(node: ast.AST) -> bool:
    """Whether it compares a language, matches or looks it up, or names one by its key."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return any(_is_language(one) for one in (left, *others))
        case ast.Match(subject=subject):
            return _is_language(subject)
        case ast.Subscript(slice=key):
            return _is_language(key)
        case ast.Call(func=ast.Attribute(attr="get" | "startswith", value=value), args=arguments):
            return any(_is_language(one) for one in (value, *arguments))
        case ast.Call(func=ast.Name(id="language"), args=[key]):
            return any(isinstance(one, ast.Constant) for one in ast.walk(key))
        case _:
            return False


def test_no_module_outside_lang_reads_which_language_it_is() -> None:
    found = {
        str(path): len(lines)
        for path, source in modules()
        if path.parts[0] not in ("lang", "debuginfo")
        and (lines := matching_lines(source, _reads_language))
    }
    assert found == STILL_READ


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
    assert matching_lines(f"x = 1\n{planted}", _reads_language) == [2]


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
    assert matching_lines(allowed, _reads_language) == []
