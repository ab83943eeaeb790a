"""Whether a file of a running process has grown, and a wake-up when it does.

A runtime adds a line to its perf map for each method that it compiles. Who follows a method has to
know of that at once: calls of its new code pass until a breakpoint is there.

Source: inotify(7).
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

__all__ = ["FileChanges"]

_MODIFIED = 2  # IN_MODIFY
_EVENTS = 1 << 16  # bytes that are read at a time


class FileChanges:
    """The changes of one file. Without inotify there is no wake-up, but the size still tells."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._size = -1
        libc = ctypes.CDLL(None, use_errno=True)
        self._file: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file >= 0 and libc.inotify_add_watch(self._file, os.fsencode(path), _MODIFIED) < 0:
            self.close()

    def fileno(self) -> int:
        """What :func:`select.poll` waits for; negative where nothing can be waited for."""
        return self._file

    def changed(self) -> bool:
        """Whether the file has another size than at the last call; True at the first one."""
        if self._file >= 0:
            with suppress(BlockingIOError):
                while len(os.read(self._file, _EVENTS)) == _EVENTS:
                    pass
        try:
            size = os.stat(self._path).st_size
        except OSError:  # the process has ended
            return False
        before, self._size = self._size, size
        return size != before

    def close(self) -> None:
        """Watch the file no longer. Can be called twice."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
