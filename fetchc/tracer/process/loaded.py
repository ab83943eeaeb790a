"""Whether a process runs the code of a file: a probe of another file of that name never fires."""

from __future__ import annotations

import os

from fetchc.tracer.process.mapped import DELETED
from fetchc.tracer.process.stacks import read_maps

__all__ = ["unloaded"]


def unloaded(pid: int, path: str) -> str | None:
    """What to say of a process that has not mapped the file's code; None where it has.

    None too where nothing is known: it has ended, or another user has it.
    """
    try:
        status = os.stat(path)
        mappings = read_maps(pid)
    except OSError:
        return None
    # Not by the device: file systems of several layers or volumes show others there (proc(5)).
    if not mappings or any(one.inode == status.st_ino for one in mappings):
        return None
    real = os.path.realpath(path)
    real = real.removeprefix(f"/proc/{pid}/root")
    if any(one.path == real for one in mappings):
        return None
    if any(one.path == real + DELETED for one in mappings):
        before = f"process {pid} runs the `{path}` of before: the file was replaced since"
        own = os.path.realpath(f"/proc/{pid}/exe") == real + DELETED
        return f"{before}; that one is `-x /proc/{pid}/exe`" if own else before
    return f"process {pid} has not loaded `{path}`; it, or a child of it, may do so later"
