"""``fetchc trace``: calls and values of running programs, as they happen."""

from __future__ import annotations

import gc

from fetchc.ceilings import unwatch
from fetchc.cli.output import exit_status
from fetchc.cli.parsing_child import Reader, probed_file, reader
from fetchc.cli.trace_engine import (
    chosen_session,
    recordable,
    session_instead,
    without_tracefs,
)
from fetchc.cli.trace_events import Ending, Show, watch
from fetchc.cli.trace_request import Refused, Usage, request
from fetchc.cli.trace_targets import collect, inlined_copies, traceable
from fetchc.debuginfo.safe_open import is_regular
from fetchc.diag.codes import TITLES
from fetchc.diag.diagnostic import DebugInfoError, TracerError
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.tracer.filter_conditions import kernel_filter
from fetchc.tracer.processes import WAITING, Command
from fetchc.tracer.session import terminable
from fetchc.tracer.stacks import DELETED, Stacks
from fetchc.tracer.symbol_files import SymbolFiles, remote_symbols
from fetchc.tracer.tracefs import find_tracefs, session_name
from fetchc.tracer.unwind import STACK_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fetchc.api.library import Program
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.parsing_child import SameProcess
    from fetchc.cli.trace_request import Request
    from fetchc.cli.trace_targets import LeftOut, Targets
    from fetchc.tracer.session import Session
    from fetchc.tracer.watch_plan import Watch

__all__ = ["run"]

_NAMED = 3  # functions that a summary of those left out names


def run(options: Options, output: Output) -> int:
    """Trace until the end that the options name; nothing is left in the kernel."""
    try:
        wanted = request(options)
        if options.format == "perfetto" and output.shown and not options.output:
            raise Usage("--format perfetto is bytes, not for a terminal: add -o FILE, or a pipe")
    except Usage as wrong:
        output.say(f"error: {wrong}", "", "usage: fetchc trace [EXPR...] -x BINARY -f FUNCTION")
        return 2
    except Refused as refused:
        output.diagnostics(refused.diagnostics, refused.text)
        return 1
    command = Command(options.program) if options.program else None
    group = session_name() if options.ahead is None else options.ahead.name
    files = SymbolFiles()
    opened: list[Program] = []

    def targets() -> Targets:
        gc.enable()  # in the process that reads: there may be thousands of functions
        opened.append(options.opened())
        return collect(opened[0], options, wanted, group)

    def watches() -> tuple[Watch, ...]:
        from fetchc.cli.trace_breakpoints import watches_of

        return watches_of(options.opened(), options, group)

    questions: dict[str, Callable[..., Any]] = {
        "targets": targets,
        "watches": watches,
        "versions": lambda addresses: [opened[0].versions(address) for address in addresses],
        "returns": lambda function: opened[0].returns(function),
        "symbols": files.opened,
        "function": files.function_at,
        "unwind": files.unwind_row,
        "lines": files.lines,
        "inlined": lambda name: inlined_copies(options.opened(), name),
    }
    with reader(options, output, questions) as asked:
        if options.watched:
            from fetchc.cli.trace_breakpoints import watched

            return watched(options, output, asked, group, command, wanted)
        return _run(options, output, asked, group, command, wanted)


def _run(
    options: Options,
    output: Output,
    asked: Reader | SameProcess,
    group: str,
    command: Command | None,
    wanted: Request,
) -> int:
    try:
        targets = recordable(asked.ask("targets"))
    except DebugInfoError as refused:
        refused.help = _of_process(options) or refused.help
        raise
    # Breakpoints are of the one process that the user named, wherever the answer has them.
    pid = _process_of(options.binary)
    if pid is None and len(options.pids) == 1 and any(one.plan.in_memory for one in targets.chosen):
        (pid,) = options.pids
    if isinstance(asked, Reader) and pid is None:
        lines = [line for each in targets.chosen for line in each.plan.definitions]
        files = {each.plan.path: each.plan.identity for each in targets.chosen}
        probed_file(options.binary, files, lines)
    if targets.by_glob and any(each.plan.of_kernel for each in targets.chosen):
        targets = traceable(targets, find_tracefs())
    _print_warnings(targets, output)
    if not targets.chosen:
        return exit_status([each for one in targets.left_out for each in one.diagnostics])
    if options.output:
        output.to_file(options.output)  # before anything is installed
    unwatch()  # what is installed is taken away in peace, and COMMAND has its own limits
    if pid is not None:
        from fetchc.cli.process_code import traced

        if options.ahead is not None:
            options.ahead.drop()
        for note in targets.notes:
            output.say(f"note: {note}")
        return traced(pid, options, output, asked, targets, wanted)
    if options.engine == "breakpoint":
        from fetchc.cli.trace_breakpoints import by_breakpoints

        return by_breakpoints(options, output, asked, command, targets, wanted)
    session, probed = chosen_session(targets, options, wanted, group, output)
    for note in targets.notes:
        output.say(f"note: {note}")
    with terminable():
        try:
            return _recorded(session, probed, options, output, asked, command, wanted)
        except TracerError as refusal:
            # Nothing is recorded yet, and what eBPF cannot, tracefs may.
            instead = session_instead(refusal, targets, options, group)
            if instead is None:
                raise without_tracefs(refusal, targets) from None
            output.diagnostics(refusal.diagnostics, "")
            output.say("warning: tracefs records in place of that program: please report it")
        return _recorded(instead, targets, options, output, asked, command, wanted)


