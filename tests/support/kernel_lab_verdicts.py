"""Definitions judged in a guest, and our verdicts beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fetchc.driver.check_definitions import check_definition
from fetchc.target.kernel_versions import kernel as rules_of
from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_guest import Guest
from tests.support.verdict_compare import compare
from tests.support.verdicts import Verdict

Drawn = TypeVar("Drawn")


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


def verdicts(
    guest: Guest, lines: Iterable[str], file: str = "uprobe_events"
) -> list[tuple[str, Verdict]]:
    """Every line once, and what the guest's kernel says to it."""
    wanted = list(dict.fromkeys(lines))
    return list(zip(wanted, guest.judge(file, wanted), strict=True))


def compared(kernel: LabKernel, answers: Sequence[tuple[str, Verdict]], version: str = "") -> Round:
    """A kernel's verdicts beside ours by the rules of its version, or of another one."""
    rules = rules_of(version or kernel.release)
    round = Round()
    for line, verdict in answers:
        round.asked += 1
        round.accepted += not verdict.errno
        round.refused += bool(verdict.errno)
        ours = check_definition(line, rules, kernel.machine.name)
        if difference := compare(line, ours, verdict):
            round.differences.append(difference)
    return round
