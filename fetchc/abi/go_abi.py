"""Go's conventions: leaves of a value in registers, or the whole value on the stack.

ABI0 is the same algorithm with no registers. Source: Go,
src/cmd/compile/abi-internal.md and src/cmd/compile/internal/abi/abiutils.go; verified
against live processes of Go 1.15 to 1.27.
"""

from __future__ import annotations

from fetchc.abi.signature import (
    MAX_NESTING,
    UnclassifiedError,
    bare,
    malformed,
    round_up,
    unclassified,
    undecided,
)
from fetchc.program.entities import InMemory, InRegister, Piece, Pieces
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    CharType,
    ComplexType,
    EnumType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    PointerType,
    SliceType,
    StringType,
    StructType,
    UnknownType,
    VoidType,
)
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.record import Record
from fetchc.target.machines import GoRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.program.entities import Absent, Place
    from fetchc.program.protocol import Program
    from fetchc.quantities import DwarfRegister, TypeId
    from fetchc.target.machines import Convention

__all__ = ["Assignment", "Shapes", "TypeShape", "in_registers", "signature_places"]

_MOST_LEAVES = 32  # more than any convention has registers


class TypeShape(Record):
    """A type as the convention sees it.

    ``leaves`` are (offset, size, whether floating-point) in the order of registers; None
    where the type cannot be in registers (an array of two or more elements inside).
    """

    size: int
    alignment: int
    leaves: tuple[tuple[int, int, bool], ...] | None


def signature_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """Places of the parameters at the entry, and of the results at a RET.

    ``parameters`` are the receiver, then the hidden dictionary of a generic method, then
    the rest (see :mod:`fetchc.abi.signature`).
    """
    assignment = Assignment(convention, Shapes(program, convention))
    placed = assignment.places(parameters, convention.integer_registers, convention.float_registers)
    assignment.stack = round_up(assignment.stack, convention.word_bytes)
    returned = assignment.places(
        results, convention.result_integer_registers, convention.result_float_registers
    )
    return placed, returned


class Assignment:
    """The stack handed out so far to one function's parameters and results."""

    __slots__ = ("convention", "shapes", "stack", "stopped")

    def __init__(self, convention: Convention, shapes: Shapes) -> None:
        self.convention = convention
        self.shapes = shapes
        self.stack = 0
        self.stopped: Absent | None = None

    def places(
        self,
        types: Sequence[TypeId],
        integers: Sequence[DwarfRegister],
        floats: Sequence[DwarfRegister],
    ) -> tuple[Place, ...]:
        """All or nothing for each value; a later, smaller one may still get registers."""
        found: list[Place] = []
        for type_id in types:
            if self.stopped is not None:
                found.append(self.stopped)
                continue
            try:
                shape = self.shapes.shape(type_id, 0)
            except UnclassifiedError as error:
                found.append(unclassified(error))
                self.stopped = undecided(error)
                continue
            leaves = shape.leaves
            wanted_floats = 0 if leaves is None else sum(leaf[2] for leaf in leaves)
            wanted_integers = 0 if leaves is None else len(leaves) - wanted_floats
            if (
                leaves is None
                or shape.size == 0
                or wanted_integers > len(integers)
                or wanted_floats > len(floats)
            ):
                found.append(self._on_stack(shape))
                continue
            found.append(in_registers(shape.size, leaves, integers, floats))
            integers, floats = integers[wanted_integers:], floats[wanted_floats:]
        return tuple(found)

    def _on_stack(self, shape: TypeShape) -> Place:
        start = round_up(self.stack, shape.alignment)
        self.stack = start + shape.size
        if shape.size == 0:
            return Pieces(())
        offset = ByteOffset(self.convention.stack_offset + start)
        return InMemory(self.convention.stack_pointer, offset)


def in_registers(
    size: int,
    leaves: tuple[tuple[int, int, bool], ...],
    integers: Sequence[DwarfRegister],
    floats: Sequence[DwarfRegister],
) -> Place:
    """The place of a value of ``size`` bytes whose leaves take the next registers of each kind."""
    next_integer, next_float = iter(integers), iter(floats)
    pieces = tuple(
        [
            Piece(
                ByteOffset(offset),
                ByteSize(width),
                InRegister(next(next_float if floating else next_integer)),
            )
            for offset, width, floating in leaves
        ]
    )
    if len(pieces) == 1 and pieces[0].size == size:
        return pieces[0].place
    return Pieces(pieces)


