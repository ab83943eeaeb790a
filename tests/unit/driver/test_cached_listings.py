"""A listing that took long is cached, and says the same as one that is read again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo import cache
from fetchc.debuginfo.dotnet import dotnet_program
from fetchc.debuginfo.elf import elf_file
from fetchc.debuginfo.environment import CacheFolder, Environment
from fetchc.driver import listings
from tests.support.programs import fixture

GLOBS = ["*", "*AddContact*int*", "*::*", "*<*>", "std::*", "x*", "*.Get*", "*(int)"]
FILES = ["cpp/addressbook/g++-O2", "c/layouts/gcc-O2-dwarf5", "go/dnsforward/go1.27"]


@pytest.fixture(autouse=True)
def everything_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "_LEAST_SECONDS", -1.0)
    monkeypatch.setattr(elf_file, "_FEW_NAMES", 0)
    monkeypatch.setattr(dotnet_program, "_FEW_METHODS", 0)


def _listed(path: Path, folder: Path | None) -> list[list[str]]:
    # What a listing has for each glob, by a process of its own each.
    found = []
    for glob in GLOBS:
        kept = None if folder is None else CacheFolder(str(folder))
        program = fetchc.open(path, environment=Environment(cache=kept))
        names = list(program.functions(glob))
        found += [names, program.spelled(names)]
        if kept is not None:
            kept.save()
            assert kept.notes == []
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_cached_listing_is_what_the_file_says(name: str, tmp_path: Path) -> None:
    plain = _listed(fixture(name), None)
    assert plain[0]
    for _ in range(2):
        assert _listed(fixture(name), tmp_path / "cache") == plain
    (cached,) = (tmp_path / "cache").iterdir()
    assert cached.name.endswith(".listing")


def test_it_is_the_cache_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _listed(fixture(FILES[0]), tmp_path / "cache")
    monkeypatch.setattr(listings, "probeable", lambda program: ["other"])
    assert _listed(fixture(FILES[0]), tmp_path / "cache")[0] != ["other"]
    monkeypatch.setattr(listings, "_FORMAT", 99)
    assert _listed(fixture(FILES[0]), tmp_path / "cache")[0] == ["other"]


def test_what_is_cached_is_neither_demangled_nor_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _listed(fixture(FILES[0]), tmp_path / "cache")
    (cached,) = (tmp_path / "cache").iterdir()
    written = cached.stat().st_ino  # another one is another file

    def nothing(symbol: str) -> tuple[str, str]:
        raise AssertionError(symbol)

    monkeypatch.setattr(listings, "_written", nothing)
    assert _listed(fixture(FILES[0]), tmp_path / "cache") == plain
    assert cached.stat().st_ino == written


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "program"
    shutil.copy(fixture(FILES[0]), path)
    before = _listed(path, tmp_path / "cache")
    status = path.stat()
    other = tmp_path / "other"
    shutil.copy(fixture(FILES[1]), other)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.rename(path)
    after = _listed(path, tmp_path / "cache")
    assert after != before
    assert after == _listed(fixture(FILES[1]), None)


def test_a_damaged_one_is_read_again(tmp_path: Path) -> None:
    plain = _listed(fixture(FILES[0]), tmp_path / "cache")
    (cached,) = (tmp_path / "cache").iterdir()
    content = bytearray(cached.read_bytes())
    content[-10] ^= 1
    cached.write_bytes(content)
    kept = CacheFolder(str(tmp_path / "cache"))
    program = fetchc.open(fixture(FILES[0]), environment=Environment(cache=kept))
    assert list(program.functions()) == plain[0]
    assert "damaged" in kept.notes[0]


def test_without_a_demangler_nothing_is_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fetchc.program import demangle

    monkeypatch.setattr(demangle, "_found", [demangle._nothing])
    _listed(fixture(FILES[0]), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_the_suffix_is_one_of_the_cache() -> None:
    assert listings._SUFFIX in cache.SUFFIXES
