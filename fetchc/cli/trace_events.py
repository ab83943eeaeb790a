"""Events to lines of the output, and to what is counted until the end."""

from __future__ import annotations

import gc
import operator
import os
import select
import signal
import sys
import time

from fetchc.cli.trace_request import BUILTINS, STACK_FORMATS, value_of
from fetchc.cli.trace_targets import CALLER, FRAME
from fetchc.ir.fetch import Decode
from fetchc.record import Record, assert_never
from fetchc.tracer import value_shapes as shapes
from fetchc.tracer.display_values import CodeAddress, ReturnAddress, SymbolName
from fetchc.tracer.events import ELAPSED, UNSEEN, WRITE, OpenCalls, microseconds
from fetchc.tracer.filter_conditions import All, AnyOf, Condition, accepts
from fetchc.tracer.ring_buffer import in_order
from fetchc.tracer.session import ENDING
from fetchc.tracer.tracefs import started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from types import FrameType

    from fetchc.cli.live_view import Intervals
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.stack_tree import StackTree
    from fetchc.cli.trace_json import JsonLines
    from fetchc.cli.trace_perfetto import PerfettoPackets
    from fetchc.cli.trace_request import Request
    from fetchc.cli.trace_tables import Summary, Tally
    from fetchc.cli.trace_targets import Target
    from fetchc.cli.trace_text import TextLines
    from fetchc.tracer.breakpoints import BreakpointSession
    from fetchc.tracer.decode import Decoder
    from fetchc.tracer.events import Event, Sample, Value
    from fetchc.tracer.filter_conditions import Filter
    from fetchc.tracer.processes import Command
    from fetchc.tracer.record_reader import ReadLine, ReadLines
    from fetchc.tracer.ring_buffer import Records
    from fetchc.tracer.session import Session
    from fetchc.tracer.stacks import Frame, Stacks

    Part = Callable[[Event], "Hit | None"]
    Sink = Callable[[Iterable[Sequence[Records]]], bool]

__all__ = ["Ending", "Hit", "Hits", "Show", "has_function", "watch"]

# ------------------------------------------------------------------------------
# Events of probes become hits to show: entries wait for their returns, filters are applied.

_first = operator.itemgetter(0)
_GOROUTINES = 1 << 16  # calls of one function that a goroutine may be in: a deep recursion


class Hit:
    """What is shown: the event, with the values of its entry, and the time in microseconds.

    ``latency`` is None where none was asked for, or the beginning was not seen. ``start`` is the
    event from which ``--since`` counts.
    """

    __slots__ = ("event", "latency", "start", "target")

    def __init__(
        self, target: Target, event: Event, latency: float | None, start: Event | None = None
    ) -> None:
        self.target = target
        self.event = event
        self.latency = latency
        self.start = start


class Hits:
    """Takes events in the order of time; each is a hit to show, or none."""

    def __init__(self, targets: Iterable[Target]) -> None:
        listed = tuple(targets)
        frames = all(each.key == FRAME for each in listed if each.key)
        self._calls = OpenCalls() if frames else OpenCalls(most=_GOROUTINES)
        self._starts = OpenCalls(most=1)  # by process; the last one counts
        self._since = any(each.role == "start" for each in listed)
        self._by_breakpoints = any(each.plan.in_memory for each in listed)
        self._shown: dict[str, Part] = {}  # what no filter has looked at
        self._parts = {each.plan.event: self._part(each) for each in listed}

    @property
    def forgotten(self) -> int:
        """Calls that were too many to wait for."""
        return self._calls.forgotten

    @property
    def unreturned(self) -> int:
        """Calls that a breakpoint saw, and no return of them."""
        return self._calls.unreturned if self._by_breakpoints else 0

    def hit(self, event: Event) -> Hit | None:
        """What the event shows; None where it only begins something, or a filter stops it."""
        return self._parts[event.plan.event](event)

    def passed(self, event: Event) -> Hit | None:
        """What the event shows, which has passed its filter already."""
        return self._shown[event.plan.event](event)

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
        self._shown[target.plan.event] = shown
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
        elapsed = event.args.pop(ELAPSED, None)
        if isinstance(elapsed, int) and elapsed != UNSEEN:
            return Hit(target, event, _microseconds(elapsed))
        if elapsed == UNSEEN:  # the entry was recorded, or not seen: the program has none of it
            own = {one.label for one in target.plan.values}
            event.args = {label: one for label, one in event.args.items() if label in own}
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
        elapsed = event.args.pop(ELAPSED, None)
        if isinstance(elapsed, int):
            return Hit(target, event, None if elapsed == UNSEEN else _microseconds(elapsed))
        start = self._starts.leave(event.pid)
        if start is None:
            return Hit(target, event, None)
        return Hit(target, event, microseconds(start, event), start)


