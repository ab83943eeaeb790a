"""The data of the tracer: plans go into the kernel, records (samples) and events come out."""

from __future__ import annotations

from fetchc.ir.fetch import Contents, ElementAddress, ThreadPointer, Walk, chain
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from fetchc.ir.fetch import Fetch
    from fetchc.tracer.unwind import StackCopy
    from fetchc.tracer.value_shapes import Shape

    Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]

__all__ = [
    "COMM",
    "ELAPSED",
    "LATENCY",
    "LINE",
    "OF_EVENT",
    "OLD",
    "PLAN_INDEX",
    "UNSEEN",
    "WRITE",
    "BpfRecord",
    "Event",
    "EventValue",
    "Field",
    "Format",
    "Mapping",
    "MappingChange",
    "OpenCalls",
    "Plan",
    "Sample",
    "microseconds",
]

COMM = "fetchc_comm"
"""The field that has the task's name.

It is the last string of an event and never faults: :mod:`fetchc.tracer.string_values` needs the
next string to know whether one was read.
"""

PLAN_INDEX = "fetchc_which"
"""The field that numbers the plans of an event, from 0 on."""

WRITE = "write"
"""The kind of an event that is a write to a watched variable, wherever that happens."""

OLD, LINE = "$old", "$line"
"""What such an event has beside the variable: its value before, the line that wrote it."""


LATENCY = "$latency"
"""The time from an entry to its return, in microseconds."""

ELAPSED = "fetchc_elapsed"
"""The field, and the label, of that time in nanoseconds where an eBPF program measured it."""

UNSEEN = (1 << 64) - 1
"""What that is where the entry was not seen."""


class EventValue(Record):
    """A value that the user asked for: its label (the name, or the expression as given).

    ``shape`` says how the fetched fields of a record make the value.
    """

    label: str
    shape: Shape


class FaultProbe(Record):
    """A string that shows whether the byte ``moved`` bytes after a pointer could be read.

    The pointer is the word ``offset`` bytes into the field ``pointer``. The string, ``field``,
    begins at that byte, and is ``""`` where it is 0. The record shows a fault of a string, but not
    of a number, which is 0 then.
    """

    field: str
    pointer: str
    offset: int
    moved: int


class Plan(Record):
    """One event of the kernel, and how its records become values.

    ``definitions`` are lines of ``uprobe_events``, one for each address, all of one group and
    event. ``kind`` is that of the JSON: entry, return, return-site, line, inline, offset, write.
    ``address`` is the first probed instruction's, as the file states it, ``addresses`` are all.
    ``fault_probes`` show whether memory of the program could be read. ``fields`` are what each
    definition fetches, by the names of its arguments. ``identity`` is that of the file at ``path``
    when it was read, empty for the kernel. What breakpoints record has ``fields`` and no
    definitions; ``at_hit``: memory is read at the hit, not after it. ``undefinable`` says why only
    an eBPF program can record a plan, after the code of a refusal; None: a definition can.
    """

    group: str
    event: str
    path: str
    function: str | None
    kind: str
    address: int
    definitions: tuple[str, ...]
    values: tuple[EventValue, ...]
    fault_probes: tuple[FaultProbe, ...] = ()
    fields: tuple[tuple[tuple[str, Fetch], ...], ...] = ()
    identity: str = ""
    at_hit: bool = False
    addresses: tuple[int, ...] = ()
    undefinable: tuple[str, str] | None = None

    def relocated(self, image: int, address: int) -> Plan:
        """The plan for a breakpoint at ``address``, with the file's image where it is in a process.

        For a plan of one address.
        """
        from fetchc.ir.fetch import Fetch, relocated

        (fields,) = self.fields
        placed = [(name, Fetch(relocated(one.value, image), one.store)) for name, one in fields]
        return self.replaced(address=address, definitions=(), fields=(tuple(placed),))

    @property
    def in_memory(self) -> bool:
        """Whether it is of code that is in no file: no uprobe reaches that."""
        return not self.definitions

    @property
    def walks(self) -> bool:
        """Whether it fetches elements of containers, for which no definition can be."""
        fetches = [fetch for fields in self.fields[:1] for _, fetch in fields]
        return any(isinstance(one.value, Walk) for one in fetches)

    @property
    def ebpf_alone(self) -> tuple[str, str] | None:
        """Why only an eBPF program can record it, after the code of a refusal.

        No definition has all of its fields then.
        """
        if self.walks:
            return "FC0314", "only an eBPF program walks a container"
        starts = [chain(one.value)[0] for fields in self.fields[:1] for _, one in fields]
        if any(isinstance(one, ElementAddress) for one in starts):
            return "FC0314", "only an eBPF program computes the place of an element"
        if any(isinstance(one, ThreadPointer) for one in starts):
            return "FC0403", "only an eBPF program reads thread-local variables"
        if any(isinstance(one.value, Contents) for fields in self.fields[:1] for _, one in fields):
            return "FC0508", "only an eBPF program copies so many bytes"
        return self.undefinable

    @property
    def of_kernel(self) -> bool:
        """Whether it probes the kernel's own code: a program's probe names a path."""
        words = [word for line in self.definitions[:1] for word in line.split(maxsplit=2)[1:2]]
        return any(word[:1] != "/" for word in words)


