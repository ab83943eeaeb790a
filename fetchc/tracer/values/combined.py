"""Values that are made of other values of the record."""

from __future__ import annotations

from fetchc.tracer.values.kinds import CutStructure, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from fetchc.tracer.model import Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]

__all__ = [
    "chosen",
    "counted_between",
    "difference",
    "either",
    "members",
    "none_read",
    "not_below_none",
    "noted",
    "reckoned",
    "referred",
]


def counted_between(ends: Sequence[Make], count: Callable[[bytes], int]) -> Make:
    """``count`` of the record, where both ends could be read."""

    def make(data: bytes, faults: Faults) -> Value:
        if any(one(data, faults) is None for one in ends):
            return None
        return count(data)

    return make


def not_below_none(number: Make, path: str) -> Make:
    """A number of elements; less than 0 is a fault."""

    def make(data: bytes, faults: Faults) -> Value:
        found = number(data, faults)
        if isinstance(found, int) and found < 0:
            faults.append(path)
            return None
        return found

    return make


def chosen(tag: Make, cases: Mapping[int, Make]) -> Make:
    """The one of several values that a number says is there; None where it names none."""

    def make(data: bytes, faults: Faults) -> Value:
        number = tag(data, faults)
        one = cases.get(number) if isinstance(number, int) else None
        return None if one is None else one(data, faults)

    return make


def members(makers: Sequence[tuple[str, Make]], path: str, left: tuple[str, ...] = ()) -> Make:
    """An object by the names of its members; one fault where none could be read.

    ``left`` are the members that are not fetched.
    """

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        values = {name: one(data, faults) for name, one in makers}
        if none_read(values.values(), len(faults) - before):
            faults[before:] = [path]
            return None
        return CutStructure(values, left) if left else values

    return make


def none_read(values: Collection[Value], faults: int) -> bool:
    """Whether all of the values are missing, each for a fault: ``faults`` were met.

    What is missing for none is null, which was read.
    """
    return 0 < len(values) <= faults and all(one is None for one in values)


def difference(
    first: Make, less: Make | int, bits: int | None, pointer: Callable[[int], Value], path: str
) -> Make:
    """A number less another one, as the kind of number that the first is.

    Of an address, which has ``bits``, those are left that it has room for; ``pointer`` makes it.
    """
    mask = -1 if bits is None else (1 << bits) - 1

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        both = first(data, faults), less if isinstance(less, int) else less(data, faults)
        if isinstance(both[0], int) and isinstance(both[1], int):
            number = both[0] - both[1] & mask
            return type(both[0])(number) if bits is None else pointer(number)
        faults[before:] = [path]
        return None

    return make


def reckoned(
    terms: Sequence[tuple[Make, Make | None, int, int]], constant: int, is_none: bool, path: str
) -> Make:
    """A number of elements as the sum of its terms (see :class:`fetchc.tracer.shape.Term`).

    What cannot be is a fault: less than 0, addresses that are no whole elements apart, a term
    that adds nothing and is not ``each``.
    """

    def make(data: bytes, faults: Faults) -> Value:
        before, total = len(faults), constant
        for number, less, each, times in terms:
            one = number(data, faults)
            other = 0 if less is None else less(data, faults)
            if not (isinstance(one, int) and isinstance(other, int)):
                difference = None
            else:
                difference = one - other
            if difference is None or not _fits(difference, each, times):
                faults[before:] = [path]
                return None
            total += difference // each * times
        if total < 0:
            faults[before:] = [path]
            return None
        return total == 0 if is_none else total

    return make


def _fits(difference: int, each: int, times: int) -> bool:
    return difference % each == 0 if times else difference in (0, each)


def either(number: Make, at_none: Make, other: Make) -> Make:
    """The first of two values where a number is 0, else the second."""

    def make(data: bytes, faults: Faults) -> Value:
        found = number(data, faults)
        if found is None:
            return None
        return other(data, faults) if found else at_none(data, faults)

    return make


def noted(parts: Make, written: Callable[[dict[str, int]], str | None]) -> Make:
    """An object as people write it; the object itself where it is none that can be written."""

    def make(data: bytes, faults: Faults) -> Value:
        found = parts(data, faults)
        if not isinstance(found, dict):
            return None
        numbers = {name: one for name, one in found.items() if isinstance(one, int)}
        text = written(numbers) if len(numbers) == len(found) else None
        return found if text is None else SymbolName(text)

    return make


def referred(reference: Make, inner: Make) -> Make:
    """What a reference leads to; None where it leads nowhere."""

    def make(data: bytes, faults: Faults) -> Value:
        return inner(data, faults) if reference(data, faults) else None

    return make
