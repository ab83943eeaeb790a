"""Where tracing is not possible: each reason has a message, with the remedy."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fetchc.diag.diagnostic import Diagnostic, TracerError
from fetchc.tracer.tracefs import Tracefs, find_tracefs, refused_setting


def mounts(folder: Path, *lines: str) -> str:
    listing = folder / "mounts"
    listing.write_text("proc /proc proc rw 0 0\n" + "".join(f"{line}\n" for line in lines))
    return str(listing)


def refusal(listing: str) -> Diagnostic:
    with pytest.raises(TracerError) as refused:
        find_tracefs(listing)
    (diagnostic,) = refused.value.diagnostics
    return diagnostic


def test_tracefs_is_found_where_it_is_mounted(tmp_path: Path) -> None:
    root = tmp_path / "a mount"
    root.mkdir()
    (root / "uprobe_events").write_text("")
    escaped = str(root).replace(" ", "\\040")
    assert find_tracefs(mounts(tmp_path, f"nodev {escaped} tracefs rw 0 0")).root == str(root)


def test_one_below_debugfs_serves_as_well(tmp_path: Path) -> None:
    root = tmp_path / "debug/tracing"
    root.mkdir(parents=True)
    (root / "uprobe_events").write_text("")
    listing = mounts(tmp_path, f"nodev {tmp_path}/debug debugfs rw 0 0")
    assert find_tracefs(listing).root == str(root)


def test_without_a_list_of_mounts(tmp_path: Path) -> None:
    diagnostic = refusal(f"{tmp_path}/proc/mounts")
    assert (diagnostic.code, diagnostic.help) == ("FC0702", "mount it: `mount -t proc proc /proc`")
    assert diagnostic.message.endswith("/proc/mounts: No such file or directory")


def test_not_mounted(tmp_path: Path) -> None:
    diagnostic = refusal(mounts(tmp_path))
    assert (diagnostic.code, diagnostic.message) == ("FC0702", "tracefs is not mounted")
    assert diagnostic.help == "mount it: `mount -t tracefs nodev /sys/kernel/tracing`"


def test_debugfs_without_tracing_is_not_mounted(tmp_path: Path) -> None:
    assert refusal(mounts(tmp_path, f"nodev {tmp_path} debugfs rw 0 0")).code == "FC0702"


def test_a_kernel_without_uprobe_events(tmp_path: Path) -> None:
    diagnostic = refusal(mounts(tmp_path, f"nodev {tmp_path} tracefs rw 0 0"))
    assert diagnostic.code == "FC0703"
    assert diagnostic.notes == (f"there is no {tmp_path}/uprobe_events",)
    assert "CONFIG_UPROBE_EVENTS" in str(diagnostic.help)


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.EPERM, "FC0704", "locked down"),
        (errno.EROFS, "FC0704", "read-only"),
        (errno.EACCES, "FC0701", "not permitted"),
        (errno.EIO, "FC0709", "cannot be used"),
    ],
)
def test_each_answer_of_the_kernel_has_its_code(
    number: int, code: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, flags: int) -> int:
        raise OSError(number, os.strerror(number), path)

    listing = mounts(tmp_path, f"nodev {tmp_path} tracefs rw 0 0")
    monkeypatch.setattr("fetchc.tracer.tracefs.os.open", refuse)
    diagnostic = refusal(listing)
    assert diagnostic.code == code
    assert words in diagnostic.message


AS_NOBODY = """
import os, sys
from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.tracefs import find_tracefs
os.setuid(65534)
try:
    find_tracefs(sys.argv[1])
except TracerError as refused:
    (diagnostic,) = refused.diagnostics
    print(diagnostic.code, *diagnostic.notes, diagnostic.help, sep="; ")
"""


def test_an_ordinary_user_is_refused() -> None:
    if os.geteuid() != 0:
        pytest.skip("not root: cannot become another user")
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        root = Path(folder) / "tracing"
        root.mkdir(mode=0o700)
        (root / "uprobe_events").write_text("")
        listing = mounts(Path(folder), f"nodev {root} tracefs rw 0 0")
        os.chmod(listing, 0o644)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, listing],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    assert done.stdout == (
        f"FC0701; {root} is root's; this runs as user 65534; run it as root, with `sudo`\n"
    )


def test_files_are_appended_to_and_never_truncated(tmp_path: Path) -> None:
    (tmp_path / "uprobe_events").write_text("p:others/one\n")
    Tracefs(str(tmp_path)).write("p:ours/two\n", "uprobe_events")
    assert (tmp_path / "uprobe_events").read_text() == "p:others/one\np:ours/two\n"


def test_a_setting_that_is_refused() -> None:
    error = OSError(errno.ENOMEM, "Cannot allocate memory", "buffer_size_kb")
    (diagnostic,) = refused_setting("`99999999` for buffer_size_kb", error).diagnostics
    assert diagnostic.code == "FC0709"
    assert diagnostic.help == "ask for smaller buffers"
