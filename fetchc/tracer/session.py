"""A tracing session: plans go into the kernel, events come out, and all is removed at the end."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from contextlib import ExitStack, contextmanager

from fetchc.diag.diagnostic import TracerError
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.tracer.decode import Decoder
from fetchc.tracer.install import (
    ProbedFiles,
    group_and_event,
    install,
    kernel_events,
    leftover_warnings,
    leftovers,
    missed,
    uninstall,
)
from fetchc.tracer.processes import WatchedFiles
from fetchc.tracer.ring_buffer import Ring, in_order, parse_format, unreadable
from fetchc.tracer.trace_instance import Instance, Processes, remove_instance
from fetchc.tracer.tracefs import find_tracefs, refused, session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType, TracebackType

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.tracer.events import Event, MappingChange, Plan, Sample
    from fetchc.tracer.perf_ring import PerfRing
    from fetchc.tracer.ring_buffer import Records
    from fetchc.tracer.structure_values import Symbol
    from fetchc.tracer.tables import Row
    from fetchc.tracer.tracefs import Tracefs

__all__ = ["ENDING", "Session", "postponed", "shielded", "terminable"]

# ------------------------------------------------------------------------------
# Signals: blocked while something is half done, or raised as exceptions to clean up.

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that end a process from outside: Ctrl-C, `kill`, a closed terminal, Ctrl-\\."""


