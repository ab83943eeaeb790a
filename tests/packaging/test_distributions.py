"""Wheel, sdist, editable install and plain checkout: each one finds the same data trees.

Offline: hatchling comes from the dev extra, and an option keeps pip from looking for more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TREES = ("grammar", "targets")
PROBE = """
import fetchc, fetchc.resources
print(fetchc.__file__)
for tree in ("grammar", "targets"):
    print(fetchc.resources.data_path(tree))
"""


def _run(*command: str | Path, cwd: str | Path = "/", **environment: str) -> str:
    # Not from the checkout: its own fetchc would be found first.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=clean | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _data(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for tree in TREES
        for path in sorted((root / tree).rglob("*"))
        if path.is_file()
    }


def _environment(directory: Path) -> Path:
    # A new environment that also sees the packages, but not the editable installs, of ours.
    venv.create(directory, with_pip=False, symlinks=True)
    (site,) = directory.glob("lib/python3*/site-packages")
    (site / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory / "bin" / "python"


def _pip(*arguments: str | Path) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
    _run(sys.executable, "-m", "pip", *arguments, *options, "--no-build-isolation")


def _installed(python: Path, *what: str | Path) -> None:
    _pip("--python", python, "install", "--ignore-installed", "--no-compile", *what)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build needs of the checkout, apart from it: no build writes into the tree."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(CHECKOUT / name, copy)
    for name in ("fetchc", *TREES, "docs/man"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / name, copy / name, ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built, cwd=sources)
    return next(built.glob("*.whl"))


def test_wheel_holds_the_package_and_the_data_and_nothing_else(sources: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = {
            name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name
        }
    expected = {f"fetchc/{name}": content for name, content in _data(sources).items()}
    assert expected
    for path in (sources / "fetchc").rglob("*"):
        if path.is_file():
            expected[str(path.relative_to(sources))] = path.read_bytes()
    # pip puts these below the prefix that it installs to.
    for page in (sources / "docs/man").iterdir():
        expected[f"{wheel.name.rpartition('-py3')[0]}.data/data/share/man/man1/{page.name}"] = (
            page.read_bytes()
        )
    assert found == expected
    assert "fetchc/py.typed" in found


def test_wheel_without_a_tree_is_noticed(sources: Path, tmp_path: Path) -> None:
    """The comparison above is one that can fail: hatchling itself says nothing."""
    spoilt = tmp_path / "spoilt"
    shutil.copytree(sources, spoilt)
    project = spoilt / "pyproject.toml"
    text = project.read_text()
    project.write_text(text.replace('["fetchc", "grammar", "targets"]', '["fetchc", "grammar"]'))
    assert project.read_text() != text
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=spoilt)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        names = archive.namelist()
    assert not [name for name in names if name.startswith("fetchc/targets/")]
    assert [name for name in names if name.startswith("fetchc/grammar/")]


def test_data_trees_hold_no_python() -> None:
    """A module in them would break editable installs, with a message about something else."""
    for tree, ending in zip(TREES, (".lark", ".toml"), strict=True):
        files = [path for path in (CHECKOUT / tree).rglob("*") if path.is_file()]
        assert files
        assert [path for path in files if path.suffix != ending] == []


def _check(python: Path, package: Path, sources: Path, **environment: str) -> None:
    # The package is the one that was installed, and it finds the data of the checkout.
    module, *trees = _run(python, "-c", PROBE, **environment).splitlines()
    assert Path(module).is_relative_to(package)
    assert [Path(tree).name for tree in trees] == list(TREES)
    assert {Path(tree).parent for tree in trees} == {Path(trees[0]).parent}
    assert _data(Path(trees[0]).parent) == _data(sources)


def test_pip_compiles_a_wheel_where_python_writes_no_bytecode(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    options = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target")
    command = (sys.executable, "-m", "pip", "install", *options, target, wheel)
    _run(*command, PYTHONDONTWRITEBYTECODE="1")
    sources = list((target / "fetchc").rglob("*.py"))
    compiled = list((target / "fetchc").rglob("__pycache__/*.pyc"))
    assert len(compiled) == len(sources) > 100


def test_wheel_installs_and_runs(sources: Path, wheel: Path, tmp_path: Path) -> None:
    python = _environment(tmp_path)
    _installed(python, wheel)
    _check(python, tmp_path, sources)
    assert "compile" in _run(tmp_path / "bin" / "fetchc", "--help")
    assert "compile" in _run(python, "-m", "fetchc", "--help")
    assert (tmp_path / "share/man/man1/fetchc-trace.1").is_file()


def test_the_wheel_runs_as_it_is(wheel: Path, tmp_path: Path) -> None:
    python = _environment(tmp_path)
    words = (python, "-m", "fetchc", "explain", "FC0302")
    assert _run(*words, PYTHONPATH=str(wheel)).startswith("FC0302: ")


def test_an_archive_of_the_package_runs(wheel: Path, tmp_path: Path) -> None:
    folder, archive = tmp_path / "app", tmp_path / "fetchc.pyz"
    _pip("install", "--target", folder, wheel)
    words = ("-p", "/usr/bin/env python3", "-m", "fetchc.cli:main", "-o", archive, folder)
    _run(sys.executable, "-m", "zipapp", *words)
    program = CHECKOUT / "corpus/c/layouts/bin/gcc-O2-dwarf5"
    compiled = _run(sys.executable, "-S", archive, "compile", "r->i", "-x", program, "-f", "visit")
    assert compiled.startswith("+")


def test_the_wheel_tries_a_compiler(wheel: Path, tmp_path: Path) -> None:
    """Nothing of the checkout is needed; one set of options of the compiler is enough here."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here (.ci/setup brings it)")
    python = _environment(tmp_path / "venv")
    _installed(python, wheel)
    compiler = tmp_path / "cc"
    refuses = 'case "$*" in *-O2*|*dwarf-5*) exit 1;; esac'
    compiler.write_text(f'#!/bin/sh\n{refuses}\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    command = ("conformance", "--cc", compiler, "--only", "signatures")
    shown = _run(tmp_path / "venv/bin/fetchc", *command).splitlines()
    assert shown[-1].split()[0] == "all"
    assert shown[-1].split()[-1] == "0"


def test_sdist_builds_the_same_wheel(sources: Path, wheel: Path, tmp_path: Path) -> None:
    _run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=sources)
    _pip("wheel", "--wheel-dir", tmp_path, next(tmp_path.glob("*.tar.gz")))
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as other:
        assert {name: one.read(name) for name in one.namelist()} == (
            {name: other.read(name) for name in other.namelist()}
        )


def test_editable_install_reads_the_checkout(sources: Path, tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    shutil.copytree(sources, copy)
    python = _environment(tmp_path / "venv")
    _installed(python, "--editable", copy)
    _check(python, copy, copy)
    (copy / "grammar" / "more.lark").write_text("// an edit is seen at once\n")
    _check(python, copy, copy)
    assert "compile" in _run(tmp_path / "venv" / "bin" / "fetchc", "--help")


def test_plain_checkout_needs_no_install(sources: Path, tmp_path: Path) -> None:
    _check(_environment(tmp_path), sources, sources, PYTHONPATH=str(sources))
