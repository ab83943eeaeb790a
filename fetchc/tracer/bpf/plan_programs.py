"""Which eBPF programs a plan has: what they record, count and test, on the running machine."""

from __future__ import annotations

import os
from functools import lru_cache

from fetchc.emit.bpf_counting import fits
from fetchc.emit.bpf_layout import (
    TooLarge,
    noted_place,
    text_rooms,
    value_places,
)
from fetchc.ir.fetch import Fetch, KernelValue, Symbol, Word
from fetchc.ir.step_lowering import (
    Totals,
    call_steps,
    counting_steps,
    filter_steps,
    steps_of,
)
from fetchc.ir.step_support import CALL_FRAME, unsupported
from fetchc.ir.steps import ADDRESS, COMM_BYTES, PROCESS, LoadBias, Loop
from fetchc.target.machines import architecture
from fetchc.tracer.bpf.bpf_filters import passing
from fetchc.tracer.bpf.counting import counting, identified
from fetchc.tracer.bpf.features import running, unusable
from fetchc.tracer.bpf.kernel_probes import Unprobed, kernel_probe, with_thread_pointer
from fetchc.tracer.bpf.noted_values import words_of
from fetchc.tracer.bpf.system_calls import missing_capabilities
from fetchc.tracer.events import COMM, BpfRecord, Field, Format
from fetchc.tracer.trace_instance import Processes
from fetchc.tracer.value_shapes import Leaf, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fetchc.ir.fetch import Term
    from fetchc.ir.steps import Program, Slot
    from fetchc.target.bpf_rules import BpfRules
    from fetchc.tracer.bpf.counting import Counting
    from fetchc.tracer.bpf.noted_values import Noted
    from fetchc.tracer.events import Plan
    from fetchc.tracer.filter_conditions import Filter

    Context = tuple[tuple[Slot, ...], tuple[tuple[str, int], ...]]

__all__ = [
    "RECORDED",
    "calls_of",
    "counting_of",
    "filter_of",
    "format_of",
    "framed",
    "labels_of",
    "processes_of",
    "program_of",
    "recorded_fields",
    "unable",
]

_FILTER_STEPS = 512
_NO_ROOM = 1 << 16  # more bytes than any string of a record has


def unable(plans: Iterable[Plan]) -> str | None:
    """Why eBPF programs cannot record ``plans``, in words that complete "because"; None: they can.

    What it asks for is of the running kernel and of this process.
    """
    if (reason := unusable()) is not None:
        return reason
    rules, machine = running()
    assert machine is not None
    for plan in plans:
        try:
            with_thread_pointer(machine, [plan])
        except Unprobed as unprobed:
            return str(unprobed)
        if len(plan.fields) != len(plan.definitions):
            return f"the plan `{plan.event}` lacks the fetches of its definitions"
        for line, fields in zip(plan.definitions, plan.fields, strict=True):
            context: tuple[Slot, ...] = ()
            symbols: tuple[tuple[str, int], ...] = ()
            if plan.of_kernel:
                try:
                    probe = kernel_probe(plan, line)
                except Unprobed as unprobed:
                    return str(unprobed)
                missing = missing_capabilities(probe.capabilities)
                if missing:
                    return f"this process lacks {' and '.join(missing)}"
                context, symbols = probe.context, probe.symbols
            fields = recorded_fields(plan, fields)
            for _, one in fields:
                if (reason := unsupported(one, context, symbols)) is not None:
                    return reason
            program = program_of(fields, context=context, symbols=symbols)
            behind = plan.kind == "return" and "get_func_ip" not in rules.helpers
            if behind and any(isinstance(step, LoadBias) for step in program.steps):
                return "Linux 6.6 is the first that says at a return where the file is"
            try:
                text_rooms(program, rules)
            except TooLarge as large:
                return str(large)
    return None


class _Recorded(Processes):
    """For records that have the process: nobody is asked."""

    def __init__(self) -> None:
        self.visible = True


