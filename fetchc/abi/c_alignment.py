"""Computes sizes and alignments of C types where the debug information does not state them."""

from __future__ import annotations

from fetchc.abi.signature import (
    MAX_NESTING,
    UnclassifiedError,
    bare,
    malformed,
    round_up,
    size_of,
    stated_size,
)
from fetchc.program.types import (
    ArrayType,
    ComplexType,
    InterfaceType,
    NamedType,
    QualifiedType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = ["Alignments", "unexplained_bits"]

_EIGHTBYTE = 8


class Alignments:
    """Sizes and alignments of the types of one program, in bytes.

    A packed structure shows only as a member that its own alignment would have moved, or as a
    size that its alignment would have rounded.
    """

    __slots__ = ("_alignments", "_program")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._alignments: dict[TypeId, int | None] = {}  # None: being computed

    def size(self, type_id: TypeId) -> int:
        """Bytes of the type; UnclassifiedError where it has no stated size."""
        return size_of(self._program, type_id)

    def own(self, type_id: TypeId) -> int:
        """Alignment in bytes of an object of the type; typedefs do not change it."""
        type_id, found = bare(self._program, type_id)
        return self._of(type_id, found, 0)

    def certain(self, type_id: TypeId) -> int:
        """:meth:`own`; UnclassifiedError where a hidden `packed` may make it smaller."""
        type_id, found = bare(self._program, type_id)
        alignment = self._of(type_id, found, 0)
        if isinstance(found, StructType) and found.alignment is None and alignment > _EIGHTBYTE:
            self.of_members(found, alignment)
        return alignment

    def declared(self, current: TypeId, depth: int = 0) -> int:
        """Alignment as a member: a typedef can carry one; the outermost counts."""
        for _ in range(MAX_NESTING):
            named = self._program.type(current)
            if isinstance(named, NamedType) and named.alignment is not None:
                return max(1, named.alignment)
            if not isinstance(named, NamedType | QualifiedType):
                break
            current = named.target
        inner, found = bare(self._program, current)
        return self._of(inner, found, depth + 1)

    def of_members(self, found: StructType, limit: int) -> int:
        """The largest alignment of a structure's members, which its own can exceed.

        In a packed structure they have none. Nothing tells of one that is as dense anyway:
        UnclassifiedError, where that makes the difference to ``limit``.
        """
        size, largest, placed = found.size or 0, 1, 1
        for member in found.members:
            alignment = member.alignment or self.declared(member.type)
            largest = max(largest, alignment)
            if member.bits is not None or not member.offset % alignment:
                placed = max(placed, alignment)
        if largest < limit:
            return largest
        if placed < limit or size % placed:
            return 1
        if placed == largest and (self._has_gap(found) or size > self._end(found)):
            return largest
        if self._moved_to(found, placed, 0):
            return placed
        raise self._unsaid(found)

    def _end(self, found: StructType) -> int:
        # Bytes up to the end of the last member.
        ends = [
            round_up(member.bits.offset + member.bits.width, 8) // 8
            if member.bits is not None
            else member.offset + self.size(member.type)
            for member in found.members
        ]
        return max(ends, default=0)

    def unexplained(self, type_id: TypeId, found: StructType) -> list[tuple[int, int]]:
        """Half-open ranges of bits that the members' alignment does not account for."""
        if not found.members and (found.size or 0) <= 1:
            return []  # an empty class of C++ has a byte of its own

        members: list[tuple[int, int, int, bool]] = []
        for member in found.members:
            bits = member.bits
            if bits is not None:
                unit = 8 * max(1, self.size(member.type))
                members.append((bits.offset, bits.width, unit, True))
            elif self.size(member.type):
                alignment = 8 * self.declared(member.type)
                members.append((8 * member.offset, 8 * self.size(member.type), alignment, False))
        alignment = 8 * self._of(type_id, found, 0)
        return unexplained_bits(members, 8 * (found.size or 0), alignment)

    def _of(self, type_id: TypeId, found: Type, depth: int) -> int:
        if depth > MAX_NESTING:
            raise malformed(self._program, type_id, f"types nested more than {MAX_NESTING} deep")
        match found:
            case StructType():
                if type_id not in self._alignments:
                    self._alignments[type_id] = None
                    self._alignments[type_id] = self._of_struct(found, depth)
                alignment = self._alignments[type_id]
                if alignment is None:
                    raise malformed(self._program, type_id, "a structure contains itself")
                return alignment
            case ArrayType(element=element, vector=False):
                inner, bare_element = bare(self._program, element)
                return self._of(inner, bare_element, depth + 1)
            case ComplexType(size=size):
                return size // 2 or 1
            case StringType() | SliceType() | InterfaceType() | SequenceType() if found.size:
                # A pointer and numbers side by side: a Span of .NET, &str of Rust.
                inner_ones = [self.declared(one.type, depth + 1) for one in found.members]
                return max(inner_ones, default=1)
            case _:
                return max(1, stated_size(found) or 1)

    def _of_struct(self, found: StructType, depth: int) -> int:
        largest = placed = bases = 1
        misplaced = False
        for member in found.members:
            alignment = self.declared(member.type, depth)
            largest = max(largest, alignment)
            if member.bits is None and member.offset % alignment:
                misplaced = True
            else:
                placed = max(placed, alignment)
            if member.embedded and member.name:  # a base class keeps its own under `packed`
                bases = max(bases, alignment)
        stated = max(found.alignment or 1, bases)
        if misplaced or (found.size or 0) % largest:
            # Packed is the structure, or a member of it: then others can still raise it.
            if (found.size or 0) % placed or placed <= max(stated, _EIGHTBYTE):
                return stated
            if self._moved_to(found, placed, depth):
                return placed
            raise self._unsaid(found)
        if found.alignment is None:
            return largest
        # gcc states what the alignment is, clang 14 the number in the attribute, which a
        # member can exceed: unless the structure is packed, and happens not to show it.
        if largest <= max(stated, _EIGHTBYTE):
            return stated
        if self._has_gap(found):
            return largest
        raise self._unsaid(found)

    def _unsaid(self, found: StructType) -> UnclassifiedError:
        return UnclassifiedError(
            f"the alignment of `{found.name or '(anonymous)'}` depends on an unsaid `packed`"
        )

    def _moved_to(self, found: StructType, alignment: int, depth: int) -> bool:
        # Whether a hole is before a member of that alignment, which brings it there.
        end = 0  # in bits
        for member in sorted(found.members, key=lambda it: it.offset):
            if member.bits is not None:
                end = max(end, member.bits.offset + member.bits.width)
                continue
            hole = member.offset > round_up(end, 8) // 8 and not member.offset % alignment
            if hole and self.declared(member.type, depth) == alignment:
                return True
            end = max(end, 8 * (member.offset + self.size(member.type)))
        return False

    def _has_gap(self, found: StructType) -> bool:
        # Between members, where a packed structure has none.
        end = 0  # in bits
        for member in sorted(found.members, key=lambda it: it.offset):
            if member.bits is not None:
                end = max(end, member.bits.offset + member.bits.width)
                continue
            if member.offset > round_up(end, 8) // 8:
                return True
            end = max(end, 8 * (member.offset + self.size(member.type)))
        return False


# ------------------------------------------------------------------------------
# Bits of a structure that no member explains: where an unnamed bit field may be.
#
# Debug information has no entry for ``int :32;``, and gcc passes the eightbyte that holds one in
# an integer register (clang ignores it; measured with gcc 12 and clang 14).


def unexplained_bits(
    members: Iterable[tuple[int, int, int, bool]], size: int, alignment: int
) -> list[tuple[int, int]]:
    """Half-open ranges of bits that the members' alignment does not account for.

    ``members`` are (first bit, bits, alignment in bits, whether a bit field), in any order;
    the alignment of a bit field is the size of its type. ``size`` and ``alignment`` of the
    structure are in bits too. An unnamed bit field within ordinary padding stays unseen.
    """
    gaps = []
    end = 0
    for first, bits, unit, is_bit_field in sorted(members):
        natural = end
        if not is_bit_field or end // unit != (end + bits - 1) // unit:
            natural = round_up(end, unit)
        if first > natural:
            gaps.append((end, first))
        end = max(end, first + bits)
    if size > round_up(end, alignment):
        gaps.append((end, size))
    return gaps
