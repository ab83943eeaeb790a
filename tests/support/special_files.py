"""What may be at a path that is no file of its own."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["KINDS", "special"]


def special(path: Path, kind: str) -> None:
    """Put what is no file of its own to ``path``."""
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "zero":
            path.symlink_to("/dev/zero")
        case "device":
            os.mknod(path, 0o600 | 0o20000, os.makedev(1, 5))  # /dev/zero
        case "loop":
            path.symlink_to(path.name)
        case "folder":
            path.mkdir()
        case "sparse":
            path.touch()
            os.truncate(path, 8 << 30)
        case "memory":
            path.symlink_to("/proc/kcore")
        case "gone":
            path.symlink_to("/nowhere")
        case _:
            raise ValueError(kind)


KINDS = ("fifo", "zero", "device", "loop", "folder", "sparse", "memory", "gone")