def _microseconds(elapsed: int) -> float:
    return round(elapsed / 1e3, 3)


def _call(target: Target, event: Event) -> tuple[Hashable, int | None] | None:
    # What identifies the call, as `Calls` takes it; None where that could not be read.
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


class Show:
    """Takes records in the order of time, to print each hit or to count it.

    ``waiting`` is the name of processes whose hits are not the traced program's yet.
    """

    def __init__(
        self,
        session: Session | BreakpointSession,
        targets: Sequence[Target],
        options: Options,
        request: Request,
        output: Output,
        waiting: str | None,
        stacks: Stacks,
    ) -> None:
        self._session = session
        self._hits = Hits(targets)
        self._output = output
        self._waiting = waiting
        self._left = options.count
        self.seen = False
        """Whether there was any event of the traced program."""
        self._json = options.format == "jsonl"
        timed = options.latency or options.since is not None
        self._source_lines = options.stack == "lines"
        self._lines = (
            _lines(targets, timed, self._json, options, output.colored) if request.lines else None
        )
        self._stacks = stacks
        self._with_stack = bool(options.stack)
        self._pointers = {
            each.plan.event: [one.label for one in each.plan.values if has_function(one.shape)]
            for each in targets
        }
        self._tallies: list[StackTree | Summary | Tally] = []
        self._intervals: Intervals | None = None
        self._packets: PerfettoPackets | None = None
        self._tally: Tally | None = None
        form = options.format if options.format in STACK_FORMATS else ""
        if options.stack and (options.summary or form):
            from fetchc.cli.stack_tree import StackTree

            self._tallies.append(StackTree(self._frames, timed, form))
        if options.format == "perfetto":
            from fetchc.cli.trace_perfetto import PerfettoPackets

            self._packets = PerfettoPackets([one.text for one in request.measures])
            output.raw(self._packets.begin())
        elif request.measures or request.keys:
            from fetchc.cli.trace_tables import Tally

            tally = Tally(request.measures, request.keys, options.top, options.interval is not None)
            self._tally = tally
            self._tallies.append(tally)
            if options.interval is not None:
                from fetchc.cli.live_view import Intervals

                self._intervals = Intervals(tally, options.interval, output)
                self._json = self._json or self._intervals.view is None
        self._summary: Summary | None = None
        if options.summary and not options.stack:
            from fetchc.cli.trace_tables import Summary

            self._summary = Summary(bool(options.latency))
            self._tallies.append(self._summary)
        # Hits of which all that is wanted is a line: from the record to the line at once.
        closely = timed or self._with_stack or bool(self._tallies) or output.colored
        closely = closely or options.pretty or options.time != "relative"
        plainly = self._lines is not None and not closely
        self._plain = {
            each.plan.event: each
            for each in targets
            if plainly
            and (each.role, each.filter) == ("hit", None)
            and each.plan.kind != WRITE
            and not self._pointers[each.plan.event]
        }
        self._readers: dict[int, ReadLine] = {}  # by the number of the event in the records
        self._together: dict[tuple[int, int], ReadLines | None] = {}  # and of the plan in it

    def take(self, parts: Iterable[Sequence[Records]]) -> bool:
        """Show the records; True when the number wanted was reached.

        The parts are in the order of time, the records of one part overlap.
        """
        if self._intervals is not None and self._intervals.due:
            self._add_counted()
            self._intervals.show()
        lines: list[str] = []
        last: int | None = None
        try:
            for part in parts:
                last = max(records.times[-1] for records in part)
                text = self._text(part)
                if text is None:
                    if self._take(in_order(part), lines):
                        return True
                elif text:
                    lines.append(text)
        finally:
            # At once: somebody looks on.
            if lines:
                self._output.document("\n".join(lines))  # printable already
            if lines or self._packets is not None:
                self._output.flush()
        # Also where nothing is hit: other programs begin and end meanwhile.
        self._stacks.catch_up(last)
        return False

    def _text(self, part: Sequence[Records]) -> str | None:
        # The lines of all records; None where one after the other has to be looked at.
        if self._left is not None:
            return None
        texts = []
        for records in part:
            read = self._reader_together(records) if records.step else None
            text = None if read is None else read(records)
            if text is None:
                return None
            texts.append(text)
        self.seen = self.seen or any(texts)
        if len(texts) == 1:
            return texts[0]
        timed = [one for records, text in zip(part, texts, strict=True) if text
                 for one in zip(records.times, text.split("\n"), strict=True)]  # fmt: skip
        timed.sort(key=_first)
        return "\n".join([line for _, line in timed])

    def _reader_together(self, records: Records) -> ReadLines | None:
        page, at = records.page, records.first
        number = page[at] | page[at + 1] << 8
        decoder = self._session.decoders.get(number)
        if decoder is None:
            return None
        which = decoder.plan_index(page, at, at + records.size)
        if (number, which) not in self._together:
            self._reader_of(decoder, self._plain.get(decoder.plans[which].event), number, which)
        return self._together[number, which]

    def _take(self, samples: Iterable[Sample], lines: list[str]) -> bool:
        # Adds lines; True when the number wanted was reached.
        readers, decoders = self._readers, self._session.decoders
        read = self._reader(*decoders) if len(decoders) == 1 else _look_closer
        for sample in samples:
            now, cpu, page, at, end, _ = sample
            if len(decoders) > 1:
                number = page[at] | page[at + 1] << 8
                read = readers.get(number) or self._reader(number)
            line = read(now, cpu, page, at, end)
            if line is None:
                hit = self._hit(self._session.event(sample))
                if hit is None:
                    continue
                line = self._line(hit)
            elif not line:
                continue
            self.seen = True
            if line:
                lines.append(line)
            if self._left is not None:
                self._left -= 1
                if self._left == 0:
                    return True
        return False

    def _reader(self, number: int) -> ReadLine:
        if number in self._readers:
            return self._readers[number]
        decoder = self._session.decoders.get(number)
        if decoder is None:
            return _look_closer  # which refuses the record
        listed = [self._plain.get(plan.event) for plan in decoder.plans]
        if len(listed) == 1:
            read = self._reader_of(decoder, listed[0], number, 0)
        else:
            found: dict[int, ReadLine] = {}

            def read(now: int, cpu: int, page: bytes, at: int, end: int) -> str | None:
                which = decoder.plan_index(page, at, end)
                one = found.get(which)
                if one is None:
                    one = found[which] = self._reader_of(decoder, listed[which], number, which)
                return one(now, cpu, page, at, end)

        self._readers[number] = read
        return read

    def _reader_of(
        self, decoder: Decoder, target: Target | None, number: int, which: int
    ) -> ReadLine:
        if target is None or self._lines is None:
            self._together[number, which] = None
            return _look_closer
        one, several = self._lines.readers(decoder, target.plan, target.labels, self._waiting)
        self._together[number, which] = several
        return one

    def _hit(self, event: Event) -> Hit | None:
        if event.comm == self._waiting:
            return None
        self.seen = True
        for label in self._pointers[event.plan.event]:
            event.args[label] = self._named(event, event.args[label])
        hit = self._hits.hit(event)
        if hit is not None:
            for tally in self._tallies:
                tally.add(hit)
            if self._packets is not None:
                frames = self._frames(hit) if self._with_stack else ()
                self._output.raw(self._packets.packets(hit, frames))
        return hit

    def _add_counted(self) -> None:
        # What the kernel counted; filters that it has not applied are of values that it counted by.
        for event, row in self._session.counted():
            if event.comm == self._waiting:
                continue
            self.seen = True
            passed = self._session.filters(event.plan)
            hit = self._hits.passed(event) if passed else self._hits.hit(event)
            for tally in (self._tally, self._summary):
                if hit is not None and tally is not None:
                    tally.add_row(hit, row)

    def _line(self, hit: Hit) -> str:
        if self._lines is None:
            return ""
        return self._lines.line(hit, self._frames(hit) if self._with_stack else ())

    def learn(self, pid: int) -> None:
        """Look at the memory maps of a process that has just begun: it may end soon."""
        self._stacks.learn(pid)

    def symbol(self, thread: int, address: int) -> str | None:
        """What a function pointer of a thread's program leads to."""
        return self._stacks.name(thread, address)

    def _named(self, event: Event, value: Value) -> Value:
        # Of a process that ended before it was looked at, the hit says where its code was.
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
        if not isinstance(event.stack, tuple):
            return self._stacks.unwound(event, event.stack, self._source_lines)
        addresses = event.stack or (event.address,)
        caller = event.args.get(CALLER) if hit.target.caller else None
        if isinstance(caller, int):  # of a recursion it is the next frame's address, too
            addresses = (addresses[0], caller, *addresses[1:])
        return self._stacks.frames(event, addresses)

    def close(self) -> None:
        """Leave the terminal as it was; nothing else is shown on it after this."""
        if self._intervals is not None:
            self._intervals.close()

    def end(self) -> None:
        """Print what was counted, and say what was left out of it."""
        self.close()
        self._add_counted()
        if self._intervals is not None and self._intervals.view is None:
            self._intervals.end()
        else:
            for tally in self._tallies:
                for line in tally.json() if self._json else tally.text():
                    self._output.line(line)
        self._output.flush()
        for tally in self._tallies:
            for remark in tally.remarks():
                self._output.say(f"note: {remark}")
        if self._hits.unreturned:
            calls = "1 call" if self._hits.unreturned == 1 else f"{self._hits.unreturned} calls"
            self._output.say(f"note: {calls} had no return: an exception passed, or they still run")
        if forgotten := self._hits.forgotten + self._session.forgotten:
            self._output.say(f"note: {forgotten} calls did not return in time to count")


