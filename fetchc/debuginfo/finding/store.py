"""Debug files that were downloaded, in a folder of the user's own: ``debuginfod`` in the cache.

A file is named by its build-id. An empty one, which is also named by the servers, says that none of
them had it when it was last changed.
What is not used for a week goes when something else comes.
"""

from __future__ import annotations

import os
import time
from stat import S_ISREG
from zlib import crc32

from fetchc.debuginfo.elf.image import Image
from fetchc.debuginfo.kept.files import made, removed
from fetchc.debuginfo.safe_open import folders_of, own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SUFFIX", "Store", "client_cache", "downloads"]

FOLDER = "debuginfod"
SUFFIX = ".debug"
ABSENT_SECONDS = 600  # as long as elfutils' client does not ask again
UNUSED_SECONDS = 7 * 24 * 3600  # and as long as it keeps what nobody uses


class Store:
    """The folder. Without one, as in a library, files live as long as they are mapped."""

    __slots__ = ("_absent", "folder")

    def __init__(self, servers: list[str]) -> None:
        asked = crc32(" ".join(servers).encode("utf-8", "surrogateescape"))
        self._absent = f".{asked:08x}.absent"
        folder = Image.cache_folder
        self.folder = folder and os.path.join(folder, FOLDER)

    def known(self, build_id: str) -> str | None:
        """The path of a kept file; empty where the servers had none a while ago; None: ask."""
        if not self.folder or not own_folder(self.folder):
            return None
        path = self._path(build_id, SUFFIX)
        if _own(path) is not None:
            return path  # untouched: what is kept of its sections goes by its times
        marked = _own(self._path(build_id, self._absent))
        return "" if marked is not None and time.time() - marked < ABSENT_SECONDS else None

    def _path(self, build_id: str, suffix: str) -> str:
        return os.path.join(self.folder, build_id + suffix)

    def partial(self, build_id: str) -> tuple[int, str]:
        """A file to write a download to, open, and its path; OSError where none can be made."""
        from tempfile import mkstemp

        if self.folder and not (made(os.path.dirname(self.folder)) and made(self.folder)):
            self.folder = ""
        return mkstemp(".part", f"{build_id}.", self.folder or None)

    def keep(self, path: str, build_id: str, suffix: str = SUFFIX) -> str:
        """Where the whole file at ``path`` is from now on."""
        if not self.folder:
            return path
        final = self._path(build_id, suffix)
        os.rename(path, final)
        self._evict()
        return final

    def absent(self, build_id: str) -> None:
        """Remember that no server has it."""
        if self.folder:
            handle, path = self.partial(build_id)
            os.close(handle)
            self.keep(path, build_id, self._absent)

    def _evict(self) -> None:
        now = time.time()
        cache = os.path.dirname(self.folder)
        for used, _, name in downloads(cache):
            if now - used > UNUSED_SECONDS:
                try:
                    removed(os.path.join(cache, name))
                except OSError:
                    return


def _own(path: str) -> float | None:
    # When a file of the user's own was changed last; None where there is none.
    try:
        status = os.lstat(path)
    except OSError:
        return None
    ours = S_ISREG(status.st_mode) and status.st_uid == folders_of()
    return status.st_mtime if ours else None


def downloads(cache: str) -> list[tuple[float, int, str]]:
    """Time of last use, bytes and name in the cache of what is kept, half downloads of killed
    runs included. OSError where the folder cannot be read.
    """
    folder = os.path.join(cache, FOLDER)
    found = []
    if own_folder(folder):
        with os.scandir(folder) as names:
            for entry in names:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another process has removed it
                if S_ISREG(status.st_mode):
                    name = os.path.join(FOLDER, entry.name)
                    # File systems note when a file is mapped, some once a day, some never.
                    used = max(status.st_atime, status.st_mtime)
                    found.append((used, status.st_size, name))
    return sorted(found)


def client_cache(build_id: str) -> Iterator[str]:
    """Where elfutils' client keeps the file, which gdb and others had it download.

    Source: debuginfod_find_debuginfo(3), ENVIRONMENT VARIABLES.
    """
    base = os.environ.get("DEBUGINFOD_CACHE_PATH", "")
    if not base:
        home = os.environ.get("HOME", "")
        cache = os.environ.get("XDG_CACHE_HOME", "") or f"{home}/.cache"
        base = f"{cache}/debuginfod_client"
    if base.startswith("/"):
        yield os.path.join(base, build_id, "debuginfo")
