"""The verdicts of the kernel's selftests, from ``corpus/kernel/selftests.verdicts``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[2] / "corpus" / "kernel" / "selftests.verdicts"


@dataclass(frozen=True)
class SelfTest:
    """One definition; ``column`` and ``error`` are None where the selftest says none.

    ``kind`` is argument, uprobe or kprobe.
    """

    accepted: bool
    kind: str
    column: int | None
    error: str | None
    text: str


def selftests() -> list[SelfTest]:
    """Every line of the file; ValueError for one that is not of its form."""
    found = []
    for line in FILE.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        facts, _, text = line.partition(" | ")
        verdict, kind, column, error = facts.split()
        if verdict not in ("accepted", "refused") or kind not in ("argument", "uprobe", "kprobe"):
            raise ValueError(line)
        at = None if column == "-" else int(column)
        said = None if error == "-" else error
        found.append(SelfTest(verdict == "accepted", kind, at, said, text))
    return found
