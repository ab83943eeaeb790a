"""Hits as lines of text: time, process, function, values in columns that grow with them."""

from __future__ import annotations

import re
import time
from itertools import chain

from fetchc.diag.render import printable
from fetchc.tracer.display_values import (
    CutList,
    CutStructure,
    WalkedList,
    escaped,
    printed,
    what_is_cut,
)
from fetchc.tracer.events import LINE, WRITE
from fetchc.tracer.record_reader import LineForm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from typing import Any

    from fetchc.cli.trace_events import Hit
    from fetchc.cli.trace_targets import Target
    from fetchc.tracer.decode import Decoder
    from fetchc.tracer.events import Event, Plan, Value
    from fetchc.tracer.record_reader import Columns, ReadLine, ReadLines
    from fetchc.tracer.stacks import Frame

__all__ = ["TextLines", "painted"]

_PROCESS = 18  # columns: a comm of 10, a slash, a number of 7
_FUNCTION = 40  # of functions in a column; longer ones push the rest to the right
_WRITER = 24  # of what writes a variable
_VALUE = 32  # of a value in a column
_COMMS = 4096
_UNSEEN = "?\0"  # the value of an entry that was not seen: by identity, no text is this one


class TextLines:
    """One line a hit; ``timed``: with the time it took, between process and function.

    ``clock``: times are seconds since the first hit (``relative``), since the line before
    (``delta``), or of the day (``wall``). Whatever the traced memory holds, a line is one line,
    of printable characters only. ``label~=value`` was read after the hit.
    """

    def __init__(
        self,
        targets: Iterable[Target],
        timed: bool,
        clock: str = "relative",
        pretty: bool = False,
        colored: bool = False,
    ) -> None:
        listed = list(targets)
        names = {each.plan.event: _name(each) for each in listed}
        width = min(_FUNCTION, max((len(name) for name in names.values()), default=0))
        self._columns = {
            each.plan.event: _Columns(
                None if each.plan.kind == WRITE else f"{names[each.plan.event]:<{width}}",
                () if pretty else each.labels,
                timed,
                clock != "relative",
                _read_later(each.plan),
            )
            for each in listed
        }
        self._timed = timed
        self._pretty = {each.plan.event: each.labels for each in listed} if pretty else None
        self._colored = colored
        self._origin: list[float] = []
        self._moment: Callable[[float], str] | None = None
        if clock != "relative":
            self._moment = _Delta() if clock == "delta" else _Wall()
        self._tasks: dict[tuple[str, int, int], str] = {}

    def line(self, hit: Hit, frames: Iterable[Frame] = ()) -> str:
        """The hit, and its stack in lines below it."""
        event = hit.event
        if not self._origin:
            self._origin.append(event.timestamp)
        columns = self._columns[event.plan.event]
        task = self._task(event.comm, event.pid, event.thread)
        now = event.timestamp - self._origin[0] if self._moment is None else event.timestamp
        shown: tuple[Any, ...] = (now if self._moment is None else self._moment(now), task)
        if self._timed:
            shown += (_took(hit.latency),)
        if event.plan.kind == WRITE:
            shown += (_writer(event),)
        line = columns.line(shown + columns.cells(event.args, event.faults))
        if self._pretty is not None:
            for label in self._pretty[event.plan.event]:
                line += f"\n    {printable(label)} = {_pretty(event, label)}"
        if self._colored:
            line = painted(line)
        for frame in frames:
            line += f"\n{'':>14}{printable(str(frame))}"
            if frame.not_unwound is not None:
                line += f"\n{'':>14}{printable(f'({frame.not_unwound})')}"
        return line

    def readers(
        self, decoder: Decoder, plan: Plan, labels: Sequence[str], waiting: str | None
    ) -> tuple[ReadLine, ReadLines | None]:
        """Functions from a record, and from several, to lines; none of a task named ``waiting``."""
        columns = self._columns[plan.event]
        head = ("elapsed", "task")
        form = LineForm(head, _quoted, _shown, columns.line, self._origin, columns.lines)

        def task(comm: str, process: int, thread: int) -> str | None:
            return None if comm == waiting else self._task(comm, process, thread)

        return decoder.line_readers(plan, labels, form, task)

    def _task(self, comm: str, pid: int, thread: int) -> str:
        # The thread number identifies threads other than the first.
        task = self._tasks.get((comm, pid, thread))
        if task is None:
            shown = f"{_comm(comm)}/{pid}" + (f":{thread}" if thread != pid else "")
            if len(self._tasks) >= _COMMS:
                self._tasks.clear()
            self._tasks[comm, pid, thread] = task = f"{shown:<{_PROCESS}}"
        return task


