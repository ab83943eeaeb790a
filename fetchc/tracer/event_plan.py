"""From expressions at a probe to one event of the kernel and the values it gives."""

from __future__ import annotations

import os

from fetchc.check.checker import Checker
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.driver.compile import accepted
from fetchc.driver.probe_output import defined
from fetchc.emit.probe_definition import argument_name, event_name, kind_problem
from fetchc.ir.fetch import (
    Comm,
    Contents,
    ElementAddress,
    Fetch,
    KernelValue,
    Text,
    ThreadPointer,
    Walk,
    body,
    chain,
    fixed_bytes,
)
from fetchc.lower.extents import FULL, Limits
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax import tree
from fetchc.syntax.expression_parser import written
from fetchc.target.kernel_versions import kernel as kernel_rules
from fetchc.tracer.caller_values import argument_shape
from fetchc.tracer.event_fields import Fields
from fetchc.tracer.events import COMM, OF_EVENT, PLAN_INDEX, EventValue, FaultProbe, Plan
from fetchc.tracer.value_shapes import OfEventShape, UnavailableShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.check.probe_site import ProbePoint
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.protocol import Program
    from fetchc.syntax.tree import Argument
    from fetchc.target.kernel_versions import Kernel
    from fetchc.tracer.value_shapes import Shape

__all__ = ["TOO_LARGE", "CheckedArgument", "check_argument", "distinct", "plan", "unavailable"]


class CheckedArgument(Record):
    """An argument that a reader wants the value of: ``text`` is the user's.

    ``label`` is what its value is called: the name, or the expression as it was given. ``shape`` is
    that of its value at one of the addresses. ``follow``: as in :class:`.extents.Limits`.
    """

    text: str
    label: str
    argument: Argument
    warnings: tuple[Diagnostic, ...]
    shape: Shape
    follow: int = 0


class _Layout(Record):
    """What one address fetches, and the values that come of it.

    ``undefinable`` are fields that an eBPF program alone reads: see :class:`.event_fields.Fields`.
    """

    fields: tuple[tuple[str, Fetch], ...]
    values: tuple[EventValue, ...]
    fault_probes: tuple[FaultProbe, ...]
    undefinable: frozenset[str]


def check_argument(
    argument: Argument, text: str, found: ProbePoint, kernel: Kernel, follow: int = 0
) -> CheckedArgument:
    """Check one argument against the probe; raises CompileError where it cannot be fetched."""
    limits = FULL.replaced(follow=follow)
    span = argument.expression.span
    start, end = written(argument, text)
    label = argument.name or text[start:end]
    match argument.expression:
        case tree.Special(name=name) if name in OF_EVENT and name != "comm":
            if argument.format is not None:
                what = f"`${name}` is a value of the reader, and takes no format"
                raise reject("FC0307", what, argument.format.span, "does not fit")
            return CheckedArgument(text, label, argument, (), OfEventShape(name))
    warnings: list[Diagnostic] = []
    before: Typed | None = None
    shape: Shape | None = None
    for each in found.each():
        checker = Checker(each.site)
        node = _checked(checker, argument)
        if node == before and _is_laid_out_alike(checker):
            continue
        before = node
        fields = Fields(each, kernel, ())
        fields.span, fields.stem = span, "value"
        shape = argument_shape(checker, fields, node, argument.format, limits)
        warnings = checker.warnings
    assert shape is not None
    return CheckedArgument(text, label, argument, tuple(warnings), shape, follow)


def _checked(checker: Checker, argument: Argument) -> Typed:
    # A container that nothing selects from is shown, not its address.
    expression = argument.expression
    if isinstance(expression, tree.ContainerOf) and argument.format is None:
        expression = tree.Dereference(expression, expression.span)
    return checker.check(expression)


def unavailable(name: str, reason: str) -> CheckedArgument:
    """The argument ``name``, of which there is a reason and no value."""
    span = Span(0, len(name))
    argument = tree.Argument(None, tree.Name(name, None, span), None, None, span)
    return CheckedArgument(name, name, argument, (), UnavailableShape(reason))


