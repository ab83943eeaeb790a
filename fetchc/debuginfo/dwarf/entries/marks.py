"""Places of a unit where an entry is known to start, and what is around it.

A walk needs a start, and entries can only be walked forwards. So walks leave marks on their way,
and the next one starts at the last in front of what it looks for.
"""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    # The start of the entry around, and what is around that; None for the unit's top entry.
    Around = tuple[int, "Around"] | None

__all__ = ["STRIDE", "Marks"]

# Entries that a walk passes between two marks.
STRIDE = 1024


class Marks:
    """The marks of one unit, its top entry the first. Positions count from the unit's start.

    ``steps`` is how many entries walks have passed.
    """

    __slots__ = ("_around", "_last", "_starts", "steps")

    def __init__(self, first: int) -> None:
        self._starts = [first]
        self._around: list[Around] = [None]
        self._last: tuple[int, Around] = first, None
        self.steps = 0

    def before(self, position: int) -> tuple[int, Around]:
        """The last known start in front of ``position`` or at it, else the first of all."""
        last = self._last
        at = max(bisect_right(self._starts, position) - 1, 0)
        start = self._starts[at]
        return last if start < last[0] <= position else (start, self._around[at])

    def function(self, address: int) -> int | None:
        """Where the subprogram that starts at ``address`` is, by what is kept of the unit.

        -1: no subprogram does; None: nothing is kept.
        """
        return None

    def passed(
        self, starts: list[tuple[int, Around]], last: tuple[int, Around], steps: int
    ) -> None:
        """Take note of a walk: some of the starts that it passed, and where it ended."""
        self._last = last
        self.steps += steps
        for start, around in starts:
            if start > self._starts[-1]:
                self._starts.append(start)
                self._around.append(around)