def _writer(event: Event) -> str:
    # The function that wrote a variable, and its line.
    name = printable(event.plan.function or f"{event.address:#x}")
    line = event.args.get(LINE)
    return f"{name} at {printable(line)}" if isinstance(line, str) else name


def _read_later(plan: Plan) -> Container[str]:
    if not plan.in_memory:
        return ()  # as nearly all plans: what makes such records is not loaded
    from fetchc.tracer.fetched_records import read_later

    return read_later(plan)


# The values of a line: strings, what was not read, numbers after `=`, `[` and commas.
_VALUES = (
    r"""(?P<text>"(?:[^"\\]|\\.)*"…?)|(?P<fault>\(fault\)|\(no address\))"""
    r"""|(?:(?<== )|(?<==)|(?<=[=, \[]\[)|(?<=, ))"""
    r"""(?P<number>-?(?:0x[0-9a-f]+|\d[\d.]*(?:e[+-]?\d+)?)\b)"""
)
_SGR = {"text": "32", "fault": "31", "number": "36"}  # colours. Source: ECMA-48, SGR


def painted(line: str) -> str:
    """A line with its values in colours: strings green, numbers cyan, what was not read red."""

    def colored(found: re.Match[str]) -> str:
        return f"\x1b[{_SGR[found.lastgroup or '']}m{found[0]}\x1b[0m"

    return re.sub(_VALUES, colored, line)


_NARROW = 72  # characters of a value that stays on one line


def _pretty(event: Event, label: str) -> str:
    if label not in event.args:
        return "?"
    return _broken(event.args[label], event.faults, label, "    ")


def _broken(value: Value, faults: Container[str], path: str, indent: str) -> str:
    # A line for each member or element of what is too long for one line.
    text = printed(value, faults, path)
    if len(text) <= _NARROW:
        return text
    deeper = indent + "  "
    if type(value) in (dict, CutStructure) and isinstance(value, dict):
        parts = [
            f"{escaped(name)} = {_broken(one, faults, f'{path}.{name}', deeper)}"
            for name, one in value.items()
        ]
        parts += ["…"] * isinstance(value, CutStructure)
        ends = "{}"
    elif type(value) in (list, CutList, WalkedList) and isinstance(value, list):
        each = enumerate(value)
        parts = [_broken(one, faults, f"{path}[{at}]", deeper) for at, one in each]
        if isinstance(value, CutList):
            parts = [what_is_cut(value), *parts] if value.last else [*parts, what_is_cut(value)]
        ends = "[]"
    else:
        return text
    lines = [ends[0], *[deeper + one for one in parts], indent + ends[1]]
    return "\n".join(lines)


def _took(latency: float | None) -> str:
    return f"{'?':>12} us  " if latency is None else f"{latency:>12.3f} us  "


def _quoted(text: str) -> str:
    return f'"{escaped(text)}"'


def _shown(value: Value) -> object:
    return value if type(value) is int else printed(value, ())


