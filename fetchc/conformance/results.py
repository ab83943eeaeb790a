"""What a run brings: how much was compared, and what was read wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fetchc.record import Record

__all__ = ["LIMITS", "REFUSED", "Reproducer", "Tally", "without"]

# The kernel's own limits: right wherever they are said, and counted.
LIMITS = frozenset(["FC0501", "FC0502"])
REFUSED = "none"  # stands for the fetch-arg of what was refused


class Tally:
    """How much was compared; ``refused`` counts the codes of right refusals."""

    def __init__(self) -> None:
        self.programs = 0
        self.types = 0
        self.functions = 0
        self.expressions = 0
        self.compared = 0
        self.refused: Counter[str] = Counter()

    def add(self, other: Tally) -> None:
        """Count another program in."""
        self.programs += other.programs
        self.types += other.types
        self.functions += other.functions
        self.expressions += other.expressions
        self.compared += other.compared
        self.refused += other.refused

    def __str__(self) -> str:
        refused = ", ".join(f"{code} {count}" for code, count in sorted(self.refused.items()))
        return (
            f"{self.types} types, {self.functions} functions, {self.expressions} expressions, "
            f"{self.compared} compared, refused: {refused or 'none'}"
        )


def without(items: list[Any]) -> Iterator[Callable[[], None]]:
    """Take items out, many at once and then fewer; each time how to put them back."""
    many = len(items)
    while many:
        for start in range(len(items) - 1, -1, -many):
            first = max(0, start - many + 1)
            taken = items[first : start + 1]
            if taken:
                del items[first : start + 1]
                yield partial(_put_back, items, first, taken)
        many //= 2


def _put_back(items: list[Any], first: int, taken: list[Any]) -> None:
    items[first:first] = taken


class Reproducer(Record):
    """The smallest program found that shows a wrong value, and all that it takes to see it."""

    command: str  # that builds it
    source: str  # what of the program matters
    whole: str  # all of it
    function: str
    stage: str  # entry, inner: at the mark in the body, leave: where it returns
    expression: str
    fetcharg: str
    fetched: str
    program: str  # the value, as the program has it

    def __str__(self) -> str:
        return (
            f"{self.source}\n\n"
            f"built by:    {self.command}\n"
            f"function:    {self.function} ({self.stage})\n"
            f"expression:  {self.expression}\n"
            f"fetch-arg:   {self.fetcharg}\n"
            f"fetched:     {self.fetched}\n"
            f"the program: {self.program}"
        )
