"""Which engine records for ``fetchc trace``: definitions in tracefs, or eBPF programs."""

from __future__ import annotations

import os

from fetchc.cli.trace_events import has_function
from fetchc.cli.trace_request import BUILTINS, Measure
from fetchc.cli.trace_targets import FRAME
from fetchc.diag.diagnostic import TracerError
from fetchc.record import Record
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.target.machines import architecture_key
from fetchc.tracer.events import LATENCY
from fetchc.tracer.filter_conditions import comparisons
from fetchc.tracer.install import PROBED, kernel_events
from fetchc.tracer.session import Session
from fetchc.tracer.tracefs import find_tracefs, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.trace_request import Request
    from fetchc.cli.trace_targets import Target, Targets
    from fetchc.ir.fetch import Term
    from fetchc.ir.steps import Program
    from fetchc.tracer.bpf.counting import Counting
    from fetchc.tracer.bpf.noted_values import Entering, Noted

__all__ = ["chosen_session", "recordable", "session_instead", "without_tracefs"]


def recordable(targets: Targets) -> Targets:
    """The targets, or what definitions have room for of them, where eBPF cannot be used."""
    defined = targets.defined
    return targets if defined is None or _unable(targets) is None else defined


def chosen_session(
    chosen: Targets, options: Options, request: Request, group: str, output: Output
) -> tuple[Session, Targets]:
    """A session for what was ``chosen``, by ``--engine`` and what the kernel can do.

    With the targets that it is for: eBPF may have other plans for calls of the kernel's functions.
    Raises TracerError FC0718 where ``--engine bpf`` cannot be.
    """
    targets = chosen
    countings: dict[str, Counting | Entering] = {}
    filters: dict[str, tuple[Program, ...]] = {}
    whole = True
    if options.engine != "tracefs":
        targets = _by_frames(chosen)
        totals = _asks_for_totals(options, request)
        entries = _entries(targets) if totals else None
        filters, whole = _filters(targets, entries)
        if entries is not None:
            countings = _countings(targets, _measures(options, request), whole, entries)
        if not countings and any(one.role != "hit" for one in targets.chosen):
            filters, whole = {}, False  # a return without its entry helps nobody
    engine, why = _chosen(targets, options, bool(countings), whole)
    if options.verbose:
        output.say(f"note: the engine is {engine}: {why}")
    ahead = options.ahead
    if engine == "tracefs":
        return Session(group=group, created=None if ahead is None else ahead.taken), chosen
    if ahead is not None:
        ahead.drop()
    from fetchc.tracer.bpf.bpf_session import BpfSession

    return BpfSession(group=group, countings=countings, filters=filters), targets


def _by_frames(targets: Targets) -> Targets:
    # Calls of the kernel's functions, without breakpoints: those miss no return, and have no stack
    # pointer. An entry is followed by its return.
    chosen = list(targets.chosen)
    for at, pair in enumerate(zip(targets.chosen, targets.chosen[1:], strict=False)):
        enter, leave = pair
        if enter.role != "enter" or not enter.plan.of_kernel:
            continue
        if FRAME in (*leave.labels, *leave.measures, *_wanted(leave)):
            continue
        from fetchc.tracer.bpf.plan_programs import framed

        plans = [plan for one in pair if (plan := framed(one.plan, FRAME)) is not None]
        if len(plans) == len(pair):
            both = zip(pair, plans, strict=True)
            chosen[at : at + 2] = [one.replaced(plan=plan, pushed=0) for one, plan in both]
    return targets.replaced(chosen=tuple(chosen))


def session_instead(
    refusal: TracerError, targets: Targets, options: Options, group: str
) -> Session | None:
    """By tracefs, where the kernel refuses an eBPF program that ``auto`` has chosen; else None."""
    reasons = ("refused program", "refused probe")
    of_program = any(one.reason in reasons for one in refusal.diagnostics)
    alone = any(each.plan.ebpf_alone for each in targets.chosen)
    if options.engine != "auto" or not of_program or alone or _closed(targets) is not None:
        return None
    if options.ahead is not None:
        options.ahead.wait()  # its instance has the name
    return Session(group=group)


def without_tracefs(refusal: TracerError, targets: Targets) -> TracerError:
    """The refusal of eBPF with another action, where tracefs cannot record the targets either."""
    from fetchc.tracer.bpf.features import WITHOUT

    alone = next((why for each in targets.chosen if (why := each.plan.ebpf_alone)), None)
    if alone is None:
        return refusal
    help = f"leave out what needs eBPF: {alone[1]}"
    changed = [
        one.replaced(help=help) if one.help == WITHOUT else one for one in refusal.diagnostics
    ]
    return TracerError(tuple(changed), refusal.text)


