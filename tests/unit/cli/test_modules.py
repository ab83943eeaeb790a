"""How the command finds and reads fetchc's own modules: as importlib does, with less ado."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fetchc.cli import module_finder

CHECKOUT = Path(__file__).parents[3]
TIME = 1_700_000_000

# What a module says of itself, by the command's finder or by importlib alone.
TOLD = """
import sys
if sys.argv[1] == "own":
    from fetchc.cli.module_finder import install
    install()
import fetchc.debuginfo.elf, fetchc.quantities
for module in (fetchc.debuginfo.elf, fetchc.quantities):
    spec = module.__spec__
    print(module.__name__, module.__file__, module.__cached__, module.__package__)
    print(getattr(module, "__path__", None), spec.origin, spec.has_location, spec.parent)
    print(spec.submodule_search_locations, spec.loader.name, spec.loader.path)
    print(len(spec.loader.get_source(module.__name__)), spec.loader.is_package(module.__name__))
    print(type(spec.loader).__module__, file=sys.stderr)
"""


def _imports(*how: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", TOLD, *how],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
    )
    return done.stdout, done.stderr


def test_a_module_says_the_same_of_itself() -> None:
    own, loaders = _imports("own")
    ordinary, others = _imports("ordinary")
    assert own == ordinary
    assert set(loaders.split()) == {"fetchc.cli.module_finder"}
    assert "fetchc.cli.module_finder" not in others


def _loaded(folder: Path) -> ModuleType:
    spec = module_finder._Finder.find_spec("fetchc.sample", [str(folder)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _write(folder: Path, text: str, time: int = TIME) -> Path:
    source = folder / "sample.py"
    source.write_text(text)
    os.utime(source, (time, time))
    return source


def test_what_is_kept_is_read_where_it_is_current(tmp_path: Path) -> None:
    py_compile.compile(str(_write(tmp_path, "VALUE = 1\n")))
    _write(tmp_path, "VALUE = 2\n")  # the same time and size: nobody can see it
    assert _loaded(tmp_path).VALUE == 1


@pytest.mark.parametrize(("text", "time"), [("VALUE = 2\n", TIME + 1), ("VALUE = 20\n", TIME)])
def test_what_is_kept_of_another_source_is_not_read(tmp_path: Path, text: str, time: int) -> None:
    py_compile.compile(str(_write(tmp_path, "VALUE = 1\n")))
    _write(tmp_path, text, time)
    assert text == f"VALUE = {_loaded(tmp_path).VALUE}\n"


def test_what_is_kept_by_another_python_is_not_read(tmp_path: Path) -> None:
    kept = Path(py_compile.compile(str(_write(tmp_path, "VALUE = 1\n"))) or "")
    data = kept.read_bytes()
    _write(tmp_path, "VALUE = 2\n")
    kept.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    assert _loaded(tmp_path).VALUE == 2


def test_what_is_kept_by_hash_is_left_to_importlib(tmp_path: Path) -> None:
    source = _write(tmp_path, "VALUE = 1\n")
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    py_compile.compile(str(source), invalidation_mode=mode)
    _write(tmp_path, "VALUE = 2\n")
    assert _loaded(tmp_path).VALUE == 2


def test_a_module_too_long_to_be_read_at_once(tmp_path: Path) -> None:
    text = f"VALUE = len({'x' * (module_finder._MOST + 1)!r})\n"
    py_compile.compile(str(_write(tmp_path, text)))
    assert module_finder._MOST + 1 == _loaded(tmp_path).VALUE


def test_a_module_that_nothing_is_kept_of(tmp_path: Path) -> None:
    _write(tmp_path, "VALUE = 3\n")
    assert _loaded(tmp_path).VALUE == 3


def test_what_is_not_there_and_what_is_not_ours_is_for_others(tmp_path: Path) -> None:
    assert module_finder._Finder.find_spec("fetchc.sample", [str(tmp_path)]) is None
    _write(tmp_path, "")
    assert module_finder._Finder.find_spec("other.sample", [str(tmp_path)]) is None
    assert module_finder._Finder.find_spec("fetchc", None) is None


@pytest.mark.parametrize(("name", "value"), [("pycache_prefix", "/nowhere"), ("flags", None)])
def test_only_where_python_keeps_modules_in_their_usual_place(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    class Optimised:
        optimize = 2

    before = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", list(before))
    monkeypatch.setattr(sys, name, value or Optimised)
    module_finder.install()
    assert sys.meta_path == before
    monkeypatch.undo()
    monkeypatch.setattr(sys, "meta_path", list(before))
    module_finder.install()
    assert len(sys.meta_path) == len(before) + 1


def _note(tree: Path) -> str:
    # What a command says beside its result where Python writes no bytecode.
    program = CHECKOUT / "corpus/c/layouts/bin/gcc-O2-dwarf5"
    words = ["functions", "-x", str(program), "--verbose", "--no-cache"]
    done = subprocess.run(
        [sys.executable, "-B", "-c", "from fetchc.cli import main; main()", *words],
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


def test_missing_bytecode_is_named_and_the_advice_helps(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "fetchc", tmp_path / "fetchc", ignore=ignored)
    for name in ("grammar", "targets"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    note = _note(tmp_path)
    assert note.startswith("note: modules of fetchc without bytecode: ")
    advice = note.partition("run `")[2].partition("`")[0]
    assert advice == f"{sys.executable} -m compileall -q {tmp_path}/fetchc"
    subprocess.run(advice.split(), check=True)
    assert _note(tmp_path) == ""
    changed = tmp_path / "fetchc/record.py"
    changed.write_text(changed.read_text() + "# changed\n")
    assert _note(tmp_path).startswith("note: modules of fetchc without bytecode: 1; ")
