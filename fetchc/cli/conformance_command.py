"""``fetchc conformance``: does fetchc read what the user's own compilers write?"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from fetchc import __version__
from fetchc.conformance.child_processes import ConformanceError, PtraceRefused, refused
from fetchc.conformance.dwarf_comparison import require_pyelftools
from fetchc.conformance.results import Tally
from fetchc.conformance.suite import PARTS, Job, jobs
from fetchc.conformance.suite import run as run_job
from fetchc.conformance.toolchains import (
    c_toolchain,
    go_toolchain,
    here,
    mono_toolchain,
    rust_toolchain,
)
from fetchc.tracer.session import terminable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.conformance.results import Reproducer
    from fetchc.conformance.suite import Result
    from fetchc.conformance.toolchains import Toolchain

    Key = tuple[str, str, str]  # toolchain, build, part

__all__ = ["Row", "Terminal", "document", "run"]

# ------------------------------------------------------------------------------
# What ``fetchc conformance`` prints: progress, a table, the JSON form.

_OF_TALLY = ("programs", "types", "functions", "expressions", "compared", "traced")
_COUNTED = (*_OF_TALLY, "refused", "wrong")
_WIDTH = 160  # of the table, wherever it goes


class Row:
    """What the programs of one build and part brought."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.wrong = 0

    def add(self, result: Result | Row) -> None:
        """Count in what another program brought."""
        self.tally.add(result.tally)
        self.wrong += result.wrong

    def counts(self) -> dict[str, int]:
        """The numbers that are shown, by name."""
        tally = self.tally
        counted = {name: getattr(tally, name) for name in _OF_TALLY}
        return counted | {"refused": tally.refused.total(), "wrong": self.wrong}


class Terminal:
    """Progress to standard error, and the table; needs the package rich."""

    def __init__(self) -> None:
        try:
            import rich.console
            import rich.progress
            import rich.table
        except ImportError as error:
            raise refused(
                "FC0807",
                "the package `rich`, which shows progress and results, is not installed",
                "install it: `pip install 'fetchc[conformance]'`, or take `--format json`",
            ) from error
        self._rich = rich

    def progress(self, planned: list[Job], one: Callable[[Job], None]) -> None:
        """Do all jobs, with a bar on a terminal."""
        console = self._rich.console.Console(stderr=True)
        columns = [
            self._rich.progress.BarColumn(),
            self._rich.progress.MofNCompleteColumn(),
            self._rich.progress.TimeRemainingColumn(),
            self._rich.progress.TextColumn("{task.description}"),
        ]
        off = not console.is_terminal
        with self._rich.progress.Progress(*columns, console=console, disable=off) as bar:
            task = bar.add_task("", total=len(planned))
            for job in planned:
                bar.update(task, description=f"{job.build}, {job.part}")
                one(job)
                bar.advance(task)

    def table(self, toolchains: list[Toolchain], rows: Mapping[Key, Row]) -> str:
        """One line a build and part, and their sums."""
        table = self._rich.table.Table(box=None, pad_edge=False)
        table.add_column("build", no_wrap=True)
        table.add_column("part")
        for name in _COUNTED:
            table.add_column(name, justify="right")
        total = Row()
        for (_, build, part), row in rows.items():
            total.add(row)
            table.add_row(build, part, *[str(count) for count in row.counts().values()])
        table.add_row("all", "", *[str(count) for count in total.counts().values()])
        console = self._rich.console.Console(width=_WIDTH, color_system=None)
        with console.capture() as captured:
            console.print(table, highlight=False)
        lines = [f"{each.name}: {each.version}" for each in toolchains]
        return "\n".join([*lines, *[line.rstrip() for line in captured.get().splitlines()]])


def document(
    seed: str,
    rounds: int,
    toolchains: list[Toolchain],
    rows: Mapping[Key, Row],
    first: Reproducer | None,
) -> dict[str, Any]:
    """The JSON form."""
    return {
        "fetchc": __version__,
        "seed": seed,
        "rounds": rounds,
        "toolchains": [_toolchain(each, rows) for each in toolchains],
        "reproducer": None if first is None else _reproducer(first),
    }


