"""What a C value is made of, for conventions that ask for its numbers: which are where.

A structure of numbers of one floating-point type, or of two numbers, can go to registers that
others do not go to. Whether one does is asked of the members alone. What is known of a type is
kept, so that one that holds another a thousand times costs no more than both.
"""

from __future__ import annotations

from fetchc.abi.alignment import Alignments
from fetchc.abi.layout import MAX_NESTING, bare, malformed
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CharType,
    ComplexType,
    EnumType,
    FloatType,
    IntType,
    StructType,
)
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.units import TypeId

    Flat = tuple["Leaf", ...] | None

__all__ = ["Leaf", "Shapes"]

_MOST_LEAVES = 16  # more than any convention takes apart


class Leaf(Record):
    """A number of a value: its offset and size in bytes."""

    offset: int
    size: int
    floating: bool

    def moved(self, by: int) -> Leaf:
        """The same in a value that holds this one ``by`` bytes from its start."""
        return Leaf(self.offset + by, self.size, self.floating)


class Shapes:
    """The numbers that values of one program's types consist of."""

    __slots__ = ("_equal", "_flat", "_gaps", "_program", "alignments")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._equal: dict[TypeId, tuple[int, int] | None] = {}
        self._flat: dict[TypeId, Flat] = {}
        self._gaps: dict[TypeId, bool] = {}
        self.alignments = Alignments(program)

    def equal(self, type_id: TypeId, depth: int = 0) -> tuple[int, int] | None:
        """(size, count) of the equal floating-point numbers that the type consists of, else None.

        Members of a union are not added up. An empty structure or array has (0, 0). Where
        padding is, size times count is not the size of the type.
        """
        type_id, found = self._bare(type_id, depth)
        if type_id not in self._equal:
            self._equal[type_id] = self._equal_of(found, depth)
        return self._equal[type_id]

    def _equal_of(self, found: Type, depth: int) -> tuple[int, int] | None:
        match found:
            case FloatType(size=size):
                return size, 1
            case ComplexType(size=size):
                return size // 2, 2
            case ArrayType(vector=True, size=size) if size:
                return size, 1
            case ArrayType(element=element, count=count):
                inner = self.equal(element, depth + 1)
                return None if inner is None or count is None else (inner[0], inner[1] * count)
            case StructType(kind=kind):
                each = many = 0
                for member in found.members:
                    inner = None if member.bits else self.equal(member.type, depth + 1)
                    if inner is None or (each and inner[0] not in (0, each)):
                        return None
                    each = each or inner[0]
                    many = max(many, inner[1]) if kind == "union" else many + inner[1]
                return each, many
            case _:
                return None

    def flat(self, type_id: TypeId, depth: int = 0) -> Flat:
        """The numbers in order, bit fields as their units.

        None where there are many, and where a union or a pointer is among them.
        """
        type_id, found = self._bare(type_id, depth)
        if type_id not in self._flat:
            self._flat[type_id] = self._flat_of(found, depth)
        return self._flat[type_id]

    def _flat_of(self, found: Type, depth: int) -> Flat:
        match found:
            case FloatType(size=size):
                return (Leaf(0, size, True),)
            case ComplexType(size=size):
                return (Leaf(0, size // 2, True), Leaf(size // 2, size // 2, True))
            case (
                IntType(size=size) | CharType(size=size) | BoolType(size=size) | EnumType(size=size)
            ):
                return (Leaf(0, size, False),)
            case ArrayType(vector=False, element=element, count=int(count)):
                inner = self.flat(element, depth + 1)
                if inner is None or count * len(inner) > _MOST_LEAVES:
                    return None
                each = self.alignments.size(element)
                count = count if inner else 0
                return tuple([leaf.moved(each * at) for at in range(count) for leaf in inner])
            case StructType(kind=kind) if kind != "union":
                return self._flat_members(found, depth)
            case _:
                return None

    def _flat_members(self, found: StructType, depth: int) -> Flat:
        leaves: tuple[Leaf, ...] = ()
        for member in found.members:
            if member.bits is not None:
                size = max(1, self.alignments.size(member.type))
                start = member.bits.offset // (8 * size) * size
                leaves += (Leaf(start, size, False),)
                continue
            inner = self.flat(member.type, depth + 1)
            if inner is None or len(leaves) + len(inner) > _MOST_LEAVES:
                return None
            leaves += tuple([leaf.moved(member.offset) for leaf in inner])
        return leaves

    def has_gap(self, type_id: TypeId, depth: int = 0) -> bool:
        """Whether an unnamed bit field may be in the structure, which is nowhere said."""
        type_id, found = self._bare(type_id, depth)
        if not isinstance(found, StructType) or found.kind == "union":
            return False
        if type_id not in self._gaps:
            self._gaps[type_id] = bool(self.alignments.unexplained(type_id, found)) or any(
                self.has_gap(member.type, depth + 1) for member in found.members
            )
        return self._gaps[type_id]

    def _bare(self, type_id: TypeId, depth: int) -> tuple[TypeId, Type]:
        type_id, found = bare(self._program, type_id)
        if depth > MAX_NESTING:
            raise malformed(self._program, type_id, f"types nested more than {MAX_NESTING} deep")
        return type_id, found
