"""What to say of a program whose debug information is nowhere: where it was, and what helps."""

from __future__ import annotations

import os
import re

from fetchc.debuginfo.safe_open import listed, read_regular, real_path

__all__ = ["advice"]

# The files of each installed package, a line a path. Source: dpkg-query(1), --listfiles.
_PACKAGES = "/var/lib/dpkg/info"
_MOST_PACKAGES = 20_000
_MOST_BYTES = 1 << 28  # of all lists; those of 4,000 packages have 30 MB
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")  # Source: Debian Policy, section 5.6.1


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
    real = real_path(path, root)
    if root and real.startswith(root + "/"):
        real = real[len(root) :]
    # Packages may still name what is in /usr by its older place.
    wanted = {os.fsencode(name) for name in (real, real.removeprefix("/usr"), "/usr" + real)}
    folder = root + _PACKAGES
    left = _MOST_BYTES
    try:
        for name in listed(folder, _MOST_PACKAGES, ".list", root):
            try:
                text = read_regular(f"{folder}/{name}", left, root)
            except OSError:
                continue  # no list of a package
            if any(each in text for each in wanted) and not wanted.isdisjoint(text.split(b"\n")):
                package = name.removesuffix(".list").partition(":")[0]
                # A container's owner chooses the name, and a user pastes it into a shell.
                return package if _NAME.fullmatch(package) else ""
            left -= len(text)
    except OSError:
        return ""  # another distribution, or another user's
    return ""
