"""What to say of a program whose debug information is nowhere: where it was, and what helps."""

from __future__ import annotations

import os

__all__ = ["advice"]

# The files of each installed package, a line a path. Source: dpkg-query(1), --listfiles.
_PACKAGES = "/var/lib/dpkg/info"


def advice(root: str, path: str, tried: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Notes and help: the places that were tried, and how the debug file of ``path`` is had.

    ``root`` is the root directory of the process that the file was named by.
    """
    notes = [f"no debug file of it is at {', '.join(tried)}"] if tried else []
    package = _package(root, path)
    help = "install its debug package"
    if package:
        # Those that are older than Debian's archive of debug symbols have the other ending.
        inside = " in its container" if root else ""
        help += f"{inside} (`apt-get install {package}-dbgsym`, or `{package}-dbg`)"
    if not os.environ.get("DEBUGINFOD_URLS", "").strip():
        help += ", set DEBUGINFOD_URLS to a server that has it"
    return tuple(notes), f"{help}, or build it with -g"


def _package(root: str, path: str) -> str:
    # The Debian package that a file is of; empty where none is known.
    real = os.path.realpath(path)
    if root and real.startswith(root + "/"):
        real = real[len(root) :]
    # Packages may still name what is in /usr by its older place.
    wanted = {f"{name}\n".encode() for name in (real, real.removeprefix("/usr"), "/usr" + real)}
    folder = root + _PACKAGES
    try:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".list"):
                with open(os.path.join(folder, name), "rb") as file:
                    if not wanted.isdisjoint(file):
                        return name.removesuffix(".list").partition(":")[0]
    except OSError:
        return ""  # another distribution, or another user's
    return ""
