"""Write watchpoints of the processor as events: who changes a variable, and from what to what.

The processor compares each byte that is written with the watched ones, and stops after the
instruction: the variable has its new value then. A write by the kernel (read(2) into a buffer)
counts, too; one by another process, or by a child, does not.

Source: Intel SDM, volume 3, 19.2.4 and 19.3.1.2 "Data Memory and I/O Breakpoint Exception
Conditions".
"""

from __future__ import annotations

from fetchc.ir.fetch import Absolute, Image, Immediate, chain
from fetchc.tracer.breakpoints import FoundSession, TracedProcess
from fetchc.tracer.decode import Decoder
from fetchc.tracer.events import LINE, OLD
from fetchc.tracer.fetched_records import FetchedRecord, Thread, record_format
from fetchc.tracer.perf_ring import sampled_machines
from fetchc.tracer.processes import image_start
from fetchc.tracer.trace_instance import Processes
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.events import Event, Plan, Sample, Value
    from fetchc.tracer.stacks import Frame
    from fetchc.tracer.watch_plan import Watch

__all__ = ["WatchSession", "address_of"]


def address_of(watch: Watch, process: TracedProcess, base: int | None = None) -> int | None:
    """Where the variable is in a process, by ``base`` or by memory; None where nobody knows yet.

    A file is not loaded yet, a pointer on the way is null, the process has ended. Raises
    TracerError FC0722 for an address that no watchpoint can be at.
    """
    if base is None:
        base = _base(watch, process)
    if base is None:
        return None
    address = base + watch.offset & (1 << 64) - 1
    if address % watch.size:
        raise refused(
            "FC0722",
            f"`{watch.label}` is at {address:#x}, and a watchpoint of {watch.size} bytes begins at "
            f"a multiple of {watch.size}",
            notes=("it is a member of a packed structure, or a pointer leads into an object",),
            help="watch its first byte by a cast: `*(char *)&x`",
        )
    return address


def _base(watch: Watch, process: TracedProcess) -> int | None:
    start, loads = chain(watch.base, watch.word_bytes)
    if isinstance(start, Image):
        try:
            image = image_start(process.pid, watch.plan.path)
        except OSError:  # it has ended
            return None
        if image is None:
            return None
        value = image + start.offset
    else:
        assert isinstance(start, Absolute | Immediate)
        value = start.address if isinstance(start, Absolute) else start.value
    for load in loads:
        word = process.read(value + load.offset, watch.word_bytes)
        value = int.from_bytes(word, "little")
        if not value:
            return None
    return value


class WatchSession(FoundSession):
    """As :class:`~fetchc.tracer.breakpoints.FoundSession`, of variables.

    Events have ``$old``, where the value before is known, and ``$line``, where the line is; their
    plan is named after the function that writes. ``writer``, which is set before the first event,
    gives the frame of an event's address.
    """

    def __init__(
        self,
        pid: int,
        watches: Sequence[Watch],
        find: Callable[[Watch, TracedProcess], int | None],
        copied: int | None = None,
    ) -> None:
        super().__init__(pid, [one.plan for one in watches], self._located, copied)
        self.writer: Callable[[Event, int], Frame] | None = None
        self._watches = {one.plan.event: one for one in watches}
        self._find_address = find
        self._before: dict[str, Value] = {}  # the variable's value, by the event
        self._written_by: dict[tuple[str, str | None], Plan] = {}

    def _located(self, plan: Plan) -> Plan | None:
        watch = self._watches[plan.event]
        assert self._process is not None
        address = self._find_address(watch, self._process)
        # A pointer that the dynamic linker has not relocated yet leads to no memory.
        if address is None:
            return None
        there = len(self._process.read(address, watch.size)) == watch.size
        return watch.at(address) if there else None

    def _bytes(self, plan: Plan) -> int | None:
        return self._watches[plan.event].size

    def _place(self, plan: Plan) -> None:
        watch = self._watches[plan.event]
        same = [one.event for one in self._plans.values() if one.address == plan.address]
        if same:
            other = self._watches[same[0]]
            where = f"`{watch.label}` is at the address of `{other.label}`, {plan.address:#x}"
            if other.size != watch.size:
                what = f"{where}, and {watch.size} bytes wide, not {other.size}"
                raise refused("FC0722", what, help="watch one of them")
            self.note(f"{where}: its writes are shown there")
            return
        before = self._value(plan)
        super()._place(plan)
        # What is written meanwhile is an event, or was written before: nobody can say.
        if before == self._value(plan):
            self._before[plan.event] = before
        where = f"{watch.size} byte{'s' * (watch.size > 1)} at {plan.address:#x}"
        self.note(f"watching `{watch.label}`: {where} of process {self._pid}")

    def _value(self, plan: Plan) -> Value:
        # What the variable is now.
        assert self._process is not None
        decoder = Decoder(record_format(0, plan), [plan], Processes(None), self.symbol)
        thread = Thread(self._pid, 0, {}, self._process, b"")
        made = FetchedRecord(0, plan.fields[0]).make(thread)
        return decoder.event((0, 0, made, 0, len(made), ())).args[plan.values[0].label]

    def event(self, sample: Sample) -> Event:
        """The event of a record, the value before included."""
        event = super().event(sample)
        copy = event.stack
        if not isinstance(copy, tuple):  # of a write by the kernel: who called it
            event.address = copy.registers[sampled_machines()[copy.abi].program_counter]
        name, label = event.name, event.plan.values[0].label
        if name in self._before:
            event.args[OLD] = self._before[name]
        self._before[name] = event.args[label]
        if self.writer is None:
            return event
        frame = self.writer(event, event.address)
        if frame.line is not None:
            event.args[LINE] = frame.line
        key = name, frame.function
        if key not in self._written_by:
            self._written_by[key] = event.plan.replaced(function=frame.function)
        event.plan = self._written_by[key]
        return event
