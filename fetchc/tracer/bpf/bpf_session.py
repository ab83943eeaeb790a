"""A session whose records are made by eBPF programs, and end with it whatever happens."""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections import deque

from fetchc.debuginfo.safe_open import open_regular
from fetchc.diag.diagnostic import Diagnostic, TracerError
from fetchc.emit.bpf_calls import CALL_BYTES, FORGOTTEN, Call, entry_code, open_bytes
from fetchc.emit.bpf_counting import Counted, Entry, key_bytes, keyed_record
from fetchc.emit.bpf_layout import TooLarge
from fetchc.emit.bpf_program import children_code, ended_code, executed_code, ring_record
from fetchc.emit.bpf_steps import (
    FOLLOWED,
    STOPPED,
    THREADS,
    WAITING,
    Maps,
    Point,
    StackRoom,
    Target,
    purpose,
)
from fetchc.ir.fetch import Decode, OfHit
from fetchc.ir.steps import CPU, Aggregate
from fetchc.record import Record
from fetchc.target.machines import architecture
from fetchc.tracer.bpf.bpf_ring import BpfRing, CopiedStacks, WalkedStacks
from fetchc.tracer.bpf.counting import Counting, row_of
from fetchc.tracer.bpf.features import MORE_FILES, WITHOUT, cannot, refusals, running
from fetchc.tracer.bpf.kernel_probes import Unprobed, kernel_probe, task_offset, with_thread_pointer
from fetchc.tracer.bpf.noted_values import Entering, words_of
from fetchc.tracer.bpf.plan_programs import (
    RECORDED,
    format_of,
    labels_of,
    program_of,
    recorded_fields,
    unable,
)
from fetchc.tracer.bpf.system_calls import (
    Attachment,
    Bpf,
    PinnedLinks,
    ProgramRefused,
    close_links,
    lift_memory_limit,
)
from fetchc.tracer.decode import Decoder
from fetchc.tracer.events import ELAPSED, EventValue
from fetchc.tracer.install import ProbedPlace, probed_place
from fetchc.tracer.kallsyms import has_symbol, refuse_ambiguous, why_absent
from fetchc.tracer.ring_buffer import parse_format
from fetchc.tracer.session import Session, shielded
from fetchc.tracer.trace_instance import all_threads, check_namespace
from fetchc.tracer.tracefs import find_tracefs, refused
from fetchc.tracer.value_shapes import Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fetchc.emit.bpf_steps import Code
    from fetchc.ir.fetch import Term
    from fetchc.ir.steps import Program
    from fetchc.tracer.bpf.kernel_probes import KernelProbe
    from fetchc.tracer.events import Event, MappingChange, Plan
    from fetchc.tracer.tables import Row
    from fetchc.tracer.tracefs import Tracefs

__all__ = ["BpfSession"]

_CPU_BYTES = 16 << 20  # of the ring buffer, for each processor
_LEAST_BYTES, _MOST_BYTES = 1 << 16, 64 << 20
_POINTS = 1 << 16  # the plan's number has 16 bits
_ENTRIES = 1 << 14  # of all maps that count together; what is too much for one is recorded
_LEAST_ENTRIES = 8  # of one map
_WALKED = 127  # return addresses: kernel.perf_event_max_stack
_MAPPINGS_KIB = 1024  # of each processor's buffer for changes of mappings
_COUNTERS = 24  # bytes: records lost, calls forgotten, whether hits are left out
_OPEN_CALLS = 1 << 15
_LONGEST_FIRST = 4  # bytes of an instruction that a function can begin with
_FEW_LINKS = 8  # of a killed process, which end in less than a second
_FORK = "sched_process_fork"


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
    entering: bool


class _Filled(Record):
    """A map that a program fills, by the numbers of its plans; ``read`` is what it had last."""

    file: int
    program: Program
    plans: dict[int, tuple[Decoder, Counting]]
    read: dict[bytes, bytes]


