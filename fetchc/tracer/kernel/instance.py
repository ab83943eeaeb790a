"""A tracefs instance: buffers, switches and filters of one session's own.

Sources: Documentation/trace/ftrace.rst (instances, options) and trials on Linux 6.18.
"""

from __future__ import annotations

import errno
import os
import time

from fetchc.tracer.kernel.refusals import refused_filter
from fetchc.tracer.kernel.tasks import check_namespace, threads_of
from fetchc.tracer.kernel.tracefs import refused, refused_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.tracer.kernel.tracefs import Tracefs

__all__ = ["Instance", "remove_instance"]

_TOTAL_KIB = 64 * 1024  # of buffers, where nothing else is asked for
_CPU_KIB = (256, 8192)
_TRIES = 20
_PAUSE = 0.05


class Instance:
    """The instance ``name``: made by :meth:`create`, taken away by :func:`remove_instance`.

    The clock is ``mono``: one for all processors, and the one that programs read with
    ``clock_gettime(CLOCK_MONOTONIC)``, so that times can be held against those of other logs.
    (``local``, the kernel's default, is of each processor's own.) A full buffer drops the newest
    records: the traced program never waits.
    """

    def __init__(self, tracefs: Tracefs, name: str) -> None:
        self._tracefs = tracefs
        self.name = name
        self.path = tracefs.path("instances", name)

    def create(self, buffer_kib: int | None) -> None:
        """Make it, all events off; ``buffer_kib`` is for each processor."""
        try:
            os.mkdir(self.path)
        except OSError as error:
            raise refused_setting("instances", error) from error
        self.write("mono", "trace_clock")
        self.write("0", "options/overwrite")
        if os.path.exists(f"{self.path}/options/record-tgid"):  # from 4.14 on
            self.write("1", "options/record-tgid")
        if os.path.exists(f"{self.path}/buffer_percent"):  # from 5.0 on
            self.write("0", "buffer_percent")  # who waits is woken by the first record
        least, most = _CPU_KIB
        room = buffer_kib or max(least, min(most, _TOTAL_KIB // len(self.processors())))
        self.write(str(room), "buffer_size_kb")

    def processors(self) -> list[int]:
        """The processors that have a buffer here."""
        return sorted(int(name[3:]) for name in os.listdir(f"{self.path}/per_cpu"))

    def read(self, file: str) -> str:
        """The text of one of its files; raises TracerError (FC0709)."""
        try:
            return self._tracefs.read("instances", self.name, file)
        except OSError as error:
            raise refused_setting(file, error) from error

    def write(self, text: str, file: str) -> None:
        """Append to one of its files; raises TracerError (FC0709)."""
        try:
            self._tracefs.write(text, "instances", self.name, file)
        except OSError as error:
            raise refused_setting(f"`{text}` for {file}", error) from error

    def switch(self, group: str, event: str | None, on: bool) -> None:
        """Enable or disable an event, or all of a group at once."""
        below = group if event is None else f"{group}/{event}"
        self.write("1" if on else "0", f"events/{below}/enable")

    def filter(self, group: str, event: str, text: str) -> None:
        """Record only what the kernel's event filter ``text`` lets pass; ``0`` takes it off.

        Raises TracerError (FC0708) with what the kernel said.
        """
        file = f"events/{group}/{event}/filter"
        try:
            self._tracefs.write(text, "instances", self.name, file)
        except OSError as error:
            raise refused_filter(text, self.read(file), error) from error

    def only(self, processes: Iterable[int]) -> None:
        """Record these processes only, with all threads, and all they start from now on.

        Raises TracerError where there is none of that number (FC0707), or where numbers of this
        process's PID namespace are not the kernel's (FC0713).
        """
        wanted = sorted(set(processes))
        check_namespace(wanted)
        self.write("1", "options/event-fork")
        for process in wanted:
            self._enter(process)

    def _enter(self, process: int) -> None:
        entered: set[int] = set()
        # A thread that one not yet entered starts meanwhile shows in the next look.
        while new := threads_of(process) - entered:
            self.write(" ".join(str(thread) for thread in sorted(new)), "set_event_pid")
            entered |= new
        if not entered:
            raise refused("FC0707", f"there is no process {process}")

    def lost(self) -> int:
        """Records that found the buffers full, so far."""
        counted = 0
        for processor in self.processors():
            for line in self.read(f"per_cpu/cpu{processor}/stats").splitlines():
                what, _, number = line.partition(": ")
                if what in ("overrun", "dropped events"):
                    counted += int(number)
        return counted


def remove_instance(tracefs: Tracefs, name: str) -> bool:
    """Take an instance away, its events off first; False where somebody has it open."""
    path = tracefs.path("instances", name)
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        else:
            return True
    return False
