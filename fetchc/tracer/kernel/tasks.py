"""Threads and their processes: a record says which thread hit, a reader wants the process.

The process is read from ``/proc/THREAD/status`` while the thread lives. For one that is gone, the
kernel keeps a table of them while an instance has the option ``record-tgid``: ``saved_tgids``
(Documentation/trace/ftrace.rst; the option works in an instance, the file is at the top only,
tried on Linux 6.18).
"""

from __future__ import annotations

import os

from fetchc.tracer.kernel.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.tracer.kernel.tracefs import Tracefs

__all__ = ["Processes", "check_namespace", "threads_of"]

_FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, include/linux/proc_ns.h
_FRESH = 1_000_000_000  # nanoseconds: a number is not reused within a second


class Processes:
    """The process of each thread seen, kept for a second of the trace's time.

    ``known`` says whether the kernel's numbers are those that this process sees: they are not
    in a PID namespace.
    """

    def __init__(self, tracefs: Tracefs) -> None:
        self._tracefs = tracefs
        self._known: dict[int, tuple[int, int]] = {}  # thread -> process, until when
        self.known = _first_namespace()

    def of(self, thread: int, nanoseconds: int) -> int:
        """The process of ``thread`` at a time of the trace; the thread's own number if unknown.

        Unknown is what ended before it was asked for and was never switched to while the session
        ran: a program of one thread, whose number is the process's.
        """
        known = self._known.get(thread)
        if known is not None and nanoseconds < known[1]:
            return known[0]
        process = _from_proc(thread) if self.known else None
        if process is None:
            self._read_saved(nanoseconds)
            known = self._known.get(thread)
            process = thread if known is None else known[0]
        self._known[thread] = (process, nanoseconds + _FRESH)
        return process

    def _read_saved(self, nanoseconds: int) -> None:
        # All that are gone by now: one reading serves the rest of a batch.
        if not self._tracefs.exists("saved_tgids"):  # before 4.14
            return
        for line in self._tracefs.read("saved_tgids").splitlines():
            thread, process = map(int, line.split())
            if not self.known or not os.path.exists(f"/proc/{thread}"):
                self._known[thread] = (process, nanoseconds + _FRESH)


def _from_proc(thread: int) -> int | None:
    try:
        with open(f"/proc/{thread}/status", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(text.partition(b"\nTgid:")[2].split(maxsplit=1)[0])


def threads_of(process: int) -> set[int]:
    """The threads of a process, among them its first; empty where it is gone."""
    try:
        return {int(name) for name in os.listdir(f"/proc/{process}/task")}
    except (FileNotFoundError, ProcessLookupError):
        return set()


def check_namespace(processes: Iterable[int]) -> None:
    """Refuse to tell the kernel numbers of processes that are not its own (FC0713)."""
    if not _first_namespace():
        listed = ", ".join(map(str, processes))
        raise refused(
            "FC0713",
            f"the kernel knows process {listed} by another number",
            notes=("this runs in a PID namespace, as in a container",),
            help="run fetchc outside of the container, with the number that the process has there",
        )


def _first_namespace() -> bool:
    return os.readlink("/proc/self/ns/pid") == _FIRST_NAMESPACE