def _recorded(
    session: Session,
    targets: Targets,
    options: Options,
    output: Output,
    asked: Reader | SameProcess,
    command: Command | None,
    wanted: Request,
) -> int:
    with session:
        output.diagnostics(session.warnings(), "")  # what others left behind
        session.add(*[target.plan for target in targets.chosen])
        _kernel_filters(session, targets)
        if options.stack:
            session.stacks(_copied(session, options, targets, output))
        stacks = Stacks(symbols=lambda path: remote_symbols(asked.ask, path))
        stacks.changes = session.changes
        waiting = WAITING if command else None
        show = Show(session, targets.chosen, options, wanted, output, waiting, stacks)
        session.symbol = show.symbol
        try:
            if command is None:
                status = _traced(session, targets, options, show, output)
            else:
                status = _started(session, command, options, show, output)
        finally:
            show.close()
        if not show.seen and not options.filters:
            for reason in _unhit_reasons(asked, targets, options):
                output.say(f"note: nothing was hit: {reason}")
        lost = session.lost
        entries, returns = session.missed
        output.diagnostics(session.warnings(), "")
    if lost:
        output.say(f"warning: {lost} events were lost: the buffers were full")
    if entries:
        output.say(f"warning: {entries} hits were missed: the kernel was handling another probe")
    if returns:
        output.say(
            f"warning: {returns} returns were missed, of all processes: too many calls at a time",
            f"  = help: make room for more: `--maxactive {_room(options.active)}`",
        )
    return status


def _process_of(binary: str) -> int | None:
    # The process whose own code the path names; None where it names a file.
    if not binary.startswith("/proc/"):
        return None
    from fetchc.debuginfo.running_process import named_process

    named = named_process(binary)
    return None if named is None else named[0]


def _copied(session: Session, options: Options, targets: Targets, output: Output) -> int | None:
    # None: the kernel walks the stacks.
    if options.stack == "fp":
        return None
    from fetchc.tracer.perf_ring import sampled_machines

    copies = all(session.copies(one.plan) for one in targets.chosen)
    if copies and sampled_machines():
        return options.stack_bytes or STACK_BYTES
    where = "on this machine" if copies else "at these probes of the kernel"
    output.say(f"note: stacks cannot be copied {where}: they are as far as frame pointers lead")
    return None


def _kernel_filters(session: Session, targets: Targets) -> None:
    # Not where events belong together in pairs: half of one helps nobody.
    if any(target.role != "hit" for target in targets.chosen):
        return
    for target in targets.chosen:
        if target.filter is not None and (text := kernel_filter(target.plan, target.filter)):
            session.filter(target.plan, text)


def _traced(
    session: Session, targets: Targets, options: Options, show: Show, output: Output
) -> int:
    """Watch processes that run, or all of them."""
    with Ending() as ending:
        if options.pids:
            session.only(options.pids)
        session.start()
        number = len({target.plan.function for target in targets.chosen})
        functions = "1 function" if number == 1 else f"{number} functions"
        output.say(f"tracing {functions} of {options.binary}; Ctrl-C ends it")
        for note in _unloaded(targets, options):
            output.say(f"note: {note}")
        output.diagnostics(session.warnings(), "")  # of what is there already
        ended = watch(session, show.take, ending, None, options.pids, options.timeout)
    for pid in ended:
        output.say(f"process {pid} has ended")
    show.end()
    return 0


def _unloaded(targets: Targets, options: Options) -> list[str]:
    plan = targets.chosen[0].plan
    if not options.pids or plan.of_kernel:
        return []
    from fetchc.tracer.processes import unloaded

    return [note for pid in options.pids if (note := unloaded(pid, plan.path)) is not None]


