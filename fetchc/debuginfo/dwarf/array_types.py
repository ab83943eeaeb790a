"""Arrays, one type a dimension, and the sizes that they need.

Reference: DWARF 5, sections 5.5 (arrays), 5.13 (subranges), 7.13 (lower bounds).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import (
    DW_AT_bit_stride,
    DW_AT_byte_size,
    DW_AT_byte_stride,
    DW_AT_containing_type,
    DW_AT_count,
    DW_AT_declaration,
    DW_AT_GNU_vector,
    DW_AT_lower_bound,
    DW_AT_ordering,
    DW_AT_type,
    DW_AT_upper_bound,
    DW_ORD_col_major,
    DW_TAG_array_type,
    DW_TAG_enumeration_type,
    DW_TAG_pointer_type,
    DW_TAG_reference_type,
    DW_TAG_rvalue_reference_type,
    DW_TAG_subrange_type,
    DW_TAG_subroutine_type,
)
from fetchc.debuginfo.dwarf.languages import by_columns, counts_from_zero, malformed
from fetchc.program.types import (
    ArrayType,
    CharType,
    EnumType,
    FunctionType,
    IntType,
    Member,
    PointerType,
    StructType,
    UnknownType,
)
from fetchc.quantities import ByteOffset, ByteSize, TypeId
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.type_entries import TypeTable
    from fetchc.program.types import Type

__all__ = ["array", "member_pointer", "size_of"]

POINTERS = frozenset(
    {DW_TAG_pointer_type, DW_TAG_reference_type, DW_TAG_rvalue_reference_type},
)
MOST_DIMENSIONS = 64  # the C++ standard asks for far fewer; more is damage
ADDRESS_SPACE = 1 << 64


class Dimension(Record):
    """A subrange: its number of elements, None where it is not fixed, and why it is refused."""

    count: int | None
    odd: str | None = None


def array(types: TypeTable, die: Die) -> Type:
    """DW_TAG_array_type: the outer dimension; its element is the next inner one, interned."""
    name = types.name(die)
    element = types.target(die)
    dimensions = _dimensions(types, die)
    odd = _oddity(types, die, dimensions)
    stated = die.unsigned(DW_AT_byte_size)
    if odd is not None:
        return UnknownType(name, None if stated is None else ByteSize(stated), odd)
    vector = die.flag(DW_AT_GNU_vector)
    if vector:
        element = _lane(types, die, element)
    element_size = types.size(types.target_die(die))
    array_type = ArrayType(name, element, None, None, vector)
    for position, dimension in reversed(list(enumerate(dimensions))):
        size = _product(types, die, dimension.count, element_size)
        if position > 0:
            array_type = ArrayType("", element, dimension.count, size)
            element = types.intern(array_type)
        else:
            # A vector may be wider than its elements: three floats fill sixteen bytes.
            whole = ByteSize(stated) if vector and stated is not None else size
            array_type = ArrayType(name, element, dimension.count, whole, vector)
        element_size = size
    return array_type


def _lane(types: TypeTable, die: Die, element: TypeId) -> TypeId:
    """The element of a vector: where it is a character a number, for a vector is no text."""
    target = types.target_die(die)
    plain = None if target is None else types.stripped(target)
    kind = None if plain is None else types.type(TypeId(plain.offset))
    if isinstance(kind, CharType):
        return types.intern(IntType(kind.name, kind.size, kind.signed))
    return element


def size_of(types: TypeTable, die: Die) -> int | None:
    """Bytes of a value of the type at ``die``; None where nothing states them."""
    factor = 1
    seen: set[int] = set()
    current: Die | None = die
    while current is not None:
        if current.offset in seen:
            raise malformed(die, "a type that contains itself")
        seen.add(current.offset)
        size = current.unsigned(DW_AT_byte_size)
        if size is None and current.tag in POINTERS:
            size = current.unit.address_size
        if size is not None and not _multiplied(current):
            return _product(types, die, factor, size)
        if current.tag == DW_TAG_array_type:
            for dimension in _dimensions(types, current):
                if dimension.count is None or dimension.odd is not None:
                    return None
                factor = _product(types, die, factor, dimension.count) or 0
        elif current.flag(DW_AT_declaration) or not current.has(DW_AT_type):
            return None
        current = types.target_die(current)
        current = None if current is None else types.resolved(current)
    return None


def _multiplied(die: Die) -> bool:
    # gcc states the size of an array whose bounds also say it; the bounds then decide,
    # for indices are checked against them. A vector's size is only stated.
    return die.tag == DW_TAG_array_type and not die.flag(DW_AT_GNU_vector)


def _dimensions(types: TypeTable, die: Die) -> list[Dimension]:
    found: list[Dimension] = []
    for child in types.info.children(die):
        if child.tag == DW_TAG_subrange_type:
            found.append(_dimension(types, child))
        elif child.tag == DW_TAG_enumeration_type:
            found.append(Dimension(None, "it is indexed by an enumeration"))
        if len(found) > MOST_DIMENSIONS:
            raise malformed(die, f"an array of more than {MOST_DIMENSIONS} dimensions")
    return found or [Dimension(None)]


def _dimension(types: TypeTable, die: Die) -> Dimension:
    lower = die.constant(DW_AT_lower_bound)
    if lower is None:
        if die.has(DW_AT_lower_bound) or not counts_from_zero(die.unit):
            return Dimension(None, "its indices do not start at a known zero")
    elif lower != 0:
        return Dimension(None, f"its indices start at {lower}")
    count = die.unsigned(DW_AT_count)
    if count is None and die.has(DW_AT_upper_bound):
        upper = die.constant(DW_AT_upper_bound)
        if upper is not None:
            # int a[0] of gcc: an upper bound of -1, at times in a form without sign.
            count = 0 if upper == (1 << 8 * die.unit.address_size) - 1 else upper + 1
    if count is not None and not 0 <= count < ADDRESS_SPACE:
        raise malformed(die, f"an array of {count} elements")
    return Dimension(count)


def _oddity(types: TypeTable, die: Die, dimensions: list[Dimension]) -> str | None:
    for dimension in dimensions:
        if dimension.odd is not None:
            return dimension.odd
    ordering = die.unsigned(DW_AT_ordering)
    columns = by_columns(die.unit) if ordering is None else ordering == DW_ORD_col_major
    if columns and len(dimensions) > 1:
        return "it lies column by column, its first index runs fastest"
    if die.has(DW_AT_bit_stride):
        return "its elements are packed by bits"
    stride = die.unsigned(DW_AT_byte_stride)
    if die.has(DW_AT_byte_stride) and stride != types.size(types.target_die(die)):
        return "its elements are not adjacent in memory"
    return None


def _product(types: TypeTable, die: Die, count: int | None, size: int | None) -> ByteSize | None:
    if count is None or size is None:
        return None
    if count * size >= ADDRESS_SPACE:
        raise malformed(die, "an array bigger than the address space")
    return ByteSize(count * size)


# ------------------------------------------------------------------------------
# Pointers to members of C++ classes: numbers, and pairs of them.
#
# To data: where the member is in an object of the class, -1 for null. To a function: its address,
# or 1 more than its place in the table of virtual functions; and what `this` moves by. Source:
# Itanium C++ ABI, 2.3.


def member_pointer(types: TypeTable, die: Die) -> Type:
    """The type of a pointer to a member, DW_TAG_ptr_to_member_type."""
    target = types.target_die(die)
    target = None if target is None else types.stripped(target)
    holder = types.target_die(die, DW_AT_containing_type)
    within = "" if holder is None else types.name(types.resolved(holder))
    word = ByteSize(die.unit.address_size)
    if target is not None and target.tag == DW_TAG_subroutine_type:
        result = types.target_die(target)
        return _to_function(types, f"{_named(types, result, 'void')} ({within}::*)()", word)
    size = ByteSize(die.unsigned(DW_AT_byte_size) or word)
    name = f"{_named(types, target, 'auto')} {within}::*"
    return EnumType(name, size, True, (("nullptr", -1), *_members(types, die, holder, within)))


def _named(types: TypeTable, die: Die | None, otherwise: str) -> str:
    return otherwise if die is None else types.name(die) or "auto"


def _members(
    types: TypeTable, die: Die, holder: Die | None, within: str
) -> tuple[tuple[str, int], ...]:
    # Those of the type that the pointer is to.
    class_type = None if holder is None else types.type(types.target(die, DW_AT_containing_type))
    if not isinstance(class_type, StructType):
        return ()
    return tuple(
        (f"&{within}::{member.name}", int(member.offset))
        for member in class_type.members
        if member.name and not member.embedded and member.type == types.target(die)
    )


def _to_function(types: TypeTable, name: str, word: ByteSize) -> StructType:
    address = types.intern(PointerType("", word, types.intern(FunctionType(""))))
    moved = types.intern(IntType("long", word, True))
    parts = (Member("ptr", address, ByteOffset(0)), Member("adj", moved, ByteOffset(word)))
    return StructType(name, "struct", ByteSize(2 * word), parts, by_reference=False)
