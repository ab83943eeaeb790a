"""Events of probes become hits to show: entries wait for their returns, filters are applied."""

from __future__ import annotations

from fetchc.cli.tracing.request import BUILTINS
from fetchc.cli.tracing.targets import FRAME
from fetchc.record import assert_never
from fetchc.tracer.events import Calls, microseconds
from fetchc.tracer.filter_conditions import All, AnyOf, Condition, accepts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from fetchc.cli.tracing.targets import Target
    from fetchc.tracer.events import Event, Value
    from fetchc.tracer.filter_conditions import Filter

    Part = Callable[[Event], "Hit | None"]

__all__ = ["Hit", "Hits", "value_of"]

_GOROUTINES = 1 << 16  # calls of one function that a goroutine may be in: a deep recursion


class Hit:
    """What is shown: the event, with the values of its entry, and the time in microseconds.

    ``latency`` is None where none was asked for, or the beginning was not seen.
    """

    __slots__ = ("event", "latency", "target")

    def __init__(self, target: Target, event: Event, latency: float | None) -> None:
        self.target = target
        self.event = event
        self.latency = latency


class Hits:
    """Takes events in the order of time; each is a hit to show, or none."""

    def __init__(self, targets: Iterable[Target]) -> None:
        listed = tuple(targets)
        frames = all(each.key == FRAME for each in listed if each.key)
        self._calls = Calls() if frames else Calls(most=_GOROUTINES)
        self._starts = Calls(most=1)  # by process; the last one counts
        self._since = any(each.role == "start" for each in listed)
        self._parts = {each.plan.event: self._part(each) for each in listed}

    @property
    def forgotten(self) -> int:
        """Calls that were too many to wait for."""
        return self._calls.forgotten

    def hit(self, event: Event) -> Hit | None:
        """What the event shows; None where it only begins something, or a filter stops it."""
        return self._parts[event.plan.event](event)

    def _part(self, target: Target) -> Part:
        match target.role:
            case "enter":
                return lambda event: self._enter(target, event)
            case "start":
                return self._start
            case "leave":
                shown: Part = lambda event: self._leave(target, event)  # noqa: E731
            case _ if self._since:
                shown = lambda event: self._reach(target, event)  # noqa: E731
            case _:
                shown = lambda event: Hit(target, event, None)  # noqa: E731
        if target.filter is None:
            return shown
        passes = _passes(target.filter)

        def filtered(event: Event) -> Hit | None:
            hit = shown(event)
            return hit if hit is not None and passes(hit) else None

        return filtered

    def _enter(self, target: Target, event: Event) -> None:
        call = _call(target, event)
        if call is not None:
            self._calls.enter(call[0], event, call[1])

    def _leave(self, target: Target, event: Event) -> Hit:
        call = _call(target, event)
        entry = None if call is None else self._calls.leave(*call)
        if entry is None:
            return Hit(target, event, None)
        event.args = entry.args | event.args
        event.faults = entry.faults + event.faults
        return Hit(target, event, microseconds(entry, event))

    def _start(self, event: Event) -> None:
        self._starts.enter(event.pid, event)

    def _reach(self, target: Target, event: Event) -> Hit:
        start = self._starts.leave(event.pid)
        return Hit(target, event, None if start is None else microseconds(start, event))


def _call(target: Target, event: Event) -> tuple[Hashable, int | None] | None:
    # What tells the call from others, as `Calls` takes it; None where that could not be read.
    key = event.args.get(target.key)
    if not isinstance(key, int):
        return None
    if not target.stack_end:
        return (event.pid, event.plan.function, key - target.pushed), None
    end, frame = event.args.get(target.stack_end), event.args.get(FRAME)
    if not isinstance(end, int) or not isinstance(frame, int):
        return None
    # Every thread has a system stack, and they all have the number 0.
    stack = key or -event.thread
    return (event.pid, event.plan.function, stack), end - frame + target.pushed


def _passes(filter: Filter) -> Callable[[Hit], bool]:
    match filter:
        case Condition():
            label, value, test = filter.expression, value_of(filter.expression), accepts(filter)
            # What could not be read, or is of an entry that was not seen, compares with nothing.
            return lambda hit: _is_there(hit.event, label) and test(value(hit))
        case All(parts=parts):
            every = [_passes(part) for part in parts]
            return lambda hit: all(passes(hit) for passes in every)
        case AnyOf(parts=parts):
            either = [_passes(part) for part in parts]
            return lambda hit: any(passes(hit) for passes in either)
        case _:
            assert_never(filter)


def _is_there(event: Event, label: str) -> bool:
    return (label in event.args and label not in event.faults) or label in BUILTINS


def value_of(label: str) -> Callable[[Hit], Value]:
    """How to have a value of a hit: by the label of its argument, or the reader's own word."""
    built_in = BUILTINS.get(label)
    if built_in is None:
        return lambda hit: hit.event.args.get(label)
    source = built_in.source
    return lambda hit: source(hit.event, hit.latency)
