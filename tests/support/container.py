"""Processes with another root directory, or with namespaces of their own, as of a container."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["chrooted", "contained", "with_own_tmp"]

_CHROOT = "import os, sys; root, command = sys.argv[1], sys.argv[2:]; os.chroot(root)\n"
# A mount namespace of its own, whose root is the folder: what container engines do.
_PIVOT = """
import ctypes, os, sys
root, command = sys.argv[1].encode(), sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
def call(failed):
    if failed: sys.exit(os.strerror(ctypes.get_errno()))
call(libc.unshare(0x20000))  # CLONE_NEWNS
call(libc.mount(b"none", b"/", None, 0x44000, None))  # MS_REC | MS_PRIVATE
call(libc.mount(root, root, None, 0x1000, None))  # MS_BIND
os.chdir(root)
call(libc.syscall(155, b".", b"."))  # pivot_root on x86-64
call(libc.umount2(b".", 2))  # MNT_DETACH
"""
_RUN = """
os.chdir("/")
if command:
    os.execv(command[0], command)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def chrooted(root: Path, *command: str) -> Iterator[int]:
    """A process whose root directory is ``root``: its number. See :func:`contained`."""
    yield from _process(_CHROOT, root, command)


@contextmanager
def contained(root: Path, *command: str) -> Iterator[int]:
    """The same in a mount namespace of its own, from which nothing outside of it is seen.

    It runs ``command`` in there, which prints ``ready`` first, or waits. Skips the test where that
    is not permitted.
    """
    if platform.machine() != "x86_64":
        pytest.skip("the number of pivot_root is that of x86-64")
    yield from _process(_PIVOT, root, command)


def _process(code: str, root: Path, command: tuple[str, ...]) -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", code + _RUN, str(root), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        try:
            if running.stdout.readline() != b"ready\n":
                pytest.skip("another root directory is not permitted here")
            yield running.pid
        finally:
            running.kill()


_OWN_TMP = """
new=$1
mount --make-rprivate / && mount -t tmpfs none "$new" || exit
shift
while [ "$1" != -- ]; do
    case $1 in
    /tmp/*) mkdir -p "$new/${1#/tmp/}" && mount --bind "$1" "$new/${1#/tmp/}" || exit ;;
    esac
    shift
done
shift
mount --rbind "$new" /tmp && exec "$@"
"""


def with_own_tmp(place: Path, *seen: Path) -> list[str]:
    """What to put before a command: it gets mount and PID namespaces, and a /tmp, of its own.

    With the root of this process; ``seen`` are folders of this /tmp that it sees, too. ``place`` is
    an empty folder to build the other one in. Skips the test where that is not permitted.
    """
    unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("namespaces are not permitted here")
    return [*unshare, "sh", "-c", _OWN_TMP, "sh", str(place), *map(str, seen), "--"]