@contextmanager
def shielded() -> Iterator[None]:
    """Hold signals that end a process back until the block is done.

    They are blocked for the calling thread: a program that handles signals in its main thread
    while it traces in another one sees no difference.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def postponed() -> Iterator[None]:
    """Have the handlers of signals that end a process run after the block, not in it.

    For what :func:`shielded` cannot be put around: a process that is started inside would
    inherit blocked signals. For the main thread; what is ignored, or not Python's, stays so.
    """
    met: list[int] = []
    before = {each: signal.getsignal(each) for each in ENDING}
    handled = [each for each in ENDING if callable(before[each])]
    for each in handled:
        signal.signal(each, lambda number, _: met.append(number))
    try:
        yield
    finally:
        for each in handled:
            signal.signal(each, before[each])
        for number in met:
            signal.raise_signal(number)


def _nothing(number: int, frame: FrameType | None) -> None:
    pass


@contextmanager
def terminable() -> Iterator[None]:
    """Let the other signals unwind as Ctrl-C does, so that everything is taken away again.

    For commands, in the main thread. The first signal raises KeyboardInterrupt or SystemExit
    with status 128 + its number; those that follow do nothing, for the first one is being
    obeyed. Signals that were ignored before (``nohup``) still are.
    """
    before = {each: signal.getsignal(each) for each in ENDING}
    handled = [each for each in ENDING if before[each] is not signal.SIG_IGN]

    def end(number: int, frame: FrameType | None) -> None:
        for each in handled:
            # Not SIG_IGN: of one that came with the first and has to be handled yet, Python would
            # print a traceback ("ignored due to race condition").
            signal.signal(each, _nothing)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    for each in handled:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in handled:
            signal.signal(each, before[each])


class Session:
    """A context manager. Inside, plans are added and their events read; at its end all is removed.

    ``buffer_kib`` is the size of the buffer of each processor; ``tracefs`` the file system, by
    default where it is mounted. Entering raises TracerError where tracing is not possible (FC0701
    to FC0704). A session is used by one thread at a time; its methods raise ValueError
    before it is entered and after its end. A process that is forked from it has nothing to remove.

    ``group`` is a name that :func:`~fetchc.tracer.tracefs.session_name` gave, by default a new one.
    ``created`` takes over the instance of that name from another process, and says whether there is
    one; without it the session creates it.
    ``symbol``, where it is set before the session is started, names what is at an address of a
    thread's program: function pointers have that as their value then.
    """

    def __init__(
        self,
        buffer_kib: int | None = None,
        tracefs: Tracefs | None = None,
        group: str | None = None,
        created: Callable[[], bool] | None = None,
    ) -> None:
        self._created = created
        self.group = group or session_name()
        self.symbol: Symbol | None = None
        self._buffer_kib = buffer_kib
        self._given = tracefs
        self._added: list[Plan] = []  # and not yet installed
        self._filters: dict[str, str] = {}  # by the plan's event
        self._events: list[str] = []  # of the kernel, that are installed
        self._names: set[str] = set()  # of all plans
        self.decoders: dict[int, Decoder] = {}
        """By the number of their event in the records."""
        self._ready: deque[Event] = deque()
        self._watched = WatchedFiles()
        self._files = ProbedFiles()
        self._warnings: tuple[Diagnostic, ...] = ()
        self._open = self._started = self._running = self._reading = False
        self._process = os.getpid()
        self._perf: PerfRing | None = None  # where the events come from instead
        self._lost = 0
        self._missed = (0, 0)

    def __enter__(self) -> Session:
        try:
            with shielded():
                self._process = os.getpid()
                self._tracefs = self._given or find_tracefs()
                self._instance = Instance(self._tracefs, self.group)
                self._processes = Processes(self._tracefs)
                self._ring = Ring()
                self._open = True
                if self._created is None or not self._created():
                    self._instance.create(self._buffer_kib)
                self._ring.open(self._tracefs, self._instance)
            self._warnings = leftover_warnings(leftovers(self._tracefs))
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
        try:
            try:
                self.close()
            except (KeyboardInterrupt, SystemExit):
                self.close()  # a signal that came just before `close` held signals back
                raise
        except TracerError as left:
            if error is None:
                raise
            error.add_note(str(left))  # what ended the session matters more

    def add(self, *plans: Plan) -> None:
        """Take plans for :attr:`group`; the kernel gets them at :meth:`start`.

        In a running session it gets them now, all of one call in few writes, and they are
        switched on. Raises TracerError (FC0705, FC0706) where it does not take one: then none of
        them is there.
        """
        self.entered()
        for plan in plans:
            if any(group_and_event(line) != (self.group, plan.event) for line in plan.definitions):
                raise ValueError(f"the plan `{plan.event}` is not of the group `{self.group}`")
            if plan.event in self._names:
                raise ValueError(f"a second plan `{plan.event}`")
            self._names.add(plan.event)
            self._watched.watch(plan.path)
        self._added += plans
        if self._running:
            self._install()

    def filter(self, plan: Plan, text: str) -> None:
        """Have the kernel record only those hits that its event filter ``text`` lets pass.

        For a plan that was added and not yet installed. Where the kernel does not take the
        filter, :meth:`start` raises TracerError (FC0708).
        """
        if plan not in self._added:
            raise ValueError(f"the plan `{plan.event}` is not waiting to be installed")
        self._filters[plan.event] = text

    def only(self, pids: Iterable[int], waiting: bool = False) -> None:
        """Record these processes, their threads, and the children they will have; no others.

        ``waiting``: they wait to execute a program. An engine that can tell has no hits of them
        before; others have. Never called: all processes. Raises TracerError where there is no such
        process (FC0707).
        """
        self.entered()
        if self._perf is None:
            self._instance.only(pids)
        else:
            self._perf.only(pids)

    def stacks(self, copied: int | None = None) -> None:
        """Have the user's stack recorded with every event: before :meth:`only` and :meth:`start`.

        ``copied``: that many bytes of the stack, and the registers, come with each event, as
        :class:`~fetchc.tracer.unwind.StackCopy`. All events are then read from perf instead of the
        instance: a stack cannot go to another event. Where this machine has no such samples, or
        with None, the kernel walks each stack itself, as far as frame pointers lead.
        """
        self.entered()
        if copied is not None:
            from fetchc.tracer.perf_ring import PerfRing, sampled_machines

            machines = sampled_machines()
            if machines:
                self._perf = PerfRing(copied, machines)
                self._perf.open(self._instance.processors(), self._buffer_kib)
                return
        self._instance.write("1", "options/userstacktrace")
        text = self._tracefs.read("events", "ftrace", "user_stack", "format")
        self._ring.expect_stacks(parse_format(text))

    def copies(self, plan: Plan) -> bool:
        """Whether :meth:`stacks` can copy the stack at a hit: an event has no registers."""
        return plan.definitions[0][:1] != "e"

    @property
    def changes(self) -> deque[MappingChange]:
        """What changed the mappings of processes, where stacks are copied; to be taken out."""
        return deque() if self._perf is None else self._perf.changes

    def start(self) -> None:
        """Install what was added and switch it on, all at once."""
        self.entered()
        self._install()
        self._started = self._running = self._reading = True
        if self._perf is not None:
            self._perf.enable()
        elif self._events:
            self._instance.switch(self.group, None, True)

    def entered(self) -> None:
        """Raises ValueError where nobody would take away what is installed."""
        if not self._open:
            raise ValueError("the session is not open: use it inside of its `with`")

    def _open_files(self, plans: Iterable[Plan]) -> None:
        for path, identity in {(one.path, one.identity) for one in plans if one.identity}:
            self._files.open(path, identity)

    def _install(self) -> None:
        plans, self._added = self._added, []
        for plan in plans:
            if (alone := plan.ebpf_alone) is not None:
                raise refused(*alone)
        events = kernel_events(plans, self._filters, kernel(running_version()))
        if not events:
            return
        try:
            self._open_files(plans)
            lines = [self._files.named(line) for each in events for line in each.definitions]
            with shielded():
                install(self._tracefs, lines)
                self._events += [each.event for each in events]
        except TracerError:
            self._names.difference_update([plan.event for plan in plans])
            raise
        for each in events:
            text = self._instance.read(f"events/{self.group}/{each.event}/format")
            format = parse_format(text)
            self.decoders[format.id] = Decoder(format, each.plans, self._processes, self.symbol)
            if each.plans[0].of_kernel:
                self._ring.expect_kernel(format.id)
            condition = self._filters.get(each.plans[0].event)
            if self._perf is not None:
                self._perf.add(format.id, condition, self._running)
                continue
            if condition is not None:
                self._instance.filter(self.group, each.event, condition)
            if self._running:
                self._instance.switch(self.group, each.event, True)

    def stop(self) -> None:
        """Switch all off. What happened until now can still be read."""
        if self._running:
            with shielded():
                self._running = False
                if self._perf is not None:
                    self._perf.disable()
                elif self._events:
                    self._instance.switch(self.group, None, False)

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """The events, as they happen, in the order of time.

        Ends when the session is stopped and all is read, or ``timeout`` seconds after the call;
        what then calls it again gets the next one.
        """
        ready = self._ready
        while ready:
            yield ready.popleft()
        for parts in self.records(timeout):
            for part in parts:
                ready += map(self.event, in_order(part))
            while ready:
                yield ready.popleft()

    def records(self, timeout: float | None = None) -> Iterator[list[list[Records]]]:
        """The records as they come, as many at once as there are; never an empty list.

        In parts as :meth:`Ring.read` has them; ends as :meth:`events` does.
        """
        end = None if timeout is None else time.monotonic() + timeout
        ring = self._perf or self._ring
        while self._reading:
            ended = not self._running
            found = ring.read(ended)
            self._reading = not ended or ring.more
            if found and self._perf is not None:
                for part in found:
                    yield [part]
                    self._perf.collect()
            elif found:
                yield found
            left = 1.0 if end is None else end - time.monotonic()
            if left <= 0:
                return
            if not ended:
                ring.wait(left)

    def event(self, sample: Sample) -> Event:
        """The event of a record; raises TracerError FC0716 where it is none of this session."""
        _, _, page, at, _, _ = sample
        number = page[at] | page[at + 1] << 8
        decoder = self.decoders.get(number)
        if decoder is None:
            raise unreadable(f"one is of event {number}, which is not an event of this session")
        return decoder.event(sample)

    def counted(self) -> Iterable[tuple[Event, Row]]:
        """What the kernel counted since the last call instead of recording it: nothing."""
        return ()

    def filters(self, plan: Plan) -> bool:
        """Whether what the kernel counted of a plan has passed its filter."""
        return False

    @property
    def lost(self) -> int:
        """Records that found the buffers full, so far; a stack is one of its own."""
        if self._open:
            self._lost = self._lost_now()
        return self._lost

    def _lost_now(self) -> int:
        return self._instance.lost() if self._perf is None else self._perf.lost

    @property
    def forgotten(self) -> int:
        """Calls that the kernel timed, and had no room for until their return."""
        return 0

    @property
    def missed(self) -> tuple[int, int]:
        """Entries and returns of the kernel's functions that its probes missed, so far.

        Of all processes: the kernel counts them before it looks at whose they are. A return is
        missed where more calls are under way than its probe has room for (``maxactive``).
        """
        if self._open:
            self._missed = missed(self._tracefs, self.group)
        return self._missed

    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings since the last call.

        That a killed session left something behind (FC0612), that a traced file is not at its
        path any more (FC0613), and that a debugger is at traced code (FC0636).
        """
        found, self._warnings = self._warnings, ()
        return found + self._watched.changes() + self._watched.debugged()

    def close(self) -> None:
        """Take everything away again. Can be called twice.

        Raises TracerError (FC0710) where the kernel does not let go of something.
        """
        if not self._open:
            return
        if os.getpid() != self._process:
            self._open = self._reading = self._running = False
            self._ring.close()
            if self._perf is not None:
                self._perf.close()
            self._files.close()
            return
        with shielded(), ExitStack() as steps:  # last one first, and all of them
            self._open = self._reading = False
            steps.callback(uninstall, self._tracefs, [(self.group, one) for one in self._events])
            steps.callback(self._remove_instance)
            steps.callback(self._ring.close)
            if self._perf is not None:
                steps.callback(self._perf.close)
            steps.callback(self._files.close)
            steps.callback(self.stop)
            if self._started:
                self._lost = self._lost_now()
                self._missed = missed(self._tracefs, self.group)

    def _remove_instance(self) -> None:
        if not remove_instance(self._tracefs, self.group):
            raise refused(
                "FC0710",
                f"the instance `{self.group}` cannot be removed: in use",
                help="stop what reads its files, then `fetchc remove --stale`",
            )
