"""Events to lines of the output, and to what is counted until the end."""

from __future__ import annotations

from fetchc.cli.tracing.calls import Hits
from fetchc.cli.tracing.targets import CALLER
from fetchc.ir.fetch import Decode
from fetchc.record import Record
from fetchc.tracer import value_shapes as shapes
from fetchc.tracer.display_values import CodeAddress, ReturnAddress, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fetchc.cli.options import Options
    from fetchc.cli.output import Output
    from fetchc.cli.tracing.calls import Hit
    from fetchc.cli.tracing.jsonl import JsonLines
    from fetchc.cli.tracing.sums import Sums
    from fetchc.cli.tracing.tally import HistogramTally, Summary
    from fetchc.cli.tracing.targets import Target
    from fetchc.cli.tracing.text import TextLines
    from fetchc.tracer.events import Event, Value
    from fetchc.tracer.stacks import Frame, Stacks

__all__ = ["Show", "has_function"]


class Show:
    """Takes events in the order of time. ``lines``: whether each hit is printed.

    ``waiting`` is the name of processes whose hits are not the traced program's yet.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        options: Options,
        lines: bool,
        output: Output,
        waiting: str | None,
        stacks: Stacks,
    ) -> None:
        self._hits = Hits(targets)
        self._output = output
        self._waiting = waiting
        self._left = options.count
        self.seen = False
        """Whether there was any event of the traced program."""
        self._json = options.format == "jsonl"
        timed = options.latency or options.since is not None
        self._lines = _lines(targets, timed, self._json) if lines else None
        self._stacks = stacks
        self._with_stack = options.stack
        self._pointers = {
            each.plan.event: [one.label for one in each.plan.values if has_function(one.shape)]
            for each in targets
        }
        self._tallies: list[HistogramTally | Summary | Sums] = []
        if options.summary or options.histogram is not None:
            from fetchc.cli.tracing.tally import HistogramTally, Summary

            if options.histogram is not None:
                self._tallies.append(HistogramTally(options.histogram, options.by))
            if options.summary:
                self._tallies.append(Summary())
        if options.sums:
            from fetchc.cli.tracing.sums import Sums

            self._tallies.append(Sums(options.sums, options.by))

    def take(self, events: Iterable[Event]) -> bool:
        """Show the events; True when the number wanted was reached."""
        lines: list[str] = []
        try:
            for event in events:
                if event.comm == self._waiting:
                    continue
                self.seen = True
                for label in self._pointers[event.plan.event]:
                    event.args[label] = self._named(event, event.args[label])
                hit = self._hits.hit(event)
                if hit is None:
                    continue
                for tally in self._tallies:
                    tally.add(hit)
                if self._lines is not None:
                    frames = self._frames(hit) if self._with_stack else ()
                    lines.append(self._lines.line(hit, frames))
                if self._left is not None:
                    self._left -= 1
                    if self._left == 0:
                        return True
        finally:
            # At once: somebody looks on.
            if lines:
                self._output.document("\n".join(lines))  # printable already
                self._output.flush()
        return False

    def learn(self, pid: int) -> None:
        """Look at the memory maps of a process that has just begun: it may end soon."""
        self._stacks.learn(pid)

    def symbol(self, thread: int, address: int) -> str | None:
        """What a function pointer of a thread's program leads to."""
        return self._stacks.name(thread, address)

    def _named(self, event: Event, value: Value) -> Value:
        # Of a process that ended before it was looked at, the hit tells where its code was.
        match value:
            case ReturnAddress():
                (frame,) = self._stacks.frames(event, (value - 1,))
                if frame.function is not None:
                    return SymbolName(f"{frame.function}+{frame.offset:#x}")
            case CodeAddress():
                (frame,) = self._stacks.frames(event, (value,))
                if frame.function is not None and not frame.offset:
                    return SymbolName(frame.function)
            case list():
                value[:] = [self._named(event, one) for one in value]
            case dict():
                value.update({name: self._named(event, one) for name, one in value.items()})
            case _:
                pass
        return value

    def _frames(self, hit: Hit) -> list[Frame]:
        event = hit.event
        addresses = event.stack or (event.address,)
        caller = event.args.get(CALLER) if hit.target.caller else None
        if isinstance(caller, int):  # of a recursion it is the next frame's address, too
            addresses = (addresses[0], caller, *addresses[1:])
        return self._stacks.frames(event, addresses)

    def end(self) -> None:
        """Print what was counted, and say what was left out of it."""
        for tally in self._tallies:
            for line in tally.json() if self._json else tally.text():
                self._output.line(line)
        self._output.flush()
        for tally in self._tallies:
            for remark in tally.remarks():
                self._output.say(f"note: {remark}")
        if self._hits.forgotten:
            self._output.say(f"note: {self._hits.forgotten} calls did not return in time to count")


def has_function(part: object) -> bool:
    """Whether a value of the shape, of whatever kind, may have the address of a function in it."""
    match part:
        case shapes.Called():
            return True  # of a call that is not known, who made it
        case Decode(kind=kind):
            return kind == "symbol"
        case Record():
            names: tuple[str, ...] = type(part).__match_args__
            return any(has_function(getattr(part, name)) for name in names)
        case tuple():
            return any(has_function(one) for one in part)
        case _:
            return False


def _lines(targets: Sequence[Target], timed: bool, json: bool) -> TextLines | JsonLines:
    if json:
        from fetchc.cli.tracing.jsonl import JsonLines

        return JsonLines(targets, timed)
    from fetchc.cli.tracing.text import TextLines

    return TextLines(targets, timed)
