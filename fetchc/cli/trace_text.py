"""Hits as lines of text: time, process, function, values in columns that grow with them."""

from __future__ import annotations

from fetchc.diag.render import printable
from fetchc.tracer.display_values import escaped, printed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from fetchc.cli.trace_events import Hit
    from fetchc.cli.trace_targets import Target
    from fetchc.tracer.events import Value
    from fetchc.tracer.stacks import Frame

__all__ = ["TextLines"]

_PROCESS = 18  # columns: a comm of 10, a slash, a number of 7
_FUNCTION = 40  # of functions in a column; longer ones push the rest to the right
_VALUE = 32  # of a value in a column
_COMMS = 4096
_UNSEEN = "?\0"  # the value of an entry that was not seen: by identity, no text is this one


class TextLines:
    """One line a hit; ``timed``: with the time it took, between process and function.

    Times are seconds since the first hit. Whatever the traced memory holds, a line is one line,
    of printable characters only.
    """

    def __init__(self, targets: Iterable[Target], timed: bool) -> None:
        listed = list(targets)
        names = {each.plan.event: _name(each) for each in listed}
        width = min(_FUNCTION, max((len(name) for name in names.values()), default=0))
        self._names = {event: f"{name:<{width}}" for event, name in names.items()}
        self._cells = {each.plan.event: _Cells(each.labels) for each in listed}
        self._timed = timed
        self._start: float | None = None
        self._processes: dict[tuple[str, int, int], str] = {}

    def line(self, hit: Hit, frames: Iterable[Frame] = ()) -> str:
        """The hit, and its stack in lines below it."""
        event = hit.event
        name = event.plan.event
        if self._start is None:
            self._start = event.timestamp
        process = self._processes.get((event.comm, event.pid, event.thread))
        if process is None:
            process = self._process(event.comm, event.pid, event.thread)
        cells = self._cells[name].cells(event.args, event.faults)
        took = self._took(hit.latency) if self._timed else ""
        time = event.timestamp - self._start
        line = f"{time:>12.6f}  {process}  {took}{self._names[name]}  {cells}".rstrip()
        for frame in frames:
            line += f"\n{'':>14}{printable(str(frame))}"
        return line

    def _process(self, comm: str, pid: int, thread: int) -> str:
        # The thread number identifies threads other than the first.
        shown = f"{_comm(comm)}/{pid}" + (f":{thread}" if thread != pid else "")
        if len(self._processes) >= _COMMS:
            self._processes.clear()
        self._processes[comm, pid, thread] = shown = f"{shown:<{_PROCESS}}"
        return shown

    def _took(self, latency: float | None) -> str:
        return f"{'?':>12} us  " if latency is None else f"{latency:>12.3f} us  "


class _Cells:
    """``label=value`` side by side, in columns that grow with what is in them."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = list(labels)
        self._heads = [f"{printable(label)}=" for label in self._labels]
        self._widths = [len(head) for head in self._heads]
        self._settle()

    def _settle(self) -> None:
        # A line whose cells all fit is as long as the pattern says. A longer one is rare.
        shown = zip(self._heads, self._widths, strict=True)
        cells = [f"{head.replace('%', '%%')}%-{width - len(head)}s" for head, width in shown]
        self._pattern = "  ".join(cells)
        self._length = sum(self._widths) + 2 * max(0, len(cells) - 1)

    def cells(self, args: Mapping[str, Value], faults: Container[str]) -> str:
        """The cells of one hit; ``faults`` are the ways to what could not be read."""
        found = [(label, args.get(label, _UNSEEN)) for label in self._labels]
        values = [
            value
            if type(value) is int
            else "?"
            if value is _UNSEEN
            else printed(value, faults, label)
            for label, value in found
        ]
        line = self._pattern % tuple(values)
        if len(line) > self._length and self._grow([str(value) for value in values]):
            line = self._pattern % tuple(values)
        return line

    def _grow(self, values: list[str]) -> bool:
        grown = False
        for number, value in enumerate(values):
            length = len(self._heads[number]) + len(value)
            if self._widths[number] < length and len(value) <= _VALUE:
                self._widths[number] = length
                grown = True
        if grown:
            self._settle()
        return grown


def _comm(comm: str) -> str:
    # In quotes where it would not end at the slash, or look like an escape.
    plain = comm.isprintable() and not any(each.isspace() or each in '\\"' for each in comm)
    return comm if plain and comm else f'"{escaped(comm)}"'


def _name(target: Target) -> str:
    plan = target.plan
    return printable(plan.function or f"{plan.address:#x}")
