"""``fetchc trace`` by breakpoints of the processor: ``--watch``, and ``--engine breakpoint``.

Code that a process compiled itself (:mod:`fetchc.cli.process_code`) is traced by them, too.
They are of one process, COMMAND's or that of ``-p``, and of four addresses at a time.
"""

from __future__ import annotations

from contextlib import ExitStack

from fetchc.ceilings import unwatch
from fetchc.cli.parsing_child import Reader, probed_file
from fetchc.cli.trace_events import Ending, Show, watch
from fetchc.cli.trace_request import BUILTINS, Refused, Usage, reading
from fetchc.cli.trace_targets import Target
from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import Decode
from fetchc.tracer.bpf.features import cannot, unusable
from fetchc.tracer.breakpoints import FoundSession, most_breakpoints, too_many
from fetchc.tracer.events import LINE, OLD, EventValue
from fetchc.tracer.fetched_records import read_later
from fetchc.tracer.install import probed_place
from fetchc.tracer.processes import WAITING, image_start
from fetchc.tracer.session import Session, terminable
from fetchc.tracer.stacks import Stacks
from fetchc.tracer.symbol_files import remote_symbols
from fetchc.tracer.tracefs import refused
from fetchc.tracer.unwind import STACK_BYTES
from fetchc.tracer.value_shapes import Leaf
from fetchc.tracer.watch_plan import BASE
from fetchc.tracer.watchpoints import WatchSession, address_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fetchc.api.library import Program
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.parsing_child import SameProcess
    from fetchc.cli.trace_request import Request
    from fetchc.cli.trace_targets import Targets
    from fetchc.tracer.breakpoints import BreakpointSession, TracedProcess
    from fetchc.tracer.events import Plan, Value
    from fetchc.tracer.processes import Command
    from fetchc.tracer.watch_plan import Watch

__all__ = ["BreakpointTrace", "by_breakpoints", "each_address", "watched", "watches_of"]


class BreakpointTrace:
    """What all of them have in common: a process, and how its hits are shown."""

    def __init__(
        self,
        options: Options,
        output: Output,
        asked: Reader | SameProcess,
        command: Command | None,
        request: Request,
    ) -> None:
        self.options = options
        self.output = output
        self.command = command
        self.pid = command.prepare() if command else options.pids[0]
        self.stacks = Stacks(
            symbols=lambda path: remote_symbols(asked.ask, path),
            frame_pointers=options.stack == "fp",
        )
        self.copied = (options.stack_bytes or STACK_BYTES) if options.stack else None
        self._request = request

    def run(self, session: BreakpointSession, targets: Iterable[Target], what: str) -> int:
        """Show the hits until the end; COMMAND's exit status where it ends itself.

        COMMAND waits before its first instruction until what is loaded by then is placed. Raises
        TracerError FC0718 where ``--engine bpf`` is asked for and values are read after the hit.
        """
        command, output, stacks = self.command, self.output, self.stacks
        session.note = lambda text: output.say(f"note: {text}")
        session.symbol = stacks.name
        if command:
            command.go(stopped=True)
        with session, Ending() as ending:
            stacks.changes = session.changes
            listed = [one.replaced(plan=session.recorded(one.plan)) for one in targets]
            later = any(read_later(one.plan) for one in listed)
            if later and self.options.engine == "bpf":
                raise cannot(unusable() or "an event is too large, or the kernel is too old")
            waiting = WAITING if command else None
            show = Show(session, listed, self.options, self._request, output, waiting, stacks)
            try:
                show.learn(self.pid)
                if self.options.stack:  # later, nobody would follow methods that move meanwhile
                    stacks.read_images(self.pid)
                session.start()
                if command and isinstance(session, FoundSession) and session.waiting:
                    command.run_to_entry()
                    show.learn(self.pid)
                    session.look()
                output.say(f"tracing {what} of process {self.pid}; Ctrl-C ends it")
                if later:
                    output.say("note: `~`: the value is read after the hit, and may have changed")
                if command:
                    command.resume()
                pids = () if command else (self.pid,)
                timeout = self.options.timeout
                ended = watch(session, show.take, ending, command, pids, timeout)
                status = 0
                if command and command.ended() and not ending.asked:
                    status = command.exit_status
            finally:
                show.close()
            show.end()
            lost = session.lost
        for each in ended:
            output.say(f"process {each} has ended")
        if lost:
            why = "the buffers were full, or the kernel throttled them"
            output.say(f"warning: {lost} hits were lost: {why}")
        return status

    def close(self) -> None:
        """End COMMAND where it still runs."""
        if self.command and not self.command.close():
            name = self.command.words[0]
            self.output.say(f"`{name}` continues as process {self.command.pid}")


