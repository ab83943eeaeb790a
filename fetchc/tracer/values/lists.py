"""Lists whose elements are in the record one after the other."""

from __future__ import annotations

from fetchc.tracer.values.kinds import CutList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.model import Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]

__all__ = ["first_of", "if_there", "listed", "row", "up_to_length"]


def row(values: Callable[[bytes], list[Value]], count: int, total: int) -> Make:
    """All ``count`` values; a cut list where the array has more, ``total``."""
    if total > count:
        return lambda data, faults: CutList(values(data), total)
    return lambda data, faults: values(data)


def listed(makers: Sequence[Make], total: int) -> Make:
    """The values of all ``makers``, as :func:`row`."""

    def make(data: bytes, faults: Faults) -> Value:
        values = [one(data, faults) for one in makers]
        return CutList(values, total) if total > len(makers) else values

    return make


def if_there(number: Make, least: int, inner: Make, path: str) -> Make:
    """``inner`` where there are ``least`` elements, else a fault: behind the last one is none."""

    def make(data: bytes, faults: Faults) -> Value:
        count = number(data, faults)
        if not isinstance(count, int):
            return None
        if count < least:
            faults.append(path)
            return None
        return inner(data, faults)

    return make


def first_of(makers: Sequence[Make], length_of: Callable[[bytes], int]) -> Make:
    """As many of the values as the length says, or all."""
    return lambda data, faults: [one(data, faults) for one in makers[: length_of(data)]]


def up_to_length(some: Make, length_of: Callable[[bytes], int], most: int) -> Make:
    """The list ``some`` up to its length; ``most`` elements are in the record."""

    def make(data: bytes, faults: Faults) -> Value:
        values = some(data, faults)
        if values is None:
            return None
        assert isinstance(values, list)
        count = length_of(data)
        return CutList(values, count) if count > most else values[:count]

    return make
