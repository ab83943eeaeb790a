"""What a command line of ``trace`` asks for, before any file is looked at."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError, Diagnostic
from fetchc.ir.fetch import Decode
from fetchc.record import Record
from fetchc.tracer.events import OF_EVENT
from fetchc.tracer.filter_conditions import (
    All,
    Condition,
    comparisons,
    in_filter,
    mismatch,
    parse_filter,
    replaced,
    value_shape,
    with_null,
)
from fetchc.tracer.unwind import MOST_STACK_BYTES
from fetchc.tracer.value_shapes import (
    CallerShape,
    ChoiceShape,
    ComputedShape,
    ConditionalShape,
    DifferenceShape,
    ElementCountShape,
    Leaf,
    OperationShape,
    SumShape,
    TypeSwitchShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.cli.option_table import Options
    from fetchc.cli.trace_events import Hit
    from fetchc.tracer.event_plan import CheckedArgument
    from fetchc.tracer.events import Event, Plan, Value
    from fetchc.tracer.filter_conditions import Filter
    from fetchc.tracer.value_shapes import Shape

    Source = Callable[[Event, float | None], Value]

__all__ = [
    "BUILTINS",
    "STACK_FORMATS",
    "BuiltIn",
    "Measure",
    "Refused",
    "Request",
    "Usage",
    "copied_bytes",
    "located",
    "reading",
    "request",
    "value_of",
]


class Usage(Exception):
    """Options that do not go together."""


class Refused(Exception):
    """An expression or filter that is refused; the places of ``diagnostics`` are in ``text``."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(text)
        self.text = text
        self.diagnostics = diagnostics


class BuiltIn(Record):
    """A value that the reader has of every event: how to get it, and its kind."""

    source: Source
    shape: Leaf


_NUMBER = Leaf("", Decode("integer"))
_TEXT = Leaf("", Decode("text"))


def _of_event(name: str) -> BuiltIn:
    source = OF_EVENT[name]
    text = name in ("comm", "function")
    return BuiltIn(lambda event, latency: source(event), _TEXT if text else _NUMBER)


MOST_POINTERS = 3
"""Pointers that ``--depth`` follows: each object is read at each hit, shown or not."""

VALUE_BYTES = (512, 61440)
"""What ``--value-bytes`` takes: less a definition can have, more a record has no room for."""

_COPIED = 4096  # bytes of a string or slice, where nothing is said

BUILTINS = {
    "$latency": BuiltIn(lambda event, latency: latency, _NUMBER),
    **{f"${name}": _of_event(name) for name in OF_EVENT},
}
"""Words that ``--filter``, ``--histogram`` and ``--by`` take beside expressions."""


STACK_FORMATS = ("folded", "speedscope")
"""Forms of ``--format`` that have the stacks alone, all at the end."""


def copied_bytes(options: Options, alone: bool = False) -> int:
    """How many bytes of a string or slice an eBPF program copies; 0: definitions fetch less.

    ``alone``: something is asked for that only an eBPF program can record.
    """
    bpf = options.engine == "bpf" or (alone and options.engine == "auto")
    return options.value_bytes or (_COPIED if bpf else 0)


def value_of(label: str) -> Callable[[Hit], Value]:
    """How to have a value of a hit: by the label of its argument, or the reader's own word."""
    built_in = BUILTINS.get(label)
    if built_in is None:
        return lambda hit: hit.event.args.get(label)
    source = built_in.source
    return lambda hit: source(hit.event, hit.latency)


class Measure(Record):
    """Numbers to count. ``kind`` is ``sum`` or ``histogram``; ``step`` that of linear ones."""

    text: str
    kind: str
    step: int | float = 0


class Request(Record):
    """``shown`` are the expressions to print; ``further`` those that only filters and tables
    need. ``lines``: whether single events are printed. ``measures`` and ``keys`` are the table's.
    ``by_default``: no expression says what to print: of a function that is named, its parameters,
    of its return the results.
    """

    shown: tuple[str, ...]
    further: tuple[str, ...]
    filter: Filter | None
    lines: bool
    measures: tuple[Measure, ...] = ()
    keys: tuple[str, ...] = ()
    by_default: bool = False


def request(options: Options) -> Request:
    """Read the options. Raises Usage, and Refused (FC0751) for a filter."""
    _together(options)
    shown = tuple(dict.fromkeys([*options.operands, *options.expr]))
    filters = [_parsed(text) for text in options.filters]
    wanted = [each.expression for filter in filters for each in comparisons(filter)]
    measures, keys = _measures(options), _keys(options)
    wanted += [*[each.text for each in measures], *keys]
    for text in wanted:
        if text == "$latency" and not (options.latency or options.since):
            raise Usage("$latency needs --latency or --since FUNCTION")
    further = [text for text in dict.fromkeys(wanted) if text not in BUILTINS]
    document = options.format == "perfetto" or options.format in STACK_FORMATS
    lines = not document and (bool(shown) or not _counts(options))
    calls = options.calls_only or options.latency or options.since
    named = options.functions and not options.watched
    by_default = lines and not (shown or calls or options.stack) and bool(named)
    filter = All(tuple(filters)) if filters else None
    return Request(shown, tuple(further), filter, lines, measures, keys, by_default)