def _whose(options: Options) -> str:
    return "COMMAND" if options.program else f"process {options.pids[0]}"


# ------------------------------------------------------------------------------
# ``--watch``: writes of variables.


def watches_of(program: Program, options: Options, group: str) -> tuple[Watch, ...]:
    """The variables that the options name, at the function that they name.

    Raises CompileError FC0722 where one cannot be watched.
    """
    function, at = next(iter(options.functions), None), options.at
    place = program.outside() if function is None and at is None else program.probe(function, at)
    found = []
    for number, text in enumerate(options.watched, 1):
        try:
            found.append(place.watch(text, group, f"watch_{number}"))
        except CompileError as refusal:
            refusal.text = text
            raise
    return tuple(found)


def watched(
    options: Options,
    output: Output,
    asked: Reader | SameProcess,
    group: str,
    command: Command | None,
    request: Request,
) -> int:
    """Show writes until the end of the trace; the exit status.

    Raises TracerError FC0720, FC0722.
    """
    if len(options.watched) > most_breakpoints() > 0:
        raise too_many(_whose(options), len(options.watched), "variables")
    watches: tuple[Watch, ...] = asked.ask("watches")
    finding = [one.finding for one in watches if one.finding is not None]
    if isinstance(asked, Reader):
        lines = [line for plan in finding for line in plan.definitions]
        probed_file(options.binary, {one.plan.path: one.plan.identity for one in watches}, lines)
    try:
        targets = [_target(one, request, options.format != "text") for one in watches]
    except Usage as wrong:
        output.say(f"error: {wrong}")
        return 2
    except Refused as refusal:
        output.diagnostics(refusal.diagnostics, refusal.text)
        return 1
    if options.output:
        output.to_file(options.output)
    unwatch()
    with terminable(), ExitStack() as opened:
        trace = BreakpointTrace(options, output, asked, command, request)
        opened.callback(trace.close)
        bases = None
        if finding:
            bases = _Bases(opened.enter_context(Session(group=group)), trace.pid, finding)

        def find(one: Watch, process: TracedProcess) -> int | None:
            if bases is None or one.finding is None:
                return address_of(one, process)
            base = bases.of(one.finding.event)
            return None if base is None else address_of(one, process, base)

        session = WatchSession(trace.pid, watches, find, trace.copied)
        session.writer = trace.stacks.before
        if bases is not None:
            # The instruction with a probe runs elsewhere, where its function has no name.
            session.all_found = bases.session.close
        number = "1 variable" if len(watches) == 1 else f"{len(watches)} variables"
        status = trace.run(session, targets, f"writes of {number}")
        for one in watches:
            if one.plan in session.waiting:
                why = "its file was not loaded, or a pointer on the way led nowhere"
                if bases is not None and one.finding is not None:
                    why = f"`{one.finding.function}` was not called"
                    if bases.of(one.finding.event) is not None:
                        why = f"the process ended soon after `{one.finding.function}` was called"
                output.say(f"note: `{one.label}` had no address: {why}")
    return status


