"""What ``--sum`` adds up until the end."""

from __future__ import annotations

import json
import math

from fetchc.cli.tracing.calls import value_of
from fetchc.cli.tracing.tally import key_of, key_shown, key_value
from fetchc.diag.render import printable
from fetchc.tracer.histogram import MOST_KEYS, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from fetchc.cli.tracing.calls import Hit
    from fetchc.tracer.events import Value

    ValueOf = Callable[[Hit], Value]
    KeyOf = Callable[[Hit], Hashable]

__all__ = ["Sums"]

_TOGETHER = "(all)"
_encode = json.JSONEncoder(allow_nan=False).encode


class _Sum:
    """Numbers added up."""

    __slots__ = ("count", "largest", "smallest", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total: int | float = 0
        self.smallest: int | float = math.inf
        self.largest: int | float = -math.inf

    def add(self, value: int | float) -> None:
        """Take a number in."""
        self.count += 1
        self.total += value
        self.smallest = min(self.smallest, value)
        self.largest = max(self.largest, value)


class Sums:
    """``--sum EXPR... [--by EXPR]``: how many numbers, their sum, the mean, the ends.

    Several expressions are added up together, too.
    """

    def __init__(self, measures: Sequence[str], by: str | None) -> None:
        names = tuple(dict.fromkeys(measures))
        self._names = (*names, _TOGETHER) if len(names) > 1 else names
        self._by = by
        self._keys: dict[Hashable, list[_Sum]] = {}
        self._sources: dict[str, tuple[list[ValueOf], KeyOf]] = {}
        self._without = 0
        self._unkept = 0

    def add(self, hit: Hit) -> None:
        """Add a hit's numbers."""
        target = hit.target
        sources = self._sources.get(target.plan.event)
        if sources is None:
            sources = ([value_of(label) for label in target.sums], key_of(target.by))
            self._sources[target.plan.event] = sources
        sums = self._of(None if self._by is None else sources[1](hit))
        if sums is None:
            self._unkept += 1
            return
        for position, source in enumerate(sources[0]):
            value = number(source(hit))
            if value is None:
                self._without += 1
                continue
            sums[position].add(value)
            if len(sums) > len(sources[0]):
                sums[-1].add(value)

    def _of(self, key: Hashable) -> list[_Sum] | None:
        sums = self._keys.get(key)
        if sums is None and len(self._keys) < MOST_KEYS:
            sums = self._keys[key] = [_Sum() for _ in self._names]
        return sums

    def _sorted(self) -> list[tuple[Hashable, list[_Sum]]]:
        return sorted(self._keys.items(), key=lambda each: each[1][-1].total)

    def text(self) -> Iterator[str]:
        """A table for each key, that with the largest sum last."""
        for key, sums in self._sorted():
            yield ""
            if self._by is not None:
                yield f"{printable(self._by)} = {key_shown(key)}:"
            yield f"{'COUNT':>10}  {'SUM':>14}  {'MEAN':>12}  {'MIN':>10}  {'MAX':>10}  EXPRESSION"
            for name, one in zip(self._names, sums, strict=True):
                numbers = f"{one.count:>10}  {_shown(one.total):>14}  "
                if one.count:
                    numbers += f"{one.total / one.count:>12.3f}  "
                    numbers += f"{_shown(one.smallest):>10}  {_shown(one.largest):>10}  "
                else:
                    numbers += f"{'':38}"
                yield f"{numbers}{printable(name)}"

    def json(self) -> Iterator[str]:
        """An object for each key and expression."""
        for key, sums in self._sorted():
            for name, one in zip(self._names, sums, strict=True):
                yield _encode(
                    {
                        "sum": name,
                        "by": self._by,
                        "key": key_value(key),
                        "count": one.count,
                        "total": one.total,
                        "smallest": one.smallest if one.count else None,
                        "largest": one.largest if one.count else None,
                    }
                )

    def remarks(self) -> Iterator[str]:
        """What is not in the sums."""
        if self._without:
            yield f"{self._without} values that are no numbers are not in the sums"
        if self._unkept:
            yield f"{self._unkept} hits are in no sum: there were too many keys"


def _shown(value: int | float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
