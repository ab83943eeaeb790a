"""Debug files from servers: by build-id, kept for the next run, and never a wrong one."""

from __future__ import annotations

import os
import stat
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.elf.headers import Image
from fetchc.debuginfo.environment import CacheFolder, Environment
from fetchc.debuginfo.separate.debug_file_search import Search
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.debug_files import OTHER, OWN, by_build_id, debug_file, info_of, note
from tests.support.elfwriter import elf_file
from tests.support.web import send, serving

GOOD = elf_file({".note.gnu.build-id": note(OWN), ".debug_info": b"from a server"})
WRONG = elf_file({".note.gnu.build-id": note(OTHER), ".debug_info": b"of another build"})
PATH = f"/buildid/{OWN.hex()}/debuginfo"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; no server is asked before it says so."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DEBUGINFOD_TIMEOUT", "2")
    monkeypatch.setenv("DEBUGINFOD_URLS", "")
    for name in ("DEBUGINFOD_CACHE_PATH", "DEBUGINFOD_MAXSIZE", "DEBUGINFOD_MAXTIME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache/fetchc/debuginfod"


def opened(
    folder: Path,
    *servers: str,
    online: bool = True,
    cache: str = "cache/fetchc",
    **sections: bytes,
) -> Elf:
    """A stripped program, opened anew, with these servers to ask and a cache in ``folder``."""
    os.environ["DEBUGINFOD_URLS"] = " ".join(servers)
    named = {".note.gnu.build-id": note(OWN)}
    named |= {f".{name}": content for name, content in sections.items()}
    (folder / "program").write_bytes(elf_file(named))
    environment = Environment(CacheFolder(str(folder / cache))) if cache else Environment()
    return Elf(str(folder / "program"), Search(roots=()), online, environment)


def test_what_was_downloaded_is_kept(tmp_path: Path, cache: Path) -> None:
    asked: list[str] = []
    with serving(send(GOOD), asked) as server:
        assert info_of(opened(tmp_path, server + "/")) == b"from a server"
        assert info_of(opened(tmp_path, server)) == b"from a server"
    assert asked == [PATH]
    assert info_of(opened(tmp_path, server)) == b"from a server"  # nobody is there any more
    (kept,) = cache.iterdir()
    assert kept.name == f"{OWN.hex()}.debug"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_what_is_kept_of_its_sections_holds_for_the_next_run(tmp_path: Path) -> None:
    # That goes by the times of the file.
    with serving(send(GOOD)) as server:
        seen = {opened(tmp_path, server).debug_image.identity() for _ in range(3)}
    assert len(seen) == 1


def test_nobody_is_asked_unless_it_is_wanted(tmp_path: Path, cache: Path) -> None:
    asked: list[str] = []
    with serving(send(GOOD), asked) as server:
        assert info_of(opened(tmp_path, server, online=False)) is None
        assert info_of(opened(tmp_path)) is None
        assert info_of(opened(tmp_path, server, BTF=b"a kernel's")) is None
        debug_file(by_build_id(tmp_path / "dir"))
        here = Elf(str(tmp_path / "program"), Search(None, (str(tmp_path / "dir"),)), True)
        assert info_of(here) == b"info"
    assert asked == []
    assert not cache.exists()


def test_a_file_that_is_on_no_disk_lives_as_long_as_it_is_mapped(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "here"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "here").mkdir()
    for folder in ("", "/proc/none/fetchc"):
        with serving(send(GOOD)) as server:
            here = opened(tmp_path, server, cache=folder)
            assert info_of(here) == b"from a server"
            assert here.debug_path == f"{server}/buildid/{OWN.hex()}/debuginfo"
        assert list((tmp_path / "here").iterdir()) == []
    assert not cache.exists()


def test_servers_are_asked_in_turn(tmp_path: Path) -> None:
    with (
        serving(send(b"", 404)) as empty,
        serving(send(WRONG)) as wrong,
        serving(send(b"<html>")) as portal,
        serving(send(elf_file({".note.gnu.build-id": note(OWN)}))) as bare,
        serving(send(GOOD)) as good,
    ):
        elf = opened(
            tmp_path,
            "file:///srv",
            "https://me:secret@a.example/x",
            empty,
            wrong,
            portal,
            bare,
            good,
        )
        assert info_of(elf) == b"from a server"
        assert elf.finder.tried == (
            f"file:///srv{PATH} (not http or https)",
            f"https://a.example/x{PATH} (an address with a user or password is not asked)",
            f"{empty}{PATH} (HTTP 404 Not Found)",
            f"{wrong}{PATH} (build-id {OTHER.hex()}, not {OWN.hex()})",
            f"{portal}{PATH} (not an ELF file)",
            f"{bare}{PATH} (neither debug information nor symbols in it)",
        )


def test_what_no_server_has_is_not_asked_for_again_at_once(tmp_path: Path, cache: Path) -> None:
    asked: list[str] = []
    with serving(send(b"", 404), asked) as server:
        assert info_of(opened(tmp_path, server)) is None
        elf = opened(tmp_path, server)
        assert info_of(elf) is None
        assert elf.finder.tried == ("the servers of DEBUGINFOD_URLS (not there minutes ago)",)
        assert len(asked) == 1
        assert info_of(opened(tmp_path, server, "file:///more")) is None  # other servers
        assert len(asked) == 2
        (mark,) = cache.iterdir()
        old = time.time() - 3600
        os.utime(mark, (old, old))
        assert info_of(opened(tmp_path, server)) is None
        assert len(asked) == 3


def test_trouble_is_not_remembered(tmp_path: Path, cache: Path) -> None:
    asked: list[str] = []
    for answer in (send(b"", 500), send(WRONG), send(GOOD, length=len(GOOD) + 1)):
        with serving(answer, asked) as server:
            elf = opened(tmp_path, server)
            assert info_of(elf) is None
            assert len(elf.finder.tried) == 1
    assert len(asked) == 3
    assert list(cache.iterdir()) == []


def test_what_others_can_write_to_is_not_used(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / f"{OWN.hex()}.debug").write_bytes(GOOD)
    cache.chmod(0o777)
    asked: list[str] = []
    with serving(send(b"", 404), asked) as server:
        assert info_of(opened(tmp_path, server)) is None
    assert asked == [PATH]


def test_a_kept_file_that_was_damaged_is_had_anew(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True, mode=0o700)
    (cache / f"{OWN.hex()}.debug").write_bytes(WRONG)
    with serving(send(GOOD)) as server:
        assert info_of(opened(tmp_path, server)) == b"from a server"
    assert (cache / f"{OWN.hex()}.debug").read_bytes() == GOOD


def test_what_nobody_uses_goes(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True, mode=0o700)
    for days in (6, 8):
        (cache / f"{days}.debug").touch()
        used = time.time() - days * 24 * 3600
        os.utime(cache / f"{days}.debug", (used, used))
    with serving(send(GOOD)) as server:
        assert info_of(opened(tmp_path, server)) == b"from a server"
    assert sorted(path.name for path in cache.iterdir()) == ["6.debug", f"{OWN.hex()}.debug"]


def test_the_cache_of_other_debuggers_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    with serving(send(b"", 404), asked) as server:
        debug_file(tmp_path / f"cache/debuginfod_client/{OWN.hex()}/debuginfo", OWN, b"gdb's")
        assert info_of(opened(tmp_path, server)) == b"gdb's"
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "other"))
        assert info_of(opened(tmp_path, server)) is None
        assert len(asked) == 1


def test_the_alternate_file_is_asked_for_by_its_own_build_id(tmp_path: Path) -> None:
    asked: list[str] = []

    def both(request: BaseHTTPRequestHandler) -> None:
        send(WRONG if OTHER.hex() in request.path else GOOD)(request)

    with serving(both, asked) as server:
        elf = opened(tmp_path, server, gnu_debugaltlink=b"/no/file\0" + OTHER)
        alternate = elf.finder.alternate(Image(elf.path)).open_section(".debug_info")
        assert alternate is not None
        assert bytes(alternate.upto()) == b"of another build"
    assert asked == [f"/buildid/{OTHER.hex()}/debuginfo"]
    with serving(send(GOOD)) as server:
        elf = opened(tmp_path, server, gnu_debugaltlink=b"/no/file\0" + b"\x01\x02\x03")
        with pytest.raises(DebugInfoError, match="is not found") as refused:
            elf.finder.alternate(Image(elf.path))
    assert f"{server}/buildid/010203/debuginfo (build-id {OWN.hex()}, not 010203)" in str(
        refused.value.notes
    )