class _Wall:
    """The time of the day of a moment of the trace clock, CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def __call__(self, now: float) -> str:
        seconds = now + self._ahead
        whole = int(seconds)
        return (
            f"{time.strftime('%H:%M:%S', time.localtime(whole))}.{int((seconds - whole) * 1e6):06}"
        )


class _Delta:
    """The seconds since the moment before."""

    def __init__(self) -> None:
        self._before: float | None = None

    def __call__(self, now: float) -> str:
        before, self._before = self._before, now
        return f"+{0.0 if before is None else now - before:.6f}"


class _Columns:
    """Lines of one target: ``label=value`` side by side, in columns that grow with their values.

    ``name`` is that of the function; None: each line has its own.
    """

    def __init__(
        self,
        name: str | None,
        labels: Iterable[str],
        timed: bool,
        worded: bool,
        later: Container[str],
    ) -> None:
        self._labels = list(labels)
        marks = ["~" if label in later else "" for label in self._labels]
        self._heads = [
            f"{printable(label)}{mark}=" for label, mark in zip(self._labels, marks, strict=True)
        ]
        self._widths = [len(head) for head in self._heads]
        took = "%s" if timed else ""
        shown = f"%-{_WRITER}s" if name is None else name.replace("%", "%%")
        self._before = f"{'%15s' if worded else '%12.6f'}  %s  {took}{shown}  "
        self._unchanging = (
            (_WRITER if name is None else len(name)) + 18 + 3 * worded + len(_took(0.0)) * timed
        )
        self._settle()

    def _settle(self) -> None:
        # A line whose cells all fit is as long as the pattern says. A longer one is rare.
        shown = zip(self._heads, self._widths, strict=True)
        cells = [f"{head.replace('%', '%%')}%-{width - len(head)}s" for head, width in shown]
        self._pattern = self._before + "  ".join(cells)
        self._length = self._unchanging + sum(self._widths) + 2 * max(0, len(cells) - 1)

    def cells(self, args: Mapping[str, Value], faults: Container[str]) -> tuple[object, ...]:
        """The values of one hit as a line has them; ``faults`` are paths to what was not read."""
        found = [(label, args.get(label, _UNSEEN)) for label in self._labels]
        return tuple(
            [
                value
                if type(value) is int
                else "?"
                if value is _UNSEEN
                else printed(value, faults, label)
                for label, value in found
            ]
        )

    def line(self, shown: tuple[Any, ...]) -> str:
        """The line of seconds, task, time taken (where it is timed), and :meth:`cells`."""
        line = self._pattern % shown
        if len(line) - len(shown[1]) > self._length and self._grow(shown):
            line = self._pattern % shown
        return line.rstrip()

    def lines(self, task: object, cpu: int, columns: Columns) -> str | None:
        """The lines of one task: its seconds, then a column for each value.

        None where a value does not fit, because :meth:`line` makes room for it. Not for timed ones.
        """
        count = len(columns[0])
        pattern, varying = (
            [self._before.replace("%s", str(task).replace("%", "%%"), 1)],
            [columns[0]],
        )
        last = len(self._heads) - 1
        for number, column in enumerate(columns[1:]):
            head, room = self._heads[number], self._widths[number] - len(self._heads[number])
            if not _fits(column, room):
                return None
            # Nothing follows the last value that would have to be stripped off.
            cell = f"%-{room}s  " if number < last else "%s"
            if column[0] == column[-1] and column.count(column[0]) == count:
                cell = (cell % column[0]).replace("%", "%%")
            else:
                varying.append(column)
            pattern.append(head.replace("%", "%%") + cell)
        rows = chain.from_iterable(zip(*varying, strict=True))
        return "\n".join(["".join(pattern).rstrip()] * count) % tuple(rows)

    def _grow(self, shown: tuple[Any, ...]) -> bool:
        grown = False
        for number, value in enumerate(shown[len(shown) - len(self._labels) :]):
            size = len(str(value))
            length = len(self._heads[number]) + size
            if self._widths[number] < length and size <= _VALUE:
                self._widths[number] = length
                grown = True
        if grown:
            self._settle()
        return grown


def _fits(column: Sequence[Any], room: int) -> bool:
    if room < 1:
        return False
    try:
        return bool(-(10 ** (room - 1)) < min(column) and max(column) < 10**room)
    except TypeError:  # text, and numbers that show as such
        shown = [str(value) for value in column]
        return max(map(len, shown)) <= room and not any(one[-1:].isspace() for one in shown)


def _comm(comm: str) -> str:
    # In quotes where it would not end at the slash, or look like an escape.
    plain = comm.isprintable() and not any(each.isspace() or each in '\\"' for each in comm)
    return comm if plain and comm else f'"{escaped(comm)}"'


def _name(target: Target) -> str:
    plan = target.plan
    if plan.kind == WRITE:
        return ""  # each hit has its own
    return printable(plan.function or f"{plan.address:#x}")
