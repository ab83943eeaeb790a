"""``--interval``: the table as it grows, on a terminal, or as a line of JSON for each interval.

It is drawn on the terminal's alternate screen, which is left at the end whatever the reason: what
stood on the terminal before is there again. The size is read at each drawing, so it may change.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque

from fetchc.diag.render import printable
from fetchc.tracer.tables import bar_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fetchc.cli.output import Output
    from fetchc.cli.trace_tables import Tally
    from fetchc.tracer.tables import Bar, Number, Table

__all__ = ["HeatMap", "Intervals", "View"]

# Source: ECMA-48 (CUP, EL, ED, SGR); xterm's control sequences, private modes 25 and 1049.
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _END_LINE, _END_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_SHADES = " ░▒▓█"
_COLORS = (17, 18, 19, 55, 91, 127, 163, 197, 203, 209, 215, 221, 227)  # of 256: blue to yellow
_MOST_COLUMNS = 512  # of a heat map: no terminal has more
_LABEL = 13


class HeatMap:
    """Counts by bucket, a column for each interval, the newest to the right."""

    def __init__(self) -> None:
        self._columns: deque[dict[tuple[Number | None, Number], int]] = deque(maxlen=_MOST_COLUMNS)

    def add(self, bars: Iterable[Bar]) -> None:
        """Append the bars of one interval."""
        self._columns.append({(low, high): count for low, high, count in bars if count})

    def lines(self, width: int, height: int, colored: bool) -> list[str]:
        """At most ``height`` lines of ``width`` columns: the largest values above."""
        shown = list(self._columns)[-max(0, width - _LABEL) :]
        bounds = sorted({each for column in shown for each in column}, key=lambda one: one[1])
        most = max((count for column in shown for count in column.values()), default=0)
        lines = []
        for each in reversed(bounds[-height:] if height > 0 else ()):
            cells = [_heat(column.get(each, 0), most, colored) for column in shown]
            reset = "\x1b[0m" if colored else ""
            lines.append(f"{bar_label(*each):>{_LABEL - 1}} {''.join(cells)}{reset}")
        return lines


def _heat(count: int, most: int, colored: bool) -> str:
    if not count:
        return "\x1b[49m " if colored else " "
    if colored:
        return f"\x1b[48;5;{_COLORS[(count * len(_COLORS) - 1) // most]}m "
    return _SHADES[1 + (count * (len(_SHADES) - 1) - 1) // most]


class View:
    """The terminal's second screen; entered at the first drawing, left by :meth:`close`."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._entered = False

    def size(self) -> tuple[int, int]:
        """Columns and lines of the terminal, now."""
        try:
            found = os.get_terminal_size(sys.stdout.fileno())
        except (OSError, ValueError):
            return 80, 24
        return found.columns or 80, found.lines or 24

    def draw(self, plain: Sequence[str], painted: Sequence[str]) -> None:
        """Show lines of text, cut at the width, and below them lines that already fit."""
        columns, height = self.size()
        lines = [_cut(printable(line), columns) for line in plain[: height - len(painted)]]
        text = "".join([f"{line}{_END_LINE}\n" for line in [*lines, *painted][:height]])
        text = text.removesuffix("\n")  # a line more would scroll
        before = "" if self._entered else _ENTER
        self._entered = True
        self._output.document(f"{before}{_HOME}{text}{_END_SCREEN}", end="")
        self._output.flush()

    def close(self) -> None:
        """Give the first screen back, with its cursor; once."""
        if self._entered:
            self._entered = False
            self._output.document(_LEAVE, end="")
            self._output.flush()


def _cut(line: str, columns: int) -> str:
    return line if len(line) <= columns else line[: max(0, columns - 1)] + "…"


class Intervals:
    """Shows a tally every ``seconds``; ``view`` is None where standard output is no terminal."""

    def __init__(self, tally: Tally, seconds: float, output: Output) -> None:
        self._tally = tally
        self._seconds = seconds
        self._output = output
        self.view = View(output) if output.shown else None
        self._maps = {
            at: HeatMap() for at, one in enumerate(tally.measures) if one.kind == "histogram"
        }
        self._begin = self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether an interval has passed since the last time."""
        return time.monotonic() - self._last >= self._seconds

    def show(self) -> None:
        """Show the table with what was counted since the last time."""
        now = time.monotonic()
        recent, start, self._last = self._tally.turn(), self._last, now
        if self.view is None:
            self._line(recent, start, now)
            return
        together = recent.of_all()
        for at, heat in self._maps.items():
            heat.add(together.cells[at].bars())
        self._draw(self.view, recent, now - start)

    def _line(self, table: Table, start: float, end: float, name: str = "interval") -> None:
        line = self._tally.interval(table, start - self._begin, end - self._begin, name)
        self._output.document(line)
        self._output.flush()

    def _draw(self, view: View, recent: Table, seconds: float) -> None:
        columns, height = view.size()
        lines = [f"{self._last - self._begin:.0f} s; Ctrl-C ends it", ""]
        lines += self._tally.lines(recent, seconds, columns)
        painted: list[str] = []
        # A third of the height at least is the table's.
        room = max(0, height - min(len(lines), max(3, height // 3)))
        for at, heat in self._maps.items():
            title = f"{self._tally.measures[at].text}, a column every {self._seconds:g} s"
            map_lines = heat.lines(columns, room // len(self._maps) - 2, self._output.colored)
            if map_lines:
                painted += ["", _cut(printable(title), columns), *map_lines]
        view.draw(lines, painted)

    def end(self) -> None:
        """The last lines of JSON: what no interval had yet, and all together."""
        now = time.monotonic()
        recent, start, self._last = self._tally.turn(), self._last, now
        if recent.rows:
            self._line(recent, start, now)
        self._line(self._tally.table, self._begin, now, "total")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self.view is not None:
            self.view.close()
