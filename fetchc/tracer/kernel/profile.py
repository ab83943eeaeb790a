"""What the kernel counts of its definitions: hits, and hits of its own functions that it missed.

``kprobe_profile`` and ``uprobe_profile`` have a line for each definition, in their order: the event
without its group, its hits; the file in front of them, or the misses behind. A return probe has
room for so many calls at a time (``maxactive``), and misses the returns of all others; a probe that
is hit while the kernel handles another one is missed, too. Of function probes (``f``) there is no
such file.
Source: probes_profile_seq_show, kernel/trace/trace_kprobe.c and trace_uprobe.c.
"""

from __future__ import annotations

from fetchc.tracer.kernel.install import PROBED, head, listed_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.kernel.tracefs import Tracefs

__all__ = ["hits", "missed"]

_COLUMNS = {PROBED[0]: 2, PROBED[1]: 3}  # at the end of a line: event, hits, misses


def hits(tracefs: Tracefs) -> dict[tuple[str, str], int]:
    """The hits of each event, by group and event."""
    found: dict[tuple[str, str], int] = {}
    for file in _COLUMNS:
        for line, (number, *_) in _rows(tracefs, file):
            found[head(line)] = found.get(head(line), 0) + number
    return found


def missed(tracefs: Tracefs, group: str) -> tuple[int, int]:
    """How many entries, and how many returns, the kernel's probes of a group have missed."""
    entries = returns = 0
    for line, (_, number) in _rows(tracefs, PROBED[1]):
        if head(line)[0] == group:
            if line[0] == "r":
                returns += number
            else:
                entries += number
    return entries, returns


def _rows(tracefs: Tracefs, file: str) -> list[tuple[str, list[int]]]:
    # Where a definition came or went between the two readings, nothing is known.
    lines = listed_in(tracefs, file)
    if not lines:
        return []
    try:
        profile = tracefs.read(file.replace("events", "profile")).splitlines()
    except FileNotFoundError:
        return []
    rows = [row.split() for row in profile]
    columns = [row[-_COLUMNS[file] :] for row in rows]
    if [[head(line)[1]] for line in lines] != [words[:1] for words in columns]:
        return []
    return [
        (line, [int(number) for number in numbers])
        for line, (_, *numbers) in zip(lines, columns, strict=True)
    ]
