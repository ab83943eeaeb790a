"""Structures, unions and classes with their members.

Reference: DWARF 5, sections 5.7 and 7.5.4; bit fields also DWARF 2, section 5.5.4.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import is_rust, malformed
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_alignment,
    DW_AT_bit_offset,
    DW_AT_bit_size,
    DW_AT_byte_size,
    DW_AT_calling_convention,
    DW_AT_data_bit_offset,
    DW_AT_data_member_location,
    DW_AT_declaration,
    DW_AT_endianity,
    DW_AT_enum_class,
    DW_AT_external,
    DW_AT_go_embedded_field,
    DW_AT_name,
    DW_AT_virtuality,
    DW_TAG_class_type,
    DW_TAG_enumeration_type,
    DW_TAG_inheritance,
    DW_TAG_member,
    DW_TAG_structure_type,
    DW_TAG_type_unit,
    DW_TAG_union_type,
    DW_TAG_variable,
)
from fetchc.program.types import BitField, DeclaredType, Member, StructType, UnknownType
from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.types.table import TypeTable
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = ["AGGREGATES", "has_static_member", "members", "structure"]

AGGREGATES = {
    DW_TAG_structure_type: "struct",
    DW_TAG_union_type: "union",
    DW_TAG_class_type: "class",
}
DW_OP_plus_uconst = 0x23  # DWARF 5, table 7.9
DW_OP_const1u, DW_OP_constu, DW_OP_lit0, DW_OP_lit31 = 0x08, 0x10, 0x30, 0x4F
DUP_DEREF, MINUS_DEREF_PLUS = b"\x12\x06", b"\x1c\x06\x22"
PASS_BY_REFERENCE, PASS_BY_VALUE = 4, 5  # DW_CC_pass_by_*: DWARF 5, table 7.15
_LONGEST_UNIT = 16  # bytes: no bit field is of a type longer than __int128
WIDEST = 1 << 48  # bits; no object is longer, and damaged offsets stop here


def structure(types: TypeTable, die: Die) -> Type:
    """A structure, union or class; a declaration stays one."""
    name, kind = types.name(die), AGGREGATES[die.tag]
    if die.flag(DW_AT_declaration):
        return DeclaredType(name, kind)
    size = die.unsigned(DW_AT_byte_size)
    if size is None:
        return UnknownType(name, None, "the debug information gives no size for it")
    alignment = die.unsigned(DW_AT_alignment)
    convention = die.unsigned(DW_AT_calling_convention)
    by_reference = None
    if convention in (PASS_BY_REFERENCE, PASS_BY_VALUE):
        by_reference = convention == PASS_BY_REFERENCE
    return StructType(
        name,
        kind,
        ByteSize(size),
        members(types, die),
        None if alignment is None else ByteSize(alignment),
        by_reference,
    )


def members(types: TypeTable, die: Die) -> tuple[Member, ...]:
    """The members that take room in an object, base classes among them."""
    found = []
    for child in types.info.children(die):
        if child.tag == DW_TAG_member:
            # A static member is declared like one up to DWARF 4; later it is a variable.
            if not child.flag(DW_AT_external) and not child.flag(DW_AT_declaration):
                found.append(_member(types, child, die.tag == DW_TAG_union_type))
        elif child.tag == DW_TAG_inheritance:
            found.append(_base(types, child))
    return tuple(found)


def has_static_member(types: TypeTable, die: Die, name: str) -> bool:
    """Whether the class declares a variable or an enumerator of that name.

    A look at its own entries alone. That of a type unit may: such members stand in the units that
    use the class.
    """
    if die.unit.top.tag == DW_TAG_type_unit:
        return True
    for child in types.info.children(die):
        known: Iterable[Die] = ()
        if child.tag in (DW_TAG_member, DW_TAG_variable):
            known = [child] if child.flag(DW_AT_external) or child.flag(DW_AT_declaration) else ()
        elif child.tag == DW_TAG_enumeration_type and not child.flag(DW_AT_enum_class):
            known = types.info.children(child)
        if any(one.text(DW_AT_name) == name for one in known):
            return True
    return False


def _member(types: TypeTable, die: Die, of_union: bool) -> Member:
    name = die.text(DW_AT_name) or ""
    embedded = die.flag(DW_AT_go_embedded_field) or (not name and _is_aggregate(types, die))
    if die.has(DW_AT_bit_size) or die.has(DW_AT_data_bit_offset):
        if die.unsigned(DW_AT_bit_size) == 0 and is_rust(die.unit):
            return _of_no_room(types, name)
        bits = _bit_field(types, die, of_union)
        if bits is None:
            return _unplaced(types, die, name, embedded)
        kind, bits = _in_order(types, die, bits)
        return Member(name, kind, ByteOffset(bits.offset // 8), bits, embedded)
    offset = _offset(types, die)
    if offset is None:
        return _unplaced(types, die, name, embedded)
    alignment = die.unsigned(DW_AT_alignment)
    asked = None if alignment is None else ByteSize(alignment)
    return Member(name, types.target(die), offset, None, embedded, "", asked)


def _base(types: TypeTable, die: Die) -> Member:
    base = types.target_die(die)
    name = "" if base is None else types.name(types.resolved(base))
    offset = None if die.unsigned(DW_AT_virtuality) else _offset(types, die)
    if offset is None:
        return _unplaced(types, die, name, True, _slot(types, die), types.target(die))
    return Member(name, types.target(die), offset, None, True)


def _slot(types: TypeTable, die: Die) -> int | None:
    # Of a virtual base, as gcc and clang write it: dup, deref, a number, minus, deref, plus.
    # Source: Itanium C++ ABI, 2.5.2 (vbase offsets).
    block = die.block(DW_AT_data_member_location) or b""
    if not (block.startswith(DUP_DEREF) and block.endswith(MINUS_DEREF_PLUS)):
        return None
    number = block[len(DUP_DEREF) : -len(MINUS_DEREF_PLUS)]
    if len(number) == 1 and DW_OP_lit0 <= number[0] <= DW_OP_lit31:
        back = number[0] - DW_OP_lit0
    elif len(number) == 2 and number[0] in (DW_OP_const1u, DW_OP_constu) and number[1] < 0x80:
        back = number[1]
    else:
        return None
    word = types.info.elf.word_bytes
    return -(back // word) if back % word == 0 else None


def _unplaced(
    types: TypeTable,
    die: Die,
    name: str,
    embedded: bool,
    slot: int | None = None,
    base: TypeId | None = None,
) -> Member:
    # A virtual base and the like: the program finds the offset in its tables at run time.
    size = types.size(types.target_die(die))
    reason = "its offset within the object is only known at run time"
    unknown = UnknownType(name, None if size is None else ByteSize(size), reason, slot, base)
    return Member(name, types.intern(unknown), ByteOffset(0), None, embedded)


def _of_no_room(types: TypeTable, name: str) -> Member:
    # rustc 1.63 says so of a function that a closure captured: it is known by its type alone,
    # and described as the pointer that it is not.
    unknown = UnknownType(name, ByteSize(0), "it takes no room in the object")
    return Member(name, types.intern(unknown), ByteOffset(0), None, False)


def _is_aggregate(types: TypeTable, die: Die) -> bool:
    target = types.target_die(die)
    target = None if target is None else types.stripped(target)
    return target is not None and target.tag in AGGREGATES


def _in_order(types: TypeTable, die: Die, bits: BitField) -> tuple[TypeId, BitField]:
    # The type of a bit field and its bits, in the machine's order where it has the other one.
    target = types.target_die(die)
    target = None if target is None else types.stripped(target)
    if target is not None and target.has(DW_AT_endianity):
        from fetchc.debuginfo.dwarf.types.scalars import foreign_bit_field, has_foreign_order

        if has_foreign_order(types, target):
            return foreign_bit_field(types, target, bits)
    return types.target(die), bits


def _offset(types: TypeTable, die: Die) -> ByteOffset | None:
    # A constant, or in DWARF 2 an expression that adds one to the object's address. Members of
    # a union may have neither. None where the offset is not fixed.
    if not die.has(DW_AT_data_member_location):
        return ByteOffset(0)
    offset = die.constant(DW_AT_data_member_location)
    if offset is None:
        block = die.block(DW_AT_data_member_location)
        if block is None or len(block) < 2 or block[0] != DW_OP_plus_uconst:
            return None
        offset = 0
        for position, byte in enumerate(block[1:]):
            offset |= (byte & 0x7F) << 7 * position
            if byte < 0x80 and position + 2 != len(block):
                return None  # more than the one operation
        if block[-1] >= 0x80:
            raise malformed(die, "a member's location that breaks off")
    # gcc lets the storage unit of an under-aligned bit field begin before the structure.
    lowest = -_LONGEST_UNIT if die.has(DW_AT_bit_offset) else 0
    if not 8 * lowest <= 8 * offset < WIDEST:
        raise malformed(die, f"a member at offset {offset}")
    return ByteOffset(offset)


def _bit_field(types: TypeTable, die: Die, of_union: bool) -> BitField | None:
    width = die.unsigned(DW_AT_bit_size)
    if width is None:
        width = 8 * (types.size(types.target_die(die)) or 0)
    offset = die.constant(DW_AT_data_bit_offset)
    if offset is None:
        location = _offset(types, die)
        if location is None:
            return None
        offset = 8 * location
        # Negative where clang lets a packed field cross its unit, at times in a form without sign.
        from_top = die.signed(DW_AT_bit_offset)
        if of_union:
            # Each begins with its union. gcc counts from a unit that begins before it, where the
            # field's type is aligned to less than its size, and leaves out where the unit is.
            offset = 0
        elif from_top is not None and types.info.elf.little_endian:
            # Counted from the most significant bit of the storage unit, on every machine.
            storage = die.unsigned(DW_AT_byte_size)
            if storage is None:
                storage = types.size(types.target_die(die))
            if storage is None:
                raise malformed(die, "a bit field in storage of unknown size")
            offset += 8 * storage - from_top - width
        elif from_top is not None:
            offset += from_top
    if not 0 <= offset < WIDEST or not 0 < width < WIDEST:
        raise malformed(die, f"a bit field of {width} bits at bit {offset}")
    return BitField(BitOffset(offset), BitSize(width))