def _toolchain(toolchain: Toolchain, rows: Mapping[Key, Row]) -> dict[str, Any]:
    results = []
    for (name, build, part), row in rows.items():
        if name == toolchain.name:
            codes = dict(sorted(row.tally.refused.items()))
            results.append({"build": build, "part": part} | row.counts() | {"refused": codes})
    return {
        "name": toolchain.name,
        "version": toolchain.version,
        "language": toolchain.language,
        "left_out": list(toolchain.left_out),
        "results": results,
    }


def _reproducer(found: Reproducer) -> dict[str, str]:
    return {
        "command": found.command,
        "source": found.whole,
        "function": found.function,
        "stage": found.stage,
        "expression": found.expression,
        "fetcharg": found.fetcharg,
        "fetched": found.fetched,
        "program": found.program,
    }


def run(options: Options, output: Output) -> int:
    """A table of what was compared; status 1 and a small program where a value is wrong."""
    if not (options.compilers or options.gos or options.rusts or options.monos):
        output.say(
            "error: no toolchain is given",
            "",
            "usage: fetchc conformance --cc CC | --go GO | --rust RUSTC | --mono MONO",
        )
        return 2
    try:
        with terminable(), tempfile.TemporaryDirectory(prefix="fetchc-") as folder:
            return _run(options, output, Path(folder))
    except ConformanceError as error:
        output.diagnostics((error.diagnostic,), "")
        return 4 if isinstance(error, PtraceRefused) else 3


def _engines(options: Options, output: Output) -> tuple[str, ...]:
    # Those of the running kernel that are to fetch the values, too.
    if options.engine == "none":
        return ()
    from fetchc.conformance.engines import ENGINES, unavailable

    wanted = ENGINES if options.engine == "auto" else (options.engine,)
    reasons = {engine: unavailable(engine) for engine in wanted}
    for engine, reason in reasons.items():
        if reason is not None and options.engine != "auto":
            raise refused("FC0807", f"the engine `{engine}` cannot fetch here", _HELP, reason)
        if reason is not None:
            output.say(f"note: {engine} fetches nothing: {reason}")
    return tuple([engine for engine, reason in reasons.items() if reason is None])


_HELP = "run it as root, or leave `--engine` out: the oracles need no rights"


_NO_PROGRAMS = "no programs of its language are of this part, or only an engine can look at them"


def _run(options: Options, output: Output, folder: Path) -> int:
    here()
    terminal = None if options.format == "json" else Terminal()
    parts = (options.only,) if options.only else PARTS
    if "entries" in parts:
        require_pyelftools()
    toolchains = [c_toolchain(command, folder) for command in options.compilers]
    toolchains += [go_toolchain(command, folder) for command in options.gos]
    toolchains += [rust_toolchain(command, folder) for command in options.rusts]
    toolchains += [mono_toolchain(command, folder) for command in options.monos]
    engines = _engines(options, output)
    planned = jobs(toolchains, parts, options.rounds, options.seed, engines)
    for each in toolchains:
        if all(job.toolchain is not each for job in planned):
            output.say(f"note: {each.name}: {_NO_PROGRAMS}")
    rows: dict[tuple[str, str, str], Row] = {}
    first: Reproducer | None = None

    def one(job: Job) -> None:
        nonlocal first
        result = run_job(job, folder, small=first is None)
        key = job.toolchain.name, str(job.build), job.part
        rows.setdefault(key, Row()).add(result)
        first = first or result.reproducer

    if terminal is None:
        for job in planned:
            one(job)
        found = document(options.seed, options.rounds, toolchains, rows, first)
        output.document(json.dumps(found, indent=2))
    else:
        terminal.progress(planned, one)
        for each in toolchains:
            for line in each.left_out:
                output.say(f"note: {each.name} {line}")
        output.document(terminal.table(toolchains, rows))
        if first is not None:
            output.document(f"\nwrong, in the smallest program found:\n\n{first}\n")
            output.line("`--format json` has the whole program; please report it")
    return int(any(row.wrong for row in rows.values()))
