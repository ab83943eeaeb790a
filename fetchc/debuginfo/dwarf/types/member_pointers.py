"""Pointers to members of C++ classes: numbers, and pairs of them.

To data: where the member is in an object of the class, -1 for null. To a function: its address,
or 1 more than its place in the table of virtual functions; and what `this` moves by.
Source: Itanium C++ ABI, 2.3.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_byte_size,
    DW_AT_containing_type,
    DW_TAG_subroutine_type,
)
from fetchc.program.types import (
    EnumType,
    FunctionType,
    IntType,
    Member,
    PointerType,
    StructType,
)
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.types.table import TypeTable
    from fetchc.program.types import Type

__all__ = ["member_pointer"]


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
    made = None if holder is None else types.type(types.target(die, DW_AT_containing_type))
    if not isinstance(made, StructType):
        return ()
    return tuple(
        (f"&{within}::{member.name}", int(member.offset))
        for member in made.members
        if member.name and not member.embedded and member.type == types.target(die)
    )


def _to_function(types: TypeTable, name: str, word: ByteSize) -> StructType:
    address = types.intern(PointerType("", word, types.intern(FunctionType(""))))
    moved = types.intern(IntType("long", word, True))
    parts = (Member("ptr", address, ByteOffset(0)), Member("adj", moved, ByteOffset(word)))
    return StructType(name, "struct", ByteSize(2 * word), parts, by_reference=False)
