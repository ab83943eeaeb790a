"""``fetchc cache``, ``--no-cache``, and where the cache is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fetchc.cli import cache_folder, main
from tests.support.cases import CORPUS

GO = str(CORPUS / "go/dnsforward/bin/go1.27")  # 580 KB of debug information, compressed
ALL = ["types", "*", "-x", GO]  # reads every unit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "fetchc"


def test_what_two_runs_keep_is_shown_and_cleared(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", "show"]) == 0
    assert capsys.readouterr().out == f"     0.0 MB  in all: 0 files in {folder}\n"
    for _ in range(2):
        assert main(ALL) == 0
    first = capsys.readouterr().out
    assert main(["cache", "show"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("     0.6 MB  9e6ac7f977455d1ed6eebdd8a719c8f1618f3859-")
    assert main(ALL) == 0
    assert capsys.readouterr().out * 2 == first
    (folder / "not ours").write_text("")
    assert main(["cache", "clear", "--format=json"]) == 0
    cleared = json.loads(capsys.readouterr().out)
    assert cleared["cleared"]
    assert len(cleared["files"]) == len(shown) - 1
    assert [file.name for file in folder.iterdir()] == ["not ours"]


def test_verbose_says_what_is_not_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(ALL) == 0
    file = max(folder.iterdir(), key=lambda one: one.stat().st_size)
    file.chmod(0o644)
    capsys.readouterr()
    assert main(ALL) == 0
    assert capsys.readouterr().err == ""
    file.chmod(0o644)  # it was written anew
    assert main([*ALL, "-v"]) == 0
    wanted = f"note: {file} is not used: it is another user's, or open to others\n"
    assert capsys.readouterr().err == wanted


@pytest.mark.parametrize("cache", ["/dev/null", "/proc"])
def test_verbose_says_that_nothing_can_be_kept(
    cache: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert main([*ALL, "-v"]) == 0
    assert f"note: nothing is cached in {cache}/fetchc: " in capsys.readouterr().err


def test_verbose_says_that_there_is_no_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    wanted = "note: nothing is cached: neither XDG_CACHE_HOME nor HOME is set\n"
    for words, said in (["-v"], wanted), (["-v", "--no-cache"], ""), ([], ""):
        assert main([*ALL, *words]) == 0
        assert capsys.readouterr().err == said


def test_verbose_says_what_this_call_met(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert main(ALL) == 0  # has a note that nobody asks for
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent))
    assert main([*ALL, "-v"]) == 0
    assert capsys.readouterr().err == ""


def test_nothing_is_kept_without_a_cache(folder: Path) -> None:
    for _ in range(3):
        assert main([*ALL, "--no-cache"]) == 0
    assert not folder.exists()


def test_a_refusal_is_kept_too(folder: Path) -> None:
    for _ in range(2):
        assert main(["types", "no.such", "-x", GO]) == 1
    assert [file.stat().st_size > 0 for file in folder.iterdir()] == [True]


def test_a_folder_of_others_is_not_touched(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "x.section").write_text("")
    for action in ("show", "clear"):
        assert main(["cache", action]) == 3
        assert f"error[FC0901]: {folder}: not used" in capsys.readouterr().err
    assert (folder / "x.section").exists()


def test_what_the_command_takes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "empty"]) == 2
    assert main(["cache"]) == 2
    assert "`empty` is neither show nor clear" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cache", "home", "wanted"),
    [
        ("/c", "/h", "/c/fetchc"), ("", "/h", "/h/.cache/fetchc"), ("c", "/h", "/h/.cache/fetchc"),
        ("c", "", ""), ("", "h", ""),
    ],
)  # fmt: skip
def test_where_it_is(
    cache: str, home: str, wanted: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setenv("HOME", home)
    assert cache_folder() == wanted
    if not wanted:
        assert main(["cache", "show"]) == 2
        assert "neither XDG_CACHE_HOME nor HOME" in capsys.readouterr().err


def test_what_is_not_compressed_does_not_load_it() -> None:
    code = "import sys; from fetchc.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    for file, function, expression, wanted in (
        ("c/layouts/bin/gcc-O2-dwarf5", "visit", "r->i", False),
        ("go/dnsforward/bin/go1.27", "main.ten", "$stack0", True),
    ):
        words = ["compile", expression, "-x", str(CORPUS / file), "-f", function]
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        assert ("fetchc.debuginfo.cache" in done.stdout.split()) == wanted