def _asks_for_totals(options: Options, request: Request) -> bool:
    # A table of all hits, in which nothing is of a single one.
    table = bool(request.measures or request.keys or options.summary) and not request.lines
    table = table and options.format != "perfetto"  # which shows each of them
    parts = any(isinstance(each.step, float) for each in request.measures)
    return table and not (options.stack or options.count is not None or parts)


def _measures(options: Options, request: Request) -> tuple[Measure, ...]:
    # Those of the table, and the time of the summary.
    timed = options.summary and options.latency
    return (*request.measures, *((Measure(LATENCY, "sum"),) if timed else ()))


_MOST_NOTED = 18  # words of an entry: two strings with their lengths


class _Entries(Record):
    """The entries of calls that the kernel times, by the plan's event.

    ``noted``, by function, is what they note for the return. Of ``--since`` they are those of the
    function where times begin.
    """

    countings: dict[str, Entering]
    noted: dict[str | None, tuple[Noted, ...]]


def _entries(targets: Targets) -> _Entries | None:
    # None: the kernel cannot time them, or not with the values that are asked for.
    from fetchc.tracer.bpf.noted_values import Entering, entering, words_of
    from fetchc.tracer.bpf.plan_programs import processes_of

    found = _Entries({}, {})
    for target in targets.chosen:
        if target.role == "start":
            found.countings[target.plan.event] = Entering(processes_of(target.plan))
    listed = [one for one in targets.chosen if one.role == "enter"]
    labels: dict[str, None] = {}
    for target in listed:
        pairing = {FRAME, target.key, target.stack_end}
        labels |= {one.label: None for one in target.plan.values if one.label not in pairing}
    if len(labels) > _MOST_NOTED:
        return None
    for target in listed:
        plan = target.plan
        if labels.keys() - {one.label for one in plan.values}:
            return None

        def identify(
            terms: tuple[tuple[Term, ...], ...], target: Target = target
        ) -> tuple[Program, ...]:
            return _calls(target, terms)

        counting = entering(plan, tuple(labels), identify)
        if counting is None or words_of(counting.noted) > _MOST_NOTED:
            return None
        if found.noted.setdefault(plan.function, counting.noted) != counting.noted:
            return None
        found.countings[plan.event] = counting
    return found


def _calls(target: Target, terms: tuple[tuple[Term, ...], ...] = ()) -> tuple[Program, ...]:
    # What identifies the calls of an entry or a return, and the process of the end of a time.
    from fetchc.tracer.bpf.plan_programs import calls_of, processes_of

    if target.role == "hit":
        return processes_of(target.plan)
    stack = "" if target.key == FRAME else target.key
    if stack and not target.stack_end:
        return ()
    return calls_of(target.plan, FRAME, target.pushed, stack, target.stack_end, terms)


def _filters(
    targets: Targets, entries: _Entries | None
) -> tuple[dict[str, tuple[Program, ...]], bool]:
    # By the plan's event; and whether they are the whole filters of all targets. Where the kernel
    # counts, it has times of calls.
    found: dict[str, tuple[Program, ...]] = {}
    whole = True
    for target in targets.chosen:
        if target.filter is None or target.role == "enter":
            continue
        if target.role != "hit" and entries is None:
            whole = False
            continue
        from fetchc.tracer.bpf.plan_programs import filter_of

        noted = () if entries is None else entries.noted.get(target.plan.function, ())
        timed = entries is not None and bool(entries.countings)
        programs, all_of_it = filter_of(target.plan, target.filter, timed, noted)
        if programs:
            found[target.plan.event] = programs
        whole = whole and all_of_it
    return found, whole


def _countings(
    targets: Targets, measures: tuple[Measure, ...], filtered: bool, entries: _Entries
) -> dict[str, Counting | Entering]:
    # By the plan's event; none at all where one of the plans cannot be counted in the kernel.
    found: dict[str, Counting | Entering] = {**entries.countings}
    for target in targets.chosen:
        if target.role in ("enter", "start"):
            continue
        noted = entries.noted.get(target.plan.function, ())
        counting = _counting(target, measures, filtered, noted, timed=bool(entries.countings))
        if counting is None:
            return {}
        found[target.plan.event] = counting
    return found