class _Bases:
    """The addresses that a function gives when it is called first."""

    def __init__(self, session: Session, pid: int, finding: Sequence[Plan]) -> None:
        self.session = session
        self._pid = pid
        self._found: dict[str, int] = {}
        session.add(*finding)
        session.only([pid])
        session.start()

    def of(self, event: str) -> int | None:
        """The address of that event; None before it has been."""
        if event not in self._found:
            for one in self.session.events(0):
                base: Value = one.args[BASE]
                if one.pid == self._pid and isinstance(base, int) and base:
                    self._found.setdefault(one.name, base)
        return self._found.get(event)


def _target(one: Watch, request: Request, with_line: bool) -> Target:
    (shown,) = one.plan.values
    line = EventValue(LINE, Leaf("", Decode("text")))
    plan = one.plan.replaced(values=(shown, EventValue(OLD, shown.shape), line))
    labels = (shown.label, OLD, LINE)
    for text in request.further:
        if text not in labels and text not in BUILTINS:
            words = ", ".join([f"`{each}`" for each in labels])
            raise Usage(f"`{text}` is not what a write to `{shown.label}` has: take {words}")
    shown_labels = labels if with_line else labels[:2]
    return Target("hit", plan, shown_labels, *reading(request, [], (plan,)))


# ------------------------------------------------------------------------------
# ``--engine breakpoint``: code of a file, also where the kernel takes no uprobe.


def by_breakpoints(
    options: Options,
    output: Output,
    asked: Reader | SameProcess,
    command: Command | None,
    targets: Targets,
    request: Request,
) -> int:
    """Show hits of the targets until the end of the trace; the exit status.

    Raises TracerError FC0720 for too many addresses, and what the processor cannot reach.
    """
    for target in targets.chosen:
        _must_be_reached(target.plan)
    placed = each_address(targets.chosen, _whose(options))
    with terminable(), ExitStack() as opened:
        trace = BreakpointTrace(options, output, asked, command, request)
        opened.callback(trace.close)

        def find(plan: Plan) -> Plan | None:
            try:
                image = image_start(trace.pid, plan.path)
            except OSError:  # it has ended
                return None
            if image is None:
                return None
            return plan.relocated(image, image + probed_place(plan.definitions[0]).offset)

        session = FoundSession(trace.pid, [each.plan for each in placed], find, trace.copied)
        functions = len({target.plan.function for target in targets.chosen})
        number = "1 function" if functions == 1 else f"{functions} functions"
        shown = [each.replaced(plan=each.plan.replaced(definitions=())) for each in placed]
        status = trace.run(session, shown, number)
        for path in dict.fromkeys([plan.path for plan in session.waiting]):
            output.say(f"note: process {trace.pid} has not loaded `{path}`")
    return status


def _must_be_reached(plan: Plan) -> None:
    what = ""
    if plan.of_kernel:
        what = f"`{plan.function}` is of the kernel, and breakpoints are of programs"
    elif any(probed_place(line).reference for line in plan.definitions):
        what = f"`{plan.function}` counts its probes, which breakpoints are not"
    if what:
        raise refused("FC0720", what, help="leave out `--engine breakpoint`")


def each_address(targets: Sequence[Target], whose: str) -> list[Target]:
    """The targets, each of one address as a breakpoint is; several have events with numbers.

    Raises TracerError FC0720 where they are too many for the process, ``whose`` they are.
    """
    found = []
    for target in targets:
        plan = target.plan
        for number, (address, fields) in enumerate(zip(plan.addresses, plan.fields, strict=True)):
            own = plan.replaced(
                event=f"{plan.event}_{number}" if number else plan.event, address=address,
                definitions=plan.definitions[number : number + 1], fields=(fields,),
                addresses=(address,),
            )  # fmt: skip
            found.append(target.replaced(plan=own))
    if len(found) > most_breakpoints() > 0:
        several = [
            f"`{one.plan.function}` has {len(one.plan.addresses)} return instructions"
            for one in targets
            if one.plan.kind == "return-site"
        ]
        help = "trace entries: leave `--return` and `--latency` out" if several else ""
        raise too_many(whose, len(found), "functions", tuple(several), help)
    return found
