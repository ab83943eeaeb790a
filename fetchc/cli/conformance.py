"""``fetchc conformance``: does fetchc read what the user's own compilers write?"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from fetchc.cli.conformance_report import Row, Terminal, document
from fetchc.conformance.child_processes import ConformanceError
from fetchc.conformance.suite import PARTS, Job, jobs
from fetchc.conformance.suite import run as run_job
from fetchc.conformance.toolchains import c_toolchain, go_toolchain, here
from fetchc.tracer.session import terminable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.options import Options
    from fetchc.cli.output import Output
    from fetchc.conformance.results import Reproducer

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """A table of what was compared; status 1 and a small program where a value is wrong."""
    if not options.compilers and not options.gos:
        output.say(
            "error: no toolchain is given", "", "usage: fetchc conformance --cc CC | --go GO"
        )
        return 2
    try:
        with terminable(), tempfile.TemporaryDirectory(prefix="fetchc-") as folder:
            return _run(options, output, Path(folder))
    except ConformanceError as error:
        output.diagnostics((error.diagnostic,), "")
        return 4 if error.diagnostic.code == "FC0806" else 3


def _run(options: Options, output: Output, folder: Path) -> int:
    here()
    terminal = None if options.format == "json" else Terminal()
    toolchains = [c_toolchain(command, folder) for command in options.compilers]
    toolchains += [go_toolchain(command, folder) for command in options.gos]
    parts = (options.only,) if options.only else PARTS
    planned = jobs(toolchains, parts, options.rounds, options.seed)
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
