"""How far a long reading is: one line on a terminal, which goes away at the end."""

from __future__ import annotations

import sys
import time

__all__ = ["Counter", "Progress"]

SILENT_SECONDS = 0.5  # what takes no longer says nothing
ERASE = "\r\x1b[K"
WIDTH = 30  # of the bar


class Counter:
    """How many programs were read, on one line of standard error that goes away at the end.

    With a bar where it is known how many there are.
    """

    def __init__(self, total: int | None = None) -> None:
        self._begin = self._last = time.monotonic()
        self._total = total

    def __call__(self, done: int) -> None:
        """Draw the line, ten times a second at most."""
        now = time.monotonic()
        if now - self._begin < SILENT_SECONDS or now - self._last < 0.1:
            return
        self._last = now
        line = f"{done:,} programs read"
        if self._total:
            bar = "#" * (WIDTH * done // self._total)
            line = f"reading [{bar:<{WIDTH}}] {done:,} of {self._total:,} programs"
        sys.stderr.write(ERASE + line)
        sys.stderr.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._last > self._begin:
            sys.stderr.write(ERASE)
            sys.stderr.flush()


class Progress:
    """To be called with bytes read and bytes in all; prints to standard error."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """Draw the line, or take it away when all is done."""
        if done >= total:
            if self._shown:
                self._write(ERASE)
                self._shown = False
            return
        if time.monotonic() - self._begin < SILENT_SECONDS:
            return
        bar = "#" * (WIDTH * done // total)
        self._write(f"{ERASE}reading [{bar:<{WIDTH}}] {100 * done // total} %")
        self._shown = True

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
