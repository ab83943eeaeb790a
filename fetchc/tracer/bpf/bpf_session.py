"""A session whose records are made by eBPF programs, and end with it whatever happens."""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections import deque
from functools import lru_cache

from fetchc.diag.diagnostic import Diagnostic, TracerError
from fetchc.emit.bpf_calls import CALL_BYTES, FORGOTTEN, OPEN_BYTES, Call, entry_code
from fetchc.emit.bpf_counting import Counted, Entry, key_bytes
from fetchc.emit.bpf_program import children_code, ended_code, executed_code, ring_record
from fetchc.emit.bpf_steps import (
    FOLLOWED,
    THREADS,
    WAITING,
    Maps,
    Point,
    StackRoom,
    Target,
    TooLarge,
    purpose,
    text_rooms,
)
from fetchc.ir.fetch import Decode, Symbol
from fetchc.ir.step_lowering import call_steps, counting_steps, filter_steps, steps_of, unsupported
from fetchc.ir.steps import ADDRESS, CPU, PROCESS, Aggregate, LoadBias, Loop
from fetchc.record import Record
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.target.machines import architecture, architecture_key
from fetchc.tracer.bpf.bpf_filters import passing
from fetchc.tracer.bpf.bpf_ring import BpfRing, CopiedStacks, WalkedStacks
from fetchc.tracer.bpf.counting import Counting, Entering, counting, identified, row_of
from fetchc.tracer.bpf.features import Refused, tried_features
from fetchc.tracer.bpf.kernel_probes import Unprobed, kernel_probe
from fetchc.tracer.bpf.system_calls import (
    Attachment,
    Bpf,
    ProgramRefused,
    lift_memory_limit,
    missing_capabilities,
)
from fetchc.tracer.decode import Decoder
from fetchc.tracer.events import COMM, ELAPSED, BpfRecord, EventValue, Field, Format
from fetchc.tracer.install import ProbedPlace, probed_place
from fetchc.tracer.kallsyms import refuse_ambiguous, why_absent
from fetchc.tracer.ring_buffer import parse_format
from fetchc.tracer.session import Session, shielded
from fetchc.tracer.trace_instance import Processes, all_threads, check_namespace
from fetchc.tracer.tracefs import find_tracefs, refused
from fetchc.tracer.value_shapes import Leaf, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fetchc.emit.bpf_steps import Code
    from fetchc.ir.fetch import Fetch, Term
    from fetchc.ir.steps import Program, Slot
    from fetchc.target.bpf_rules import BpfMachine, BpfRules
    from fetchc.target.kernel_versions import Version
    from fetchc.tracer.bpf.kernel_probes import KernelProbe
    from fetchc.tracer.events import Event, MappingChange, Plan
    from fetchc.tracer.filter_conditions import Filter
    from fetchc.tracer.tables import Row
    from fetchc.tracer.tracefs import Tracefs

__all__ = [
    "RECORDED",
    "BpfSession",
    "calls_of",
    "cannot",
    "counting_of",
    "filter_of",
    "format_of",
    "program_of",
    "running",
    "tried",
    "unable",
]

_CPU_BYTES = 16 << 20  # of the ring buffer, for each processor
_MOST_BYTES = 64 << 20
_POINTS = 1 << 16  # the plan's number has 16 bits
_ENTRIES = 1 << 14  # of all maps that count together; what is too much for one is recorded
_LEAST_ENTRIES = 8  # of one map
_WALKED = 127  # return addresses: kernel.perf_event_max_stack
_MAPPINGS_KIB = 1024  # of each processor's buffer for changes of mappings
_COUNTERS = 16  # bytes: records lost, calls forgotten
_OPEN_CALLS = 1 << 15
_FILTER_STEPS = 256
_NO_ROOM = 1 << 16  # more bytes than any string of a record has
_KEY = b"\0\0\0\0"
_CAPABILITIES = ("CAP_BPF", "CAP_PERFMON")


class _Group(Record):
    """Points of one file that one program serves; ``counted`` are the steps that count there.

    ``call`` identifies calls that are timed; without ``program``, these points are their entries.
    """

    path: str
    returning: bool
    program: Program | None
    counted: Program | None
    call: Program | None
    filter: Program | None


