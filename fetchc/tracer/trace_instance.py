"""A tracefs instance: buffers, switches and filters of one session's own.

Sources: Documentation/trace/ftrace.rst (instances, options) and trials on Linux 6.18.
"""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import suppress

from fetchc.diag.diagnostic import Diagnostic, Label, TracerError
from fetchc.source import Span
from fetchc.tracer.kallsyms import unprobeable
from fetchc.tracer.tracefs import refused, refused_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.tracer.tracefs import Tracefs

__all__ = [
    "Instance",
    "Processes",
    "all_threads",
    "available_bytes",
    "check_namespace",
    "refused_definition",
    "refused_filter",
    "remove_instance",
    "threads_of",
]

# ------------------------------------------------------------------------------
# Threads and their processes: a record says which thread hit, a reader wants the process.
#
# The process is read from ``/proc/THREAD/status`` while the thread lives. For one that is gone,
# the kernel keeps a table of them while an instance has the option ``record-tgid``:
# ``saved_tgids`` (Documentation/trace/ftrace.rst; the option works in an instance, the file is at
# the top only, tried on Linux 6.18).

_FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, include/linux/proc_ns.h
_FRESH = 1_000_000_000  # nanoseconds: a number is not reused within a second


class Processes:
    """The process of each thread seen, cached for a second of the trace's time.

    ``tracefs`` is None where no process but those that run is asked for. ``visible`` says whether
    the kernel's numbers are those that this process sees: they are not in a PID namespace.
    """

    def __init__(self, tracefs: Tracefs | None) -> None:
        self._tracefs = tracefs
        self._cached: dict[int, tuple[int, int]] = {}  # thread -> process, until when
        self._saved, self._saved_at = "", 0  # the kernel's table, as it was at that time
        self.visible = _first_namespace()

    def of(self, thread: int, nanoseconds: int) -> int:
        """The process of ``thread`` at a time of the trace; the thread's own number if unknown.

        Unknown is what ended before it was asked for and was never switched to while the session
        ran: a program of one thread, whose number is the process's.
        """
        return self.known(thread, nanoseconds)[0]

    def known(self, thread: int, nanoseconds: int) -> tuple[int, int]:
        """The process as :meth:`of` has it, and until which time it counts."""
        cached = self._cached.get(thread)
        if cached is not None and nanoseconds < cached[1]:
            return cached
        process = _from_proc(thread) if self.visible else None
        if process is None:
            process = self._saved_process(thread, nanoseconds)
        found = self._cached[thread] = (process, nanoseconds + _FRESH)
        return found

    def _saved_process(self, thread: int, nanoseconds: int) -> int:
        # The table was right for all that was recorded before it was read: one reading serves the
        # rest of a batch. It has thousands of lines, which nobody else looks at.
        if nanoseconds >= self._saved_at and self._tracefs is not None:
            self._saved_at = time.monotonic_ns()
            if self._tracefs.exists("saved_tgids"):  # from 4.14 on
                self._saved = f"\n{self._tracefs.read('saved_tgids')}\n"
        before = f"\n{thread} "
        at = self._saved.find(before)
        if at < 0:
            return thread
        at += len(before)
        return int(self._saved[at : self._saved.index("\n", at)])


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


def all_threads(process: int) -> Iterator[list[int]]:
    """The threads of a process, in parts: first those there are, then those that came meanwhile.

    A thread that one not yet entered starts shows in the next look, so whoever takes the parts has
    all of them. Raises TracerError FC0707 at the end, where there was none.
    """
    entered: set[int] = set()
    while new := threads_of(process) - entered:
        yield sorted(new)
        entered |= new
    if not entered:
        raise refused("FC0707", f"there is no process {process}")


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


# ------------------------------------------------------------------------------
# What the kernel says of a definition or filter that it refuses, as a diagnostic.
#
# ``error_log`` keeps the last eight refusals of everybody, each with its command: only the entry
# about the very line is looked at. Source: Documentation/trace/ftrace.rst; before Linux 5.2 there
# is no such file, and some refusals are logged nowhere.

_ENTRY = (
    r"(?m)^\[[ \d.]+\] \w+: error: (?P<said>.*)\n  Command: (?P<command>.*)\n(?P<caret> *\^)\n?"
)
_INDENT = len("  Command: ")
# What the kernel's words mean, where they are bare or mislead. Texts: kernel/trace/trace_probe.h.
_MEANING = {
    "There is already the exact same probe event": "another process put it there",
    "Argument type or name is different from existing probe": (
        "several definitions of one event need the same names and types in the same order"
    ),
    "Probe type is different from existing probe": (
        "an event is of entries or of returns, not of both"
    ),
    "Failed to find the given file": "the path is the one that the kernel sees",
    "String accepts only memory argument": "texts and arrays are read from memory only",
    "Argument expression is too long": "`fetchc check` shows how long it may be",
    "Failed to register probe event": (
        "some functions must not be probed: see /sys/kernel/debug/kprobes/blacklist"
    ),
    "Event too big (too many fields?)": "the arguments take more bytes than an event may have",
}