class BpfSession(Session):
    """As :class:`~fetchc.tracer.session.Session`; eBPF programs record the hits.

    Entering raises TracerError where the kernel refuses (FC0718), and :meth:`add` for a plan that
    no program can record: see :func:`~fetchc.tracer.bpf.plan_programs.unable`. ``countings``, by
    the plan's event: their hits are counted in the kernel, and what cannot be counted there is
    recorded, as those of other plans. ``filters``, by the plan's event and for each definition, are
    of hits that the reader need not see. ``only`` is called before :meth:`start`.
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
        self._calls: tuple[int, int] | None = None  # the map of those that are open, an empty value
        self._stack: StackRoom | None = None
        self._with_caller: set[int] = set()  # numbers of records: see WalkedStacks
        self._filled: list[_Filled] = []
        self._of_kernel: list[tuple[KernelProbe, int, int]] = []  # with programs and links
        self._totals = bytes(_COUNTERS)
        self._counter_memory: mmap.mmap | None = None  # the counters, until the end
        self._rules, machine = running()
        if machine is None:
            raise cannot(f"programs for `{os.uname().machine}` are not supported")
        self._architecture = architecture(os.uname().machine)
        self._machine = machine
        self._bpf = Bpf(machine)
        self._pinned = PinnedLinks(self._bpf)
        self._bpf_ring = BpfRing(self._bpf.barrier)
        self._ring = self._bpf_ring
        try:
            with shielded(), refusals("a ring buffer"):
                self._open = True
                self._bpf.barrier()
                if "memlock_free" not in self._rules.features:
                    lift_memory_limit()
                size = self._ring_map()
                self._counters = self._map("array", 4, _COUNTERS, 1, shared=True)
                self._counter_memory = mmap.mmap(self._counters, mmap.PAGESIZE)
                self._set_stopped(True)
                self._bpf_ring.map(self._ring_file, size)
        except BaseException:
            self.close()
            raise
        return self

    def _ring_map(self) -> int:
        # Its size: less where a control group limits memory, of which others need some as well.
        size = _ring_bytes(self._buffer_kib)
        while True:
            try:
                self._ring_file = self._map("ringbuf", 0, 0, size)
            except OSError as error:
                if error.errno != errno.ENOMEM or size == _LEAST_BYTES:
                    raise
                size = max(_LEAST_BYTES, size >> 3)
            else:
                return size

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
            for key, value in self._entries_of(filled.file, size, value_size):
                before = filled.read.get(key)
                if before == value:
                    continue
                filled.read[key] = value
                record = keyed_record(program, key)
                decoder, counting = filled.plans[record[0] | record[1] << 8]
                (first,) = struct.unpack_from("=Q", value, Entry.FIRST)
                (cpu,) = struct.unpack_from("=I", record, CPU)
                event = decoder.event((first, cpu, record, 0, len(record), ()))
                found.append((first, event, row_of(counting, program, record, value, before)))
        found.sort(key=lambda one: one[0])
        yield from [(event, row) for _, event, row in found if row.hits]

    def _entries_of(self, file: int, key: int, value: int) -> Iterator[tuple[bytes, bytes]]:
        with refusals("to read what was counted"):
            yield from self._bpf.entries(file, key, value)

    def stacks(self, copied: int | None = None) -> None:
        """As that of every session; the copy, or what the kernel walks, is in each record."""
        from fetchc.tracer.perf_ring import PerfRing, sampled_machines

        self.entered()
        machines = sampled_machines() if copied is not None else {}
        if not all(self.copies(one) for one in self._added):
            machines = {}
        if copied is None or not machines:
            self._stack = StackRoom(0, 0, _WALKED)
            self._bpf_ring.split = WalkedStacks(self._stack, self._with_caller).split
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
        with shielded(), refusals("to follow processes"):
            followed = self._follow()
            for process in wanted:
                for threads in all_threads(process):
                    for thread in threads:
                        followed[thread] = WAITING if waiting else FOLLOWED

    def _follow(self) -> mmap.mmap:
        if self._followed is not None:
            return self._followed
        self._threads = self._map("array", 4, THREADS, 1, shared=True)
        self._followed = mmap.mmap(self._threads, THREADS)
        self._follow_children()
        rules, maps = self._rules, self._maps()
        codes = {
            "sched_process_exit": ended_code(rules, maps),
            "sched_process_exec": executed_code(rules, maps),
        }
        for name, code in codes.items():
            program = self._load(code, {}, kind="raw_tracepoint")
            self._links += self._bpf.attach_raw_tracepoint(program, name)
        return self._followed

    def _follow_children(self) -> None:
        rules, maps = self._rules, self._maps()
        try:
            forking = find_tracefs().read("events", "sched", _FORK, "format")
        except (TracerError, OSError):  # without the rights for tracefs: BTF is open to everybody
            try:
                child = task_offset("pid")
            except Unprobed as unprobed:
                raise cannot(str(unprobed)) from None
            program = self._load(children_code(rules, maps, child, True), {}, kind="raw_tracepoint")
            self._links += self._bpf.attach_raw_tracepoint(program, _FORK)
            return
        format = parse_format(forking)
        child = next(one.offset for one in format.fields if one.name == "child_pid")
        program = self._load(children_code(rules, maps, child, False), {}, kind="tracepoint")
        self._links += self._bpf.attach_tracepoint(program, format.id)

    def _maps(self) -> Maps:
        return Maps(self._ring_file, self._counters, self._threads)

    def start(self) -> None:
        """Load and attach what was added, and have all of it record at once."""
        self.entered()
        self._install()
        self._set_stopped(False)
        self._missed = self._missed_now()  # it is refused now, and not at the end
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
        try:
            self._machine = with_thread_pointer(self._machine, plans)
        except Unprobed as unprobed:
            raise cannot(str(unprobed)) from None
        groups: dict[_Group, list[tuple[Point, ProbedPlace, Plan]]] = {}
        refuse_ambiguous([line for plan in plans if plan.of_kernel for line in plan.definitions])
        kernel_plans = [plan for plan in plans if plan.of_kernel]
        for plan in plans:
            if plan.of_kernel:
                continue
            numbers: dict[tuple[Program, bool], int] = {}
            counting = self._countings.get(plan.event)
            for at, line in enumerate(plan.definitions):
                probed, fields = probed_place(self._files.named(line)), plan.fields[at]
                program, number = None, 0
                if _records(counting):
                    further, words = _of_call(counting)
                    program = program_of(recorded_fields(plan, fields), words)
                    kind = program, self._walks_caller(plan, probed)
                    if kind not in numbers:
                        numbers[kind] = self._number(plan, program, further)
                    number = numbers[kind]
                    if kind[1]:
                        self._with_caller.add(number)
                point = Point(number, probed.offset, probed.returning)
                group = self._group(plan, at, probed.path, probed.returning, program)
                groups.setdefault(group, []).append((point, probed, plan))
        maps = sum(group.counted is not None for group in groups)
        for plan in kernel_plans:
            if isinstance(self._countings.get(plan.event), Counting):
                maps += len(plan.definitions)
        self._entries = max(_LEAST_ENTRIES, _ENTRIES // max(1, maps))
        for plan in kernel_plans:
            self._attach_kernel(plan)
        before = len(self._links)
        for group, points in groups.items():
            if "cookies" in self._rules.features:
                self._attach_group(group, points)
            else:
                for one in points:
                    self._attach_group(group, [one])
        added = self._links[before:]
        if "uprobe_multi" in self._rules.features and len(added) > _FEW_LINKS:
            self._pinned.add(added)

    def _walks_caller(self, plan: Plan, probed: ProbedPlace) -> bool:
        # Whether the kernel takes the probed instruction for the first of a function.
        walked = self._stack is not None and self._stack.walked
        if not walked or plan.kind != "entry" or "entry_callers" not in self._rules.features:
            return False
        handle, _ = open_regular(probed.path)
        try:
            code = os.pread(handle, _LONGEST_FIRST, probed.offset).hex()
        finally:
            os.close(handle)
        firsts = self._machine.first_instructions
        symbol = next((firsts[one] for one in firsts if code.startswith(one)), None)
        return symbol == "" or (symbol is not None and has_symbol(symbol))

    def _attach_kernel(self, plan: Plan) -> None:
        for at, line in enumerate(plan.definitions):
            probe = planned = kernel_probe(plan, line)
            while True:
                try:
                    # Steps that count or test are of what the kernel gives the planned probe.
                    self._attach_probe(plan, at, probe, probe.context == planned.context)
                    break
                except TracerError:
                    if probe.otherwise is None:
                        raise
                    probe = probe.otherwise

    def _attach_probe(self, plan: Plan, at: int, probe: KernelProbe, as_planned: bool) -> None:
        line, fields = plan.definitions[at], recorded_fields(plan, plan.fields[at])
        counting = self._countings.get(plan.event)
        program, number = None, 0
        if _records(counting):
            further, words = _of_call(counting)
            program = program_of(fields, words, probe.context, probe.symbols)
            number = self._number(plan, program, further)
        group = self._group(plan, at, "", probe.returning, program)
        if not as_planned:
            group = group.replaced(counted=None, filter=None)
        point = Point(number, 0, probe.returning)
        try:
            code = self._code(group, [(number, plan)], point, probe.sleepable, probe.probed)
        except TooLarge as large:
            raise cannot(str(large)) from None
        loaded = self._load(
            code,
            labels_of(plan),
            sleepable=probe.sleepable,
            kind=probe.program,
            function=probe.function,
            module=probe.module,
        )
        try:
            opened = probe.attach(self._bpf, loaded, "kprobe_misses" in self._rules.features)
            self._links += opened
            self._of_kernel.append((probe, loaded, opened[0]))
        except OSError as error:
            notes = () if probe.kind in ("event", "tracepoint") else why_absent(line)
            refusal = _refused_probe(plan, error, *notes)
            said = [one.replaced(reason="refused probe") for one in refusal.diagnostics]
            raise TracerError(tuple(said)) from error

    def _group(
        self, plan: Plan, at: int, path: str, returning: bool, program: Program | None
    ) -> _Group:
        # Of the definition of that number.
        counting, filters = self._countings.get(plan.event), self._filter_programs.get(plan.event)
        counted = counting.programs[at] if isinstance(counting, Counting) else None
        call = counting.calls[at] if counting is not None and counting.calls else None
        filter = None if filters is None else filters[at]
        entering = isinstance(counting, Entering)
        return _Group(path, returning, program, counted, call, filter, entering)

    def _number(self, plan: Plan, program: Program, further: Sequence[EventValue]) -> int:
        # Of a layout of records: the addresses of a plan can have several.
        number = len(self.decoders)
        if number >= _POINTS:
            raise cannot(f"a session has {_POINTS} kinds of records at most")
        format = format_of(plan, program, number, self._rules)
        if further:  # a decoder knows a plan by its identity
            plan = plan.replaced(values=(*plan.values, *further))
        self.decoders[number] = Decoder(format, [plan], RECORDED, self.symbol)
        return number

    def _attach_group(self, group: _Group, points: list[tuple[Point, ProbedPlace, Plan]]) -> None:
        alone = points[0][0] if len(points) == 1 else None
        sleepable, multi = (name in self._rules.features for name in ("sleepable", "uprobe_multi"))
        try:
            numbers = [(point.number, plan) for point, _, plan in points]
            code = self._code(group, numbers, alone, sleepable)
        except TooLarge as large:
            raise cannot(str(large)) from None
        named = labels_of(points[0][2])
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
        # A process may have few open files, and the links hold the program.
        self._descriptors.remove(program)
        os.close(program)

    def _code(
        self,
        group: _Group,
        numbers: Sequence[tuple[int, Plan]],
        alone: Point | None,
        sleepable: bool,
        probed: str = "program",
    ) -> Code:
        machine, rules, maps = self._machine, self._rules, self._maps()
        call, counted = None, None
        if group.call is not None:
            noted = max(words_of(one.noted) for one in self._countings.values())
            if self._calls is None:
                size = open_bytes(noted)
                calls = self._room("open calls", CALL_BYTES, size, _OPEN_CALLS)
                self._calls = calls, self._room("an open call", 4, size, 1, "array")
            call = Call(group.call, *self._calls, noted)
        if group.program is None:
            assert call is not None
            target = Target(machine, rules, maps, alone, group.returning, sleepable, None, probed)
            return entry_code(call, target)
        if group.counted is not None:
            counted = self._counting_map(group.counted, numbers)
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
            probed,
            group.entering,
        )

    def _room(self, what: str, key: int, value: int, entries: int, kind: str = "hash") -> int:
        with refusals(f"a map for {what}"):
            return self._map(kind, key, value, entries)

    def _counting_map(self, program: Program, numbers: Iterable[tuple[int, Plan]]) -> Counted:
        aggregate = program.steps[-1]
        assert isinstance(aggregate, Aggregate)
        value = Entry.at(len(aggregate.measures))
        key = key_bytes(program)
        file = self._room("counts", key, value, self._entries)
        list(self._entries_of(file, key, value))  # it is refused now, and not when all is counted
        plans: dict[int, tuple[Decoder, Counting]] = {}
        for number, plan in numbers:
            counting = self._countings[plan.event]
            assert isinstance(counting, Counting)
            format = format_of(counting.plan, program, number, self._rules)
            decoder = Decoder(format, [counting.plan], RECORDED, self.symbol)
            plans[number] = decoder, counting
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
        return _refused_probe(plan, error, f"at {plan.path}:{probed.offset:#x}")

    def _load(
        self,
        code: Code,
        labels: dict[str, str],
        sleepable: bool = False,
        multi: bool = False,
        kind: str = "probe",
        function: int = 0,
        module: str = "",
    ) -> int:
        try:
            with refusals("an eBPF program"):
                file = self._bpf.load(
                    code,
                    sleepable=sleepable,
                    multi=multi,
                    kind=kind,
                    function=function,
                    module=module,
                )
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
            self._close_links()

    def _set_stopped(self, stopped: bool) -> None:
        if self._counter_memory is not None:
            struct.pack_into("=Q", self._counter_memory, STOPPED, stopped)

    def _close_links(self) -> None:
        self._set_stopped(True)
        self._pinned.close()
        close_links(self._links)

    @property
    def lost(self) -> int:
        """Records that found the buffer full, so far."""
        return self._counted(0)

    @property
    def forgotten(self) -> int:
        """As that of every session."""
        return self._counted(FORGOTTEN)

    def _counted(self, offset: int) -> int:
        if self._counter_memory is not None:
            self._totals = self._counter_memory[:_COUNTERS]
        return int(struct.unpack_from("=Q", self._totals, offset)[0])

    @property
    def missed(self) -> tuple[int, int]:
        """As that of every session, as far as the kernel counts them."""
        if self._running:
            self._missed = self._missed_now()
        return self._missed

    def _missed_now(self) -> tuple[int, int]:
        counted = [0, 0]
        with refusals("to say how many hits were missed"):
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
            self._open = self._reading = self._running = False
            self._close_links()
            if self._counter_memory is not None:
                self._totals = self._counter_memory[:_COUNTERS]
                self._counter_memory.close()
                self._counter_memory = None
            while self._descriptors:
                os.close(self._descriptors.pop())
            if self._followed is not None:
                self._followed.close()
            self._ring.close()
            self._files.close()


def _records(counting: Counting | Entering | None) -> bool:
    # An entry that notes nothing has no record: nothing of it can fail.
    return not isinstance(counting, Entering) or bool(counting.noted)


def _of_call(
    counting: Counting | Entering | None,
) -> tuple[tuple[EventValue, ...], tuple[tuple[str, tuple[Term, ...]], ...]]:
    # What the record of a return has of its call, as values and as words: the time, and what the
    # entry has noted.
    if not isinstance(counting, Counting) or not counting.calls:
        return (), ()
    values = [EventValue(one.label, one.shape) for one in counting.noted]
    words = [(name, terms) for one in counting.noted for name, terms, _ in one.fields]
    time = EventValue(ELAPSED, Leaf(ELAPSED, Decode("integer")))
    return (time, *values), ((ELAPSED, (OfHit("elapsed"),)), *words)


def _ring_bytes(buffer_kib: int | None) -> int:
    processors = os.cpu_count() or 1
    wanted = _CPU_BYTES * processors if buffer_kib is None else 1024 * buffer_kib * processors
    size = 1 << max(wanted - 1, 1).bit_length()
    return max(_LEAST_BYTES, min(size, _MOST_BYTES))


def _refused_probe(plan: Plan, error: OSError, *further: str) -> TracerError:
    what = f"the kernel refused a probe of `{plan.function or plan.event}`"
    help = MORE_FILES if error.errno == errno.EMFILE else WITHOUT
    notes = (f"its error is: {error.strerror}", *further)
    return refused("FC0705", what, notes=notes, help=help)


def _refused_program(code: Code, labels: dict[str, str], wrong: ProgramRefused) -> TracerError:
    notes = [f"the kernel said: {wrong.said}"]
    if wrong.instruction is not None:
        names, step = code.step_at(wrong.instruction)
        expressions = dict.fromkeys([f"`{labels[name]}`" for name in names if name in labels])
        about = f", for {', '.join(expressions)}" if expressions else ""
        notes.append(f"that is where the program {purpose(step)}{about}")
        notes.append(f"at instruction {wrong.instruction} of {len(code.instructions)}")
    what = "the kernel refused the eBPF program"
    said = Diagnostic("FC0717", what, notes=tuple(notes), help=WITHOUT, reason="refused program")
    return TracerError((said,))
