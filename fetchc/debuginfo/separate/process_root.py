"""Programs named by a process: ``/proc/PID/exe``, and files below ``/proc/PID/root``.

A process may have another root directory (a container, a chroot). Its debug files are below that
one, and a path there means something else here. A definition needs a path of this process, for
which the kernel resolves it. Source: proc(5), /proc/pid/exe and /proc/pid/root.
"""

from __future__ import annotations

import os

from fetchc.debuginfo.safe_open import resolved
from fetchc.debuginfo.separate.debug_file_search import Search
from fetchc.diag.diagnostic import DebugInfoError

__all__ = ["of_process"]

_DELETED = " (deleted)"


def of_process(path: str, search: Search | None) -> tuple[str, Search | None]:
    """A path that leads to the same file from here and outlives the process where one does, and
    where its debug files are. Both as given where ``path`` names nothing of a process.

    Raises DebugInfoError FC0901 where the process is gone or may not be looked at.
    """
    parts = path.split("/", 4)  # "", proc, PID, exe or root, the rest
    if len(parts) < 4 or not (parts[2].isdecimal() or parts[2] == "self"):
        return path, search
    process = f"/proc/{parts[2]}"
    if parts[3:] == ["exe"]:
        root = _root(process)
        return _executable(process, root), _below(root, search)
    if parts[3] == "root" and len(parts) == 5:
        root = _root(process)
        inside = "/" + parts[4]
        if root:
            return resolved(root, inside), _below(root, search)
        # The own root, but maybe with mounts that only the process has.
        return inside if _same(inside, path) else path, search
    return path, search


def _root(process: str) -> str:
    # Empty for the own one; of a chroot its path; of another mount namespace no path of here leads
    # to it but that of the process.
    link = f"{process}/root"
    named = _target(link)
    if _same("/", link):
        return ""
    return named if named != "/" and _same(named, link) else link


def _executable(process: str, root: str) -> str:
    link = f"{process}/exe"
    named = _target(link)  # of a chroot: with the way to it, as far as it is seen from here
    if named.endswith(_DELETED):
        return link
    for path in (named, resolved(root or f"{process}/root", named)):
        if _same(path, link):
            return path
    return link


def _below(root: str, search: Search | None) -> Search | None:
    if not root:
        return search
    said = search or Search()
    return Search(said.debug_file, said.debug_dirs, said.roots, root)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError as refused:
        process = os.path.dirname(link)
        gone = None if os.path.isdir(process) else f"there is no process {process[6:]}"
        why = gone or refused.strerror
        raise DebugInfoError("FC0901", link, f"cannot be read: {why}") from None


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
