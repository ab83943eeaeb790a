"""A tracefs instance of a test's own: install definitions, run a program, read what was fetched.

Live tests go through this and nothing else. It appends to ``uprobe_events`` and never truncates
it, keeps to groups called ``fetchc_*``, records only the program it starts, and takes everything
away again, whatever happens in between.

Source of the text forms read here: Documentation/trace/uprobetracer.rst and the trace file's own
header; strings with a quote or a new line in them are not for this reader.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

__all__ = [
    "Hit",
    "Refused",
    "Session",
    "parse_hit",
    "require_bpf",
    "require_uprobes",
    "turn",
    "unavailable",
]

_TRACEFS = Path("/sys/kernel/tracing")
_SECONDS = 60  # a program that takes longer hangs
_numbers = itertools.count()


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait for others that take turns at ``path``, and have them wait until the block is done."""
    door, lock = (os.open(one, os.O_RDONLY | os.O_CLOEXEC) for one in (path.parent, path))
    try:
        # Through the door comes one at a time: whoever has just had a turn waits after the next.
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield
    finally:
        os.close(lock)
        os.close(door)


@dataclass(frozen=True)
class Hit:
    """One line of the trace: the values are the kernel's text, by argument name."""

    event: str
    comm: str
    pid: int
    address: int
    values: dict[str, str]


class Refused(Exception):
    """The kernel refused a definition; the message has its errno and its error_log entry."""


def unavailable() -> str | None:
    """Why live tests cannot run here, or None when they can. Mounts tracefs if it may."""
    if os.geteuid() != 0:
        return "not root: uprobes need privilege"
    events = _TRACEFS / "uprobe_events"
    if not events.exists():
        mounting = ["mount", "-t", "tracefs", "nodev", str(_TRACEFS)]
        with suppress(OSError):  # no mount program: as good as one that fails
            subprocess.run(mounting, capture_output=True, check=False)
    if not events.exists():
        return f"no {events}: tracefs cannot be mounted, or the kernel lacks UPROBE_EVENTS"
    if not os.access(events, os.W_OK):
        return f"{events} cannot be written"
    return None


def require_uprobes() -> None:
    """Skip the test, with the reason, where the kernel's uprobes are not to be had."""
    import pytest

    reason = unavailable()
    if reason:
        pytest.skip(reason)


def require_bpf() -> None:
    """As :func:`require_uprobes`, and where eBPF programs cannot record."""
    import pytest

    from fetchc.tracer.bpf.features import unusable

    require_uprobes()
    reason = unusable()
    if reason is not None:
        pytest.skip(reason)


class Session:
    """Context manager: a tracefs instance and the definitions that were put in with it."""

    def __init__(self, kilobytes: int = 2048) -> None:
        self._kilobytes = kilobytes  # of buffer, for each processor
        self.group = f"fetchc_{os.getpid()}_{next(_numbers)}"
        self._instance = _TRACEFS / "instances" / self.group
        self._names: dict[str, list[str]] = {}  # event -> its arguments, in order
        self._cleanup = ExitStack()

    def __enter__(self) -> Session:
        self._instance.mkdir()
        self._cleanup.callback(self._instance.rmdir)
        self._cleanup.callback(self._remove)
        # The program's threads and children count as well.
        (self._instance / "options/event-fork").write_text("1")
        (self._instance / "buffer_size_kb").write_text(str(self._kilobytes))
        # An empty list would be everybody; the first process starts no fixture.
        (self._instance / "set_event_pid").write_text("1")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cleanup.close()

    def add(self, definition: str) -> None:
        """Install one definition, whose group must be this session's; off until the next run."""
        head, *rest = definition.split()
        group, _, event = head.partition(":")[2].partition("/")
        if group != self.group:
            raise ValueError(f"the group of {head} is not {self.group}")
        _append(definition)
        self._names[event] = [argument.partition("=")[0] for argument in rest[1:]]

    def enable(self) -> None:
        """Switch on what was added, for programs that :meth:`run` starts from now on."""
        # All events at once: the kernel waits for its readers after each switch.
        (self._instance / "events" / self.group / "enable").write_text("1")

    def _remove(self) -> None:
        if self._names:
            try:
                (self._instance / "events" / self.group / "enable").write_text("0")
            finally:
                _append("\n".join(f"-:{self.group}/{event}" for event in self._names))

    def run(self, command: Sequence[str | os.PathLike[str]]) -> str:
        """Run a program to its end under the probes and return what it printed.

        The child enters its own number in ``set_event_pid`` before it becomes the program: the
        same fixture run by another test leaves no trace here.
        """
        self.enable()
        only = self._instance / "set_event_pid"

        def enter() -> None:
            with open(only, "w") as file:
                file.write(str(os.getpid()))

        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            preexec_fn=enter,
            check=True,
            timeout=_SECONDS,
            encoding="utf-8",
        )
        return done.stdout

    def hits(self, event: str) -> list[Hit]:
        """The hits of an event so far, in the order of time. Raises if the kernel lost some."""
        text = (self._instance / "trace").read_text(encoding="utf-8", errors="surrogateescape")
        found = re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", text)
        if not found or found[1] != found[2]:
            raise AssertionError(f"events were overwritten: {found and found[0]}")
        lines = [line for line in text.split("\n") if line and not line.startswith("#")]
        parsed = [parse_hit(line, self._names) for line in lines]
        return [hit for hit in parsed if hit.event == event]


def _append(line: str) -> None:
    # One write: the kernel takes a definition whole or not at all.
    file = os.open(_TRACEFS / "uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, f"{line}\n".encode())
    except OSError as error:
        raise Refused(f"{error.strerror}: {line}\n{_complaint(line)}") from error
    finally:
        os.close(file)


def _complaint(line: str) -> str:
    # error_log is everybody's: only the entry about this very command is ours.
    log = (_TRACEFS / "error_log").read_text(errors="replace")
    entries = re.split(r"^(?=\[)", log, flags=re.MULTILINE)
    return "".join(entry for entry in entries if f"Command: {' '.join(line.split())}" in entry)


_LINE = re.compile(
    r"\s*(?P<comm>.*)-(?P<pid>\d+)\s+\[\d+\] .{5} +[\d.]+: (?P<event>\w+): "
    r"\(0x(?P<address>[0-9a-f]+)(?: <- 0x[0-9a-f]+)?\)(?P<rest>.*)"
)
_VALUE = r'("[^"]*"(?=\s|$)|\{[^}]*\}|\S+)'


def parse_hit(line: str, names: dict[str, list[str]]) -> Hit:
    """A line of ``trace``; ``names`` are the arguments of each event, in their order."""
    matched = _LINE.fullmatch(line)
    if not matched:
        raise AssertionError(f"not a line of an event: {line!r}")
    event = matched["event"]
    pattern = "".join(rf" {re.escape(name)}={_VALUE}" for name in names[event])
    values = re.fullmatch(pattern, matched["rest"])
    if not values:
        raise AssertionError(f"the arguments {names[event]} are not in {line!r}")
    return Hit(
        event=event,
        comm=matched["comm"],
        pid=int(matched["pid"]),
        address=int(matched["address"], 16),
        values=dict(zip(names[event], values.groups(), strict=True)),
    )
