"""What .NET counts the elements of: strings, arrays, and parts of arrays."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.types.closed import Code, Items
from fetchc.debuginfo.dotnet.types.numbers import number_type
from fetchc.program.types import (
    ArrayType,
    BitField,
    Member,
    PointerType,
    SequenceType,
    StructType,
    Window,
)
from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.debuginfo.dotnet.types.types import DotnetTypes
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.target.dotnet_runtimes import ArrayPlaces

__all__ = ["array", "string", "window"]

WORD = ByteSize(8)
MOST_DIMENSIONS = 32
INDEX_BITS = 31  # of that of a Memory; the highest bit says that the array is pinned


def string(types: DotnetTypes) -> Type:
    """The object behind a string."""
    places = types.runtime.string
    length = Member("Length", types.intern(number_type("int")), ByteOffset(places.length))
    units = types.intern(ArrayType("", types.intern(number_type("char")), None, None))
    text = Member("Chars", units, ByteOffset(places.text))
    return SequenceType("string", None, (length, text), length, text, text=True)


def array(types: DotnetTypes, number: int, made: Items) -> Type:
    """An array, of one dimension or of several."""
    places = types.runtime.array
    shown = types.closed.spelled(number)
    integer = types.intern(number_type("int"))
    length = Member("Length", integer, ByteOffset(places.length))
    if made.rank == 0:
        items = types.intern(ArrayType("", types.variable(made.element), None, None))
        elements = Member("Elements", items, ByteOffset(places.elements))
        return SequenceType(shown, None, (length, elements), length, elements)
    bounds = _bounds(places, min(made.rank, MOST_DIMENSIONS), integer)
    start = places.elements + made.rank * places.elements_per_dimension
    items = types.intern(ArrayType("", types.variable(made.element), None, None))
    elements = Member("Elements", items, ByteOffset(start))
    ways: tuple[tuple[Member, ...], ...] = tuple([(one,) for one in bounds])
    if places.bounds is not None:
        behind = StructType("bounds", "struct", ByteSize(8 * len(bounds)), tuple(bounds))
        pointer = types.intern(PointerType("", WORD, types.intern(behind)))
        step = Member("", pointer, ByteOffset(places.bounds), None, True)
        ways, bounds = tuple([(step, one) for one in bounds]), [step]
    members = (length, *bounds, elements)
    return SequenceType(shown, None, members, length, elements, dimensions=ways)


def _bounds(places: ArrayPlaces, rank: int, integer: TypeId) -> list[Member]:
    # The lengths of the dimensions: in the array, or alternating with lower bounds elsewhere.
    first, each = (places.lengths, 4) if places.bounds is None else (0, 8)
    return [
        Member(f"Length{dimension}", integer, ByteOffset(first + each * dimension))
        for dimension in range(rank)
    ]


def window(
    types: DotnetTypes,
    number: int,
    shown: str,
    members: list[Member],
    size: ByteSize,
    said: Mapping[str, Any],
) -> SequenceType | None:
    """A part of an array, of a type with these ``members``, as the target's tables ``said``.

    None where a version has other fields, or nothing tells the array.
    """
    named = {member.name: member for member in members}
    if not all(said[one] in named for one in ("count", "items", "start")):
        return None
    count, items, start = (named[said[one]] for one in ("count", "items", "start"))
    value = types.closed.kind(number) == "value"
    of_any, texts = bool(said.get("of_any")), None
    if of_any:
        (element,) = types.closed.instance(number).arguments
        if types.header is None or not types.closed.is_plain(element):
            return None
        whole = types.variable(types.closed.number(Items(element, 0)))
        items = Member(items.name, whole, items.offset)
        bits = BitField(BitOffset(8 * start.offset), BitSize(INDEX_BITS))
        start = Member(start.name, start.type, start.offset, bits)
        if types.closed.types[element] == Code("char"):
            texts = types.variable(types.closed.code("string"))
    around, backwards = bool(said.get("around")), bool(said.get("backwards"))
    where = Window(start, around, of_any, or_text=texts, backwards=backwards)
    return SequenceType(
        shown, size, tuple(members), count, items, texts is not None, value, window=where
    )
