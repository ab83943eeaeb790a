"""Folders that are not the effective user's: neither written to, nor believed, nor waited for."""

from __future__ import annotations

import fcntl
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from fetchc.debuginfo.safe_open import check_owner, own_folder
from fetchc.debuginfo.separate.debuginfod import ask
from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.persistent_probes import AddedEvent, State, state_file
from tests.support.cases import CORPUS
from tests.support.elfwriter import elf_file

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away needs root")

STRANGER = 65534
GO = str(CORPUS / "go/dnsforward/bin/go1.27")  # what is worth to be kept
KINDS = ("home", "link", "below", "swapped")


def given_away(path: Path) -> Path:
    os.lchown(path, STRANGER, STRANGER)
    return path


def foreign(folder: Path, kind: str) -> tuple[dict[str, str], Path]:
    """The environment that names a stranger's folder, and the one that must stay as it is."""
    home, own = folder / "home", folder / "own"
    for one in (home, own):
        one.mkdir()
    given_away(home)
    match kind:
        case "home":
            return {"HOME": str(home)}, home
        case "link":  # to a folder of root's: what is in it is chosen by the stranger
            (home / ".cache").symlink_to(own)
            (home / ".local").symlink_to(own)
            return {"HOME": str(home)}, own
        case "below":
            (home / "mine").mkdir()
            return dict.fromkeys(("XDG_CACHE_HOME", "XDG_STATE_HOME"), f"{home}/mine"), home
        case _:  # as /tmp is: everybody makes links there
            shared = folder / "shared"
            shared.mkdir()
            shared.chmod(0o1777)
            (shared / "x").symlink_to(own)
            given_away(shared / "x")
            return dict.fromkeys(("XDG_CACHE_HOME", "XDG_STATE_HOME"), f"{shared}/x"), own


def run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    names = ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(
        [sys.executable, "-m", "fetchc", *words], env=kept | environment,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


def everything(folder: Path) -> list[str]:
    return sorted(str(one) for one in folder.rglob("*"))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_kept_there(tmp_path: Path, kind: str) -> None:
    environment, untouched = foreign(tmp_path, kind)
    before = everything(untouched)
    for _ in range(2):
        done = run(environment, "types", "*", "-x", GO, "-v")
        assert done.returncode == 0
        assert f"is user {STRANGER}'s, and this runs as user 0" in done.stderr
    assert everything(untouched) == before


def test_what_is_kept_there_is_not_believed(tmp_path: Path) -> None:
    environment, home = foreign(tmp_path, "home")
    cache = home / ".cache/fetchc"
    cache.mkdir(parents=True)
    os.mkfifo(cache / "x.section")
    done = run(environment, "cache", "clear")
    assert (done.returncode, done.stdout) == (3, "")
    assert (cache / "x.section").exists()


@pytest.mark.parametrize("kind", ["below", "swapped"])
def test_no_list_of_definitions_is_there(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, untouched = foreign(tmp_path, kind)
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    path = Path(state_file())
    before = everything(untouched)
    state = State(str(path), "b1")
    with pytest.raises(TracerError, match="FC0712"), state.locked():
        raise AssertionError("it was used")
    with pytest.raises(TracerError, match="FC0712"):
        state.load()
    assert everything(untouched) == before


def test_a_lock_that_a_stranger_holds_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "fetchc"
    folder.mkdir()
    given_away(folder)
    path = folder / "definitions.json"
    os.mkfifo(path)
    with Path(f"{path}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = State(str(path), "b1")
        with pytest.raises(TracerError, match="FC0712"), state.locked():
            raise AssertionError("it was used")
        with pytest.raises(TracerError, match="FC0712"):
            state.load()


def test_a_list_that_is_no_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "fetchc/definitions.json"
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(TracerError) as refused:
        State(str(path), "b1").load()
    assert "it is not a regular file" in refused.value.diagnostics[0].notes[0]


def test_the_state_of_who_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(given_away(tmp_path)))
    assert state_file().startswith(pwd.getpwuid(0).pw_dir + "/")
    os.chown(tmp_path, 0, 0)
    assert state_file().startswith(f"{tmp_path}/")


def test_a_download_that_a_stranger_left_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "client/abcd"
    made.mkdir(parents=True)
    (made / "debuginfo").write_bytes(elf_file({".debug_info": b"x"}))
    monkeypatch.setenv("DEBUGINFOD_URLS", "ftp://nowhere")
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "client"))
    assert ask("abcd", lambda image: "", []) is not None
    for one in (made / "debuginfo", made, tmp_path / "client"):
        given_away(one)
        printed: list[str] = []
        assert ask("abcd", lambda image: "", printed) is None
        assert "(not used: " in printed[0]
        os.chown(one, 0, 0)


def test_what_is_safe_to_use(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert own_folder(str(own))
    assert check_owner(str(own / "not/there")) == ""
    (tmp_path / "link").symlink_to("own")
    assert check_owner(str(tmp_path / "link/x")) == ""  # one's own link: ~/.cache on another disk
    assert not own_folder(str(tmp_path / "link"))
    own.chmod(0o777)
    assert "by everybody" in check_owner(str(own / "x"))
    own.chmod(0o1777)
    assert check_owner(str(own / "x")) == ""
    (tmp_path / "loop").symlink_to("loop")
    assert "symbolic links" in check_owner(str(tmp_path / "loop"))


def saved(path: Path) -> list[AddedEvent]:
    state = State(str(path / "fetchc/definitions.json"), "b1")
    with state.locked():
        state.save([AddedEvent("g", "e", "/b", None, (), ())])
    return state.load()


def test_one_s_own_is_used(tmp_path: Path) -> None:
    assert len(saved(tmp_path)) == 1
    done = run({"HOME": str(tmp_path)}, "types", "*", "-x", GO, "-v")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / ".cache/fetchc").is_dir()
