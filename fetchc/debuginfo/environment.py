"""What readers of files may use besides the files: a cache folder, processes, a way to report.

The code that opens a program passes an :class:`Environment` to it and to each of its files. Two
users of the library in one process can have different ones.
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["DEFAULT", "CacheFolder", "Environment"]

_MOST_PENDING = 16  # files waiting to be written: each has its bytes in memory


class CacheFolder:
    """A folder of cached results, and the results still to be written to it.

    ``user`` owns it: the effective user by default. ``write`` is called with name and content of
    each file in place of writing it, for a process that may not. ``notes`` say why a file is not
    used or written.
    """

    __slots__ = ("_pending", "notes", "path", "user", "write")

    def __init__(
        self,
        path: str,
        user: int | None = None,
        write: Callable[[str, bytes], None] | None = None,
    ) -> None:
        self.path = path
        self.user = user
        self.write = write
        self.notes: list[str] = []
        self._pending: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<fetchc.CacheFolder {self.path}>"

    def save_later(self, write: Callable[[], None]) -> None:
        """Have ``write`` called by :meth:`save`, or earlier when many others wait."""
        if len(self._pending) == _MOST_PENDING:
            self._pending.pop(0)()
        self._pending.append(write)

    def save(self) -> None:
        """Write the results that are not in the folder yet; nothing where writing is refused."""
        while self._pending:
            self._pending.pop()()


class Environment(Record):
    """What a program's readers may use. The default caches, reports and starts nothing.

    ``cache``: where results are cached; None: nowhere. ``report`` is called with a line about work
    that takes long, ``progress`` with bytes done and bytes in all. ``processes``: whether indexing
    may start other processes. ``remote`` has another process call a method of
    :class:`~fetchc.debuginfo.separate.debuginfod.Transfers`, for one without a network; ``user`` is
    whose folders are read then.
    """

    cache: CacheFolder | None = None
    report: Callable[[str], None] | None = None
    progress: Callable[[int, int], None] | None = None
    processes: bool = False
    remote: Callable[..., Any] | None = None
    user: int | None = None


DEFAULT = Environment()
