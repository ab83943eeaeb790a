"""Breakpoints of the processor as events: for code that is in no file, and for writes to memory.

A runtime compiles methods into memory that no uprobe reaches. The processor compares the address
of each instruction, or of each byte that one writes, with four registers; perf sets them for the
threads of a process, and takes the registers and a piece of the stack at each hit. The program is
neither changed nor stopped. What is behind pointers is read when the sample is: after the hit. An
eBPF program can read it at the hit.

Sources: perf_event_open(2), "breakpoint"; kernel/events/hw_breakpoint.c of Linux 6.18; Intel SDM,
volume 3, 19.2 "Debug Registers".
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import select
import sys
import time
from contextlib import suppress
from functools import partial

from fetchc.diag.diagnostic import CompileError, TracerError
from fetchc.target.machines import architecture_key, table
from fetchc.tracer.decode import Decoder
from fetchc.tracer.fetched_records import FetchedRecord, Thread, record_format
from fetchc.tracer.perf_ring import PerfRing, sampled_machines
from fetchc.tracer.processes import all_processes, command_name, debugger_of
from fetchc.tracer.ring_buffer import unreadable
from fetchc.tracer.trace_instance import Processes, all_threads
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.tracer.bpf.sampled_programs import SampledPrograms
    from fetchc.tracer.events import Event, MappingChange, Plan, Sample
    from fetchc.tracer.file_changes import FileChanges
    from fetchc.tracer.perf_ring import SampledMachine
    from fetchc.tracer.ring_buffer import Records
    from fetchc.tracer.structure_values import Symbol
    from fetchc.tracer.tables import Row
    from fetchc.tracer.unwind import StackCopy

    Addresses = Mapping[str, Sequence[int]]
    # What makes records: of a sample, or the program of a look for threads.
    Maker = FetchedRecord | Callable[[int], int]

__all__ = [
    "BreakpointSession",
    "FoundSession",
    "TracedProcess",
    "most_breakpoints",
    "too_many",
]

_SOFTWARE, _BREAKPOINT = 1, 5  # PERF_TYPE_*
_BPF_OUTPUT = 10  # PERF_COUNT_SW_BPF_OUTPUT
_EXECUTE, _WRITE = 4, 2  # HW_BREAKPOINT_X, HW_BREAKPOINT_W
# Bits of struct perf_event_attr. The last two are of Linux 5.13: no child process has the
# breakpoints, nor the program that the process may become by execve(2).
_DISABLED = 1 << 0
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR, _USE_CLOCK = 1 << 1, 1 << 5, 1 << 6, 1 << 25
_THREADS_ONLY, _NOT_AFTER_EXEC = 1 << 35, 1 << 36
_ENABLE, _DISABLE, _SET_OUTPUT, _ID = 0x2400, 0x2401, 0x2405, 0x80082407  # PERF_EVENT_IOC_*
_COPIED = 512  # bytes of the stack: words of arguments that are passed there
_PROGRAM_END = 1 << 47  # no program of x86-64 has code from here on
_COMM_FRESH = 1_000_000_000  # nanoseconds
# Of a sample's record: the thread, the event's identity, what follows that.
_THREAD, _IDENTITY, _CONTENT = slice(12, 16), slice(24, 32), slice(32, None)
_FOLLOW = 0.01  # seconds between two looks at where methods have moved, without a wake-up
_SHOWN = 4  # processes in a message
# What perf_event_open(2) says of events that this kernel has not.
_ABSENT = (errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOENT, errno.ENOSYS)
_LOOKS = 0xFF  # the looks for threads that get a number of their own


def most_breakpoints() -> int:
    """How many addresses the processor compares at a time; 0: none, or not known of this machine.

    Source: HBP_NUM in arch/x86/include/asm/hw_breakpoint.h.
    """
    try:
        own = table(f"arch/{architecture_key(platform.machine())}")
    except CompileError:
        return 0
    return int(own.get("breakpoints", {}).get("count", 0))


class _HitMemory:
    """The memory of a thread: its stack as it was at the hit, all else as it is when it is read."""

    def __init__(self, process: TracedProcess, copy: StackCopy) -> None:
        self._process = process
        self._start = copy.stack_pointer
        self._stack = copy.memory

    def read(self, address: int, size: int) -> bytes:
        """The bytes from ``address`` on that can be read, at most ``size``."""
        at = address - self._start
        if at >= 0 and at + size <= len(self._stack):
            return self._stack[at : at + size]
        return self._process.read(address, size)


class TracedProcess:
    """What is read of the traced process: its memory, the names of its threads."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._names: dict[int, tuple[int, bytes]] = {}
        try:
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            raise refused("FC0707", f"there is no process {pid}") from None
        except PermissionError:
            what = f"the memory of process {pid} may not be read"
            raise refused("FC0701", what, help="run fetchc as root") from None

    def read(self, address: int, size: int) -> bytes:
        """The bytes that can be read from ``address`` on, at most ``size``."""
        if address >= _PROGRAM_END:
            return b""
        try:
            return os.pread(self._memory, size, address)
        except OSError:  # nothing is mapped there, or the process has ended
            return b""

    def name(self, thread: int, nanoseconds: int) -> bytes:
        """The name of a thread (comm), not older than a second."""
        known = self._names.get(thread)
        if known is not None and nanoseconds < known[0]:
            return known[1]
        try:
            with open(f"/proc/{self.pid}/task/{thread}/comm", "rb") as file:
                name = file.read().removesuffix(b"\n")
        except OSError:  # the thread has ended
            name = known[1] if known is not None else b""
        self._names[thread] = nanoseconds + _COMM_FRESH, name
        return name

    def close(self) -> None:
        """Let its memory go."""
        os.close(self._memory)


