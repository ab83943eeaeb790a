"""Events and targets without a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fetchc.cli.trace_targets import Target
from fetchc.ir.fetch import Decode
from fetchc.tracer.events import Event, EventValue, Plan
from fetchc.tracer.filter_conditions import parse_filter
from fetchc.tracer.value_shapes import Leaf

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

__all__ = ["event", "plan", "target"]


def plan(event: str = "f", function: str | None = "main.f", kind: str = "entry") -> Plan:
    values = (EventValue("n", Leaf("n", Decode("integer", 32, True))),)
    line = "p:g/f /bin/x:0x10 n=%di:s32"
    return Plan("g", event, "/bin/x", function, kind, 0x1000, (line,), values)


def target(
    role: str, made: Plan, *labels: str, filter: str = "", **fields: str | int | tuple[str, ...]
) -> Target:
    parsed = parse_filter(filter) if filter else None
    return Target(role, made, labels, parsed, **fields)  # type: ignore[arg-type]


def event(
    made: Plan,
    args: dict[str, Value],
    timestamp: float = 1.0,
    pid: int = 7,
    thread: int | None = None,
    comm: str = "x",
    faults: tuple[str, ...] = (),
    stack: tuple[int, ...] = (),
) -> Event:
    number = pid if thread is None else thread
    return Event(made, pid, number, comm, 0, timestamp, 0x401000, args, faults, stack)
