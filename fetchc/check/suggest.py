"""Nearest names, for the help of a diagnostic. Off the hot path: only refusals ask."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["distance", "nearest"]


def distance(left: str, right: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) between two names, at most ``limit`` + 1.

    Source: the optimal string alignment distance, one row at a time.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above, row, older = row, [i], before
        before = above
        for j, b in enumerate(right, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if older and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def nearest(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Up to ``most`` of the ``known`` names that ``name`` may have meant, best first.

    A name of the same letters in another case comes first, then names that end or begin
    with it, then those a few edits away (a third of its length, at least one).
    """
    lower = name.lower()
    # Of one letter, every other one is an edit away.
    limit = max(1, len(name) // 3) if len(name) > 1 else 0
    scored: list[tuple[int, str]] = []
    for candidate in dict.fromkeys(known):
        other = candidate.lower()
        if other == lower:
            scored.append((0, candidate))
        elif len(name) > 2 and (other.endswith(lower) or other.startswith(lower)):
            scored.append((1, candidate))
        elif (edits := distance(lower, other, limit)) <= limit:
            scored.append((1 + edits, candidate))
    scored.sort()
    return tuple(candidate for _, candidate in scored[:most])
