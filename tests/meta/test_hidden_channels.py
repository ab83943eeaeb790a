"""No module sets what another one reads: what differs between two users is passed to functions.

A class or module that one file imports and assigns to is a global variable with a long name. The
command line did so with the cache folder until it had an Environment to pass.
"""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "fetchc"

# Variables of a module that its own functions set, with the reason.
ALLOWED = {
    ("ceilings.py", "_asked"),  # a process has one timer (setitimer)
    ("program/cpp_names.py", "_last"),  # a cache of one result of a pure function
}


def hidden_channels(path: str, text: str) -> set[tuple[str, str]]:
    """Names that the module imports and assigns an attribute of; variables of its ``global``."""
    tree = ast.parse(text)
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    found = {
        (path, name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Global)
        for name in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            owner = node.value
            if isinstance(owner, ast.Name) and owner.id in imported:
                found.add((path, f"{owner.id}.{node.attr}"))
    return found


def test_no_module_sets_what_another_one_reads() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        found |= hidden_channels(name, path.read_text())
    assert found == ALLOWED


def test_a_planted_one_is_noticed() -> None:
    planted = "from fetchc.debuginfo.elf.headers import Image\nImage.cache_folder = '/tmp'\n"
    assert hidden_channels("x.py", planted) == {("x.py", "Image.cache_folder")}
    planted = "_send = None\ndef write_by(send):\n    global _send\n    _send = send\n"
    assert hidden_channels("x.py", planted) == {("x.py", "_send")}