class Field(Record):
    """A field of a record; ``offset`` is in bytes from the start of the record.

    ``count`` is an array's number of elements, None for a single one; ``size`` is that of one
    element. ``text`` fields hold ``__data_loc`` words of 4 bytes: offset (low 16 bits) and length
    with the NUL (high 16 bits, 0 for a fault). Source: Documentation/trace/events.rst. Of contents
    that an eBPF program copies ``room`` are the most bytes, where those are not ``longest``.
    """

    name: str
    offset: int
    size: int
    signed: bool
    count: int | None
    text: bool
    room: int = 0


class BpfRecord(Record):
    """What a record of an eBPF program has beside its fields; all places are byte offsets in it.

    ``process`` is the place of the process, 32 bits. ``faults`` is that of ``fault_bytes`` bytes of
    fault bits; each of ``bits`` is (low, high, bit): what is between depends on a load that failed
    where the bit is set. Each of ``blocks`` is (low, high, word): the 32 bits at ``word`` say which
    of the bytes between were read (see :class:`fetchc.ir.steps.EmitMemory`). A string whose length
    with the NUL is ``longest`` may be cut. ``entries``, by the field of a walk, are the formats of
    what it recorded of each element, which has the header of the record before it.
    """

    process: int
    faults: int
    fault_bytes: int
    bits: tuple[tuple[int, int, int], ...]
    blocks: tuple[tuple[int, int, int], ...]
    longest: int
    entries: tuple[tuple[str, Format], ...] = ()


class Format(Record):
    """The ``format`` file of an event: the number that its records carry, its fields in order.

    ``bpf`` is None for the records of tracefs.
    """

    id: int
    event: str
    fields: tuple[Field, ...]
    bpf: BpfRecord | None = None

    @property
    def size(self) -> int:
        """The least bytes that a record has."""
        return max(field.offset + field.size * (field.count or 1) for field in self.fields)

    @property
    def has_address(self) -> bool:
        """Whether a record has the probed address: one of an entry or a return, not of an event."""
        return any(field.name in ("__probe_ip", "__probe_func") for field in self.fields)


class Mapping(Record):
    """A part of a process's memory: its range, the file's byte at its start, the file."""

    start: int
    end: int
    offset: int
    path: str
    inode: int


class MappingChange(Record):
    """What changed the code that a process has mapped, at a time of the trace in nanoseconds.

    ``mapping``: what it has mapped. None: it is another program now, or, where ``parent`` is a
    process, a copy of that one.
    """

    time: int
    process: int
    parent: int | None = None
    mapping: Mapping | None = None


Sample = tuple[int, int, bytes, int, int, "tuple[int, ...] | StackCopy"]
"""One record as the ring buffer holds it.

Its time in nanoseconds of the trace clock; the processor; the page that it is in, its start there
(the common header) and its end; return addresses of the program, innermost first, or a copy of its
stack, where they were asked for. A plain tuple, since a session reads millions: a class takes
five times as long.
"""


