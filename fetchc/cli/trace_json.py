"""Hits as lines of JSON (docs/interface.md)."""

from __future__ import annotations

import json
from itertools import chain
from json.encoder import encode_basestring_ascii as quoted

from fetchc.tracer.display_values import (
    CutList,
    CutString,
    CutStructure,
    Hexadecimal,
    NoAddress,
    WalkedList,
)
from fetchc.tracer.events import WRITE
from fetchc.tracer.fetched_records import read_later
from fetchc.tracer.record_reader import LineForm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from fetchc.cli.trace_events import Hit
    from fetchc.cli.trace_targets import Target
    from fetchc.tracer.decode import Decoder
    from fetchc.tracer.events import Plan, Value
    from fetchc.tracer.record_reader import Columns, ReadLine, ReadLines
    from fetchc.tracer.stacks import Frame

__all__ = ["JsonLines", "marks"]

_encode = json.JSONEncoder(check_circular=False, allow_nan=False).encode
_COMMS = 4096
_NUMBERS = {int}
# All else may have been cut, or is a pointer to where no memory can be.
_PLAIN = {int, str, bool, float, type(None), Hexadecimal}


class JsonLines:
    """One object a hit. ``timed``: with ``latency_us``, null where nobody saw the beginning.

    ASCII only; bytes that are no UTF-8 are lone surrogates (``\\udc80`` for 0x80). What was only
    read in part is in ``cut``, with its whole length where the record has that; the members of a
    structure that are not fetched are in ``left_out``, pointers to where no memory can be in
    ``no_address``. ``read_later`` are values that were read after the hit.
    """

    def __init__(self, targets: Iterable[Target], timed: bool) -> None:
        listed = list(targets)
        self._heads = {each.plan.event: _head(each.plan) for each in listed}
        self._labels = {each.plan.event: (each.labels, _to_fill_in(each.labels)) for each in listed}
        self._later = {each.plan.event: _later(each) for each in listed}
        self._timed = timed
        self._comms: dict[str, str] = {}

    def line(self, hit: Hit, frames: Iterable[Frame] = ()) -> str:
        """The object of the hit."""
        event = hit.event
        name = event.plan.event
        comm = self._comms.get(event.comm)
        if comm is None:
            if len(self._comms) >= _COMMS:
                self._comms.clear()
            comm = self._comms[event.comm] = quoted(event.comm)
        (labels, text), args = self._labels[name], event.args
        # A variable is written by any function.
        head = self._heads[name] if event.plan.kind != WRITE else _head(event.plan)
        try:
            values = [args[label] for label in labels]
        except KeyError:  # of an entry that was not seen
            labels = tuple([label for label in labels if label in args])
            text = _to_fill_in(labels)
            values = [args[label] for label in labels]
        kinds = set(map(type, values))
        if kinds != _NUMBERS:
            values = [each if type(each) is int else _written(each) for each in values]
        line = (
            f'{head}{event.pid}, "thread": {event.thread}, "comm": {comm}, '
            f'"cpu": {event.cpu}, "timestamp": {event.timestamp!r}, "address": {event.address}, '
            f'"args": {{{text % tuple(values)}}}, "faults": {self._faults(hit)}'
            f"{self._later[name]}"
        )
        if self._timed:
            line += f', "latency_us": {"null" if hit.latency is None else hit.latency}'
        if not kinds <= _PLAIN:
            found = marks([(label, args[label]) for label in labels])
            line += "".join([f', "{each}": {_encode(paths)}' for each, paths in found.items()])
        listed = [_frame(frame) for frame in frames]
        return f'{line}, "stack": {_encode(listed)}}}' if listed else line + "}"

    def readers(
        self, decoder: Decoder, plan: Plan, labels: Sequence[str], waiting: str | None
    ) -> tuple[ReadLine, ReadLines | None]:
        """Functions from a record, and from several, to lines; none of a task named ``waiting``."""
        head, text = self._heads[plan.event], _to_fill_in(labels)
        later = self._later[plan.event].replace("%", "%%")
        rest = f'"timestamp": %r, "address": %d, "args": {{{text}}}, "faults": []{later}}}'
        pattern = f'{head.replace("%", "%%")}%s, "cpu": %d, {rest}'

        def lines(task: object, cpu: int, columns: Columns) -> str:
            own = f'{head}{task}, "cpu": {cpu}, '.replace("%", "%%") + rest
            rows = chain.from_iterable(zip(*columns, strict=True))
            return "\n".join([own] * len(columns[0])) % tuple(rows)

        named = ("task", "cpu", "seconds", "address")
        form = LineForm(named, quoted, _whole, pattern.__mod__, [], lines)

        def task(comm: str, process: int, thread: int) -> str | None:
            if comm == waiting:
                return None
            return f'{process}, "thread": {thread}, "comm": {quoted(comm)}'

        return decoder.line_readers(plan, labels, form, task)

    def _faults(self, hit: Hit) -> str:
        faults = hit.event.faults
        if not faults:
            return "[]"
        # Those of values that only a filter or the pairing of calls wanted are not shown.
        inside = tuple([label + mark for label in hit.target.labels for mark in ".["])
        labels = hit.target.labels
        return _encode([path for path in faults if path in labels or path.startswith(inside)])


