"""``fetchc trace --watch``: who writes a variable, by watchpoints of the processor."""

from __future__ import annotations

from contextlib import ExitStack

from fetchc.ceilings import unwatch
from fetchc.cli.parsing_child import Reader, probed_file
from fetchc.cli.trace_events import Ending, Show, watch
from fetchc.cli.trace_request import BUILTINS, Refused, Usage, reading
from fetchc.cli.trace_targets import Target
from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import Decode
from fetchc.tracer.breakpoints import most_breakpoints, too_many
from fetchc.tracer.events import LINE, OLD, EventValue
from fetchc.tracer.processes import WAITING
from fetchc.tracer.session import Session, terminable
from fetchc.tracer.stacks import Stacks, remote_symbols
from fetchc.tracer.unwind import STACK_BYTES
from fetchc.tracer.value_shapes import Leaf
from fetchc.tracer.watch_plan import BASE
from fetchc.tracer.watchpoints import WatchSession, address_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api.library import Program
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.parsing_child import SameProcess
    from fetchc.cli.trace_request import Request
    from fetchc.tracer.events import Value
    from fetchc.tracer.processes import Command
    from fetchc.tracer.watch_plan import Watch

__all__ = ["watched", "watches_of"]


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
        except CompileError as refused:
            refused.text = text
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
    """Show writes until the end of the trace; COMMAND's exit status where it ends itself.

    Raises TracerError FC0720, FC0722; Refused for a filter.
    """
    if len(options.watched) > most_breakpoints() > 0:
        whose = "COMMAND" if command else f"process {options.pids[0]}"
        raise too_many(whose, len(options.watched), "variables")
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
    except Refused as refused:
        output.diagnostics(refused.diagnostics, refused.text)
        return 1
    if options.output:
        output.to_file(options.output)
    unwatch()
    stacks = Stacks(symbols=lambda path: remote_symbols(asked.ask, path))
    with terminable(), ExitStack() as opened, Ending() as ending:
        status, pid = 0, command.prepare() if command else options.pids[0]
        if command:
            opened.callback(_close, command, output)
        bases = _Bases(opened.enter_context(Session(group=group)), pid) if finding else None
        if bases is not None:
            bases.session.add(*finding)
            bases.session.only([pid])
            bases.session.start()

        def find(one: Watch) -> int | None:
            if bases is None or one.finding is None:
                return address_of(one, pid)
            base = bases.of(one.finding.event)
            return None if base is None else address_of(one, pid, base)

        copied = (options.stack_bytes or STACK_BYTES) if options.stack else None
        session = WatchSession(pid, watches, find, copied)
        if bases is not None:
            # The instruction with a probe runs elsewhere, where its function has no name.
            session.all_found = bases.session.close
        session.note = lambda text: output.say(f"note: {text}")
        if command:
            command.go(stopped=True)
        opened.enter_context(session)
        stacks.changes = session.changes
        if session.at_hit:
            targets = [one.replaced(plan=one.plan.replaced(at_hit=True)) for one in targets]
        else:
            output.say("note: `~`: the value is read after the write, and may have changed")
        waiting = WAITING if command else None
        show = Show(session, targets, options, request, output, waiting, stacks)
        opened.callback(show.close)
        show.learn(pid)
        session.symbol, session.writer = show.symbol, stacks.before
        session.start()
        if command and any(one.finding is None for one in session.waiting):
            command.run_to_entry()
            session.look()
        number = "1 variable" if len(watches) == 1 else f"{len(watches)} variables"
        output.say(f"tracing writes of {number} of process {pid}; Ctrl-C ends it")
        if command:
            command.resume()
        pids = () if command else (pid,)
        ended = watch(session, show.take, ending, command, pids, options.timeout)
        if command and command.ended() and not ending.asked:
            status = command.exit_status
        show.end()
        for each in ended:
            output.say(f"process {each} has ended")
        for one in session.waiting:
            why = "its file was not loaded, or a pointer on the way led nowhere"
            if one.finding is not None:
                why = f"`{one.finding.function}` was not called"
            output.say(f"note: `{one.label}` had no address: {why}")
        lost = session.lost
    if lost:
        output.say(f"warning: {lost} events were lost: the buffers were full")
    return status


def _close(command: Command, output: Output) -> None:
    if not command.close():
        output.say(f"`{command.words[0]}` continues as process {command.pid}")


class _Bases:
    """The addresses that a function gives when it is called first."""

    def __init__(self, session: Session, pid: int) -> None:
        self.session = session
        self._pid = pid
        self._found: dict[str, int] = {}

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