RECORDED = _Recorded()
"""What a decoder asks for processes, of records that have them."""


def recorded_fields(
    plan: Plan, fields: Sequence[tuple[str, Fetch]]
) -> tuple[tuple[str, Fetch], ...]:
    """Those of the fields that records of eBPF programs need, which have fault bits.

    Without what only says whether memory could be read.
    """
    used = {text for one in plan.values for text in texts_in(one.shape, read_checks=False)}
    probing = {one.field for one in plan.fault_probes}
    probing |= {name for name, fetch in fields if isinstance(fetch.store, Symbol)}
    return tuple([(name, fetch) for name, fetch in fields if name not in probing - used])


@lru_cache(maxsize=1024)  # many functions have the same
def program_of(
    fields: tuple[tuple[str, Fetch], ...],
    words: tuple[tuple[str, tuple[Term, ...]], ...] = (),
    context: tuple[Slot, ...] = (),
    symbols: tuple[tuple[str, int], ...] = (),
) -> Program:
    """The steps of an event's fields, on the running machine; see :func:`steps_of`."""
    return steps_of(fields, *_registers(), words, context, symbols)


def _registers() -> tuple[str, str]:
    machine = architecture(os.uname().machine)
    return machine.registers[machine.stack_pointer], machine.result


def counting_of(
    plan: Plan,
    measures: tuple[tuple[str, int], ...],
    labels: Iterable[str],
    task: tuple[str, ...],
    calls: tuple[Program, ...] = (),
    noted: tuple[Noted, ...] = (),
) -> Counting | None:
    """How the running kernel counts hits of ``plan``; None where the reader has to.

    ``measures`` are as those of :class:`Counting`, ``labels`` those of the values that keys and
    filters need; ``task`` is what they need of the task: thread, process, cpu, comm. ``calls``
    are what :func:`calls_of` gives of a plan of returns, ``noted`` what their entries note; or what
    :func:`processes_of` gives, of the end of a time.
    """
    rules, machine = running()
    contexts = _contexts(plan)
    has_all = rules.features >= {"programs", "compare_exchange"}
    if machine is None or not has_all or contexts is None:
        return None

    def lower(number: int, fields: tuple[tuple[str, Fetch], ...], totals: Totals) -> Program:
        return _counting_program(fields, totals, *contexts[number])

    def room(program: Program) -> bool:
        return fits(program, machine, rules, words_of(noted))

    always = (COMM,) if "comm" in task else ()
    task = tuple([one for one in task if one != "comm"])
    return counting(plan, measures, labels, task, always, lower, room, calls, noted)


def _contexts(plan: Plan) -> list[Context] | None:
    # For each definition what the kernel gives its program; None: it can have no program.
    if not plan.of_kernel:
        return [((), ()) for _ in plan.definitions]
    try:
        probes = [kernel_probe(plan, line) for line in plan.definitions]
    except Unprobed:
        return None
    return [(one.context, one.symbols) for one in probes]


def calls_of(
    plan: Plan,
    place: str,
    pushed: int,
    stack: str,
    end: str,
    terms: tuple[tuple[Term, ...], ...] = (),
) -> tuple[Program, ...]:
    """As :func:`identified`, on the running machine; empty too where no program can be there."""
    contexts = _contexts(plan)
    if contexts is None:
        return ()

    def identify(
        number: int, frame: Term, goroutine: Term | None, of_entry: tuple[Term, ...]
    ) -> Program:
        return call_steps(frame, goroutine, *_registers(), of_entry, *contexts[number])

    return identified(plan, place, pushed, stack, end, identify, terms)