def _to_fill_in(labels: Iterable[str]) -> str:
    # Half the time of a line of 20 numbers, against putting it together one by one.
    return ", ".join([quoted(label).replace("%", "%%") + ": %s" for label in labels])


_CUT = (CutString, CutList)


def marks(values: Iterable[tuple[str, Value]]) -> dict[str, Collection[str]]:
    """What is not whole, or no address, of values and all that is in them, by their paths.

    The keys are ``cut``, ``left_out``, ``changed`` and ``no_address``, each where there is any.
    """
    parts = [part for path, value in values for part in _parts(path, value)]
    found: dict[str, Collection[str]] = {
        "cut": {path: _whole_length(one) for path, one in parts if isinstance(one, _CUT)},
        "left_out": {path: one.left for path, one in parts if isinstance(one, CutStructure)},
        "changed": [path for path, one in parts if isinstance(one, WalkedList) and one.changed],
        "no_address": [path for path, one in parts if isinstance(one, NoAddress)],
    }
    return {each: paths for each, paths in found.items() if paths}


def _whole_length(value: CutString | CutList) -> int | None:
    return None if isinstance(value, WalkedList) and not value.ended else value.length


def _written(value: Value) -> str:
    return quoted(value) if type(value) is str else _encode(value)


def _whole(value: Value) -> object | None:
    # As it stands in a line that says nothing else about it.
    if type(value) not in _PLAIN:
        odd = (CutString, CutList, CutStructure, NoAddress)
        if any(isinstance(one, odd) for _, one in _parts("", value)):
            return None
    return _written(value)


def _head(plan: Plan) -> str:
    function = "null" if plan.function is None else quoted(plan.function)
    return (
        f'{{"event": {quoted(plan.event)}, "function": {function}, '
        f'"kind": {quoted(plan.kind)}, "pid": '
    )


def _later(target: Target) -> str:
    # Of code without uprobes: what was read after the hit.
    later = read_later(target.plan)
    labels = [label for label in target.labels if label in later]
    return f', "read_later": {_encode(labels)}' if labels else ""


def _frame(frame: Frame) -> dict[str, object]:
    shown: dict[str, object] = {
        "function": frame.function,
        "offset": frame.offset if frame.function is not None else None,
        "file": frame.file,
        "address": frame.address,
    }
    if frame.line is not None:
        shown["line"] = frame.line
    if frame.inlined:
        shown["inlined"] = True
    if frame.not_unwound is not None:
        shown["not_unwound"] = frame.not_unwound
    return shown


def _parts(path: str, value: Value) -> Iterator[tuple[str, Value]]:
    """The value and all that is in it, each by the way to it."""
    yield path, value
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _parts(f"{path}[{number}]", one)
    elif isinstance(value, dict):
        for member, one in value.items():
            yield from _parts(f"{path}.{member}", one)