def _started(
    session: Session, command: Command, options: Options, show: Show, output: Output
) -> int:
    """Start the program when all is ready, and watch it; its exit status where it ends itself."""
    with Ending() as ending:
        try:
            session.only([command.prepare()], waiting=True)
            session.start()
            command.go()
            show.learn(command.pid)
            watch(session, show.take, ending, command, (), options.timeout)
            status = command.exit_status if command.ended() and not ending.asked else 0
        finally:
            if not command.close():
                output.say(f"`{command.words[0]}` continues as process {command.pid}")
    show.end()
    return status


def _of_process(options: Options) -> str | None:
    # A process of a container sees other files by the same paths; one may run a file that is gone.
    import os

    if os.path.lexists(options.binary):
        return None
    for pid in options.pids:
        inside = f"/proc/{pid}/root{os.path.abspath(options.binary)}"
        if is_regular(inside):
            return f"process {pid} has one by that path: `-x {inside}`"
        own = f"/proc/{pid}/exe"
        if os.path.realpath(own) == os.path.abspath(options.binary) + DELETED:
            return f"process {pid} still runs the file that was there: `-x {own}`"
    return None


def _room(active: int | None) -> int:
    return min(max(64, 8 * (active or 0)), kernel(running_version()).returns_at_once)


def _unhit_reasons(asked: Reader | SameProcess, targets: Targets, options: Options) -> list[str]:
    # Why no event came, as far as can be seen; where nothing can, that nobody came there.
    from fetchc.tracer.processes import running_copies

    reasons = []
    in_kernel = targets.chosen[0].plan.of_kernel
    functions = dict.fromkeys([target.plan.function for target in targets.chosen])
    for name in [one for one in functions if one is not None][: 0 if in_kernel else _NAMED]:
        copies = asked.ask("inlined", name)
        if copies:
            places = "1 place: probe it" if copies == 1 else f"{copies} places: probe them"
            reasons.append(f"`{name}` is inlined in {places} with `-f '{name}%inline'`")
    if not (in_kernel or options.pids or options.program):
        for pid, path in running_copies(options.binary)[:_NAMED]:
            reasons.append(f"process {pid} runs another file of that name: `-x {path}`")
    if reasons:
        return reasons
    if options.program:
        return [_unhit(options.program[0], options.binary)]
    if options.pids:
        which = "process" if len(options.pids) == 1 else "processes"
        return [f"{which} {', '.join(map(str, options.pids))} never reached the probed code"]
    return ["no process reached the probed code"]


def _unhit(word: str, binary: str) -> str:
    import os.path
    import shutil

    found = shutil.which(word)
    kernel = binary == "kernel" or binary.startswith("kernel:")  # every program runs it
    if kernel or (found and os.path.exists(binary) and os.path.samefile(found, binary)):
        return f"`{word}` never reached the probed code"
    return f"does `{word}` run `{binary}`?"


def _print_warnings(targets: Targets, output: Output) -> None:
    for text, diagnostic in targets.warnings:
        output.diagnostics((diagnostic,), text)
    if not targets.chosen and len(targets.left_out) == 1:
        (only,) = targets.left_out
        output.diagnostics(only.diagnostics, only.text)
        return
    for number, ((code, text), group) in enumerate(_grouped(targets.left_out)):
        if not targets.chosen and number == 0:
            output.diagnostics(group[0].diagnostics, text)
        names = f"{_functions(group)}: " if any(each.function for each in group) else ""
        why = f"`{text}`: {TITLES[code]}" if text else TITLES[code]
        output.say(f"left out {names}{why} ({code})")
    for (code, text), group in _grouped(targets.without):
        output.diagnostics(group[0].diagnostics, text)
        output.say(f"left out `{text}` of {_functions(group)}: {TITLES[code]} ({code})")


def _grouped(listed: tuple[LeftOut, ...]) -> Iterable[tuple[tuple[str, str], list[LeftOut]]]:
    # By the code of the refusal and the expression.
    groups: dict[tuple[str, str], list[LeftOut]] = {}
    for each in listed:
        groups.setdefault((each.diagnostics[0].code, each.text), []).append(each)
    return groups.items()


def _functions(group: list[LeftOut]) -> str:
    names = ", ".join(f"`{each.function}`" for each in group[:_NAMED])
    return names + (f" and {len(group) - _NAMED} more" if len(group) > _NAMED else "")