def _counting(
    target: Target,
    measures: tuple[Measure, ...],
    filtered: bool,
    noted: tuple[Noted, ...],
    timed: bool,
) -> Counting | None:
    from fetchc.tracer.bpf.plan_programs import counting_of

    calls = _calls(target) if timed else ()
    if timed and not calls:
        return None
    wanted = set(target.keys) if filtered else _wanted(target)
    shapes = {one.label: one.shape for one in target.plan.values}
    named = any(has_function(shapes[label]) for label in wanted if label in shapes)
    if target.role not in ("hit", "leave") or named or wanted & {LATENCY, "$time"}:
        return None
    task = tuple([_TASK[label] for label in sorted(wanted & _TASK.keys())])
    labels = (*target.measures, *[one.text for one in measures[len(target.measures) :]])
    steps = [int(one.step) for one in measures]
    counted = tuple(zip(labels, steps, strict=True))
    counting = counting_of(target.plan, counted, wanted - BUILTINS.keys(), task, calls, noted)
    return counting and counting.replaced(passed=filtered)


_MOST_EVENTS = 16  # of tracefs, before they take more than a second to end
_TASK = {"$pid": "process", "$tid": "thread", "$cpu": "cpu", "$comm": "comm"}


def _wanted(target: Target) -> set[str]:
    # The labels of the values that keys and filters need.
    filters = () if target.filter is None else comparisons(target.filter)
    return {*target.keys, *[each.expression for each in filters]}


def _chosen(targets: Targets, options: Options, counts: bool, filtered: bool) -> tuple[str, str]:
    alone = next((why for each in targets.chosen if (why := each.plan.ebpf_alone)), None)
    if options.engine == "tracefs" and alone is None:
        return "tracefs", "`--engine tracefs`"
    if options.engine == "bpf":
        from fetchc.tracer.bpf.features import cannot

        if (reason := _unable(targets)) is not None:
            raise without_tracefs(cannot(reason), targets)
        return "bpf", "`--engine bpf`, and the kernel counts" if counts else "`--engine bpf`"
    # A filter that eBPF does not test has the values that it compares in each key.
    reason = "the kernel counts" if counts and filtered else _closed(targets) or _slow(targets)
    if alone is not None:
        reason = alone[1]
    if reason is None:
        return "tracefs", "nothing in the request needs eBPF"
    unable = _unable(targets) or _untried()
    if alone is not None and options.engine == "tracefs":
        raise refused(*alone, help="leave `--engine tracefs` out")
    if unable is None:
        also = ", and the kernel counts" if counts and alone is not None else ""
        return "bpf", reason + also
    if alone is not None:
        raise refused(*alone, notes=(f"eBPF cannot be used: {unable}",))
    without = f"eBPF cannot be used: {unable}"
    try:
        find_tracefs()
    except TracerError as closed:
        (diagnostic,) = closed.diagnostics
        notes = (*diagnostic.notes, without)
        raise TracerError((diagnostic.replaced(notes=notes),)) from None
    return "tracefs", without


def _untried() -> str | None:
    from fetchc.tracer.bpf.features import running

    rules, _ = running()
    first = rules.tried[architecture_key(os.uname().machine)]
    return None if first <= rules.version else "it was not tried on so old a kernel"


def _closed(targets: Targets) -> str | None:
    # Why tracefs cannot be used, if it cannot. A kernel without kprobes has no probes of events or
    # of tracepoints there.
    try:
        tracefs = find_tracefs()
    except TracerError as closed:
        return f"tracefs cannot be used: {closed.diagnostics[0].message}"
    of_kernel = any(each.plan.of_kernel for each in targets.chosen)
    if of_kernel and not tracefs.exists(PROBED[1]):
        return f"there is no {tracefs.path(PROBED[1])}"
    return None


def _slow(targets: Targets) -> str | None:
    # Why tracefs would be slow, if it would. It switches one event off after the other, and waits
    # some 70 ms for each; links of eBPF programs are closed together.
    plans = [each.plan for each in targets.chosen]
    if len(plans) <= _MOST_EVENTS:
        return None
    count = len(kernel_events(plans, {}, kernel(running_version())))
    return f"tracefs ends {count} events one by one" if count > _MOST_EVENTS else None


def _unable(targets: Targets) -> str | None:
    from fetchc.tracer.bpf.plan_programs import unable

    return unable([each.plan for each in targets.chosen])