def plan(
    program: Program,
    found: ProbePoint,
    kernel: Kernel,
    wanted: Sequence[CheckedArgument],
    group: str,
    event: str | None = None,
    most: int = 0,
) -> Plan:
    """The event that gives ``wanted`` at every address of ``found``.

    Objects are cut shorter, step by step, until the event fits the kernel's limits; what is
    cut is marked so when it is read. Raises CompileError where nothing helps. With ``most`` an
    eBPF program copies strings and slices by their length, so many bytes of each at most. Of a
    ``kernel`` whose events a BPF program reads, no limit of definitions holds.
    """
    site = found.site
    function = _called(found)
    if program.in_memory:
        most = 0
    if site.static is not None:
        function = site.static.whole_name
    event = event or event_name(site.named_after)
    named = _named(wanted, kernel)
    refusal: CompileError | None = None
    follow = max([one.follow for one in wanted], default=0)
    for limits, probing_faults in _steps(FULL.replaced(follow=follow, copied=most > 0)):
        try:
            layouts = _layouts(found, kernel, named, limits, probing_faults, most)
            lines = tuple(
                [
                    defined(each.site, _definable(layout), kernel, group, event, programs=True)
                    for each, layout in zip(found.each(), layouts, strict=True)
                    if not program.in_memory
                ]
            )
            if program.in_memory:
                _must_fit(layouts[0], event)
        except CompileError as error:
            refusal = error
            shorter = [one.reason == "event too large" for one in error.diagnostics]
            # Probing for faults takes fetches that are deeper than the values themselves.
            shorter += [
                one.reason == "fetch-arg too long" and probing_faults for one in error.diagnostics
            ]
            if not any(shorter):
                raise
        else:
            break
    else:
        assert refusal is not None
        raise refusal
    _same(layouts, event)
    return Plan(
        group,
        event,
        program.path if program.in_kernel else os.path.abspath(program.path),
        function,
        found.kind,
        site.address,
        lines,
        layouts[0].values,
        layouts[0].fault_probes,
        tuple([layout.fields for layout in layouts]),
        program.identity,
        addresses=tuple([each.site.address for each in found.each()]),
        undefinable=_undefinable(found, layouts[0], kernel),
    )


def _undefinable(found: ProbePoint, layout: _Layout, kernel: Kernel) -> tuple[str, str] | None:
    # Why no definition of the kernel can have all of it, after the code of a refusal.
    limited = kernel
    if kernel.records:  # no field was held to the rules of definitions yet
        limited = kernel_rules(kernel.name if kernel.word_bytes == 8 else f"{kernel.name}/32")
    for problem in kind_problem(found.site.probe_kind, limited):
        return "FC0507", problem.message
    definable = _definable(layout)
    for name, fetch in definable if kernel.records else layout.fields:
        computed = isinstance(chain(fetch.value)[0], ElementAddress | ThreadPointer)
        if computed or not (kernel.records or name in layout.undefinable):
            continue
        try:
            accepted(found, fetch, limited, Span(0, 0))
        except CompileError as refused:
            reads = f"only an eBPF program reads `{body(fetch)}` here on Linux {kernel.name}"
            return _too_large(refused) or ("FC0507", reads)
    if kernel.records:
        try:
            defined(found.site, definable, limited, programs=True)
        except CompileError as refused:
            return _too_large(refused)
    return None


def _too_large(refused: CompileError) -> tuple[str, str] | None:
    for one in refused.diagnostics:
        if one.reason in TOO_LARGE:
            return one.code, f"only an eBPF program has room for this: {one.message}"
    return None


def _definable(layout: _Layout) -> list[tuple[str, Fetch]]:
    # Without what no definition can have: with that, the plan is for eBPF programs.
    return [
        (name, fetch)
        for name, fetch in layout.fields
        if not (isinstance(fetch.value, Walk | Contents) or name in layout.undefinable)
    ]


TOO_LARGE = ("event too large", "fetch-arg too long")
"""Reasons of refusals that bind definitions, and no eBPF program."""

_LARGEST = 4096  # bytes of a record's numbers, as of the kernel's own


def _must_fit(layout: _Layout, event: str) -> None:
    # What runs the fetches itself has no limit of the kernel's but that of offsets in a record.
    if len(_definable(layout)) < len(layout.fields):
        why = "code that was compiled at run time has breakpoints, and what one records has no loop"
        raise reject("FC0314", why, help="ask for the number of elements, or for single ones")
    size = sum([fixed_bytes(fetch.store) for _, fetch in layout.fields])
    if size > _LARGEST:
        what = f"the values of `{event}` take {size} bytes of a record, and it has {_LARGEST}"
        raise reject("FC0404", what, help="ask for fewer values", reason="event too large")


def _called(found: ProbePoint) -> str | None:
    """The function that all addresses are of, a copy being one of what was copied."""
    names = set()
    for one in found.each():
        site = one.site
        function = None if site.function is None else site.function.name
        names.add(function if site.instance is None else site.instance.name)
    return names.pop() if len(names) == 1 else found.site.label or None