class _Filled(Record):
    """A map that a program fills, by the numbers of its plans; ``read`` is what it had last."""

    file: int
    program: Program
    plans: dict[int, tuple[Decoder, Counting]]
    read: dict[bytes, bytes]


def unable(plans: Iterable[Plan]) -> str | None:
    """Why eBPF programs cannot record ``plans``, in words that complete "because"; None: they can.

    What it asks for is of the running kernel and of this process.
    """
    rules, machine = running()
    if machine is None or architecture_key(os.uname().machine) not in rules.tried:
        return f"programs for `{os.uname().machine}` are not supported"
    missing = missing_capabilities(_needed(rules))
    if missing:
        return f"this process lacks {' and '.join(missing)}"
    if (refusal := tried(rules.version)[1]) is not None:
        return refusal
    if "programs" not in rules.features:
        return "Linux 5.8 is the first with all that it needs"
    for plan in plans:
        if len(plan.fields) != len(plan.definitions):
            return f"the plan `{plan.event}` lacks the fetches of its definitions"
        for line, fields in zip(plan.definitions, plan.fields, strict=True):
            context: tuple[Slot, ...] = ()
            if plan.of_kernel:
                try:
                    probe = kernel_probe(plan, line)
                except Unprobed as unprobed:
                    return str(unprobed)
                missing = missing_capabilities(probe.capabilities)
                if missing:
                    return f"this process lacks {' and '.join(missing)}"
                at_return = probe.kind == "function" and probe.returning
                if at_return and "kprobe_misses" not in rules.features:
                    return "Linux 6.7 is the first that says which returns its probes miss"
                context = probe.context
            fields = recorded_fields(plan, fields)
            reason = next((why for _, one in fields if (why := unsupported(one, context))), None)
            if reason is not None:
                return reason
            program = program_of(fields, context=context)
            behind = plan.kind == "return" and "get_func_ip" not in rules.helpers
            if behind and any(isinstance(step, LoadBias) for step in program.steps):
                return "Linux 6.6 is the first that says at a return where the file is"
            try:
                text_rooms(program, rules)
            except TooLarge as large:
                return str(large)
    return None


def running() -> tuple[BpfRules, BpfMachine | None]:
    """What the running kernel and machine have; None for a machine that is not supported.

    The kernel is asked for its features where this process is allowed to use them.
    """
    version = kernel(running_version()).version
    return bpf_rules(version, tried(version)[0]), bpf_machine(os.uname().machine)


@lru_cache(maxsize=1)
def tried(version: Version) -> tuple[frozenset[str] | None, str | None]:
    """The features that the kernel has, or why it has no eBPF for this process.

    Neither where a capability is missing.
    """
    machine = bpf_machine(os.uname().machine)
    rules = bpf_rules(version)
    if machine is None or missing_capabilities(_needed(rules)):
        return None, None
    try:
        return tried_features(Bpf(machine), rules), None
    except Refused as refused:
        return None, str(refused)


def _needed(rules: BpfRules) -> tuple[str, ...]:
    # Events of perf need more than links of their own do.
    return _CAPABILITIES if "uprobe_multi" in rules.features else ("CAP_SYS_ADMIN",)


