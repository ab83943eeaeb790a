"""Whether the files that are traced are still those at their paths."""

from __future__ import annotations

import os

from fetchc.diag.diagnostic import Diagnostic

__all__ = ["Watched"]


class Watched:
    """Remembers the files at some paths, to notice that another one, or none, is there now.

    The kernel probes the file, not the path: who was running it goes on to be traced.
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int] | None] = {}

    def watch(self, path: str) -> None:
        """Remember the file at ``path``."""
        self._files.setdefault(path, _identity(path))

    def changes(self) -> tuple[Diagnostic, ...]:
        """A warning for each path where the file is another since; each is told once."""
        changed = [
            path
            for path, file in self._files.items()
            if _identity(path) != file and not _of_ended_process(path)
        ]
        found = []
        for path in changed:
            now = self._files[path] = _identity(path)
            what = "deleted" if now is None else "replaced"
            note = "processes that run the old one are traced on, and no others"
            help = "start the trace again to see the new one" if now else None
            message = f"the traced file {path} was {what}"
            found.append(Diagnostic("FC0613", message, notes=(note,), help=help))
        return tuple(found)


def _of_ended_process(path: str) -> bool:
    # /proc/PID/exe or a file below /proc/PID/root: it went with the process, and is not deleted.
    process = "/".join(path.split("/")[:3])
    return path.startswith("/proc/") and not os.path.exists(process)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
