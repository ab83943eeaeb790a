"""Perf maps: lines ``START SIZE NAME`` about code that no symbol table names.

A runtime writes one of what it compiles, ``/tmp/perf-PID.map``, at the process's addresses;
crossgen one of an image, ``NAME.ni.{MVID}.map``. Numbers are hexadecimal, with ``0x`` or without.
Source: tools/perf/Documentation/jit-interface.txt; lines of .NET Core 2.1, 3.1 and .NET 9.
"""

from __future__ import annotations

import os

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

__all__ = ["CUT", "GrowingMap", "MapLine", "parse_line", "parse_lines", "written_line"]

LARGEST = 1 << 64
KNOWN_AGAIN = 64  # bytes
CUT = "start the process again: it writes a new map"
"""What helps where a map is not whole."""

HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


class MapLine(Record):
    """One line: the address, size and name of a piece of code."""

    start: int
    size: int
    symbol: str


def parse_line(line: str) -> MapLine | None:
    """A line taken apart; None where it is none."""
    words = line.rstrip("\r\n").split(None, 2)
    if len(words) < 3:
        return None
    start, size = number(words[0]), number(words[1])
    return None if start is None or size is None else MapLine(start, size, words[2])


def number(word: str) -> int | None:
    """A hexadecimal number with or without ``0x``; None where it is none."""
    digits = word[2:] if word[:2] in ("0x", "0X") else word
    value = int(digits, 16) if digits and HEXADECIMAL.issuperset(digits) else LARGEST
    return value if value < LARGEST else None


def parse_lines(path: str, data: bytes) -> list[MapLine]:
    """The lines of a map, but for one that is still being written: the last, without its end.

    Raises DebugInfoError FC0904 with the line that is none.
    """
    found = []
    text = data[: data.rfind(b"\n") + 1].decode("utf-8", "surrogateescape")
    for at, line in enumerate(text.split("\n"), 1):
        parsed = parse_line(line)
        if parsed is not None:
            found.append(parsed)
        elif line.strip():
            raise DebugInfoError(
                "FC0904",
                path,
                f"line {at} is not a line of a perf map: {line[:60]!r}",
                help=CUT,
            )
    return found


class GrowingMap:
    """The place in a map up to which it was read: its runtime writes on, or a map anew."""

    __slots__ = ("_at", "_last")

    def __init__(self) -> None:
        self._at = 0
        self._last = b""  # the bytes before that place, by which the map is known again

    def read(self, handle: int, most: int) -> tuple[bytes, bool]:
        """The whole lines since the last call, of ``most`` bytes; whether the map has begun anew.

        ``handle`` is the open file. Raises OSError.
        """
        before = os.pread(handle, len(self._last), self._at - len(self._last))
        anew = before != self._last
        if anew:
            self._at, self._last = 0, b""
        data = os.pread(handle, min(os.fstat(handle).st_size - self._at, most), self._at)
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        self._last = whole[-KNOWN_AGAIN:] or self._last
        return whole, anew


def written_line(line: MapLine) -> str:
    """The line as crossgen, .NET Core 2.1 and 3.1 write it, which every reader takes."""
    return f"{line.start:016X} {line.size:x} {line.symbol}\n"