class BpfSession(Session):
    """As :class:`~fetchc.tracer.session.Session`; plans have to be such that :func:`unable` takes.

    Entering raises TracerError where the kernel refuses (FC0718), and :meth:`add` for a plan that
    is not such. ``countings``, by the plan's event: their hits are counted in the kernel, and what
    cannot be counted there is recorded, as those of other plans. ``filters``, by the plan's event
    and for each definition, are of hits that the reader need not see. ``only`` is called before
    :meth:`start`.
    """

    def __init__(
        self,
        buffer_kib: int | None = None,
        tracefs: Tracefs | None = None,
        group: str | None = None,
        countings: Mapping[str, Counting | Entering] | None = None,
        filters: Mapping[str, tuple[Program, ...]] | None = None,
    ) -> None:
        super().__init__(buffer_kib, tracefs, group)
        self._countings = dict(countings or {})
        self._filter_programs = dict(filters or {})

    def __enter__(self) -> BpfSession:
        self._descriptors: list[int] = []
        self._links: list[int] = []
        self._threads: int | None = None
        self._followed: mmap.mmap | None = None
        self._calls: int | None = None
        self._stack: StackRoom | None = None
        self._filled: list[_Filled] = []
        self._of_kernel: list[tuple[KernelProbe, int, int]] = []  # with programs and links
        self._totals = bytes(_COUNTERS)
        self._rules, machine = running()
        if machine is None:
            raise cannot(f"programs for `{os.uname().machine}` are not supported")
        self._architecture = architecture(os.uname().machine)
        self._machine = machine
        self._bpf = Bpf(machine)
        self._bpf_ring = BpfRing(self._bpf.barrier)
        self._ring = self._bpf_ring
        try:
            with shielded():
                self._process = os.getpid()
                self._open = True
                if "memlock_free" not in self._rules.features:
                    lift_memory_limit()
                size = _ring_bytes(self._buffer_kib)
                self._ring_file = self._map("ringbuf", 0, 0, size)
                self._counters = self._map("array", 4, _COUNTERS, 1)
                self._bpf_ring.map(self._ring_file, size)
        except OSError as error:
            self.close()
            raise _kernel_refused("a ring buffer", error) from error
        except BaseException:
            self.close()
            raise
        return self

    def _map(self, kind: str, key: int, value: int, entries: int, shared: bool = False) -> int:
        file = self._bpf.map(self._rules.maps[kind], key, value, entries, shared)
        self._descriptors.append(file)
        return file

    def add(self, *plans: Plan) -> None:
        """As that of every session; raises TracerError FC0718 too, where :func:`unable` says so."""
        if (reason := unable(plans)) is not None:
            raise cannot(reason)
        super().add(*plans)

    def filter(self, plan: Plan, text: str) -> None:
        """Nothing: the programs have filters of their own, and the reader applies all of them."""

    def filters(self, plan: Plan) -> bool:
        """As that of every session."""
        counting = self._countings.get(plan.event)
        return isinstance(counting, Counting) and counting.passed

    def counted(self) -> Iterator[tuple[Event, Row]]:
        """What was counted since the last call, in the order of the first hits.

        The event has the values that keys and filters need; the row a cell for each measure. Of a
        hit that is being counted meanwhile, one number may be in this row and another in the next.
        """
        found: list[tuple[int, Event, Row]] = []
        for filled in self._filled:
            program, size = filled.program, key_bytes(filled.program)
            aggregate = program.steps[-1]
            assert isinstance(aggregate, Aggregate)
            value_size = Entry.at(len(aggregate.measures))
            for key, value in self._bpf.entries(filled.file, size, value_size):
                before = filled.read.get(key)
                if before == value:
                    continue
                filled.read[key] = value
                decoder, counting = filled.plans[key[0] | key[1] << 8]
                (first,) = struct.unpack_from("=Q", value, Entry.FIRST)
                (cpu,) = struct.unpack_from("=I", key, CPU)
                event = decoder.event((first, cpu, key, 0, size, ()))
                found.append((first, event, row_of(counting, program, key, value, before)))
        found.sort(key=lambda one: one[0])
        yield from [(event, row) for _, event, row in found if row.hits]

    def stacks(self, copied: int | None = None) -> None:
        """As that of every session; the copy, or what the kernel walks, is in each record."""
        from fetchc.tracer.perf_ring import PerfRing, sampled_machines

        self.entered()
        machines = sampled_machines() if copied is not None else {}
        if not all(self.copies(one) for one in self._added):
            machines = {}
        if copied is None or not machines:
            self._stack = StackRoom(0, 0, _WALKED)
            self._bpf_ring.split = WalkedStacks(self._stack).split
            return
        context = max(self._machine.registers.values()) + 8
        self._stack = StackRoom(-(-copied // 8) * 8, context)
        self._bpf_ring.split = CopiedStacks(self._stack, self._machine, machines).split
        mappings = self._bpf_ring.mappings = PerfRing(copied, machines)
        mappings.open(range(os.cpu_count() or 1), _MAPPINGS_KIB)

    def copies(self, plan: Plan) -> bool:
        """As that of every session; in the kernel the program's registers have to be asked for."""
        return not plan.of_kernel or "task_pt_regs" in self._rules.helpers

    @property
    def changes(self) -> deque[MappingChange]:
        """As that of every session."""
        mappings = self._bpf_ring.mappings
        return deque() if mappings is None else mappings.changes

    def only(self, pids: Iterable[int], waiting: bool = False) -> None:
        """As that of every session."""
        self.entered()
        if self._running:
            raise ValueError("the session runs already")
        wanted = sorted(set(pids))
        check_namespace(wanted)
        with shielded():
            try:
                followed = self._follow(waiting)
                for process in wanted:
                    for threads in all_threads(process):
                        for thread in threads:
                            followed[thread] = WAITING if waiting else FOLLOWED
            except OSError as error:
                raise _kernel_refused("to follow processes", error) from error

    def _follow(self, waiting: bool) -> mmap.mmap:
        if self._followed is not None:
            return self._followed
        self._threads = self._map("array", 4, THREADS, 1, shared=True)
        self._followed = mmap.mmap(self._threads, THREADS)
        rules, maps = self._rules, self._maps()
        forking = find_tracefs().read("events", "sched", "sched_process_fork", "format")
        format = parse_format(forking)
        child = next(one.offset for one in format.fields if one.name == "child_pid")
        program = self._load(children_code(rules, maps, child), {}, kind="tracepoint")
        self._links += self._bpf.attach_tracepoint(program, format.id)
        codes = {"sched_process_exit": ended_code(rules, maps)}
        if waiting:
            codes["sched_process_exec"] = executed_code(rules, maps)
        for name, code in codes.items():
            program = self._load(code, {}, kind="raw_tracepoint")
            self._links += self._bpf.attach_raw_tracepoint(program, name)
        return self._followed

    def _maps(self) -> Maps:
        return Maps(self._ring_file, self._counters, self._threads)

    def start(self) -> None:
        """Load and attach what was added."""
        self.entered()
        self._install()
        self._started = self._running = self._reading = True

    # -- programs

    def _install(self) -> None:
        plans, self._added = self._added, []
        try:
            self._open_files(plans)
            with shielded():
                self._attach(plans)
        except TracerError:
            self._names.difference_update([plan.event for plan in plans])
            raise

    def _attach(self, plans: Sequence[Plan]) -> None:
        groups: dict[_Group, list[tuple[Point, ProbedPlace, Plan]]] = {}
        refuse_ambiguous([line for plan in plans if plan.of_kernel for line in plan.definitions])
        for plan in plans:
            if plan.of_kernel:
                self._attach_kernel(plan)
                continue
            numbers: dict[Program, int] = {}
            counting = self._countings.get(plan.event)
            for at, line in enumerate(plan.definitions):
                probed, fields = probed_place(self._files.named(line)), plan.fields[at]
                call = counting.calls[at] if counting is not None and counting.calls else None
                program, counted, number = None, None, 0
                if not isinstance(counting, Entering):
                    program = program_of(
                        recorded_fields(plan, fields), ELAPSED if call is not None else ""
                    )
                    if program not in numbers:
                        numbers[program] = self._number(plan, program, call is not None)
                    number = numbers[program]
                    counted = None if counting is None else counting.programs[at]
                point = Point(number, probed.offset, probed.returning)
                filters = self._filter_programs.get(plan.event)
                filter = None if filters is None else filters[at]
                group = _Group(probed.path, probed.returning, program, counted, call, filter)
                groups.setdefault(group, []).append((point, probed, plan))
        counting_groups = sum(group.counted is not None for group in groups)
        self._entries = max(_LEAST_ENTRIES, _ENTRIES // max(1, counting_groups))
        for group, points in groups.items():
            if "cookies" in self._rules.features:
                self._attach_group(group, points)
            else:
                for one in points:
                    self._attach_group(group, [one])

    def _attach_kernel(self, plan: Plan) -> None:
        for line, fields in zip(plan.definitions, plan.fields, strict=True):
            probe = kernel_probe(plan, line)
            program = program_of(recorded_fields(plan, fields), context=probe.context)
            point = Point(self._number(plan, program, False), 0, probe.returning)
            try:
                code = ring_record(
                    program,
                    self._machine,
                    self._rules,
                    self._maps(),
                    point,
                    probe.returning,
                    False,
                    stack=self._stack,
                    probed=probe.probed,
                )
            except TooLarge as large:
                raise cannot(str(large)) from None
            loaded = self._load(code, _labels(plan), kind=probe.program, function=probe.function)
            try:
                opened = probe.attach(self._bpf, loaded, "kprobe_misses" in self._rules.features)
                self._links += opened
                self._of_kernel.append((probe, loaded, opened[0]))
            except OSError as error:
                name = plan.function or plan.event
                notes = (f"its error is: {error.strerror}", *why_absent(line))
                raise refused(
                    "FC0705", f"the kernel refused a probe of `{name}`", notes=notes
                ) from error

    def _number(self, plan: Plan, program: Program, timed: bool) -> int:
        # Of a layout of records: the addresses of a plan can have several.
        number = len(self.decoders)
        if number >= _POINTS:
            raise cannot(f"a session has {_POINTS} kinds of records at most")
        format = format_of(plan, program, number, self._rules)
        if timed:
            elapsed = EventValue(ELAPSED, Leaf(ELAPSED, Decode("integer")))
            plan = plan.replaced(values=(*plan.values, elapsed))
        self.decoders[number] = Decoder(format, [plan], RECORDED, self.symbol)
        return number

    def _attach_group(self, group: _Group, points: list[tuple[Point, ProbedPlace, Plan]]) -> None:
        alone = points[0][0] if len(points) == 1 else None
        sleepable, multi = (name in self._rules.features for name in ("sleepable", "uprobe_multi"))
        try:
            code = self._code(group, points, alone, sleepable)
        except TooLarge as large:
            raise cannot(str(large)) from None
        named = _labels(points[0][2])
        program = self._load(code, named, sleepable=sleepable, multi=multi)
        attachments = [
            Attachment(point.offset, point.cookie, probed.reference) for point, probed, _ in points
        ]
        try:
            if multi:
                self._links += self._bpf.attach_many(
                    program, group.path, attachments, group.returning
                )
            else:
                for one in attachments:
                    cookies = "cookies" in self._rules.features
                    self._links += self._bpf.attach(
                        program, group.path, one, group.returning, cookies
                    )
        except OSError as error:
            raise self._refused_point(program, group, points, multi, error) from error

    def _code(
        self,
        group: _Group,
        points: list[tuple[Point, ProbedPlace, Plan]],
        alone: Point | None,
        sleepable: bool,
    ) -> Code:
        machine, rules, maps = self._machine, self._rules, self._maps()
        call, counted = None, None
        if group.call is not None:
            if self._calls is None:
                self._calls = self._room("open calls", CALL_BYTES, OPEN_BYTES, _OPEN_CALLS)
            call = Call(group.call, self._calls)
        if group.program is None:
            assert call is not None
            target = Target(machine, rules, maps, alone, group.returning, sleepable, None)
            return entry_code(call, target)
        if group.counted is not None:
            counted = self._counting_map(group.counted, points)
        return ring_record(
            group.program,
            machine,
            rules,
            maps,
            alone,
            group.returning,
            sleepable,
            counted,
            self._stack,
            call,
            group.filter,
        )

    def _room(self, what: str, key: int, value: int, entries: int) -> int:
        try:
            return self._map("hash", key, value, entries)
        except OSError as error:
            raise _kernel_refused(f"a map for {what}", error) from error

    def _counting_map(
        self, program: Program, points: Iterable[tuple[Point, ProbedPlace, Plan]]
    ) -> Counted:
        aggregate = program.steps[-1]
        assert isinstance(aggregate, Aggregate)
        value = Entry.at(len(aggregate.measures))
        file = self._room("counts", key_bytes(program), value, self._entries)
        plans: dict[int, tuple[Decoder, Counting]] = {}
        for point, _, plan in points:
            counting = self._countings[plan.event]
            assert isinstance(counting, Counting)
            format = format_of(counting.plan, program, point.number, self._rules)
            decoder = Decoder(format, [counting.plan], RECORDED, self.symbol)
            plans[point.number] = decoder, counting
        self._filled.append(_Filled(file, program, plans, {}))
        return Counted(program, file)

    def _refused_point(
        self,
        program: int,
        group: _Group,
        points: list[tuple[Point, ProbedPlace, Plan]],
        multi: bool,
        error: OSError,
    ) -> TracerError:
        # Of many points the kernel does not say which one: each is tried alone.
        found = points[0]
        for one in points if multi and len(points) > 1 else ():
            attachment = Attachment(one[0].offset, one[0].cookie, one[1].reference)
            try:
                opened = self._bpf.attach_many(program, group.path, [attachment], group.returning)
            except OSError as refusal:
                found, error = one, refusal
                break
            for file in opened:
                os.close(file)
        _, probed, plan = found
        name = plan.function or plan.event
        notes = (f"its error is: {error.strerror}", f"at {plan.path}:{probed.offset:#x}")
        return refused("FC0705", f"the kernel refused a probe of `{name}`", notes=notes)

    def _load(
        self,
        code: Code,
        labels: dict[str, str],
        sleepable: bool = False,
        multi: bool = False,
        kind: str = "probe",
        function: int = 0,
    ) -> int:
        try:
            file = self._bpf.load(
                code, sleepable=sleepable, multi=multi, kind=kind, function=function
            )
        except OSError as error:
            raise _kernel_refused("an eBPF program", error) from error
        except ProgramRefused as wrong:
            raise _refused_program(code, labels, wrong) from None
        self._descriptors.append(file)
        return file

    # -- the end

    def stop(self) -> None:
        """Take all programs off. What happened until now can still be read."""
        with shielded():
            self._missed = self.missed
            self._running = False
            while self._links:
                os.close(self._links.pop())

    @property
    def lost(self) -> int:
        """Records that found the buffer full, so far."""
        return self._counted(0)

    @property
    def forgotten(self) -> int:
        """As that of every session."""
        return self._counted(FORGOTTEN)

    def _counted(self, offset: int) -> int:
        if self._open:
            self._totals = self._bpf.look_up(self._counters, _KEY, _COUNTERS)
        return int(struct.unpack_from("=Q", self._totals, offset)[0])

    @property
    def missed(self) -> tuple[int, int]:
        """As that of every session, as far as the kernel counts them."""
        if self._running:
            self._missed = self._missed_now()
        return self._missed

    def _missed_now(self) -> tuple[int, int]:
        counted = [0, 0]
        for probe, program, link in self._of_kernel:
            counted[probe.returning] += self._bpf.missed_runs(program)
            if probe.kind == "function" and "kprobe_misses" in self._rules.features:
                counted[probe.returning] += self._bpf.missed_hits(link)
        return counted[0], counted[1]

    def close(self) -> None:
        """Take everything away again. Can be called twice."""
        if not self._open:
            return
        with shielded():
            if os.getpid() == self._process and self._started:
                self._totals = self._bpf.look_up(self._counters, _KEY, _COUNTERS)
            self._open = self._reading = self._running = False
            for listed in (self._links, self._descriptors):
                while listed:
                    os.close(listed.pop())
            if self._followed is not None:
                self._followed.close()
            self._ring.close()
            self._files.close()


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
    fields: tuple[tuple[str, Fetch], ...], elapsed: str = "", context: tuple[Slot, ...] = ()
) -> Program:
    """The steps of an event's fields, on the running machine; see :func:`steps_of`."""
    return steps_of(fields, *_registers(), elapsed, context)


def _registers() -> tuple[str, str]:
    machine = architecture(os.uname().machine)
    return machine.registers[machine.stack_pointer], machine.result


def counting_of(
    plan: Plan,
    measures: tuple[str, ...],
    labels: Iterable[str],
    task: tuple[str, ...],
    calls: tuple[Program, ...] = (),
) -> Counting | None:
    """How the running kernel counts hits of ``plan``; None where the reader has to.

    ``measures`` are the labels of the numbers to count, ``labels`` those of the values that keys
    and filters need; ``task`` is what they need of the task: thread, process, cpu, comm. ``calls``
    are what :func:`calls_of` gives of a plan of returns.
    """
    if "compare_exchange" not in running()[0].features:
        return None
    always = (COMM,) if "comm" in task else ()
    task = tuple([one for one in task if one != "comm"])
    return counting(plan, measures, labels, task, always, _counting_program, calls)


def calls_of(plan: Plan, place: str, pushed: int, stack: str, end: str) -> tuple[Program, ...]:
    """As :func:`identified`, on the running machine."""

    def identify(frame: Term, goroutine: Term | None) -> Program:
        return call_steps(frame, goroutine, *_registers())

    return identified(plan, place, pushed, stack, end, identify)


def filter_of(plan: Plan, filter: Filter) -> tuple[tuple[Program, ...], bool]:
    """The programs of a filter, for each definition of a plan, and whether they test all of it.

    None of them where they test nothing.
    """
    found = [passing(plan, fields, filter) for fields in plan.fields]
    programs = []
    for one in found:
        program = None if one is None else filter_steps(one.condition, *_registers())
        if program is None or len(program.steps) > _FILTER_STEPS:
            return (), False
        programs.append(program)
    return tuple(programs), bool(found) and all(one is not None and one.whole for one in found)


@lru_cache(maxsize=1024)
def _counting_program(
    fields: tuple[tuple[str, Fetch], ...],
    measures: tuple[tuple[Fetch | None, bool], ...],
    task: tuple[str, ...],
) -> Program:
    return counting_steps(fields, measures, task, *_registers())


def _ring_bytes(buffer_kib: int | None) -> int:
    processors = os.cpu_count() or 1
    wanted = _CPU_BYTES * processors if buffer_kib is None else 1024 * buffer_kib * processors
    size = 1 << max(wanted - 1, 1).bit_length()
    return max(1 << 16, min(size, _MOST_BYTES))


def format_of(plan: Plan, program: Program, number: int, rules: BpfRules) -> Format:
    """The format of the records that ``program`` makes for ``plan``, under that number."""
    rooms = text_rooms(program, rules)
    found = _layout(number, plan.event, program, rooms[-1] if rooms else _NO_ROOM)
    if plan.kind == "return" and "get_func_ip" not in rules.helpers:
        return found
    fields = Field("__probe_ip", ADDRESS, 8, False, None, False), *found.fields
    if not any(one.name == COMM for one in fields):  # in the key of a table, where this is 0
        fields = *fields, Field(COMM, ADDRESS, 4, False, None, True)
    return Format(number, plan.event, fields, found.bpf)


def _layout(number: int, event: str, program: Program, longest: int) -> Format:
    fields = [
        Field(slot.name, slot.at, slot.size, slot.signed, slot.count, slot.text)
        for slot in program.slots
    ]
    walks = [
        (slot.name, step.entry)
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
        tuple([(name, _layout(number, event, entry, longest)) for name, entry in walks]),
    )
    return Format(number, event, tuple(fields), record)


# ------------------------------------------------------------------------------
# Which expression a field is of.


def _labels(plan: Plan) -> dict[str, str]:
    labels: dict[str, str] = {}
    for one in plan.values:
        for name in texts_in(one.shape):
            labels.setdefault(name, one.label)
    return labels


# ------------------------------------------------------------------------------
# Refusals.


_HELP = "`--engine tracefs` does without eBPF"
_RIGHTS = "run it as root, with `sudo`"


def cannot(why: str) -> TracerError:
    """FC0718, for ``raise cannot(...)``; ``why`` completes "because"."""
    missing = missing_capabilities(_needed(running()[0]))
    help = _RIGHTS if missing else _HELP
    return refused("FC0718", "eBPF cannot be used for this", notes=(why,), help=help)


def _kernel_refused(what: str, error: OSError) -> TracerError:
    missing = missing_capabilities(_needed(running()[0]))
    notes = [f"the kernel refused {what}: {error.strerror}"]
    if missing:
        notes.append(f"this process lacks {' and '.join(missing)}")
    elif error.errno == errno.EPERM:
        notes.append("see /sys/kernel/security/lockdown, and kernel.unprivileged_bpf_disabled")
    help = _RIGHTS if missing else _HELP
    return refused("FC0718", "eBPF cannot be used for this", notes=tuple(notes), help=help)


def _refused_program(code: Code, labels: dict[str, str], wrong: ProgramRefused) -> TracerError:
    notes = [f"the kernel said: {wrong.said}"]
    if wrong.instruction is not None:
        names, step = code.step_at(wrong.instruction)
        expressions = dict.fromkeys([f"`{labels[name]}`" for name in names if name in labels])
        about = f", for {', '.join(expressions)}" if expressions else ""
        notes.append(f"that is where the program {purpose(step)}{about}")
        notes.append(f"at instruction {wrong.instruction} of {len(code.instructions)}")
    what = "the kernel refused the eBPF program"
    return TracerError((Diagnostic("FC0717", what, notes=tuple(notes), help=_HELP),))
