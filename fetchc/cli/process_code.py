"""Commands about a process alone (``-p PID`` without ``-x``): code that it compiled itself."""

from __future__ import annotations

import os
from contextlib import closing

from fetchc.debuginfo.perf_map_format import number
from fetchc.debuginfo.perf_map_program import plain
from fetchc.debuginfo.running_process import RunningProcess, anonymous, is_dotnet, map_path
from fetchc.debuginfo.separate.process_root import of_process
from fetchc.diag.diagnostic import CompileError
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.api.library import Program
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.parsing_child import Reader, SameProcess
    from fetchc.cli.trace_request import Request
    from fetchc.cli.trace_targets import Target, Targets

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
    written, _ = of_process(map_path(pid), None)
    return (
        f"the runtime of process {pid} was asked for its perf map: it writes {written} "
        "until the process ends",
    )


def _is_asked_for(options: Options, pid: int) -> bool:
    # A name that the map has, or an address in memory of no file.
    names = _functions(options)
    address = _address(options)
    if address is not None:
        return any(start <= address < end for start, end in anonymous(pid))
    if not names or RunningProcess.map_file_of(pid) is None:
        return False
    has = {one for line in RunningProcess(pid).lines for one in (line.symbol, plain(line.symbol))}
    return all(name in has for name in names)


def _address(options: Options) -> int | None:
    text = options.at or ""
    return number(text) if text.startswith("0x") else None


def compiled_with_types(options: Options, program: Program) -> Program:
    """The code that the process compiled itself, with the types of the file that ``-x`` names.

    Where a name or an address means such code and nothing of the file; else ``program``, the file.
    """
    (pid,) = options.pids
    if is_dotnet(pid) or not _is_asked_for(options, pid):
        return program
    for name in _functions(options):
        try:
            program.probe(name)
        except CompileError:
            continue
        return program
    from fetchc.api.library import Program as Opened

    return Opened(f"/proc/{pid}:", types=program)


def _functions(options: Options) -> list[str]:
    names = [name for name in (*options.functions, options.function) if name]
    return names + (options.operands if options.command == "variables" else [])


def assembly_of(options: Options) -> str:
    """The path that the process's code of one assembly has: the one with the functions named.

    Without names the one with the address of ``--at``.
    """
    (pid,) = options.pids
    names = [name for name in _functions(options) if "*" not in name and "?" not in name]
    process = RunningProcess(pid)
    if not process.is_dotnet:
        return f"/proc/{pid}:"
    address = None if names else _address(options)
    if address is not None:
        return f"/proc/{pid}:{process.assembly_at(address)}"
    return f"/proc/{pid}:{process.assembly_of(names)}"


def traced(
    pid: int,
    options: Options,
    output: Output,
    asked: Reader | SameProcess,
    targets: Targets,
    wanted: Request,
) -> int:
    """Show calls of code that the process compiled, by breakpoints, until the end of the trace.

    Raises TracerError FC0720, FC0718.
    """
    from fetchc.cli.trace_breakpoints import BreakpointTrace, each_address
    from fetchc.tracer.breakpoints import BreakpointSession, most_breakpoints, too_many
    from fetchc.tracer.file_changes import FileChanges
    from fetchc.tracer.session import terminable

    chosen = each_address(targets.chosen, f"process {pid}")
    entries = {one.plan.event: one.plan.address for one in chosen if one.plan.kind != _RETURN}
    chosen, leaving = _with_room(chosen, most_breakpoints())

    def moved() -> dict[str, Sequence[int]]:
        versions = asked.ask("versions", tuple(entries.values()))
        found = dict(zip(entries, versions, strict=True))
        for function, events in leaving.items():
            now = asked.ask("returns", function)
            if len(now) > len(events):
                why = f"`{function}` was compiled again, and has {len(now)} return instructions"
                count = len(chosen) - len(events) + len(now)
                raise too_many(f"process {pid}", count, "functions", (why,))
            places = [(address,) for address in now] + [()] * (len(events) - len(now))
            found |= dict(zip(events, places, strict=True))
        return found

    trace = BreakpointTrace(options, output, asked, None, wanted)
    number = len({target.plan.function for target in chosen})
    functions = "1 function" if number == 1 else f"{number} functions"
    with terminable(), closing(FileChanges(RunningProcess.map_file_of(pid) or "")) as changes:
        plans = [target.plan for target in chosen]
        programs = options.engine != "tracefs"
        session = BreakpointSession(pid, plans, moved, trace.copied, changes, programs)
        return trace.run(session, chosen, functions)


_RETURN = "return-site"


def _with_room(chosen: list[Target], most: int) -> tuple[list[Target], dict[str, list[str]]]:
    # And the events of each function's return instructions. The first such function gets all
    # breakpoints that are left: when it is compiled again, it may have more of them.
    leaving: dict[str, list[str]] = {}
    for one in chosen:
        if one.plan.kind == _RETURN:
            leaving.setdefault(one.plan.function or "", []).append(one.plan.event)
    if not leaving:
        return chosen, leaving
    events = next(iter(leaving.values()))
    first = next(one for one in chosen if one.plan.event == events[0])
    for _ in range(most - len(chosen)):
        event = f"{events[0]}_{len(events)}"
        chosen = [*chosen, first.replaced(plan=first.plan.replaced(event=event))]
        events.append(event)
    return chosen, leaving