def _measures(options: Options) -> tuple[Measure, ...]:
    linear = []
    for text in options.linear:
        step, comma, expression = text.partition(",")
        try:
            width: int | float = int(step) if step.strip().isdecimal() else float(step)
        except ValueError:
            width = 0
        if not comma or not expression.strip() or not 0 < width < 1 << 62:
            raise Usage(f"--linear takes STEP,EXPR, such as `10,{expression or 'n'}`, not `{text}`")
        linear.append(Measure(expression.strip(), "histogram", width))
    sums = [Measure(text, "sum") for text in options.sums]
    powers = [Measure(text, "histogram") for text in options.histograms]
    return tuple(dict.fromkeys([*sums, *powers, *linear]))


def _keys(options: Options) -> tuple[str, ...]:
    text = options.by or options.count_by
    if text is None:
        return ()
    # Commas within brackets or quotes are the expression's own.
    keys, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'`":
            quote = character
        else:
            depth += (character in "([{") - (character in ")]}")
            if character == "," and not depth:
                keys.append("")
                continue
        keys[-1] += character
    keys = [each.strip() for each in keys]
    if not all(keys):
        raise Usage(f"an expression is missing in `{text}`: --count-by takes EXPR,EXPR")
    return tuple(dict.fromkeys(keys))


def located(
    request: Request, text: str, diagnostics: tuple[Diagnostic, ...]
) -> tuple[str, tuple[Diagnostic, ...]]:
    """The text that a refused expression is in, and its diagnostics with places in that text.

    For an expression that only a filter has, that is the filter as it was typed.
    """
    if request.filter is None or text in request.shown:
        return text, diagnostics
    return in_filter(request.filter, text, diagnostics)


def _counts(options: Options) -> bool:
    return bool(options.summary or _counts_in_table(options))


def _counts_in_table(options: Options) -> bool:
    return bool(options.histograms or options.linear or options.sums or options.count_by)


def _parsed(text: str) -> Filter:
    try:
        return parse_filter(text)
    except CompileError as refused:
        raise Refused(text, refused.diagnostics) from None


def _together(options: Options) -> None:
    if options.watched:
        _watch_alone(options)
    if options.engine == "breakpoint" and not options.program and len(options.pids) != 1:
        raise Usage("--engine breakpoint is of one process: add -p PID, or -- COMMAND")
    if not (options.watched or options.functions or options.at or options.operands or options.expr):
        raise Usage(f"-f FUNCTION is missing: `fetchc functions -x {options.binary}` lists them")
    if options.program and options.processes:
        raise Usage("--pid and a program to start exclude each other")
    if options.latency and options.since:
        raise Usage("--latency and --since exclude each other")
    if options.since and options.returns:
        raise Usage("--since and --return exclude each other")
    if options.by and options.count_by:
        raise Usage("--by and --count-by exclude each other: both are the key of the table")
    if options.by and not _counts_in_table(options):
        raise Usage("--by needs --histogram EXPR or --sum EXPR; --count-by counts hits")
    for given, name in ((options.top, "--top"), (options.interval, "--interval")):
        if given and not _counts_in_table(options):
            raise Usage(f"{name} needs a table: --count-by, --sum, --histogram or --linear")
    if options.interval and (options.operands or options.expr or options.summary):
        raise Usage("--interval shows the table alone: leave out EXPR and --summary")
    if options.at and (options.latency or options.returns):
        raise Usage("--at excludes --return and --latency")
    if options.latency and not options.functions:
        raise Usage("--latency measures whole functions: name them with -f FUNCTION")
    if options.at and len(options.functions) > 1:
        raise Usage("--at takes one function")
    shown = bool(options.operands or options.expr)
    if options.calls_only and shown:
        raise Usage("--calls-only shows no values: leave it or EXPR out")
    if not 0 <= options.depth <= MOST_POINTERS:
        raise Usage(f"--depth takes 1 to {MOST_POINTERS}, not `{options.depth}`")
    if options.stack and _counts(options) and not (shown or options.summary):
        raise Usage("--stack is shown with single events, or counted by --summary: name an EXPR")
    if options.stack_bytes is not None and options.stack not in ("names", "lines"):
        raise Usage("--stack-bytes needs --stack or --stack=lines, which copy the stack")
    least, most = VALUE_BYTES
    if options.value_bytes is not None and not least <= options.value_bytes <= most:
        raise Usage(f"--value-bytes takes {least} to {most}, not `{options.value_bytes}`")
    if options.value_bytes is not None and options.engine in ("tracefs", "breakpoint"):
        raise Usage(f"--value-bytes needs eBPF: leave `--engine {options.engine}` out")
    if options.stack_bytes is not None and not 64 <= options.stack_bytes <= MOST_STACK_BYTES:
        raise Usage(f"--stack-bytes takes 64 to {MOST_STACK_BYTES}, not `{options.stack_bytes}`")
    form = options.format
    if form in ("perfetto", "speedscope") and options.program and not options.output:
        raise Usage(f"--format {form} is one file, and COMMAND prints, too: add -o FILE")
    if form == "perfetto":
        other = options.summary or options.histograms or options.linear or options.count_by
        if other or options.by or options.top or options.interval:
            raise Usage(
                "--format perfetto has no tables: take --sum EXPR, which is a counter there"
            )
    if form not in STACK_FORMATS:
        return
    if not options.stack:
        raise Usage(f"--format {form} counts stacks: add --stack")
    if shown or _counts(options):
        raise Usage(f"--format {form} counts stacks alone: leave EXPR and other totals out")


