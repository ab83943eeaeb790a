"""Where to look for debug files, as data."""

from __future__ import annotations

from fetchc.record import Record

__all__ = ["DEBUG_ROOTS", "Search"]

# Where distributions install debug files. Source: the GDB manual, "Separate Debug Files".
DEBUG_ROOTS = ("/usr/lib/debug",)


class Search(Record):
    """What the user says about debug files, and where they are looked for without a word.

    ``debug_file`` is the one to take, ``debug_dirs`` are folders to look in first. ``roots`` are
    trees laid out as /usr/lib/debug, of the file system below ``root``: empty for the own one,
    ``/proc/PID/root`` for that of a container.
    """

    debug_file: str | None = None
    debug_dirs: tuple[str, ...] = ()
    roots: tuple[str, ...] = DEBUG_ROOTS
    root: str = ""
