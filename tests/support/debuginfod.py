"""Debian's debuginfod over a folder, in a network of its own: nobody else can reach it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["PORT", "inside", "missing", "serving_folder"]

PORT = 8002
_SECONDS = 120
_READY = f"""
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:{PORT}/metrics", timeout=5).read().decode())
"""


def missing() -> str | None:
    """Why there is no such server here, None where there is one."""
    lacking = [
        tool for tool in ("debuginfod", "unshare", "nsenter", "ip") if not shutil.which(tool)
    ]
    if lacking:
        return f"no {lacking[0]}: .ci/setup installs it"
    alone = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    return "a network of its own is not permitted here" if alone.returncode else None


@contextmanager
def serving_folder(folder: Path, database: Path) -> Iterator[int]:
    """The process of a server that has scanned ``folder``; commands reach it by :func:`inside`."""
    command = f'ip link set lo up && exec debuginfod -F -p {PORT} -t 0 -d "$0" "$1"'
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", command, str(database), str(folder)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            _wait(server)
            yield server.pid
        finally:
            server.kill()


def inside(server: int) -> list[str]:
    """What a command begins with that is to reach the server."""
    return ["nsenter", f"--target={server}", "--net"]


def _wait(server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        assert server.poll() is None, "debuginfod has ended"
        asked = subprocess.run(
            [*inside(server.pid), sys.executable, "-c", _READY],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        # It cleans up once when it has scanned all there is.
        if 'thread_work_total{role="groom"} 1' in asked.stdout:
            return
        time.sleep(0.2)
    raise AssertionError("debuginfod does not answer")
