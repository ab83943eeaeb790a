"""Parts of arrays: the elements from an index on, in a queue around the array's end."""

from __future__ import annotations

from fetchc.tracer.values.kinds import CutList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.model import Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]
    Pick = Callable[[bytes, Faults, list[int]], Value]

__all__ = ["of_items", "of_row", "windowed"]


def windowed(
    pick: Pick,
    most: int,
    length_of: Callable[[bytes], int],
    start: Make,
    around: Make | None,
    path: str,
    backwards: bool = False,
) -> Make:
    """The elements of an array that ``pick`` gives by their indices, which are below ``most``.

    Of a list that goes on behind those only the beginning was fetched. ``backwards``, as of a
    stack, only the end: the first element is in front of the index ``start``. An index outside of
    the array is a fault.
    """

    def make(data: bytes, faults: Faults) -> Value:
        first, count = start(data, faults), length_of(data)
        whole = None if around is None else around(data, faults)
        if not isinstance(first, int) or (around is not None and not isinstance(whole, int)):
            return None
        if count == 0:
            return []
        if backwards:
            listed = pick(data, faults, list(range(min(count, most) - 1, -1, -1)))
            if isinstance(listed, list) and count > most:
                return CutList(listed, count, True)
            return listed
        room = first + count if not isinstance(whole, int) else whole
        if first < 0 or count > room or first >= room:
            faults.append(path)
            return None
        wanted: list[int] = []
        for index in range(first, first + min(count, most)):
            if index % room >= most:
                break
            wanted.append(index % room)
        values = pick(data, faults, wanted)
        if not isinstance(values, list):
            return values
        return CutList(values, count) if len(values) < count else values

    return make


def of_row(row: Make) -> Pick:
    """Elements of a list of numbers."""

    def pick(data: bytes, faults: Faults, wanted: list[int]) -> Value:
        values = row(data, faults)
        return [values[index] for index in wanted] if isinstance(values, list) else values

    return pick


def of_items(makers: list[Make], path: str) -> Pick:
    """Elements that are made one by one; a fault goes by the index in the part."""

    def pick(data: bytes, faults: Faults, wanted: list[int]) -> Value:
        values: list[Value] = []
        for shown, index in enumerate(wanted):
            before = len(faults)
            values.append(makers[index](data, faults))
            within = len(f"{path}[{index}]")
            faults[before:] = [f"{path}[{shown}]{one[within:]}" for one in faults[before:]]
        return values

    return pick
