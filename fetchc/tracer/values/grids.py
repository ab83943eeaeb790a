"""Arrays of several dimensions: the elements that lie side by side as rows of rows."""

from __future__ import annotations

from math import prod

from fetchc.tracer.values.kinds import CutList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.model import Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]

__all__ = ["gridded"]

MOST_EMPTY = 64  # rows without elements that are shown


def gridded(flat: Make, lengths: Sequence[Make], indices: tuple[int, ...], path: str) -> Make:
    """The elements of ``flat`` row by row, or with ``indices`` the one element that they name.

    What is no such element, or was not fetched, is a fault. So is an array whose lengths are
    those of another number of elements.
    """

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        values = flat(data, faults)
        if not isinstance(values, list):
            return values
        sizes = [one(data, faults) for one in lengths]
        known = [size for size in sizes if isinstance(size, int) and size >= 0]
        whole = values.length if isinstance(values, CutList) else len(values)
        if len(known) < len(sizes) or prod(known) != whole:
            faults[before:] = [path]
            return None
        if not indices:
            return _rows(values, known, 0)
        at = 0
        for index, size in zip(indices, known, strict=True):
            at = at * size + index
        if isinstance(values, CutList) and values.last:
            at -= whole - len(values)
        if not 0 <= at < len(values) or any(
            i >= size for i, size in zip(indices, known, strict=True)
        ):
            faults[before:] = [path]
            return None
        # Of the elements that could not be read only this one counts.
        mine = f"{path}[{at}]"
        faults[before:] = [path] if any(one.startswith(mine) for one in faults[before:]) else []
        return values[at]

    return make


def _rows(values: list[Value], sizes: list[int], level: int) -> list[Value]:
    # ``values`` are the first elements of this level's rows; what is missing of them is marked.
    if level == len(sizes) - 1:
        return CutList(values, sizes[level]) if len(values) < sizes[level] else values
    each = prod(sizes[level + 1 :])
    if not each:
        empty: list[Value] = []
        empty += [_rows([], sizes, level + 1) for _ in range(min(sizes[level], MOST_EMPTY))]
        return CutList(empty, sizes[level]) if len(empty) < sizes[level] else empty
    rows: list[Value] = [
        _rows(values[start : start + each], sizes, level + 1)
        for start in range(0, len(values), each)
    ]
    return CutList(rows, sizes[level]) if len(rows) < sizes[level] else rows
