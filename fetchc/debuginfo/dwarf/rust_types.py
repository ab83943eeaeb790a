"""Rust's own types: text and slices, enums with fields, tuples.

A reference to a slice or text is a structure of two words. An enum with fields has a variant
part: one member tells which of the variants is there, either a tag or a value that the fields of
the others cannot have (a niche).
Source: rustc, compiler/rustc_codegen_llvm/src/debuginfo/metadata; DWARF 5, section 5.7.10.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number
from fetchc.debuginfo.dwarf import type_entries
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_data_bit_offset,
    DW_AT_data_member_location,
    DW_AT_discr,
    DW_AT_discr_value,
    DW_AT_name,
    DW_TAG_member,
    DW_TAG_structure_type,
    DW_TAG_template_type_param,
    DW_TAG_variant,
    DW_TAG_variant_part,
)
from fetchc.debuginfo.dwarf.languages import malformed
from fetchc.debuginfo.dwarf.type_entries import is_signed
from fetchc.program.types import (
    BoolType,
    CharType,
    EnumType,
    Member,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    Variant,
    Window,
)
from fetchc.quantities import ByteOffset, ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.type_entries import TypeTable
    from fetchc.program.types import Type

    Raw = Mapping[str, Any]

__all__ = ["DISCRIMINANT", "library_type", "offset_of", "structure", "unsized_text"]

DISCRIMINANT = "discriminant"
"""The member that tells which variant of an enum is there, by its name."""

# Members of a reference to a slice; the second one's name is that of the method, too.
_WIDE = ("data_ptr", "length")
_LENGTH = "len"
_POINTERS = ("&mut ", "&", "*const ", "*mut ", "alloc::boxed::Box<")
_LONGEST_TAG = 16  # bytes: #[repr(u128)]
_WIDEST = 8  # bytes of a discriminant that a fetch-arg can hold


def structure(types: TypeTable, die: Die) -> Type:
    """A structure or an enum with fields, or the type that users see for it."""
    part = next(types.children(die, DW_TAG_variant_part), None)
    struct = type_entries.structure(types, die)
    if not isinstance(struct, StructType):
        return struct
    if part is not None:
        return _enum(types, struct, part)
    members = {member.name: member for member in struct.members}
    if tuple(members) == _WIDE:
        return _wide(types, struct, members["data_ptr"], members["length"])
    if "::" in struct.name:
        return library_type(types, die, struct) or struct
    return struct


def _wide(types: TypeTable, struct: StructType, data: Member, length: Member) -> Type:
    # Of a string or slice; others that wide (a pointer to counters and a string) stay two words.
    pointed = _pointed(struct.name)
    words = (data, Member(length.name, length.type, length.offset, also=_LENGTH))
    pointer = types.type(data.type)
    if pointed == "str":
        return StringType(struct.name, struct.size, words)
    if pointed.startswith("[") and isinstance(pointer, PointerType):
        return SliceType(struct.name, struct.size, pointer.target, words)

    return unsized_text(types, struct, pointed, words) or struct


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


def _enum(types: TypeTable, struct: StructType, part: Die) -> Type:
    # Variants lie over each other, so they are no members: they are found by their names.
    discriminant = types.info.follow(part, DW_AT_discr)
    size = None if discriminant is None else types.size(types.target_die(discriminant))
    if discriminant is not None and (size is None or size > _LONGEST_TAG):
        raise malformed(discriminant, f"a discriminant of {size} bytes")
    number = None if discriminant is None else types.target_die(discriminant)
    below = None if number is None else types.stripped(number)
    signed = below is not None and is_signed(types, below) is True
    variants: list[Variant] = []
    for child in types.children(part, DW_TAG_variant):
        member = next(types.children(child, DW_TAG_member), None)
        if member is None or (discriminant is None and _is_uninhabited(types, member)):
            continue
        value = _discriminant(child, size, signed)
        one = Member(member.string(DW_AT_name) or "", types.target(member), offset_of(member))
        variants.append(Variant(one, value))
    enumerators = [(one.member.name, one.value) for one in variants if one.value is not None]
    shown: tuple[Member, ...] = ()
    if discriminant is not None and size is not None:
        tag = ByteSize(min(size, _WIDEST))
        lowest, behind = (-(1 << 8 * tag - 1), 1 << 8 * tag - 1) if signed else (0, 1 << 8 * tag)
        # A tag of 16 bytes has no other values than those of the variants.
        if size > _WIDEST and (len(enumerators) < len(variants) or not _little(types)):
            return _with_variants(struct, (), ())
        if all(lowest <= value < behind for _, value in enumerators):
            others = [one.member.name for one in variants if one.value is None]
            otherwise = others[0] if len(others) == 1 else ""
            enum = EnumType(struct.name, tag, signed, tuple(enumerators), False, otherwise)
            shown = (Member(DISCRIMINANT, types.intern(enum), offset_of(discriminant)),)
    return _with_variants(struct, shown, tuple(variants))


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
        value = decode_number(block, True)  # as wide as a tag of u128
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
    struct: StructType, members: tuple[Member, ...], variants: tuple[Variant, ...]
) -> StructType:
    return StructType(
        struct.name, "enum", struct.size, members, struct.alignment, struct.by_reference,
        variants=variants,
    )  # fmt: skip


def offset_of(member: Die) -> ByteOffset:
    """Where a member begins, one without a size too; DebugInfoError FC0904 if not known."""
    offset = member.unsigned(DW_AT_data_member_location)
    if offset is None and (bits := member.unsigned(DW_AT_data_bit_offset)) is not None:
        offset = bits // 8
    if offset is None:
        raise malformed(member, "a member of a Rust type without a fixed place")
    return ByteOffset(offset)


# ------------------------------------------------------------------------------
# Types of Rust's standard library: their fields are data (targets/runtime/rust).

_CAPACITY = "capacity"


def library_type(types: TypeTable, die: Die, struct: StructType) -> Type | None:
    """What ``struct`` is to its users; None of other types, and of one with other fields."""
    plain = struct.name.partition("<")[0]
    for raw in _entries("type"):
        if plain in raw["names"]:
            found = _KINDS[raw["kind"]](types, die, struct, raw)
            if found is not None:
                return found
    return None


def unsized_text(
    types: TypeTable, struct: StructType, pointed: str, words: tuple[Member, Member]
) -> Type | None:
    """A reference to a string of another type than ``str``; None of other references."""
    for raw in _entries("unsized"):
        if pointed in raw["names"]:
            if raw["kind"] == "text":
                return StringType(struct.name, struct.size, words)
            return _terminated(types, struct, words[0])
    return None


def _entries(key: str) -> Iterator[Raw]:
    from fetchc.target.machines import tables_under

    for table in tables_under("runtime/rust").values():
        yield from table.get(key, ())


def _text(types: TypeTable, die: Die, struct: StructType, raw: Raw) -> Type | None:
    words = _words(types, die, raw)
    return None if words is None else StringType(struct.name, struct.size, words)


def _c_text(types: TypeTable, die: Die, struct: StructType, raw: Raw) -> Type | None:
    data = _found(types, die, raw["data"])
    return None if data is None else _terminated(types, struct, data)


def _terminated(types: TypeTable, struct: StructType, data: Member) -> Type:
    # What has a NUL at its end is what a `char *` of C is.
    character = types.intern(CharType("char", ByteSize(1), True))
    pointer = PointerType("", ByteSize(types.word_bytes), character)
    return _with_value(struct, Member("ptr", types.intern(pointer), data.offset))


def _elements(types: TypeTable, die: Die, struct: StructType, raw: Raw) -> Type | None:
    words, element = _words(types, die, raw), _argument(types, die, raw["element"])
    if words is None or element is None:
        return None
    if not types.size(types.die(element)):
        words = words[:2]  # of elements without a size there is room for any number
    return SliceType(
        struct.name, struct.size, element, (_pointing(types, words[0], element), *words[1:])
    )


def _pointing(types: TypeTable, data: Member, element: TypeId) -> Member:
    # Newer ones keep a pointer to bytes, whatever the elements are.
    pointer = PointerType("", ByteSize(types.word_bytes), element)
    return Member(data.name, types.intern(pointer), data.offset)


def _ring(types: TypeTable, die: Die, struct: StructType, raw: Raw) -> Type | None:
    words, element = _words(types, die, raw), _argument(types, die, raw["element"])
    start = _found(types, die, raw["start"])
    if words is None or len(words) < 3 or element is None or start is None:
        return None
    if not types.size(types.die(element)):
        return None
    data, length, capacity = _pointing(types, words[0], element), *words[1:]
    first = Member(raw["start"][0], start.type, start.offset)
    window = Window(first, True, False, capacity)
    return SequenceType(
        struct.name, struct.size, (first, length, data, capacity), length, data, value=True,
        window=window,
    )  # fmt: skip


def _inner(types: TypeTable, die: Die, struct: StructType, raw: Raw) -> Type | None:
    value = _found(types, die, raw["data"])
    if value is None:
        return None
    type_id = value.type
    if raw.get("of_argument") and (name := _argument_name(types, die)) in raw["of_argument"]:
        type_id = types.intern(BoolType(name, ByteSize(1)))
    return _with_value(
        struct, Member(value.name, type_id, value.offset), owned=raw.get("dereferences", False)
    )


def _count(types: TypeTable, die: Die, struct: StructType, raw: Raw) -> Type | None:
    value = _found(types, die, raw["data"])
    if value is None:
        return None
    return _with_value(struct, Member(_LENGTH, value.type, value.offset), counts=True)


def _with_notation(types: TypeTable, die: Die, struct: StructType, raw: Raw) -> Type | None:
    if any(_found(types, die, [path]) is None for path in raw["data"]):
        return None
    return StructType(
        struct.name, struct.kind, struct.size, struct.members, struct.alignment,
        struct.by_reference, raw["notation"],
    )  # fmt: skip


def _reference_counted(types: TypeTable, die: Die, struct: StructType, raw: Raw) -> Type | None:
    # A pointer to counters and, after them, the object; with a length where that has none.
    found = _found(types, die, raw["data"])
    pointer = None if found is None else types.type(found.type)
    if found is None:
        return None
    if isinstance(pointer, PointerType):
        inner = types.type(pointer.target)
        if not isinstance(inner, StructType) or all(m.name != raw["value"] for m in inner.members):
            return None
        return _with_value(
            struct, Member("ptr", found.type, found.offset), shared=raw["value"], owned=True
        )
    return _counted_sequence(types, struct, found, pointer, raw)


def _counted_sequence(
    types: TypeTable, struct: StructType, found: Member, wide: Type | None, raw: Raw
) -> Type | None:
    # Rc<str> and Rc<[T]>: the text or the elements begin after the counters.
    if not isinstance(wide, StructType) or len(wide.members) != 2:
        return None
    data, length = wide.members
    pointer = types.type(data.type)
    if (data.name, length.name) != ("data_ptr", "length") or not isinstance(pointer, PointerType):
        return None
    if pointer.target < 0:
        return None  # no entry describes it
    counters = types.die(pointer.target)
    object_ = _member(types, counters, raw["value"])
    if object_ is None or counters.tag != DW_TAG_structure_type:
        return None
    lead = offset_of(object_)
    words = (
        Member(data.name, data.type, ByteOffset(found.offset + data.offset)),
        Member(_LENGTH, length.type, ByteOffset(found.offset + length.offset)),
    )
    inside = struct.name.partition("<")[2]
    if inside.startswith(("str,", "str>")):
        return StringType(struct.name, struct.size, words, lead)
    if not inside.startswith("["):
        return None
    element = types.target(object_)
    return SliceType(
        struct.name, struct.size, element, (_pointing(types, words[0], element), words[1]), lead
    )


def _with_value(
    struct: StructType, value: Member, counts: bool = False, shared: str = "", owned: bool = False
) -> StructType:
    return StructType(
        struct.name, struct.kind, struct.size, struct.members, struct.alignment,
        struct.by_reference, value=value, counts=counts, shared=shared, owned=owned,
    )  # fmt: skip


def _words(types: TypeTable, die: Die, raw: Raw) -> tuple[Member, ...] | None:
    data, length = _found(types, die, raw["data"]), _found(types, die, raw["length"])
    if data is None or length is None:
        return None
    words = [Member("ptr", data.type, data.offset), Member(_LENGTH, length.type, length.offset)]
    capacity = _found(types, die, raw.get("capacity", []))
    if capacity is not None:
        words.append(Member(_CAPACITY, capacity.type, capacity.offset))
    return tuple(words)


def _argument(types: TypeTable, die: Die, name: str) -> TypeId | None:
    for child in types.children(die, DW_TAG_template_type_param):
        if child.string(DW_AT_name) == name and types.target_die(child) is not None:
            return types.target(child)
    return None


def _argument_name(types: TypeTable, die: Die) -> str:
    # The first argument's name: `bool` of Atomic<bool>, `AtomicBool` where it has none.
    parameter = next(types.children(die, DW_TAG_template_type_param), None)
    target = None if parameter is None else types.target_die(parameter)
    return (die if target is None else target).string(DW_AT_name) or ""


def _member(types: TypeTable, die: Die, name: str) -> Die | None:
    members = types.children(die, DW_TAG_member)
    return next((each for each in members if each.string(DW_AT_name) == name), None)


def _found(types: TypeTable, die: Die, paths: list[str]) -> Member | None:
    # The member at the end of the first path that the type has, with its place in the whole.
    for path in paths:
        at: Die | None = die
        offset, target = 0, TypeId(die.offset)
        for word in path.split("."):
            at = at if at is not None and at.tag == DW_TAG_structure_type else None
            member = None if at is None else _member(types, at, word)
            if member is None:
                break
            offset += offset_of(member)
            target = types.target(member)
            at = types.target_die(member)
        else:
            return Member(path, target, ByteOffset(offset))
    return None


_KINDS: dict[str, Callable[[TypeTable, Die, StructType, Raw], Type | None]] = {
    "c-text": _c_text,
    "count": _count,
    "elements": _elements,
    "inner": _inner,
    "notation": _with_notation,
    "ring": _ring,
    "shared": _reference_counted,
    "text": _text,
}