class Event:
    """A sample with its values: what :meth:`Session.events` gives, one for each hit.

    ``args`` has a value for each label; the labels whose memory could not be read are in
    ``faults``, and their value is None. ``timestamp`` is in seconds of the trace clock, ``pid``
    the process, ``thread`` its thread.
    """

    __slots__ = (
        "address", "args", "comm", "cpu", "faults", "name", "pid", "plan", "stack", "thread",
        "timestamp",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        pid: int,
        thread: int,
        comm: str,
        cpu: int,
        timestamp: float,
        address: int,
        args: dict[str, Value],
        faults: tuple[str, ...],
        stack: tuple[int, ...] | StackCopy = (),
    ) -> None:
        self.plan = plan
        self.name = plan.event
        self.pid = pid
        self.thread = thread
        self.comm = comm
        self.cpu = cpu
        self.timestamp = timestamp
        self.address = address
        self.args = args
        self.faults = faults
        self.stack = stack

    def __repr__(self) -> str:
        values = ", ".join(f"{label}={value!r}" for label, value in self.args.items())
        task = f"{self.comm}/{self.pid}"
        return f"<fetchc.Event {self.name} {task} at {self.timestamp:.6f} {values}".rstrip() + ">"


OF_EVENT: dict[str, Callable[[Event], Value]] = {
    "pid": lambda event: event.pid,
    "tid": lambda event: event.thread,
    "cpu": lambda event: event.cpu,
    "time": lambda event: event.timestamp,
    "comm": lambda event: event.comm,
    "function": lambda event: event.plan.function,
}
"""What a reader knows of an event by itself: ``$pid``, ``$tid``, ...; the last two are strings."""


# ------------------------------------------------------------------------------
# Pairs of entries and returns.

_KEYS = 1 << 16  # calls that wait for their return; each is an event of some hundred bytes
# A call frame is entered again before it returns only by tail calls, and of those the kernel
# sees at most so many return (MAX_URETPROBE_DEPTH, include/linux/uprobes.h).
_MOST = 64


class OpenCalls:
    """The calls that were entered and have not returned, by a key that is one call's own.

    Where the key holds the address of the frame (process, function, stack pointer), recursion
    has a key a level, and a frame left by longjmp, an exception or the end of its thread gives its
    key to the next call at that depth. A goroutine's stack moves, so the key is the goroutine's,
    and ``depth`` is where the frame is: in bytes from the stack's high end, which a move keeps. A
    call that a panic or runtime.Goexit ended is forgotten once the goroutine is at its depth or
    above it again. Memory is bounded: with more than ``keys`` keys, and ``most`` calls of one, the
    oldest is forgotten and counted in ``forgotten``.
    """

    __slots__ = ("_keys", "_most", "_open", "forgotten")

    def __init__(self, keys: int = _KEYS, most: int = _MOST) -> None:
        self._open: dict[Hashable, list[tuple[int, Event]]] = {}
        self._keys = keys
        self._most = most
        self.forgotten = 0

    def enter(self, key: Hashable, event: Event, depth: int | None = None) -> None:
        """A call began."""
        waiting = self._open.get(key)
        if waiting is None:
            if len(self._open) >= self._keys:
                oldest = next(iter(self._open))
                self.forgotten += len(self._open.pop(oldest))
            self._open[key] = [(depth or 0, event)]
            return
        if depth is not None:
            while waiting and waiting[-1][0] >= depth:
                waiting.pop()
        if len(waiting) >= self._most:
            del waiting[0]
            self.forgotten += 1
        waiting.append((depth or 0, event))

    @property
    def unreturned(self) -> int:
        """Calls that were entered and have not returned, as far as they are remembered."""
        return sum(map(len, self._open.values()))

    def leave(self, key: Hashable, depth: int | None = None) -> Event | None:
        """The entry of the call that returned; None where it was not seen."""
        waiting = self._open.get(key, [])
        if depth is not None:
            while waiting and waiting[-1][0] > depth:
                waiting.pop()
        entry = None
        if waiting and (depth is None or waiting[-1][0] == depth):
            entry = waiting.pop()[1]
        if not waiting:
            self._open.pop(key, None)
        return entry


def microseconds(start: Event, end: Event) -> float:
    """From one event to the other, to the nanosecond."""
    return round((end.timestamp - start.timestamp) * 1e6, 3)
