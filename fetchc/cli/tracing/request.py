"""What a command line of ``trace`` asks for, before any file is looked at."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import Decode
from fetchc.record import Record
from fetchc.tracer.filter_conditions import All, comparisons, parse_filter
from fetchc.tracer.value_shapes import Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.cli.options import Options
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.tracer.events import Event, Value
    from fetchc.tracer.filter_conditions import Filter

    Source = Callable[[Event, float | None], Value]

__all__ = ["BUILTINS", "BuiltIn", "Refused", "Request", "Usage", "request"]


class Usage(Exception):
    """Options that do not go together."""


class Refused(Exception):
    """An expression or filter that is refused; the places of ``diagnostics`` are in ``text``."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(text)
        self.text = text
        self.diagnostics = diagnostics


class BuiltIn(Record):
    """A value that the reader has of every event: how it is had, and its kind."""

    source: Source
    shape: Leaf


_NUMBER = Leaf("", Decode("integer"))
_TEXT = Leaf("", Decode("text"))

BUILTINS = {
    "$latency": BuiltIn(lambda event, latency: latency, _NUMBER),
    "$pid": BuiltIn(lambda event, latency: event.pid, _NUMBER),
    "$tid": BuiltIn(lambda event, latency: event.thread, _NUMBER),
    "$cpu": BuiltIn(lambda event, latency: event.cpu, _NUMBER),
    "$comm": BuiltIn(lambda event, latency: event.comm, _TEXT),
    "$function": BuiltIn(lambda event, latency: event.plan.function, _TEXT),
}
"""Words that ``--filter``, ``--histogram`` and ``--by`` take beside expressions."""


class Request(Record):
    """``shown`` are the expressions to print; ``further`` those that only filters and
    histograms need. ``lines``: whether single events are printed.
    """

    shown: tuple[str, ...]
    further: tuple[str, ...]
    filter: Filter | None
    lines: bool


def request(options: Options) -> Request:
    """Read the options. Raises Usage, and Refused (FC0751) for a filter."""
    _together(options)
    shown = tuple(dict.fromkeys([*options.operands, *options.expr]))
    filters = [_parsed(text) for text in options.filters]
    wanted = [each.expression for filter in filters for each in comparisons(filter)]
    wanted += [each for each in (options.histogram, *options.sums, options.by) if each is not None]
    for text in wanted:
        if text == "$latency" and not (options.latency or options.since):
            raise Usage("$latency is known with --latency or --since FUNCTION")
    further = [text for text in dict.fromkeys(wanted) if text not in BUILTINS]
    lines = bool(shown) or not _counts(options)
    return Request(shown, tuple(further), All(tuple(filters)) if filters else None, lines)


def _counts(options: Options) -> bool:
    return bool(options.summary or options.histogram or options.sums)


def _parsed(text: str) -> Filter:
    try:
        return parse_filter(text)
    except CompileError as refused:
        raise Refused(text, refused.diagnostics) from None


def _together(options: Options) -> None:
    if not (options.functions or options.at or options.operands or options.expr):
        raise Usage("-f FUNCTION is missing")
    if options.program and options.pids:
        raise Usage("--pid and a program to start exclude each other")
    if options.latency and options.since:
        raise Usage("--latency and --since exclude each other")
    if options.since and options.returns:
        raise Usage("--since and --return exclude each other")
    if options.by and not (options.histogram or options.sums):
        raise Usage("--by needs --histogram EXPR or --sum EXPR")
    if options.at and (options.latency or options.returns):
        raise Usage("--at is a place of its own: not with --return or --latency")
    if options.latency and not options.functions:
        raise Usage("--latency is of whole functions: name them with -f FUNCTION")
    if options.at and len(options.functions) > 1:
        raise Usage("--at takes one function")
    silent = _counts(options) and not (options.operands or options.expr)
    if options.stack and silent:
        raise Usage("--stack is shown with single events: name an EXPR")
