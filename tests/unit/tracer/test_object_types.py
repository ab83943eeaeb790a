"""What an object is of is compared before it is read: the row of its type, assembly, rank."""

from __future__ import annotations

import pytest

from fetchc.ir.fetch import Decode
from fetchc.program.entities import ObjectHeader
from fetchc.quantities import TypeId
from fetchc.tracer.value_shapes import CastShape, Guard, Leaf, TypeIdentity
from tests.support.records import NEAR, read

NUMBER = Decode("integer", 32)
TEXT = Decode("text")
CLASS, ROW, GRID = TypeId(1), TypeId(2), TypeId(3)
FIELDS = [
    ("ref", "Q"), ("row", "I"), ("asm", "text"), ("rank", "I"), ("erow", "I"), ("easm", "text"),
    ("v", "I"), ("end", "text"),
]  # fmt: skip


class Types:
    """Of assembly ``a``: row 5 is the class that is asked for, 6 is derived from it."""

    header = ObjectHeader((0,), (24, 8), (48,), (8, 4, 8), (4, 4), 24, 24, 8)

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, TypeId]] = []

    def comparable(self, wanted: TypeId) -> bool:
        return True

    def rank(self, wanted: TypeId) -> int | None:
        return {ROW: 0, GRID: 2}.get(wanted)

    def fits(self, assembly: str, row: int, wanted: TypeId) -> bool:
        self.asked.append((assembly, row, wanted))
        return assembly == "a" and row in (5, 6)

    def name(self, assembly: str, row: int) -> str:
        return f"{assembly}.{row}"


def shape(wanted: TypeId, types: Types) -> CastShape:
    element = None if wanted == CLASS else TypeIdentity(Leaf("erow", NUMBER), Leaf("easm", TEXT))
    own = TypeIdentity(Leaf("row", NUMBER), Leaf("asm", TEXT))
    reference = Leaf("ref", Decode("pointer", 64))
    inner = Leaf("v", NUMBER, guards=(Guard("ref"),))
    return CastShape(reference, own, element, Leaf("rank", NUMBER), types, wanted, inner)


@pytest.mark.parametrize(
    ("wanted", "row", "assembly", "rank", "element", "of", "value"),
    [
        (CLASS, 5, b"a", 24, 0, b"", 7),
        (CLASS, 6, b"a", 24, 0, b"", 7),
        (CLASS, 7, b"a", 24, 0, b"", {"type": "a.7"}),
        (CLASS, 5, b"b", 24, 0, b"", {"type": "b.5"}),
        (CLASS, 0, b"a", 24, 5, b"a", {"type": "an array"}),
        (ROW, 0, b"a", 24, 5, b"a", 7),
        (ROW, 0, b"a", 40, 5, b"a", {"type": "an array"}),  # of two dimensions
        (ROW, 0, b"a", 24, 9, b"a", {"type": "an array"}),
        (ROW, 5, b"a", 24, 5, b"a", {"type": "a.5"}),
        (GRID, 0, b"a", 40, 5, b"a", 7),
        (GRID, 0, b"a", 48, 5, b"a", {"type": "an array"}),
    ],
)
def test_types(
    wanted: TypeId, row: int, assembly: bytes, rank: int, element: int, of: bytes, value: object
) -> None:
    # The row is in the upper bits of its number, and flags are below.
    numbers = [NEAR, row << 8 | 0x10, assembly, rank, element << 8 | 1, of, 7, b"x"]
    assert read(shape(wanted, Types()), FIELDS, numbers) == (value, ())


def test_null_has_no_type() -> None:
    types = Types()
    value, faults = read(shape(CLASS, types), FIELDS, [0, 0, None, 0, 0, None, 0, b"x"])
    assert (value, faults) == (None, ("v",))  # what the inner value says of it
    assert types.asked == []


def test_a_header_that_cannot_be_read_is_a_fault() -> None:
    types = Types()
    numbers = [NEAR, 5 << 8, None, 24, 0, None, 7, b"x"]
    assert read(shape(CLASS, types), FIELDS, numbers) == (None, ("v",))
    assert types.asked == []
