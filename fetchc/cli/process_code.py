"""Commands about a process alone (``-p PID`` without ``-x``): code that it compiled itself."""

from __future__ import annotations

import os

from fetchc.debuginfo.perf_map_format import number
from fetchc.debuginfo.perf_map_program import plain
from fetchc.debuginfo.running_process import RunningProcess, anonymous, is_dotnet
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.parsing_child import Reader, SameProcess
    from fetchc.cli.trace_request import Request
    from fetchc.cli.trace_targets import Targets

__all__ = ["assembly_of", "prepared", "traced"]


def prepared(options: Options) -> tuple[str, ...]:
    """Set ``binary`` where ``-p PID`` means what the process has compiled itself; notes about that.

    Of .NET it always does, of others where a name of the perf map, or an address of memory that is
    no file's, is asked for. The runtime is asked for the map where it writes none. Raises
    TracerError FC0721 where there will be no map.
    """
    if len(options.pids) > 1 or not os.path.isdir(f"/proc/{options.pids[0]}"):
        return ()
    (pid,) = options.pids
    if not is_dotnet(pid):
        if _is_asked_for(options, pid):
            options.binary = f"/proc/{pid}:"
        return ()
    options.binary = f"/proc/{pid}:"
    if RunningProcess.map_file_of(pid) is not None:
        return ()
    if options.no_enable:
        raise refused(
            "FC0721",
            f"process {pid} writes no perf map, and --no-enable keeps fetchc from asking for one",
            help="leave out --no-enable: .NET 8 and later ones write it when they are asked to",
        )
    from fetchc.tracer.diagnostic_port import enable_perf_map

    enable_perf_map(pid)
    return (
        f"the runtime of process {pid} was asked for its perf map: it writes "
        f"/tmp/perf-{pid}.map until the process ends",
    )


def _is_asked_for(options: Options, pid: int) -> bool:
    # A name that the map has, or an address in memory of no file.
    names = _functions(options)
    address = number(options.at or "") if (options.at or "").startswith("0x") else None
    if address is not None:
        return any(start <= address < end for start, end in anonymous(pid))
    if not names or RunningProcess.map_file_of(pid) is None:
        return False
    has = {one for line in RunningProcess(pid).lines for one in (line.symbol, plain(line.symbol))}
    return all(name in has for name in names)


def _functions(options: Options) -> list[str]:
    names = [name for name in (*options.functions, options.function) if name]
    return names + (options.operands if options.command == "variables" else [])


def assembly_of(options: Options) -> str:
    """The path that the process's code of one assembly has: the one with the functions named."""
    (pid,) = options.pids
    names = [name for name in _functions(options) if "*" not in name and "?" not in name]
    process = RunningProcess(pid)
    return f"/proc/{pid}:{process.assembly_of(names) if process.is_dotnet else ''}"


def traced(
    pid: int,
    options: Options,
    output: Output,
    asked: Reader | SameProcess,
    targets: Targets,
    wanted: Request,
) -> int:
    """Show calls of code that the process compiled, by breakpoints, until the end of the trace.

    Raises TracerError FC0720, FC0709.
    """
    from fetchc.cli.trace_events import Ending, Show, watch
    from fetchc.tracer.breakpoints import BreakpointSession
    from fetchc.tracer.fetched_records import read_later
    from fetchc.tracer.session import terminable
    from fetchc.tracer.stacks import Stacks, remote_symbols

    if options.stack:
        what = "stacks are not supported for code that is compiled at run time"
        raise refused("FC0709", what, help="leave out --stack")
    events = {each.plan.event: each.plan.address for each in targets.chosen}

    path = RunningProcess.map_file_of(pid) or ""
    read = [-1]  # bytes of the map at the last question

    def moved() -> dict[str, Sequence[int]] | None:
        try:
            size = os.stat(path).st_size
        except OSError:  # the process has ended
            return None
        if size == read[0]:
            return None
        read[0] = size
        versions = asked.ask("versions", tuple(events.values()))
        return dict(zip(events, versions, strict=True))

    with terminable(), BreakpointSession(pid, moved) as session:
        stacks = Stacks(symbols=lambda path: remote_symbols(asked.ask, path))
        show = Show(session, targets.chosen, options, wanted, output, None, stacks)
        session.symbol = show.symbol
        session.add(*[target.plan for target in targets.chosen])
        session.note = lambda text: output.say(f"note: {text}")
        with Ending() as ending:
            session.start()
            number = len(events)
            functions = "1 function" if number == 1 else f"{number} functions"
            output.say(f"tracing {functions} of process {pid}; Ctrl-C ends it")
            if any(read_later(target.plan) for target in targets.chosen):
                output.say("note: `~`: the value is read after the hit, and may have changed")
            ended = watch(session, show.take, ending, None, (pid,), options.timeout)
        lost = session.lost
    for each in ended:
        output.say(f"process {each} has ended")
    show.end()
    if lost:
        output.say(f"warning: {lost} events were lost: the buffers were full")
    return 0
