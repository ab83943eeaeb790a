"""Definitions judged in a guest, and our verdicts beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fetchc.driver.checking import Checked, check_definition
from fetchc.target.kernel import kernel
from tests.support.kernel_lab_guest import Guest
from tests.support.verdict_compare import compare

Drawn = TypeVar("Drawn")
Check = Callable[[str], Checked]


@dataclass
class Round:
    """What a round of verdicts came to."""

    asked: int = 0
    accepted: int = 0
    refused: int = 0
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = f"{self.asked} definitions, {self.accepted} accepted, {self.refused} refused"
        return f"{counts}, {len(self.differences)} differences"


def drawn(strategy: st.SearchStrategy[Drawn], count: int) -> list[Drawn]:
    """``count`` examples or more of a strategy, the same ones every time.

    A guest judges many at a time, which a test of one example each could not use.
    """
    found: list[Drawn] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(each: Drawn) -> None:
        found.append(each)

    collect()
    return found


def judged(
    guest: Guest, lines: Iterable[str], check: Check | None = None, file: str = "uprobe_events"
) -> Round:
    """Every line to the guest's kernel and to ours of its version."""
    rules = kernel(guest.kernel.release)
    ours = check or (lambda line: check_definition(line, rules))
    wanted: Sequence[str] = list(dict.fromkeys(lines))
    round = Round()
    for line, verdict in zip(wanted, guest.judge(file, wanted), strict=True):
        round.asked += 1
        round.accepted += not verdict.errno
        round.refused += bool(verdict.errno)
        if difference := compare(line, ours(line), verdict):
            round.differences.append(difference)
    return round
