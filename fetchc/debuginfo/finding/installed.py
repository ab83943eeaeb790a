"""Files that a bare name may mean: a program in PATH, a library in its folder."""

from __future__ import annotations

import glob
import os
import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["installed", "libraries"]

# Where libraries are without a word in ld.so.conf, with Debian's folders for machines.
_FOLDERS = (
    "/lib/*-linux-gnu*",
    "/usr/lib/*-linux-gnu*",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)


def installed(name: str) -> str | None:
    """The path of what is installed by that name, of `libc` that of `libc.so.6`."""
    path = shutil.which(name)
    if path is not None or "/" in name or not name:
        return path
    whole = next(libraries(glob.escape(name)), None)
    return whole or next(libraries(f"{glob.escape(name)}.so.[0-9]*"), None)


def libraries(pattern: str) -> Iterator[str]:
    """The files of the libraries' folders whose names the glob matches, nearest folder first."""
    for folders in _FOLDERS:
        for folder in sorted(glob.glob(folders)):
            for path in sorted(glob.glob(f"{folder}/{pattern}")):
                if os.path.isfile(path):
                    yield path