def _steps(whole: Limits) -> list[tuple[Limits, bool]]:
    # How much of a value is fetched, and whether the kernel says what it could read.
    steps = [(whole, True), (whole, False)]
    for by in (2, 4, 8):
        text, row, items = whole.text // by, whole.row // by, max(1, whole.items // by)
        steps.append((whole.replaced(text=text, row=row, items=items), False))
    return steps + (_steps(whole.behind()) if whole.follow else [])


def distinct(wanted: Sequence[CheckedArgument]) -> list[CheckedArgument]:
    """Each argument once; raises CompileError FC0207 for a second one of the same name."""
    listed: dict[str, CheckedArgument] = {}
    for one in wanted:
        other = listed.setdefault(one.label, one)
        if _expression(other) != _expression(one):
            raise reject(
                "FC0207",
                f"two arguments have the name `{one.label}`",
                one.argument.expression.span,
                "the second of them",
                help="give one of them another name",
            )
        if one.argument.name in _OWN:
            raise reject("FC0207", f"fetchc reserves the name `{one.label}`")
    return list(listed.values())


_OWN = (COMM, PLAN_INDEX)


def _named(wanted: Sequence[CheckedArgument], kernel: Kernel) -> list[tuple[CheckedArgument, str]]:
    """Each argument once, with the name of its first field."""
    taken = {one.argument.name for one in wanted if one.argument.name} | {*_OWN}
    result = []
    for one in distinct(wanted):
        name = one.argument.name or argument_name(one.label, kernel, taken)
        taken.add(name)
        result.append((one, name))
    return result


def _expression(one: CheckedArgument) -> str:
    argument = one.argument
    span = argument.expression.span
    end = span.end if argument.format is None else argument.format.span.end
    return one.text[span.start : end]


def _layouts(
    found: ProbePoint,
    kernel: Kernel,
    named: list[tuple[CheckedArgument, str]],
    limits: Limits,
    probing_faults: bool,
    most: int,
) -> list[_Layout]:
    # Of each address; those of a function's returns are mostly one.
    layouts: list[_Layout] = []
    before: list[Typed | None] = []
    for each in found.each():
        checkers = [Checker(each.site) for _ in named]
        nodes = [
            None
            if isinstance(one.shape, OfEventShape | UnavailableShape)
            else _checked(checker, one.argument)
            for checker, (one, _) in zip(checkers, named, strict=True)
        ]
        if nodes == before and layouts and all(map(_is_laid_out_alike, checkers)):
            layouts.append(layouts[-1])
            continue
        before = nodes
        layouts.append(_layout(each, kernel, named, checkers, nodes, limits, probing_faults, most))
    return layouts


def _is_laid_out_alike(checker: Checker) -> bool:
    # At a Go function's returns what is in the same places is the same fetches. Elsewhere, and
    # where something is to be said of the values, the address counts.
    return checker.site.leaving and not checker.warnings


def _layout(
    found: ProbePoint,
    kernel: Kernel,
    named: list[tuple[CheckedArgument, str]],
    checkers: list[Checker],
    nodes: list[Typed | None],
    limits: Limits,
    probing_faults: bool,
    most: int,
) -> _Layout:
    names = {name for _, name in named}
    fields = Fields(found, kernel, names, most)
    values = []
    for (one, name), checker, node in zip(named, checkers, nodes, strict=True):
        fields.span, fields.stem = one.argument.expression.span, name
        shape = one.shape
        if node is not None:
            its = limits.replaced(follow=min(one.follow, limits.follow))
            shape = argument_shape(checker, fields, node, one.argument.format, its)
        values.append(EventValue(one.label, shape))
    # Of an event `$comm` would be a field of that name.
    of_event = found.site.probe_kind == "eprobe"
    comm = Fetch(KernelValue("comm", "$COMM") if of_event else Comm(), Text())
    fault_probes = fields.fault_probes() if probing_faults else ()
    listed = (*fields.listed, (COMM, comm))
    return _Layout(listed, tuple(values), fault_probes, frozenset(fields.undefinable))


def _same(layouts: list[_Layout], event: str) -> None:
    """Refuse addresses whose records would differ: the kernel takes one layout an event."""
    first = layouts[0]
    for other in layouts[1:]:
        same = [(name, fetch.store) for name, fetch in first.fields] == [
            (name, fetch.store) for name, fetch in other.fields
        ]
        values = (first.values, first.fault_probes) == (other.values, other.fault_probes)
        if not same or not values:
            raise reject(
                "FC0404",
                f"the addresses of `{event}` keep these values in places of different kinds",
                help="probe one address at a time: `--at`",
                reason="different locations",
            )
