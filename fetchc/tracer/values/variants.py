"""Values of enums with fields and of tuples (Rust).

A variant is what serde makes of it: the name alone, or an object of one member, which is called
after it and has its field, a list of its fields or an object of them.
"""

from __future__ import annotations

from fetchc.tracer.values.combined import none_read
from fetchc.tracer.values.kinds import CutList, SymbolName, Tuple, Variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fetchc.tracer.model import Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]
    Case = tuple[str, Make | None, bool]

__all__ = ["left_out", "of_variant", "parts", "variant"]


def variant(tag: Make | None, cases: Mapping[int | None, Case]) -> Make:
    """The one of ``cases`` that the number ``tag`` names, else the one of None.

    None, with a fault of the tag, where that could not be read; the number where it names none.
    """

    def make(data: bytes, faults: Faults) -> Value:
        number: Value = None
        if tag is not None and not isinstance(number := tag(data, faults), int):
            return None
        found = cases.get(number if isinstance(number, int) else None) or cases.get(None)
        if found is None:
            return number
        name, fields, single = found
        if fields is None:
            return SymbolName(name)
        return Variant(name, fields(data, faults), single)

    return make


def left_out(count: int) -> Make:
    """The fields of a variant that were not fetched: none of so many."""
    return lambda data, faults: CutList([], count)


def of_variant(tag: Make, names: Mapping[int | None, str], wanted: str, inner: Make) -> Make:
    """``inner`` where ``tag`` tells the variant ``wanted``, else the name of the one it tells.

    The other one is not read: its bytes mean something else. One without a name is null.
    """

    def make(data: bytes, faults: Faults) -> Value:
        number = tag(data, faults)
        if not isinstance(number, int):
            return None
        name = names.get(number, names.get(None))
        if name == wanted:
            return inner(data, faults)
        if name == "":
            return None
        return {"variant": number if name is None else SymbolName(name)}

    return make


def parts(makers: Sequence[Make], path: str) -> Make:
    """A tuple; one fault where none of its parts could be read."""

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        values = [one(data, faults) for one in makers]
        if none_read(values, len(faults) - before):
            faults[before:] = [path]
            return None
        return Tuple(values)

    return make
