"""What is done with the values of a trace: filters, histograms and sums, and their key."""

from __future__ import annotations

from fetchc.cli.tracing.request import BUILTINS, Refused
from fetchc.diag.diagnostic import Diagnostic
from fetchc.tracer.filter_conditions import Condition, of_nothing, replaced, unfit, within
from fetchc.tracer.value_shapes import (
    Between,
    Called,
    Choice,
    ComputedShape,
    Difference,
    Dispatched,
    EitherShape,
    Leaf,
    Sum,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.options import Options
    from fetchc.cli.tracing.request import Request
    from fetchc.tracer.event_plan import Asked
    from fetchc.tracer.events import Plan
    from fetchc.tracer.filter_conditions import Filter
    from fetchc.tracer.value_shapes import Shape

__all__ = ["reading"]

_NUMBERS = ("integer", "duration", "bool", "enum", "float", "pointer", "reference", "turned")


def reading(
    options: Options, request: Request, wanted: list[Asked], plans: tuple[Plan, ...]
) -> tuple[Filter | None, str, tuple[str, ...], str]:
    """The filter by the labels of its values; labels of what is counted and of the key.

    They are those of ``wanted``, which ``plans`` fetch. Raises Refused (FC0752, FC0756) where a
    value cannot be compared like that, or is no number to count.
    """
    shapes = {each.label: each.shape for plan in plans for each in plan.values}
    labels = {one.text: one.label for one in wanted} | {one.label: one.label for one in wanted}

    def labelled(condition: Condition) -> Condition:
        label = labels.get(condition.expression, condition.expression)
        shape = _shape(label, shapes)
        condition = of_nothing(condition, shape)
        problem = unfit(condition, shape)
        if problem is not None:
            raise Refused(condition.text, (problem,))
        return Condition(
            label, condition.operator, condition.constant, condition.word,
            condition.nil, condition.text, condition.span,
        )  # fmt: skip

    filter = request.filter and replaced(request.filter, labelled)
    measure, by = options.histogram or "", options.by or ""
    measure, by = labels.get(measure, measure), labels.get(by, by)
    sums = tuple([labels.get(one, one) for one in dict.fromkeys(options.sums)])
    for one, what in ((measure, "histogram"), *[(one, "sum") for one in sums]):
        if one and not _is_number(_shape(one, shapes)):
            raise Refused("", (_no_number(one, what),))
    return filter, measure, sums, by


def _shape(label: str, shapes: dict[str, Shape]) -> Shape:
    built_in = BUILTINS.get(label)
    return shapes[label] if built_in is None else built_in.shape


def _is_number(shape: Shape) -> bool:
    shape = within(shape)
    match shape:
        case Leaf(decode=decode) | Sum(decode=decode):
            return decode.kind in _NUMBERS and decode.count is None
        case Called(cases=cases) | Choice(cases=cases) | Dispatched(cases=cases):
            return any(_is_number(one) for _, one in cases)
        case EitherShape(at_none=first, other=second):
            return _is_number(first) and _is_number(second)
        case ComputedShape(is_none=asks):
            return not asks
        case _:
            return isinstance(shape, Between | Difference)


def _no_number(text: str, what: str) -> Diagnostic:
    return Diagnostic(
        "FC0756",
        f"no {what} can be made of `{text}`: it is not a number",
        help=f"take a number of it, or use it as the key: `--by '{text}'`",
    )
