"""The lab itself: a guest boots and answers, what does not boot says so, and nothing stays."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kernel_lab import ALWAYS, ON_DEMAND, archive, chosen, labelled
from tests.support.kernel_lab_guest import Guest, LabError, logged

KERNEL = labelled(ALWAYS[0])
LOG = """[   12.5] trace_kprobe: error: Invalid register name
  Command: p vfs_read %none
                      ^
"""


@pytest.fixture
def bootable() -> None:
    reason = KERNEL.why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory of its own for temporary files, which is empty again at the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(tmp_path.glob("fetchc_lab.*")) == []


@pytest.mark.usefixtures("bootable")
def test_a_guest_does_what_it_is_asked() -> None:
    with Guest(KERNEL) as guest:
        assert KERNEL.release in guest.read("/proc/version")
        guest.put("/text", b"caf\xc3\xa9 \xff")
        assert guest.read("/text") == "café \udcff"
        guest.write("/text", "more", append=True)
        assert guest.read("/text").endswith("more")
        with pytest.raises(OSError, match="No such file"):
            guest.read("/nothing")
        with pytest.raises(LabError, match="wait status"):
            guest.run("/nothing")
        good, bad = guest.judge(
            "uprobe_events", ["p:fetchc_lab/e /init:0x100 %ax", "p:fetchc_lab/e /init:0x100 %none"]
        )
        assert (good.errno, good.text, good.caret) == (0, "", None)
        assert (bad.errno, bad.text, bad.caret) == (22, "Invalid register name", 27)
        assert guest.read("/sys/kernel/tracing/uprobe_events") == ""
        process = guest.process
    assert process not in running()


def running() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}


@pytest.mark.usefixtures("bootable")
def test_a_kernel_that_does_not_boot_says_what_it_said_last(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="did not boot in time: its console said"):
        Guest(KERNEL, seconds=0.2)
    broken = tmp_path / "vmlinuz"
    broken.write_bytes(b"no kernel")
    with pytest.raises(LabError, match="ended: its console said '' last, qemu '"):
        Guest(dataclasses.replace(KERNEL, image=broken))
    machine = KERNEL.machine
    panicking = dataclasses.replace(machine, boot=machine.boot + " rdinit=/none init=/none")
    with pytest.raises(LabError, match="Kernel panic"):
        Guest(dataclasses.replace(KERNEL, machine=panicking))


@pytest.mark.usefixtures("bootable")
def test_a_guest_ends_with_the_process_that_started_it() -> None:
    code = (
        "import os, signal\n"
        "from tests.support.kernel_lab import labelled\n"
        "from tests.support.kernel_lab_guest import Guest\n"
        f"guest = Guest(labelled({KERNEL.label!r}))\n"
        "print(guest.process, guest.scratch, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    checkout = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, timeout=200
    )
    process, scratch = done.stdout.split()
    end = time.monotonic() + 60
    while int(process) in running() and time.monotonic() < end:
        time.sleep(0.05)
    assert int(process) not in running()
    for path in Path(scratch).iterdir():  # SIGKILL leaves files, not processes
        path.unlink()
    Path(scratch).rmdir()


def test_a_log_is_ours_by_its_command() -> None:
    assert logged(LOG, "p vfs_read %none") == ("Invalid register name", 11)
    assert logged(LOG, "p  vfs_read %none") == ("Invalid register name", 11)
    assert logged(LOG, "p vfs_read %other") == ("", None)
    assert logged("", "p vfs_read %none") == ("", None)


def test_an_archive_is_one_that_cpio_reads() -> None:
    content = archive({"d": (0o40755, b""), "d/f": (0o100755, b"abc")})
    assert len(content) % 4 == 0
    assert content.count(b"070701") == 3
    assert content.index(b"abc") % 4 == 0


def test_the_environment_chooses_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted, labels in {
        "": ALWAYS,
        "all": ALWAYS + ON_DEMAND,
        "arm64-6.1,amd64-6.12": ("arm64-6.1", "amd64-6.12"),
    }.items():
        monkeypatch.setenv("FETCHC_LAB", wanted)
        assert tuple(kernel.label for kernel in chosen()) == labels
    monkeypatch.setenv("FETCHC_LAB", "amd64-2.6")
    with pytest.raises(ValueError, match=r"no kernel amd64-2\.6"):
        chosen()


def test_what_is_missing_is_said() -> None:
    assert "no kernel amd64-2.6" in str(labelled("amd64-2.6").why_not())
