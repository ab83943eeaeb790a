"""Programs of this machine as files for a guest of the kernel lab, with what they link."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

__all__ = ["program_files"]

_SECONDS = 60


@functools.cache
def program_files(name: str) -> dict[str, bytes]:
    """The program ``name`` at ``/NAME`` and its shared libraries, for a guest of this machine's
    own architecture; none where it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        return {}
    path = Path(found).resolve()
    listed = subprocess.run(["ldd", path], check=True, capture_output=True, timeout=_SECONDS)
    libraries = re.findall(r"(/\S+) \(0x", listed.stdout.decode())
    return {name: path.read_bytes()} | {
        each.lstrip("/"): Path(each).read_bytes() for each in libraries
    }
