"""How the command finds and reads fetchc's own modules: as importlib does, with less ado."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fetchc.cli import modules

CHECKOUT = Path(__file__).parents[3]
TIME = 1_700_000_000

# What a module says of itself, by the command's finder or by importlib alone.
TOLD = """
import sys
if sys.argv[1] == "own":
    from fetchc.cli.modules import install, load
    install()
    if sys.argv[2:]:
        load(["fetchc.quantities", "fetchc.debuginfo", "fetchc.debuginfo.elf"])
        assert "fetchc.debuginfo.elf" in sys.modules
        assert sys.modules["fetchc"].units is sys.modules["fetchc.quantities"]
import fetchc.debuginfo.elf, fetchc.quantities
for module in (fetchc.debuginfo.elf, fetchc.quantities):
    spec = module.__spec__
    print(module.__name__, module.__file__, module.__cached__, module.__package__)
    print(getattr(module, "__path__", None), spec.origin, spec.has_location, spec.parent)
    print(spec.submodule_search_locations, spec.loader.name, spec.loader.path)
    print(len(spec.loader.get_source(module.__name__)), spec.loader.is_package(module.__name__))
    print(type(spec.loader).__module__, file=sys.stderr)
"""


def _told(*how: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", TOLD, *how],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
    )
    return done.stdout, done.stderr


def test_a_module_says_the_same_of_itself() -> None:
    own, loaders = _told("own")
    ordinary, others = _told("ordinary")
    assert own == ordinary
    assert set(loaders.split()) == {"fetchc.cli.modules"}
    assert "fetchc.cli.modules" not in others
    assert _told("own", "ahead") == (own, loaders)


def _loaded(folder: Path) -> ModuleType:
    spec = modules._Finder.find_spec("fetchc.sample", [str(folder)])
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
    text = f"VALUE = len({'x' * (modules._MOST + 1)!r})\n"
    py_compile.compile(str(_write(tmp_path, text)))
    assert modules._MOST + 1 == _loaded(tmp_path).VALUE


def test_a_module_that_nothing_is_kept_of(tmp_path: Path) -> None:
    _write(tmp_path, "VALUE = 3\n")
    assert _loaded(tmp_path).VALUE == 3


def test_what_is_not_there_and_what_is_not_ours_is_for_others(tmp_path: Path) -> None:
    assert modules._Finder.find_spec("fetchc.sample", [str(tmp_path)]) is None
    _write(tmp_path, "")
    assert modules._Finder.find_spec("other.sample", [str(tmp_path)]) is None
    assert modules._Finder.find_spec("fetchc", None) is None


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The finder is in use, and ``fetchc.sample`` would be in a package of the folder."""
    package = ModuleType("fetchc.around")
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, "fetchc.around", package)
    monkeypatch.setattr(sys, "meta_path", [modules._Finder, *sys.meta_path])
    return package


def test_what_is_loaded_ahead_is_loaded_once(tmp_path: Path, installed: ModuleType) -> None:
    _write(tmp_path, "VALUE = []\n")
    modules.load(["fetchc.around.sample", "fetchc.around.none", "fetchc.nowhere.sample"])
    first = sys.modules["fetchc.around.sample"]
    modules.load(["fetchc.around.sample"])
    assert sys.modules.pop("fetchc.around.sample") is first is installed.sample
    assert first.VALUE == []


def test_a_module_that_fails_is_not_there(tmp_path: Path, installed: ModuleType) -> None:
    _write(tmp_path, "1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        modules.load(["fetchc.around.sample"])
    assert "fetchc.around.sample" not in sys.modules
    assert not hasattr(installed, "sample")


def test_nothing_is_loaded_ahead_where_importlib_is_left_alone(
    tmp_path: Path, installed: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[1:])
    _write(tmp_path, "1 / 0\n")
    modules.load(["fetchc.around.sample"])
    assert "fetchc.around.sample" not in sys.modules


@pytest.mark.parametrize(("name", "value"), [("pycache_prefix", "/nowhere"), ("flags", None)])
def test_only_where_python_keeps_modules_in_their_usual_place(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    class Optimised:
        optimize = 2

    before = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", list(before))
    monkeypatch.setattr(sys, name, value or Optimised)
    modules.install()
    assert sys.meta_path == before
    monkeypatch.undo()
    monkeypatch.setattr(sys, "meta_path", list(before))
    modules.install()
    assert len(sys.meta_path) == len(before) + 1
