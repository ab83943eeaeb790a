"""The tree itself: facts have sources, skips have reasons, documents match the program."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.cli.option_table import COMMANDS, OPTIONS, Option

CHECKOUT = Path(__file__).parents[2]
TARGETS = sorted((CHECKOUT / "targets").rglob("*.toml"))
# Places of the machine where the tree was written, which mean nothing anywhere else.
# perf looks for maps of processes at these paths, and walks need a folder of their own.
MACHINE = re.compile(rb"(?<![\w.])/(work|tmp(?!/(perf-|jit-|fetchc_))|home|root)/\w")
# The test that the fixtures hold no such place has to name some.
MACHINE_NAMED = {"tests/meta/test_repository.py", "tests/conformance/test_rebuild.py"}


def _committed() -> list[Path]:
    if not (CHECKOUT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout, or no git: what is committed is not known")
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={CHECKOUT}", "ls-files", "-z"],
        cwd=CHECKOUT,
        capture_output=True,
        check=True,
    ).stdout
    paths = [CHECKOUT / name.decode() for name in listed.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def _without_source(table: dict[str, object], path: str = "", covered: bool = False) -> list[str]:
    # Tables with facts that neither have a source nor stand below a table that has one.
    # `applies` of a convention is no fact: it says when the file is looked at.
    covered = covered or "source" in table or path == "applies"
    facts = [key for key, value in table.items() if not isinstance(value, dict)]
    bare = [path] if path and facts and not covered else []
    for key, value in table.items():
        if isinstance(value, dict):
            bare += _without_source(value, f"{path}.{key}".lstrip("."), covered)
    return bare


@pytest.mark.parametrize("path", TARGETS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_fact_about_the_outside_world_has_a_source(path: Path) -> None:
    assert _without_source(tomllib.loads(path.read_text())) == []


def test_a_fact_without_a_source_is_noticed() -> None:
    facts = tomllib.loads("a = 1\n[b]\nsource = 'x'\n[b.c]\nd = 1\n[e]\nf = 1\n[g.h]\ni = [1]")
    assert _without_source(facts) == ["e", "g.h"]
    assert TARGETS


def test_no_path_of_a_machine_in_committed_texts() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}: {match[0].decode()}"
        for path in _committed()
        if str(path.relative_to(CHECKOUT)) not in MACHINE_NAMED
        and b"\0" not in (content := path.read_bytes())
        for match in [MACHINE.search(content)]
        if match
    ]
    assert found == []


def _unreasoned(source: str) -> Iterator[int]:
    # Lines with a skip that does not say why.
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            reasons = [named.get("reason"), *node.args[name.endswith("skipif") :]]
            if name in ("pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.xfail"):
                if not any(reasons):
                    yield node.lineno
            elif name == "pytest.importorskip" and "reason" not in named:
                yield node.lineno
        elif isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if ast.unparse(decorator) in ("pytest.mark.skip", "pytest.mark.xfail"):
                    yield decorator.lineno


def test_every_skip_says_why() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}"
        for path in (CHECKOUT / "tests").rglob("*.py")
        for line in _unreasoned(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("pytest.skip()", [1]),
        ("pytest.skip('no gcc')", []),
        ("pytest.importorskip('capstone')", [1]),
        ("@pytest.mark.skipif(True)\ndef f(): ...", [1]),
        ("@pytest.mark.skipif(True, reason='so')\ndef f(): ...", []),
        ("@pytest.mark.skip\ndef f(): ...", [1]),
    ],
)
def test_a_skip_without_a_reason_is_noticed(source: str, lines: list[int]) -> None:
    assert list(_unreasoned(source)) == lines


def _imported(tree: Path) -> set[str]:
    """The packages that modules below ``tree`` import, anywhere in them; without the standard's.

    ``_module(path, "lz4.block", ...)`` is how one is imported by its name.
    """
    found = set()
    for path in tree.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).split(".")[0])
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "_module":
                found |= {
                    str(arg.value).split(".")[0]
                    for arg in node.args[1:2]
                    if isinstance(arg, ast.Constant)
                }
    return found - sys.stdlib_module_names - {"fetchc"}


# A package that is imported by another name than it is installed by.
MODULES = {"pyelftools": "elftools"}


def _declared(requirements: list[str]) -> set[str]:
    names = {re.split(r"[<>=~! ]", each)[0] for each in requirements}
    return {MODULES.get(name, name) for name in names}


def test_what_is_imported_is_declared_and_nothing_else() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    always = _declared(project["dependencies"])
    site = _declared(extras["docs"])  # builds the site; the product imports nothing of it
    optional = _declared(
        [each for name in extras if name not in ("dev", "docs") for each in extras[name]]
    )
    assert always | optional == _imported(CHECKOUT / "fetchc")
    assert not always & optional
    assert optional | site <= _declared(extras["dev"])
    table = (CHECKOUT / "README.md").read_text().partition("## What it depends on")[2]
    named = {
        MODULES.get(name, name)
        for name in re.findall(
            r"[a-z0-9-]+",
            " ".join(
                re.findall(r"^\| ([a-z0-9, -]+) \|", table.partition("## Map")[0], re.MULTILINE)
            ),
        )
    }
    assert named - {"package"} == always | optional | site | {"lark", "hypothesis"}


def test_an_import_anywhere_in_a_module_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os, lark.lexer\ndef f():\n    from rich import table\n")
    (tmp_path / "b.py").write_text("x = _module(path, 'lz4.block', 'lz4')")
    assert _imported(tmp_path) == {"lark", "rich", "lz4"}


def test_documents_and_grammars_that_are_mentioned_exist() -> None:
    mentioned = {
        match.decode()
        for path in _committed()
        if path.suffix in (".py", ".md", ".toml", ".lark")
        for match in re.findall(rb"\b(?:docs/[\w-]+\.md|grammar/[\w-]+\.lark)\b", path.read_bytes())
    }
    assert mentioned
    assert [name for name in sorted(mentioned) if not (CHECKOUT / name).exists()] == []


def test_links_between_documents_lead_somewhere() -> None:
    pages = [path for path in _committed() if path.suffix == ".md"]
    broken = [
        f"{page.relative_to(CHECKOUT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert pages
    assert broken == []


def _unknown_modules(text: str) -> list[str]:
    """Modules in backquotes that are not there: ``fetchc/ir/fetch.py``, ``check/scope.where``."""
    packages = {path.name for path in (CHECKOUT / "fetchc").iterdir() if path.is_dir()}
    unknown = []
    for name in re.findall(r"`(?:fetchc/)?([a-z_]+(?:/[a-z0-9_]+)+)(?:\.[\w.]+)?`", text):
        path = CHECKOUT / "fetchc" / name
        if name.split("/")[0] in packages and not (
            path.is_dir() or path.with_suffix(".py").is_file()
        ):
            unknown.append(name)
    return unknown


def test_modules_that_documents_name_exist() -> None:
    pages = [path for path in _committed() if path.suffix == ".md" and path.name != "CHANGELOG.md"]
    assert {
        page.name: found for page in pages if (found := _unknown_modules(page.read_text()))
    } == {}


def test_a_module_that_is_not_there_is_noticed() -> None:
    text = "`ir/fetch.body`, `fetchc/cli/output.py`, `debuginfo/elf`, `ir/nodes`, `targets/abi`"
    assert _unknown_modules(text) == ["ir/nodes"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    if not COMMANDS[command].hidden:
        assert f"fetchc {command}" in (CHECKOUT / "README.md").read_text()
    page = (CHECKOUT / "docs/interface.md").read_text()
    assert re.search(rf"^## `fetchc {command}\b", page, re.MULTILINE)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: str(option.flags[-1]))
def test_every_option_is_documented(option: Option) -> None:
    page = (CHECKOUT / "docs/interface.md").read_text()
    assert [flag for flag in option.flags if f"`{flag}" not in page] == []
    assert [choice for choice in option.choices if choice not in page] == []


def test_every_directory_of_tests_is_described() -> None:
    described = (CHECKOUT / "tests/README.md").read_text()
    for path in sorted((CHECKOUT / "tests").iterdir()):
        if path.is_dir() and path.name != "__pycache__":
            assert f"`{path.name}/`" in described, path.name
