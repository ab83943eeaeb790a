"""Files of a process: by a path that the kernel resolves from here, with their own debug files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fetchc.debuginfo.safe_open import resolved
from fetchc.debuginfo.separate.debug_file_search import Search
from fetchc.debuginfo.separate.process_root import of_process
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.container import chrooted, contained

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="another root directory needs root")


def test_links_of_another_root_do_not_lead_out(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/real").touch()
    (tmp_path / "lib").symlink_to("/usr/lib")
    (tmp_path / "usr/lib/up").symlink_to("../../../../lib/real")
    (tmp_path / "loop").symlink_to("loop")
    root = str(tmp_path)
    assert resolved(root, "/lib/real") == f"{root}/usr/lib/real"
    assert resolved(root, "/lib/up") == f"{root}/usr/lib/real"
    assert resolved(root, "/lib/./../../../none") == f"{root}/none"
    assert resolved(root, "/loop") == f"{root}/loop"
    assert resolved("", "/lib/up") == "/lib/up"


def test_a_process_with_the_own_root() -> None:
    pid = os.getpid()
    executable = os.path.realpath(f"/proc/{pid}/exe")
    assert of_process(f"/proc/{pid}/exe", None) == (executable, None)
    assert of_process(f"/proc/{pid}/root{executable}", None) == (executable, None)
    for other in (f"/proc/{pid}/maps", "/proc/version", "/bin/true", f"/proc/{pid}/root"):
        assert of_process(other, None) == (other, None)


def test_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    for name in ("exe", "root/bin/true"):
        with pytest.raises(DebugInfoError, match=f"there is no process {ended.pid}") as raised:
            of_process(f"/proc/{ended.pid}/{name}", None)
        assert raised.value.code == "FC0901"


def test_a_program_that_was_deleted_is_named_by_its_process(tmp_path: Path) -> None:
    copy = tmp_path / "sleep"
    copy.write_bytes(Path("/bin/sleep").read_bytes())
    copy.chmod(0o700)
    with subprocess.Popen([str(copy), "60"]) as running:
        copy.unlink()
        try:
            path = f"/proc/{running.pid}/exe"
            assert of_process(path, None) == (path, None)
        finally:
            running.kill()


@ROOT_ONLY
def test_a_chroot_is_named_by_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("/usr/lib")
    search = Search(None, ("d",))
    with chrooted(tmp_path) as pid:
        seen = f"/proc/{pid}/root"
        found = of_process(f"{seen}/lib/x", search)
        assert found == (f"{tmp_path}/usr/lib/x", Search(None, ("d",), root=str(tmp_path)))
        executable = os.path.realpath(sys.executable)
        assert of_process(f"/proc/{pid}/exe", None) == (executable, Search(root=str(tmp_path)))


@ROOT_ONLY
def test_a_container_is_named_by_its_process(tmp_path: Path) -> None:
    (tmp_path / "lib").symlink_to("/usr/lib")
    with contained(tmp_path) as pid:
        root = f"/proc/{pid}/root"
        assert of_process(f"{root}/lib/x", None) == (f"{root}/usr/lib/x", Search(root=root))