def framed(plan: Plan, place: str) -> Plan | None:
    """The plan for a function of the kernel without a breakpoint, one of both ends of its calls.

    What tells the calls from others, the value ``place``, is where their frame is: both ends have
    the same. None: no such program can be there, or something else needs the stack pointer.
    """
    (leaf,) = [one.shape for one in plan.values if one.label == place]
    others = [text for one in plan.values if one.label != place for text in texts_in(one.shape)]
    if not plan.of_kernel or not isinstance(leaf, Leaf) or leaf.field in others:
        return None
    frame = Fetch(KernelValue("frame", CALL_FRAME), Word())
    fields = [
        tuple([(name, frame if name == leaf.field else fetch) for name, fetch in listed])
        for listed in plan.fields
    ]
    found = plan.replaced(fields=tuple(fields))
    return None if _contexts(found) is None else found


def processes_of(plan: Plan) -> tuple[Program, ...]:
    """The steps that identify the process of a hit, whose time goes on, for each definition."""
    return len(plan.definitions) * (call_steps(None, None, *_registers()),)


def filter_of(
    plan: Plan, filter: Filter, timed: bool, noted: tuple[Noted, ...]
) -> tuple[tuple[Program, ...], bool]:
    """The programs of a filter, for each definition of a plan, and whether they test all of it.

    None of them where they test nothing. ``timed``: the program has the time since the entry, and
    what was ``noted`` there.
    """
    contexts = _contexts(plan)
    if contexts is None:
        return (), False
    found = [passing(plan, fields, filter, timed, noted) for fields in plan.fields]
    rules, _ = running()
    used = COMM_BYTES - noted_place(words_of(noted))  # with room for the task's name
    programs = []
    for one, context in zip(found, contexts, strict=True):
        program = None if one is None else filter_steps(one.condition, *_registers(), *context)
        if program is None or len(program.steps) > _FILTER_STEPS:
            return (), False
        try:
            value_places(program.steps, rules.stack_bytes, used, ())
        except TooLarge:
            return (), False
        programs.append(program)
    return tuple(programs), bool(found) and all(one is not None and one.whole for one in found)


@lru_cache(maxsize=1024)
def _counting_program(
    fields: tuple[tuple[str, Fetch], ...],
    totals: Totals,
    context: tuple[Slot, ...],
    symbols: tuple[tuple[str, int], ...],
) -> Program:
    return counting_steps(fields, totals, *_registers(), context, symbols)


def format_of(plan: Plan, program: Program, number: int, rules: BpfRules) -> Format:
    """The format of the records that ``program`` makes for ``plan``, under that number."""
    rooms = text_rooms(program, rules)
    found = _layout(number, plan.event, program, rooms[-1] if rooms else _NO_ROOM)
    fields = found.fields
    if plan.kind != "return" or "get_func_ip" in rules.helpers:
        fields = Field("__probe_ip", ADDRESS, 8, False, None, False), *fields
    if not any(one.name == COMM for one in fields):  # in the key of a table, where this is 0
        fields = *fields, Field(COMM, ADDRESS, 4, False, None, True)
    return Format(number, plan.event, fields, found.bpf)


def _layout(number: int, event: str, program: Program, longest: int) -> Format:
    fields = [
        Field(slot.name, slot.at, slot.size, slot.signed, slot.count, slot.text, slot.room)
        for slot in program.slots
    ]
    walks = [
        (slot.name, step.entry, step.text_room(longest))
        for step in program.steps
        if isinstance(step, Loop)
        for slot in program.slots
        if slot.at == step.at
    ]
    record = BpfRecord(
        PROCESS,
        program.faults_at,
        program.faults + 63 >> 6 << 3,
        tuple([(one.low, one.high, one.bit) for one in program.bits]),
        tuple([(one.low, one.high, one.word) for one in program.blocks]),
        longest,
        tuple([(name, _layout(number, event, entry, room)) for name, entry, room in walks]),
    )
    return Format(number, event, tuple(fields), record)


def labels_of(plan: Plan) -> dict[str, str]:
    """The label of the value that each field is for."""
    labels: dict[str, str] = {}
    for one in plan.values:
        for name in texts_in(one.shape):
            labels.setdefault(name, one.label)
    return labels