def refused_definition(tracefs: Tracefs, line: str, error: OSError) -> TracerError:
    """The kernel's refusal of ``line``, with its place in it.

    The place is of the line with one blank between its words, as the kernel quotes it.
    """
    quoted = " ".join(line.split())
    exists = error.errno == errno.EEXIST
    logged, primary = _logged(tracefs, quoted)
    name = quoted.split(" ")[0].partition(":")[2]
    message = f"the kernel refused the definition of `{name}`"
    if exists:
        message = f"an event `{name}` exists already"
    notes: tuple[str, ...] = (
        (f"the kernel said: {logged}",) if logged else (f"its error is: {_strerror(error)}",)
    )
    notes += unprobeable(tracefs, quoted)
    if logged in _MEANING:
        notes += (_MEANING[logged],)
    help = None
    if exists:
        help = "see `fetchc list`, or give another name with --event"
    code = "FC0706" if exists else "FC0705"
    diagnostic = Diagnostic(code, message, primary, notes=notes, help=help)
    return TracerError((diagnostic,), quoted)


def refused_filter(text: str, shown: str, error: OSError) -> TracerError:
    """The kernel's refusal of the event filter ``text``; ``shown`` is its filter file now."""
    last = shown.strip().rsplit("\n", 1)[-1]
    note = f"its error is: {_strerror(error)}"
    if last.startswith("parse_error: "):
        note = f"the kernel said: {last.removeprefix('parse_error: ')}"
    message = f"the kernel refused the filter `{text}`"
    return TracerError((Diagnostic("FC0708", message, notes=(note,)),))


def _logged(tracefs: Tracefs, command: str) -> tuple[str, Label | None]:
    # What was said about the command, and where: ("", None) where it was not logged.
    try:
        log = tracefs.read("error_log")
    except OSError:
        return "", None
    entries = [each for each in re.finditer(_ENTRY, log) if each["command"].rstrip() == command]
    if not entries:
        return "", None
    message, caret = entries[-1]["said"], len(entries[-1]["caret"]) - 1 - _INDENT
    start = min(max(caret, 0), len(command) - 1)
    end = command.find(" ", start)
    span = Span(start, len(command) if end < 0 else max(end, start + 1))
    return message, Label(span, "refused here")


def _strerror(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, "")
    return f"{os.strerror(error.errno or 0)} ({name})"


_SUB_BUFFER_KIB = 16  # greater pages cost the kernel time to find: 32 KiB a hundred times
_CPU_KIB = (256, 16 * 1024)  # of one processor, where nothing else is asked for
_SHARE = 32  # all buffers get this part of the memory that is available
_TRIES = 20
_PAUSE = 0.05


class Instance:
    """The instance ``name``: :meth:`create` creates it, :func:`remove_instance` removes it.

    The clock is ``mono``: one for all processors, and the one that programs read with
    ``clock_gettime(CLOCK_MONOTONIC)``, so that times can be compared with those of other logs.
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
        share = available_bytes() // _SHARE // len(self.processors()) >> 10
        room = buffer_kib or max(least, min(most, share))
        if os.path.exists(f"{self.path}/buffer_subbuf_size_kb"):  # from 6.8 on
            with suppress(OSError):  # where memory is in small pieces it stays as it is
                text = str(_SUB_BUFFER_KIB)
                self._tracefs.write(text, "instances", self.name, "buffer_subbuf_size_kb")
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
            for threads in all_threads(process):
                self.write(" ".join(map(str, threads)), "set_event_pid")

    def lost(self) -> int:
        """Records that found the buffers full, so far."""
        counted = 0
        for processor in self.processors():
            for line in self.read(f"per_cpu/cpu{processor}/stats").splitlines():
                what, _, number = line.partition(": ")
                if what in ("overrun", "dropped events"):
                    counted += int(number)
        return counted


def available_bytes() -> int:
    """Bytes of memory that the machine can spare; 0 where it does not say so."""
    with suppress(OSError), open("/proc/meminfo", "rb") as file:
        for line in file:
            if line.startswith(b"MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


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