def _look_closer(now: int, cpu: int, page: bytes, at: int, end: int) -> None:
    return None


def has_function(part: object) -> bool:
    """Whether a value of the shape, of whatever kind, may have the address of a function in it."""
    match part:
        case shapes.CallerShape():
            return True  # of a call that was not seen: the caller
        case Decode(kind=kind):
            return kind == "symbol"
        case Record():
            names: tuple[str, ...] = type(part).__match_args__
            return any(has_function(getattr(part, name)) for name in names)
        case tuple():
            return any(has_function(one) for one in part)
        case _:
            return False


def _lines(
    targets: Sequence[Target], timed: bool, json: bool, options: Options, colored: bool
) -> TextLines | JsonLines:
    if json:
        from fetchc.cli.trace_json import JsonLines

        return JsonLines(targets, timed)
    from fetchc.cli.trace_text import TextLines

    return TextLines(targets, timed, options.time, options.pretty, colored)


# ------------------------------------------------------------------------------
# The time between start and end of a trace: events are shown as they come.

_TURN = 0.05  # seconds after which the ends are looked at


class Ending:
    """A context manager: the signals of ENDING ask for an end, and interrupt nothing.

    So that what was recorded is still shown. The second one ends at once, as it would without
    this: somebody waits for an event that does not come. Signals that were ignored stay so.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Ending:
        for number in ENDING:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()

    def _restore(self) -> None:
        while self._before:
            number, before = self._before.popitem()
            signal.signal(number, before)


def watch(
    session: Session | BreakpointSession,
    sink: Sink,
    ending: Ending,
    command: Command | None,
    pids: Iterable[int],
    timeout: float | None,
) -> list[int]:
    """Run a started session to its end, and show all that was recorded until then.

    It ends when it is asked to, after ``timeout`` seconds, with the program or the last of the
    processes it watches, when the sink has enough, or when nobody reads standard output.
    Returns the processes that ended meanwhile.
    """
    gc.freeze()  # what is there by now stays
    gc.enable()  # a trace may run for days
    until = None if timeout is None else time.monotonic() + timeout
    waiting, ended = list(pids), list[int]()
    reader = _Reader()
    enough = False
    while not enough:
        # Looked at first: what the program did before its end is then in the buffers.
        over = ending.asked or (command is not None and command.ended()) or reader.left()
        ended += [pid for pid in waiting if started(pid) is None]
        waiting = [pid for pid in waiting if pid not in ended]
        if over or (ended and not waiting):
            break
        turn = _TURN
        if until is not None:
            turn = min(_TURN, until - time.monotonic())
            if turn <= 0:
                break
        for batch in session.records(turn):
            if sink(batch):
                enough = True
                break
        else:
            sink(())
    session.stop()
    if not enough:
        for batch in session.records():
            if sink(batch):
                break
    return ended


class _Reader:
    """Who reads standard output through a pipe, if somebody does."""

    def __init__(self) -> None:
        self._poll = select.poll()
        if sys.stdout is not None:
            try:
                file = sys.stdout.fileno()
            except (OSError, ValueError):  # not a file: a caller in the same process
                return
            if os.isatty(file):
                return
            self._poll.register(file, 0)

    def left(self) -> bool:
        """Whether the reader has gone away."""
        return any(state & select.POLLERR for _, state in self._poll.poll(0))