class _BreakpointRing(PerfRing):
    """The samples of breakpoints of one process, each with the record that its event would have."""

    def __init__(
        self, process: TracedProcess, machines: dict[int, SampledMachine], copied: int
    ) -> None:
        super().__init__(copied, machines)
        self._process = process
        self._placed: dict[int, list[int]] = {}  # files by address
        self._makers: dict[int, FetchedRecord] = {}  # by the identity of the file
        self._outputs: set[int] = set()  # identities of events whose samples have the record
        self._flags = _THREADS_ONLY | _NOT_AFTER_EXEC
        self._hits = 0  # of breakpoints that are gone
        self.programs: SampledPrograms | None = None
        """What makes records at the hit; None: they are made of samples."""

    def prepare(self) -> None:
        """Make the buffers, one for each processor."""
        self.open(_processors(), None, self._process.pid, at_once=True)

    def prepare_programs(self) -> None:
        """Make what programs need that record at the hit, where the machine allows them."""
        from fetchc.tracer.bpf.sampled_programs import sampled_programs

        outputs: dict[int, int] = {}
        try:
            for buffer in self._buffers:
                file = self._opened(_SOFTWARE, _BPF_OUTPUT, _USE_CLOCK, -1, buffer.cpu, 1)
                outputs[buffer.cpu] = file
                self._open.append(file)
                self._outputs.add(_identity(file))
                fcntl.ioctl(file, _SET_OUTPUT, buffer.owner)
        except OSError:
            return  # no right to see all processes, as such an event does
        self.programs = sampled_programs(outputs)

    @property
    def addresses(self) -> set[int]:
        """Where breakpoints are."""
        return set(self._placed)

    def place(self, address: int, maker: Maker, written: int | None = None) -> None:
        """Set a breakpoint for all threads: where code runs, or ``written`` bytes are written.

        Raises TracerError FC0720 where none is free.
        """
        place = (_EXECUTE, address, 8) if written is None else (_WRITE, address, written)
        self._placed[address] = []
        try:
            for number, threads in enumerate(all_threads(self._process.pid)):
                for thread in threads:
                    self._of_thread(place, thread, maker, number)
        except OSError as error:
            self.remove(address)
            raise _not_set(self._process.pid, error, f"at {address:#x} of") from error

    def _refused(self, error: OSError) -> TracerError:
        return _not_set(self._process.pid, error)

    def _of_thread(self, place: tuple[int, int, int], thread: int, maker: Maker, look: int) -> None:
        for buffer in self._buffers:
            try:
                file = self._breakpoint(place, thread, buffer.cpu)
            except OSError as error:
                if error.errno == errno.ESRCH:
                    return  # the thread has ended
                raise
            self._placed[place[1]].append(file)
            fcntl.ioctl(file, _SET_OUTPUT, buffer.owner)
            if isinstance(maker, FetchedRecord):
                self._makers[_identity(file)] = maker
            elif self.programs is not None:
                self.programs.attach(file, maker(look))
            fcntl.ioctl(file, _ENABLE, 0)

    def _breakpoint(self, place: tuple[int, int, int], thread: int, cpu: int) -> int:
        flags = _DISABLED | _INHERIT | _NO_HYPERVISOR | _USE_CLOCK
        if place[0] == _EXECUTE:
            flags |= _NO_KERNEL  # it writes memory of the program, too: read(2)
        try:
            return self._opened(_BREAKPOINT, 0, flags | self._flags, thread, cpu, 1, place)
        except OSError as error:
            if error.errno != errno.EINVAL or not self._flags:
                raise
            self._flags = 0  # a kernel before 5.13: samples of other processes are dropped
            return self._opened(_BREAKPOINT, 0, flags, thread, cpu, 1, place)

    def remove(self, address: int) -> None:
        """Take a breakpoint away; what it sampled can still be read."""
        for file in self._placed.pop(address, ()):
            fcntl.ioctl(file, _DISABLE, 0)
            self._hits += int.from_bytes(os.read(file, 8), sys.byteorder)
            os.close(file)

    def disable(self) -> None:
        """Take all breakpoints away."""
        for address in list(self._placed):
            self.remove(address)
        self._ended = True

    def wake_by(self, file: int) -> None:
        """Have :meth:`wait` return, too, when there is something to read of ``file``."""
        self._poll.register(file, select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Return when there is a hit, at the latest after ``seconds``: values are read at once."""
        self._poll.poll(min(seconds, _FOLLOW) * 1000)

    def _sample(self, record: bytes) -> Sample | None:
        sample = super()._sample(record)
        copy = () if sample is None else sample[5]
        if sample is None or isinstance(copy, tuple) or copy.process != self._process.pid:
            return None
        nanoseconds, cpu, made, at, _, _ = sample
        machine = self._machines[copy.abi]
        address = copy.registers[machine.program_counter]
        thread = int.from_bytes(record[_THREAD], "little")
        identity = int.from_bytes(record[_IDENTITY], "little")
        if identity in self._outputs:
            number, look = made[at], made[at + 1]
            # The record has times of its own: the registers and the stack are what both have.
            content = record[-self._stack_bytes - 8 * self._count :]
            return None if self._is_second((thread, number), look, content) else sample
        maker = self._makers.get(identity)
        # A thread that began meanwhile has inherited the breakpoint, and has one of its own.
        if maker is None or self._is_second((thread, maker.number), identity, record[_CONTENT]):
            return None
        names = machine.machine.registers
        hit = Thread(
            thread,
            address,
            {names[number]: value for number, value in copy.registers.items()},
            _HitMemory(self._process, copy),
            self._process.name(thread, nanoseconds),
        )
        made = maker.make(hit)
        return nanoseconds, cpu, made, 0, len(made), copy

    def _counted(self) -> int | None:
        return self._hits

    def close(self) -> None:
        """Let everything go; what is in the buffers is lost."""
        self.disable()
        if self.programs is not None:
            self.programs.close()
        super().close()


class BreakpointSession:
    """A context manager, as :class:`~fetchc.tracer.session.Session` is, for code of one process.

    ``plans`` have their addresses in the process. ``moved`` says where the code of each event is
    now, the newest first; it is asked when ``map`` has changed. ``copied`` bytes of the stack come
    with each event. Without ``programs``, eBPF is not used. Raises TracerError FC0701, FC0707,
    FC0720.
    """

    def __init__(
        self,
        pid: int,
        plans: Sequence[Plan] = (),
        moved: Callable[[], Addresses] | None = None,
        copied: int | None = None,
        map: FileChanges | None = None,
        programs: bool = True,
    ) -> None:
        self.symbol: Symbol | None = None
        self.decoders: dict[int, Decoder] = {}
        self.note: Callable[[str], None] = lambda text: None
        """Takes what the user has to know of methods that moved."""

        self._pid = pid
        self._added = plans
        self._moved = moved
        self._map = map
        self._with_programs = programs
        self._copied = copied or _COPIED
        self._plans: dict[str, Plan] = {}
        self._makers: dict[str, Maker] = {}
        self._addresses: dict[str, tuple[int, ...]] = {}
        self._ring: _BreakpointRing | None = None
        self._process: TracedProcess | None = None
        self._running = self._reading = False
        self._unchanged = 0  # when all code was known to be where the breakpoints are
        self._lost = 0

    def __enter__(self) -> BreakpointSession:
        machines = sampled_machines()
        if not machines or not most_breakpoints():
            what = "execution breakpoints are not supported on this machine"
            raise refused("FC0720", what, help="trace precompiled code: it has uprobes")
        self._process = TracedProcess(self._pid)
        self._ring = _BreakpointRing(self._process, machines, self._copied)
        try:
            self._ring.prepare()
            if self._with_programs:
                self._ring.prepare_programs()
            if self._map is not None and self._map.fileno() >= 0:
                self._ring.wake_by(self._map.fileno())
            self.add(*self._added)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, *plans: Plan) -> None:
        """Take plans, each with its address in the process. Raises TracerError FC0720 for many."""
        count, most = len(self._plans) + len(plans), most_breakpoints()
        if count > most:
            why = "code that is compiled at run time is traced by breakpoints"
            raise too_many(f"process {self._pid}", count, "functions", (why,))
        for plan in plans:
            if plan.walks:
                help = "`--engine bpf` walks a container"
                raise refused("FC0314", "what a breakpoint records has no loop", help=help)
            number = len(self._plans) + 1
            self._plans[plan.event] = plan
            self._addresses[plan.event] = (plan.address,)
            self._makers[plan.event] = self._maker(plan, number)

    @property
    def at_hit(self) -> bool:
        """Whether values are read at the hit, by programs; else they are read after it."""
        return self._ring is not None and self._ring.programs is not None

    def recorded(self, plan: Plan) -> Plan:
        """A plan as it is recorded: ``at_hit`` where a program reads its values."""
        return self._plans.get(plan.event) or plan.replaced(at_hit=self.at_hit)

    def _bytes(self, plan: Plan) -> int | None:
        # Of the variable whose writes are hits; None: the hits are executions.
        return None

    def _maker(self, plan: Plan, number: int) -> Maker:
        assert self._ring is not None
        if self._ring.programs is not None:
            with suppress(TracerError):  # it is too large for a program
                read_then = plan.replaced(at_hit=True)
                maker = self._program(self._ring.programs, read_then, number)
                self._plans[plan.event] = read_then
                return maker
        format = record_format(number, plan)
        self.decoders[number] = Decoder(format, [plan], Processes(None), self.symbol)
        return FetchedRecord(number, plan.fields[0])

    def _program(self, programs: SampledPrograms, plan: Plan, number: int) -> Maker:
        loaded: dict[int, int] = {}

        # A thread that is found late may have inherited the breakpoint, and gets one of its own: so
        # each look for threads has a program with a number of its own.
        def program(look: int) -> int:
            if look not in loaded:
                own = number | min(look, _LOOKS) << 8
                loaded[look], self.decoders[own] = programs.load(plan, own, self.symbol)
            return loaded[look]

        program(0)
        return program

    def start(self) -> None:
        """Set the breakpoints."""
        self._running = self._reading = True
        self._follow()
        self._arrange()

    def _follow(self) -> None:
        # Where the methods are now; raises TracerError where a new one cannot be followed.
        since, self._unchanged = self._unchanged, time.monotonic_ns()
        if self._moved is None or self._map is None or not self._map.changed():
            return
        again: list[str] = []
        for event, addresses in self._moved().items():
            before, name = self._addresses[event], self._plans[event].function
            if tuple(addresses) == before:
                continue
            self._addresses[event] = tuple(addresses)
            if self._plans[event].kind == "return-site":
                continue  # the note is about the entry of that code
            if not addresses:
                self.note(f"`{name}` has no code any more: its memory has other code")
            elif self._ring is not None and before[:1] != addresses[:1] and self._ring.addresses:
                again.append(f"`{name}` was compiled again, and is followed to {addresses[0]:#x}")
        self._arrange()
        missed = (time.monotonic_ns() - since) / 1e6
        for text in again:
            self.note(f"{text}: calls of the {missed:.1f} ms before may be missing")

    def _arrange(self) -> None:
        # The newest code of each method, then older code of them as far as breakpoints are left: a
        # thread may be on its way there.
        assert self._ring is not None
        newest = {at[0]: event for event, at in self._addresses.items() if at}
        older = [(at, event) for event, all_ in self._addresses.items() for at in all_[1:]]
        wanted = dict(newest)
        for address, event in older:
            if len(wanted) < most_breakpoints():
                wanted.setdefault(address, event)
        for address in self._ring.addresses - wanted.keys():
            self._ring.remove(address)
        for address, event in wanted.items():
            if address in self._ring.addresses:
                continue
            place = partial(
                self._ring.place, address, self._makers[event], self._bytes(self._plans[event])
            )
            try:
                place()
            except TracerError:
                # Others have breakpoints there, too: older code gives its own to the newest.
                spare = self._ring.addresses - newest.keys()
                if address not in newest:
                    continue
                if not spare:
                    raise
                for one in spare:
                    self._ring.remove(one)
                place()

    def stop(self) -> None:
        """Take the breakpoints away. What happened until now can still be read."""
        if self._running and self._ring is not None:
            self._running = False
            self._ring.disable()

    def records(self, timeout: float | None = None) -> Iterator[list[list[Records]]]:
        """As :meth:`~fetchc.tracer.session.Session.records`."""
        end = None if timeout is None else time.monotonic() + timeout
        ring = self._ring
        while self._reading and ring is not None:
            ended = not self._running
            parts = ring.read(ended)
            self._reading = not ended
            for part in parts:
                yield [part]
                ring.collect()
                if not ended:
                    self._follow()  # however much there is to show
            if not ended:
                self._follow()
            left = 1.0 if end is None else end - time.monotonic()
            if left <= 0:
                return
            if not ended:
                ring.wait(left)
                ring.collect()

    def event(self, sample: Sample) -> Event:
        """The event of a record."""
        _, _, page, at, _, _ = sample
        decoder = self.decoders.get(page[at] | page[at + 1] << 8)
        if decoder is None:
            raise unreadable("one is of no event of this session")
        event = decoder.event(sample)
        event.pid = self._pid
        return event

    @property
    def changes(self) -> deque[MappingChange]:
        """What changed the mappings of the process; to be taken out."""
        assert self._ring is not None
        return self._ring.changes

    def counted(self) -> Iterable[tuple[Event, Row]]:
        """What the kernel counted instead of recording it: nothing."""
        return ()

    def filters(self, plan: Plan) -> bool:
        """Whether what the kernel counted of a plan has passed its filter."""
        return False

    @property
    def forgotten(self) -> int:
        """Calls that the kernel timed, and had no room for until their return."""
        return 0

    @property
    def lost(self) -> int:
        """Hits without a record: see ``lost`` of the ring."""
        if self._ring is not None:
            self._lost = self._ring.lost
        return self._lost

    @property
    def missed(self) -> tuple[int, int]:
        """None: a breakpoint is never passed over."""
        return 0, 0

    def warnings(self) -> tuple[Diagnostic, ...]:
        """None."""
        return ()

    def close(self) -> None:
        """Take everything away. Can be called twice."""
        self._running = self._reading = False
        if self._ring is not None:
            self._lost = self._ring.lost
            ring, self._ring = self._ring, None
            ring.close()
        if self._process is not None:
            process, self._process = self._process, None
            process.close()


class FoundSession(BreakpointSession):
    """As :class:`BreakpointSession`, of a program whose files are loaded while it starts.

    ``find`` gives each of the plans for where it is in the process; while it says None, it is asked
    again. Values are read at the hit, by programs, where the machine allows them.
    """

    def __init__(
        self,
        pid: int,
        plans: Sequence[Plan],
        find: Callable[[Plan], Plan | None],
        copied: int | None = None,
    ) -> None:
        super().__init__(pid, copied=copied)
        self.waiting = list(plans)
        """Those that are not placed yet."""

        self.all_found: Callable[[], None] = lambda: None
        """Called when no plan waits any more."""

        self._find = find

    def _maker(self, plan: Plan, number: int) -> Maker:
        # Raises TracerError FC0718 where a program cannot: who shows values has no mark for them.
        assert self._ring is not None
        programs = self._ring.programs
        if programs is None:
            return super()._maker(plan, number)
        return self._program(programs, plan, number)

    def look(self) -> None:
        """Place those plans that wait and can be found by now."""
        for waiting in list(self.waiting):
            plan = self._find(waiting)
            if plan is not None:
                self._place(plan)
                self.waiting.remove(waiting)
                if not self.waiting:
                    self.all_found()

    def _follow(self) -> None:
        self.look()

    def _place(self, plan: Plan) -> None:
        self.add(plan)
        self._arrange()


def _identity(file: int) -> int:
    return int.from_bytes(fcntl.ioctl(file, _ID, bytes(8)), "little")


def _processors() -> list[int]:
    # "0-3,5": sysfs, /sys/devices/system/cpu/online.
    with open("/sys/devices/system/cpu/online", encoding="ascii") as file:
        text = file.read().strip()
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def too_many(
    whose: str, count: int, what: str, notes: tuple[str, ...] = (), help: str = ""
) -> TracerError:
    """FC0720 for ``count`` addresses; ``what``: that of which fewer are to be named."""
    most = most_breakpoints()
    return refused(
        "FC0720",
        f"{count} addresses of {whose} are wanted, and the processor compares {most} at a time",
        notes=notes,
        help=help or f"name at most {most} {what}",
    )


def _not_set(pid: int, error: OSError, where: str = "in") -> TracerError:
    name = errno.errorcode.get(error.errno or 0, "")
    notes = [f"perf_event_open: {os.strerror(error.errno or 0)} ({name})"]
    help = "run fetchc as root"
    if error.errno in (errno.ENOSPC, errno.EBUSY):
        tracer = debugger_of(pid)
        others = [tracer] if tracer else _users_of_perf()
        listed = ", ".join([f"process {one} ({command_name(one)})" for one in others])
        what_for = "debugs it" if tracer else "may have them, by events of perf"
        who = f"{listed} {what_for}" if others else "a process that is not seen here has them"
        notes.append(f"all breakpoints of the processor are taken: {who}")
        other = f"process {others[0]}" if others else "the other one"
        help = f"end {other}, or name fewer functions or variables"
    elif error.errno == errno.EMFILE:
        notes.append("each address takes an open file for each thread and processor")
        help = "raise the limit of open files: `ulimit -n`"
    elif error.errno in _ABSENT:
        notes.append("this kernel has no breakpoints of the processor: a guest's may have none")
        help = "probe code of a file by uprobes: `-x FILE`, without `--engine breakpoint`"
    what = f"no breakpoint can be set {where} process {pid}"
    return refused("FC0720", what, notes=tuple(notes), help=help)


def _users_of_perf() -> list[int]:
    # The other processes that have events of perf open, which breakpoints may be.
    found = []
    for pid in all_processes():
        folder = f"/proc/{pid}/fd"
        with suppress(OSError):  # it has ended, or is another user's
            links = {os.readlink(f"{folder}/{each}") for each in os.listdir(folder)}
            if pid != os.getpid() and "anon_inode:[perf_event]" in links:
                found.append(pid)
    return found[:_SHOWN]
