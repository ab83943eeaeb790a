"""The import contracts of pyproject.toml hold, and each one can turn red."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.meta.no_circles import circles

CHECKOUT = Path(__file__).parents[2]


def _lint(tree: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo", *options],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package with its configuration, to be spoilt."""
    shutil.copytree(
        CHECKOUT / "fetchc", tmp_path / "fetchc", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    (tmp_path / "tests/meta").mkdir(parents=True)
    shutil.copy(CHECKOUT / "tests/meta/no_circles.py", tmp_path / "tests/meta")
    return tmp_path


def test_contracts_hold(tree: Path) -> None:
    status, report = _lint(tree)
    assert status == 0, report


@pytest.mark.parametrize(
    ("contract", "module", "planted", "complaint"),
    [
        ("layers", "program/types", "import fetchc.check", "fetchc.program is not allowed"),
        ("layers", "record", "import fetchc.quantities", "fetchc.record is not allowed"),
        ("layers", "lang/c", "import fetchc.ir.fetch", "fetchc.lang is not allowed"),
        ("layers", "stray", "", "fetchc.stray"),  # exhaustive: a module without a place
        ("emit", "emit/perf", "import fetchc.program.types", "fetchc.emit is not allowed"),
        ("debuginfo", "debuginfo/program", "import fetchc.ir", "fetchc.debuginfo is not allowed"),
        ("machine", "conformance/machine", "import fetchc.ir", "machine is not allowed to import"),
        ("lark", "check/scope", "import lark", "fetchc.check.scope -> lark"),
        ("lark", "cli/__init__", "def f():\n    import lark", "fetchc.cli -> lark"),
        (
            "elftools",
            "api/library",
            "import elftools.elf.elffile",
            "fetchc.api.library -> elftools",
        ),
        ("capstone", "lower/__init__", "import capstone", "fetchc.lower -> capstone"),
        (
            "policies",
            "tracer/shaper",
            "from fetchc.program.types import ArrayType",
            "fetchc.tracer.shaper -> fetchc.program.types",
        ),
        ("rich", "cli/output", "import rich", "fetchc.cli.output -> rich"),
        ("textual", "cli/output", "import textual", "fetchc.cli.output -> textual"),
        ("browse", "browse/browser", "import fetchc.driver.listings", "fetchc.browse is not"),
        ("main", "api/library", "import argparse", "fetchc.api.library -> argparse"),
        (
            "no_circles",
            "lang/base",
            "def f():\n    from fetchc.lang.go_language import GO",
            "fetchc.lang has a circle of imports: fetchc.lang.base, fetchc.lang.go_language",
        ),
    ],
)
def test_a_planted_import_turns_its_contract_red(
    tree: Path, contract: str, module: str, planted: str, complaint: str
) -> None:
    path = tree / "fetchc" / f"{module}.py"
    text = path.read_text() if path.exists() else ""
    path.write_text(f"{text}\n\n{planted}\n")
    status, report = _lint(tree, "--contract", contract)
    assert status == 1
    assert complaint in report


def test_every_contract_is_seen_red() -> None:
    configured = {
        line.split('"')[1]
        for line in (CHECKOUT / "pyproject.toml").read_text().splitlines()
        if line.startswith("id = ")
    }
    marks = test_a_planted_import_turns_its_contract_red.pytestmark  # type: ignore[attr-defined]
    assert configured == {case[0] for case in marks[0].args[1]}


def test_an_import_for_annotations_makes_no_circle(tree: Path) -> None:
    path = tree / "fetchc/lang/base.py"
    planted = "if TYPE_CHECKING:\n    from fetchc.lang.go_language import GO"
    path.write_text(f"{path.read_text()}\n\n{planted}\n")
    status, report = _lint(tree, "--contract", "no_circles")
    assert status == 0, report


def test_every_package_is_free_of_circles() -> None:
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (free,) = [one["packages"] for one in contracts["contracts"] if one["id"] == "no_circles"]
    packages = {f"fetchc.{path.parent.name}" for path in CHECKOUT.glob("fetchc/*/__init__.py")}
    assert packages == {one for one in free if one.count(".") == 1}


def test_circles() -> None:
    imports = {"a": "b", "b": "cd", "c": "a", "d": "e", "e": "", "f": "gf", "g": "f"}
    assert circles(imports) == [["a", "b", "c"], ["f", "g"]]


def test_the_oracle_of_fetch_args_knows_nothing_of_fetchc() -> None:
    tree = ast.parse((CHECKOUT / "fetchc/conformance/machine.py").read_text())
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported
    assert not [name for name in imported if name.split(".")[0] in ("fetchc", "tests")]
