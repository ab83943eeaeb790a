"""The pane where a `fetchc trace` runs: its lines as they come, or a histogram that grows.

The trace is a process of its own, the same command that the browser shows and copies. It removes
its probes when it is asked to end, and when nobody reads its output any more: so nothing is left
behind however the browser ends.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
from collections import deque
from contextlib import suppress
from pathlib import Path
from sys import executable
from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.widgets import Log, Static

import fetchc
from fetchc.diag.render import printable
from fetchc.tracer.tables import bar_lines

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from fetchc.tracer.tables import Bar, Number

__all__ = ["TracePane", "command_line"]

_CHUNK = 1 << 16  # bytes of output that are read at once
_MOST = 1000  # lines that the pane has
_TURN = 0.1  # seconds between two drawings
_GRACE = 10.0  # seconds that a trace has to remove its probes
_ROWS = 20  # keys of a table
# Runs fetchc as this process imported it, from a folder or a zip file. -P: from no other folder.
_FETCHC = "import sys; sys.path.insert(0, sys.argv.pop(1)); from fetchc.cli import main; main()"


def command_line(words: Sequence[str]) -> str:
    """A command of fetchc as a shell takes it."""
    return shlex.join(["fetchc", *words])


class TracePane(Vertical):
    """Runs one trace at a time; hidden while there is none."""

    DEFAULT_CSS = """
    TracePane { height: 50%; display: none; }
    TracePane > Log { height: 1fr; }
    TracePane > #counts { height: 1fr; display: none; }
    TracePane > #state { height: 1; text-style: reverse; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        """The arguments of the trace that runs, or ran last; empty before the first one."""
        self.paused = False
        self.hits = 0
        """Lines that were read."""
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: deque[str] = deque(maxlen=_MOST)
        self._table: dict[str, dict[tuple[Number | None, Number], int]] = {}
        self._hits_by_key: dict[str, int] = {}

    def compose(self) -> ComposeResult:
        """A line about the trace, its lines, a table in their place."""
        yield Static("", id="state", markup=False)
        yield Log(max_lines=_MOST)
        yield Static("", id="counts", markup=False)

    def on_mount(self) -> None:
        """Draw a few times a second, however fast events come."""
        self.set_interval(_TURN, self._draw)

    @property
    def running(self) -> bool:
        """Whether a trace runs."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The process of the trace; None while none runs."""
        return None if self._process is None else self._process.pid

    async def start(self, words: Sequence[str]) -> None:
        """Run ``fetchc trace`` with these arguments, in place of the one that runs."""
        await self.stop()
        self.words = list(words)
        self.paused, self.hits = False, 0
        self._waiting.clear()
        self._table.clear()
        self._hits_by_key.clear()
        counted = "--interval" in words
        log, counts = self.query_one(Log), self.query_one("#counts", Static)
        log.clear()
        counts.update("")
        log.display, counts.display = not counted, counted
        self.display = True
        folder = str(Path(fetchc.__file__).parents[1])
        self._process = await asyncio.create_subprocess_exec(
            *(executable, "-P", "-c", _FETCHC, folder, "trace", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self._reading = asyncio.create_task(self._read(self._process, counted))

    async def stop(self) -> None:
        """End the trace, and wait until its probes are removed."""
        process, reading = self._process, self._reading
        if process is None or reading is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        # What it still has to say is read: a full pipe would keep it from its end.
        done, _ = await asyncio.wait([reading], timeout=_GRACE)
        if not done:
            process.kill()
            await asyncio.wait([reading])

    def close(self) -> None:
        """Hide the pane; the trace must have ended."""
        self.display = False

    async def _read(self, process: Process, counted: bool) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        said = asyncio.create_task(process.stderr.read())
        rest = b""
        while chunk := await process.stdout.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            self._take([line.decode("utf-8", "replace") for line in lines], counted)
            await asyncio.sleep(0)  # keys are answered meanwhile
        messages = (await said).decode("utf-8", "replace").splitlines()
        await process.wait()
        self._process = None
        # The message that it traces is in the title.
        self._waiting.extend([line for line in messages if not line.startswith("tracing ")])
        if counted and not self._table and not self._hits_by_key:
            self.query_one(Log).display = True
            self.query_one("#counts").display = False
        self._draw()

    def _take(self, lines: Sequence[str], counted: bool) -> None:
        if not counted:
            self.hits += len(lines)
            self._waiting.extend(lines)
            return
        for line in lines:
            document = json.loads(line)
            if "interval" not in document:
                continue  # the total, at the end
            for row in document["rows"]:
                key = printable(", ".join([str(each) for each in row["key"]]))
                self.hits += row["hits"]
                self._hits_by_key[key] = self._hits_by_key.get(key, 0) + row["hits"]
                for text, cell in row.get("values", {}).items():
                    bars = self._table.setdefault(text, {})
                    for low, high, count in cell.get("buckets", ()):
                        bars[low, high] = bars.get((low, high), 0) + count

    def _draw(self) -> None:
        if not self.display:
            return
        state = "paused" if self.paused else "tracing" if self.running else "ended"
        self.query_one("#state", Static).update(f"{state}, {self.hits} hits")
        if self.paused:
            return
        log = self.query_one(Log)
        if self._waiting and log.display:
            log.write_lines(self._waiting)
            self._waiting.clear()
        counts = self.query_one("#counts", Static)
        if counts.display:
            counts.update("\n".join(self._counted(max(self.size.width - 32, 8))))

    def _counted(self, width: int) -> list[str]:
        if not self._table:
            heaviest = sorted(self._hits_by_key.items(), key=lambda one: -one[1])[:_ROWS]
            return [f"{hits:>9}  {key}" for key, hits in heaviest]
        lines = []
        for text, found in self._table.items():
            bars: list[Bar] = [
                (low, high, count) for (low, high), count in sorted(found.items(), key=_upper)
            ]
            lines += [f"{text}:", *bar_lines(bars, width)]
        return lines


def _upper(bar: tuple[tuple[Number | None, Number], int]) -> Number:
    return bar[0][1]