def _watch_alone(options: Options) -> None:
    if options.operands or options.expr:
        raise Usage("--watch shows the variable: leave EXPR out")
    if not options.program and len(options.pids) != 1:
        raise Usage("--watch is of one process: add -p PID, or -- COMMAND")
    if len(options.functions) > 1:
        raise Usage("--watch takes one function, in which the variable is visible")
    for given, name in (
        (options.returns, "--return"),
        (options.latency, "--latency"),
        (options.since, "--since"),
        (options.summary, "--summary"),
        (options.engine != "auto", "--engine"),
        (options.depth, "--depth"),
        (options.value_bytes, "--value-bytes"),
    ):
        if given:
            raise Usage(f"--watch and {name} exclude each other")


# ------------------------------------------------------------------------------
# What is done with the values of a trace: filters, histograms and sums, and their key.

_NUMBERS = ("integer", "duration", "bool", "enum", "float", "pointer", "reference", "turned")


def reading(
    request: Request, wanted: list[CheckedArgument], plans: tuple[Plan, ...]
) -> tuple[Filter | None, tuple[str, ...], tuple[str, ...]]:
    """The filter by the labels of its values; labels of what is counted and of the keys.

    They are those of ``wanted``, which ``plans`` fetch. Raises Refused (FC0752, FC0756) where a
    value cannot be compared with the constant, or is not a number to count.
    """
    shapes = {each.label: each.shape for plan in plans for each in plan.values}
    labels = {one.text: one.label for one in wanted} | {one.label: one.label for one in wanted}

    def labelled(condition: Condition) -> Condition:
        label = labels.get(condition.expression, condition.expression)
        shape = _shape(label, shapes)
        condition = with_null(condition, shape)
        problem = mismatch(condition, shape)
        if problem is not None:
            raise Refused(condition.text, (problem,))
        return Condition(
            label, condition.operator, condition.constant, condition.word,
            condition.nil, condition.text, condition.span, condition.truth,
        )  # fmt: skip

    filter = request.filter and replaced(request.filter, labelled)
    measures = tuple([labels.get(one.text, one.text) for one in request.measures])
    for one, measure in zip(measures, request.measures, strict=True):
        if not _is_number(_shape(one, shapes)):
            raise Refused("", (_no_number(one, measure.kind),))
    return filter, measures, tuple([labels.get(one, one) for one in request.keys])


def _shape(label: str, shapes: dict[str, Shape]) -> Shape:
    built_in = BUILTINS.get(label)
    return shapes[label] if built_in is None else built_in.shape


def _is_number(shape: Shape) -> bool:
    shape = value_shape(shape)
    match shape:
        case Leaf(decode=decode) | SumShape(decode=decode) | OperationShape(decode=decode):
            return decode.kind in _NUMBERS and decode.count is None
        case CallerShape(cases=cases) | ChoiceShape(cases=cases) | TypeSwitchShape(cases=cases):
            return any(_is_number(one) for _, one in cases)
        case ConditionalShape(at_none=first, other=second):
            return _is_number(first) and _is_number(second)
        case ComputedShape(is_none=asks):
            return not asks
        case _:
            return isinstance(shape, ElementCountShape | DifferenceShape)


def _no_number(text: str, what: str) -> Diagnostic:
    return Diagnostic(
        "FC0756",
        f"no {what} can be made of `{text}`: it is not a number",
        help=f"take a number of it, or use it as the key: `--by '{text}'`",
    )
