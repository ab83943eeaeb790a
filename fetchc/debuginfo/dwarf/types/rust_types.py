"""Rust's own types: text and slices, enums with fields, tuples.

A reference to a slice or text is a structure of two words. An enum with fields has a variant
part: one member tells which of the variants is there, either a tag or a value that the fields of
the others cannot have (a niche). :mod:`.rust_library` has types of the standard library.
Source: rustc, compiler/rustc_codegen_llvm/src/debuginfo/metadata; DWARF 5, section 5.7.10.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import malformed
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_data_bit_offset,
    DW_AT_data_member_location,
    DW_AT_discr,
    DW_AT_discr_value,
    DW_AT_name,
    DW_TAG_member,
    DW_TAG_structure_type,
    DW_TAG_variant,
    DW_TAG_variant_part,
)
from fetchc.debuginfo.dwarf.types import aggregates
from fetchc.debuginfo.dwarf.types.scalars import is_signed
from fetchc.program.types import (
    EnumType,
    Member,
    PointerType,
    SliceType,
    StringType,
    StructType,
    Variant,
)
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.types.table import TypeTable
    from fetchc.program.types import Type

__all__ = ["DISCRIMINANT", "offset_of", "structure"]

DISCRIMINANT = "discriminant"
"""The member that tells which variant of an enum is there, by its name."""

# Members of a reference to a slice; the second one's name is that of the method, too.
_WIDE = ("data_ptr", "length")
_LENGTH = "len"
_POINTERS = ("&mut ", "&", "*const ", "*mut ", "alloc::boxed::Box<")
_LONGEST_TAG = 16  # bytes: #[repr(u128)]
_WIDEST = 8  # bytes of a discriminant that a fetch-arg can hold


def structure(types: TypeTable, die: Die) -> Type:
    """A structure or an enum with fields, or what stands for it."""
    part = next(types.children(die, DW_TAG_variant_part), None)
    made = aggregates.structure(types, die)
    if not isinstance(made, StructType):
        return made
    if part is not None:
        return _enum(types, made, part)
    members = {member.name: member for member in made.members}
    if tuple(members) == _WIDE:
        return _wide(types, made, members["data_ptr"], members["length"])
    if "::" in made.name:
        from fetchc.debuginfo.dwarf.types.rust_library import library_type

        return library_type(types, die, made) or made
    return made


def _wide(types: TypeTable, made: StructType, data: Member, length: Member) -> Type:
    # Of a text or slice; what else is as wide (a pointer to counters and a text) stays two words.
    pointed = _pointed(made.name)
    words = (data, Member(length.name, length.type, length.offset, also=_LENGTH))
    pointer = types.type(data.type)
    if pointed == "str":
        return StringType(made.name, made.size, words)
    if pointed.startswith("[") and isinstance(pointer, PointerType):
        return SliceType(made.name, made.size, pointer.target, words)
    from fetchc.debuginfo.dwarf.types.rust_library import unsized_text

    return unsized_text(types, made, pointed, words) or made


def _pointed(name: str) -> str:
    """``[u16]`` of ``&[u16]`` and of ``alloc::boxed::Box<[u16], alloc::alloc::Global>``."""
    start = next((one for one in _POINTERS if name.startswith(one)), None)
    if start is None:
        return ""
    inside = name[len(start) :]
    if not start.endswith("<"):
        return inside
    depth = 0
    for at, character in enumerate(inside):
        if depth == 0 and character in ",>":
            return inside[:at]
        depth += (character in "<([") - (character in ">)]")
    return ""


def _enum(types: TypeTable, made: StructType, part: Die) -> Type:
    # Variants lie over each other, so they are no members: they are found by their names.
    told = types.info.follow(part, DW_AT_discr)
    size = None if told is None else types.size(types.target_die(told))
    if told is not None and (size is None or size > _LONGEST_TAG):
        raise malformed(told, f"a discriminant of {size} bytes")
    number = None if told is None else types.target_die(told)
    below = None if number is None else types.stripped(number)
    signed = below is not None and is_signed(types, below) is True
    variants: list[Variant] = []
    for child in types.children(part, DW_TAG_variant):
        member = next(types.children(child, DW_TAG_member), None)
        if member is None or (told is None and _is_uninhabited(types, member)):
            continue
        value = _discriminant(child, size, signed)
        one = Member(member.text(DW_AT_name) or "", types.target(member), offset_of(member))
        variants.append(Variant(one, value))
    known = [(one.member.name, one.value) for one in variants if one.value is not None]
    shown: tuple[Member, ...] = ()
    if told is not None and size is not None:
        tag = ByteSize(min(size, _WIDEST))
        lowest, behind = (-(1 << 8 * tag - 1), 1 << 8 * tag - 1) if signed else (0, 1 << 8 * tag)
        # A tag of 16 bytes has no other values than those of the variants.
        if size > _WIDEST and (len(known) < len(variants) or not _little(types)):
            return _with_variants(made, (), ())
        if all(lowest <= value < behind for _, value in known):
            others = [one.member.name for one in variants if one.value is None]
            otherwise = others[0] if len(others) == 1 else ""
            enum = EnumType(made.name, tag, signed, tuple(known), False, otherwise)
            shown = (Member(DISCRIMINANT, types.intern(enum), offset_of(told)),)
    return _with_variants(made, shown, tuple(variants))


def _little(types: TypeTable) -> bool:
    return types.info.elf.little_endian


def _discriminant(variant: Die, size: int | None, signed: bool) -> int | None:
    # LLVM takes the shortest form that holds the value: -5 of an i64 is the byte 0xfb
    # (DIEInteger::BestForm).
    if size is None:
        return None
    read = variant.signed if signed else variant.constant
    value = read(DW_AT_discr_value)
    if value is None and (block := variant.block(DW_AT_discr_value)) is not None:
        value = int.from_bytes(block, "little")  # as wide as a tag of u128
    if value is None:
        return None
    below = 1 << 8 * size - 1 if signed else 0
    return (value + below) % (1 << 8 * size) - below


def _is_uninhabited(types: TypeTable, variant: Die) -> bool:
    # One of its fields is an enum without variants, so that no such value exists.
    fields = types.target_die(variant)
    for member in () if fields is None else types.children(fields, DW_TAG_member):
        field = types.target_die(member)
        if field is None or field.tag != DW_TAG_structure_type:
            continue
        part = next(types.children(field, DW_TAG_variant_part), None)
        if part is not None and next(types.children(part, DW_TAG_variant), None) is None:
            return True
    return False


def _with_variants(
    made: StructType, members: tuple[Member, ...], variants: tuple[Variant, ...]
) -> StructType:
    return StructType(
        made.name, "enum", made.size, members, made.alignment, made.by_reference,
        variants=variants,
    )  # fmt: skip


def offset_of(member: Die) -> ByteOffset:
    """Where a member begins, one without a size too; DebugInfoError FC0904 where nothing says."""
    offset = member.unsigned(DW_AT_data_member_location)
    if offset is None and (bits := member.unsigned(DW_AT_data_bit_offset)) is not None:
        offset = bits // 8
    if offset is None:
        raise malformed(member, "a member of a Rust type without a fixed place")
    return ByteOffset(offset)