class Shapes:
    """Sizes, alignments and leaves of one program's Go types."""

    __slots__ = ("_packages", "_program", "_shapes", "_word")

    def __init__(self, program: Program, convention: Convention) -> None:
        assert isinstance(convention.rules, GoRules)
        self._program = program
        self._packages = convention.rules.vector_packages
        self._word = convention.word_bytes
        self._shapes: dict[TypeId, TypeShape | None] = {}  # None: being computed

    def shape(self, type_id: TypeId, depth: int) -> TypeShape:
        """The shape of a type; UnclassifiedError or DebugInfoError where it has none."""
        type_id, found = bare(self._program, type_id)
        if depth > MAX_NESTING:
            raise malformed(self._program, type_id, f"types nested more than {MAX_NESTING} deep")
        if not isinstance(found, StructType | ArrayType):
            return self._scalar(found)
        if type_id not in self._shapes:
            self._shapes[type_id] = None
            if isinstance(found, StructType):
                self._shapes[type_id] = self._struct(type_id, found, depth)
            else:
                self._shapes[type_id] = self._array(type_id, found, depth)
        shape = self._shapes[type_id]
        if shape is None:
            raise malformed(self._program, type_id, "a type contains itself")
        return shape

    def _words(self, count: int) -> TypeShape:
        leaves = tuple([(index * self._word, self._word, False) for index in range(count)])
        return TypeShape(count * self._word, self._word, leaves)

    def _scalar(self, found: object) -> TypeShape:
        match found:
            case (
                IntType(size=size) | CharType(size=size) | BoolType(size=size) | EnumType(size=size)
            ):
                if size > self._word:
                    return self._words(size // self._word)  # 64 bits on a 32-bit machine
                return TypeShape(size, max(1, size), ((0, size, False),))
            case FloatType(size=size):
                return TypeShape(size, min(size, self._word), ((0, size, True),))
            case ComplexType(size=size):
                half = size // 2
                leaves = ((0, half, True), (half, half, True))
                return TypeShape(size, min(half, self._word), leaves)
            case PointerType() | MapType() | ChannelType() | FunctionType():
                return self._words(1)
            case StringType() | InterfaceType():
                return self._words(2)
            case SliceType():
                return self._words(3)
            case VoidType():
                raise UnclassifiedError("its type is no object's")
            case UnknownType(reason=reason):
                raise UnclassifiedError(f"its type cannot be read: {reason}")
            case _:
                raise AssertionError(f"not a scalar: {found!r}")

    def _array(self, type_id: TypeId, found: ArrayType, depth: int) -> TypeShape:
        if found.count is None:
            raise UnclassifiedError(f"`{found.name}` has no stated length")
        element = self.shape(found.element, depth + 1)
        size = element.size * found.count
        if found.size is not None and found.size != size:
            raise malformed(self._program, type_id, "an array of another size than its elements'")
        if found.count == 0:
            return TypeShape(0, element.alignment, ())
        return TypeShape(size, element.alignment, element.leaves if found.count == 1 else None)

    def _struct(self, type_id: TypeId, found: StructType, depth: int) -> TypeShape:
        if found.name.startswith(self._packages) and self._packages:
            raise UnclassifiedError(f"`{found.name}` is in a vector register")
        if found.size is None:
            raise UnclassifiedError(f"`{found.name}` has no stated size")
        alignment = 1
        leaves: tuple[tuple[int, int, bool], ...] | None = ()
        for member in found.members:
            inner = self.shape(member.type, depth + 1)
            if not 0 <= member.offset <= found.size - inner.size or member.bits is not None:
                raise malformed(self._program, type_id, "a member beyond its structure")
            alignment = max(alignment, inner.alignment)
            if inner.leaves is None or leaves is None or len(leaves) > _MOST_LEAVES:
                leaves = None
                continue
            leaves += tuple([(member.offset + at, width, fp) for at, width, fp in inner.leaves])
        return TypeShape(found.size, alignment, leaves)
