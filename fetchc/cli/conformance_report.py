"""What ``fetchc conformance`` prints: progress, a table, the JSON form."""

from __future__ import annotations

from fetchc import __version__
from fetchc.conformance.child_processes import refused
from fetchc.conformance.results import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fetchc.conformance.results import Reproducer
    from fetchc.conformance.suite import Job, Result
    from fetchc.conformance.toolchains import Toolchain

    Key = tuple[str, str, str]  # toolchain, build, part

__all__ = ["Row", "Terminal", "document"]

_COUNTED = ("programs", "types", "functions", "expressions", "compared", "refused", "wrong")
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
        counted = {name: getattr(tally, name) for name in _COUNTED[:5]}
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
        "toolchains": [_told(each, rows) for each in toolchains],
        "reproducer": None if first is None else _reproducer(first),
    }


def _told(toolchain: Toolchain, rows: Mapping[Key, Row]) -> dict[str, Any]:
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
