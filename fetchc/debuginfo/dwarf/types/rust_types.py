"""Rust's own types: text and slices, enums with fields, types of its library.

A reference to a slice or text is a structure of two words. An enum with fields has a variant
part: one member tells which of the variants is there, either a tag or a value that the fields of
the others cannot have (a niche). What library types are made of is data (targets/runtime/rust).
Source: rustc, compiler/rustc_codegen_llvm/src/debuginfo/metadata; DWARF 5, section 5.7.10.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import malformed
from fetchc.debuginfo.dwarf.entries.constants import (
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
from fetchc.debuginfo.dwarf.types import aggregates
from fetchc.program.types import (
    EnumType,
    Member,
    PointerType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.units import ByteOffset, ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.types.table import TypeTable
    from fetchc.program.types import Type

__all__ = ["DISCRIMINANT", "structure"]

DISCRIMINANT = "discriminant"
"""The member that tells which variant of an enum is there, by its name."""

# Members of a reference to a slice; the second one's name is that of the method, too.
_WIDE = ("data_ptr", "length")
_LENGTH = "len"
_TEXTS = ("&str", "&mut str", "*const str", "*mut str")
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
    library = _library(types, die, made) if "::" in made.name else None
    if library is not None:
        return library
    # rustc orders members as it likes, and lists them as the source does.
    return _with_members(made, tuple(sorted(made.members, key=lambda member: member.offset)))


def _with_members(
    made: StructType, members: tuple[Member, ...], reckoned: tuple[Member, ...] = ()
) -> StructType:
    return StructType(
        made.name, made.kind, made.size, members, made.alignment, made.by_reference, "", reckoned
    )


def _wide(types: TypeTable, made: StructType, data: Member, length: Member) -> Type:
    words = (data, Member(length.name, length.type, length.offset, also=_LENGTH))
    inside = made.name.partition("<")[2]
    if made.name in _TEXTS or inside.startswith(("str,", "str>")):
        return StringType(made.name, made.size, words)
    pointer = types.type(data.type)
    if not isinstance(pointer, PointerType):
        return made
    return SliceType(made.name, made.size, pointer.target, words)


def _enum(types: TypeTable, made: StructType, part: Die) -> Type:
    # Variants lie over each other, so they are no members that a reader would show: they are
    # found by their names.
    variants: list[Member] = []
    known: list[tuple[str, int]] = []
    told = types.info.follow(part, DW_AT_discr)
    size = None if told is None else types.size(types.target_die(told))
    for child in types.children(part, DW_TAG_variant):
        member = next(types.children(child, DW_TAG_member), None)
        if member is None:
            continue
        name = member.text(DW_AT_name) or ""
        variants.append(Member(name, types.target(member), _offset(member)))
        value = child.constant(DW_AT_discr_value)
        if value is not None and size is not None:
            known.append((name, value & ((1 << 8 * size) - 1)))
    shown: tuple[Member, ...] = ()
    if told is not None and size is not None and size <= _WIDEST:
        others = [variant.name for variant in variants if variant.name not in dict(known)]
        otherwise = others[0] if len(others) == 1 else ""
        enum = EnumType(made.name, ByteSize(size), False, tuple(known), otherwise=otherwise)
        shown = (Member(DISCRIMINANT, types.intern(enum), _offset(told)),)
    return _with_members(made, shown, tuple(variants))


def _library(types: TypeTable, die: Die, made: StructType) -> Type | None:
    from fetchc.target.load import tables_under

    plain = made.name.partition("<")[0]
    for table in tables_under("runtime/rust").values():
        for raw in table["type"]:
            if raw["name"] == plain:
                return _KINDS[raw["kind"]](types, die, made, raw)
    return None


def _text(types: TypeTable, die: Die, made: StructType, raw: Mapping[str, Any]) -> Type | None:
    words = _words(types, die, raw)
    return None if words is None else StringType(made.name, made.size, words)


def _elements(types: TypeTable, die: Die, made: StructType, raw: Mapping[str, Any]) -> Type | None:
    words = _words(types, die, raw)
    element = next(
        (
            types.target(child)
            for child in types.children(die, DW_TAG_template_type_param)
            if child.text(DW_AT_name) == raw["element"]
        ),
        None,
    )
    if words is None or element is None:
        return None
    # Newer ones keep a pointer to bytes, whatever the elements are.
    data, length = words
    pointer = PointerType("", ByteSize(types.word_bytes), element)
    data = Member(data.name, types.intern(pointer), data.offset)
    return SliceType(made.name, made.size, element, (data, length))


def _shared(types: TypeTable, die: Die, made: StructType, raw: Mapping[str, Any]) -> Type | None:
    # The pointer and the object in it are looked through: `rc.field` is the object's.
    found = _found(types, die, raw["data"])
    pointer = None if found is None else types.type(found.type)
    if found is None or not isinstance(pointer, PointerType):
        return None
    inner = types.type(pointer.target)
    if not isinstance(inner, StructType) or all(m.name != raw["value"] for m in inner.members):
        return None
    opened = [
        Member(each.name, each.type, each.offset, embedded=each.name == raw["value"])
        for each in inner.members
    ]
    target = types.intern(_with_members(inner, tuple(opened)))
    to_it = types.intern(PointerType(pointer.name, pointer.size, target))
    return _with_members(made, (Member("ptr", to_it, found.offset, embedded=True),))


def _words(types: TypeTable, die: Die, raw: Mapping[str, Any]) -> tuple[Member, Member] | None:
    data, length = _found(types, die, raw["data"]), _found(types, die, [raw["length"]])
    if data is None or length is None:
        return None
    return Member("ptr", data.type, data.offset), Member(_LENGTH, length.type, length.offset)


def _found(types: TypeTable, die: Die, paths: list[str]) -> Member | None:
    # The member at the end of the first path that the type has, with its place in the whole.
    for path in paths:
        at: Die | None = die
        offset, target = 0, TypeId(die.offset)
        for word in path.split("."):
            at = at if at is not None and at.tag == DW_TAG_structure_type else None
            members = () if at is None else types.children(at, DW_TAG_member)
            member = next((each for each in members if each.text(DW_AT_name) == word), None)
            if member is None:
                break
            offset += _offset(member)
            target = types.target(member)
            at = types.target_die(member)
        else:
            return Member(path, target, ByteOffset(offset))
    return None


def _offset(member: Die) -> ByteOffset:
    offset = member.unsigned(DW_AT_data_member_location)
    if offset is None:
        raise malformed(member, "a member of a Rust type without a fixed place")
    return ByteOffset(offset)


_KINDS: dict[str, Callable[[TypeTable, Die, StructType, Mapping[str, Any]], Type | None]] = {
    "text": _text,
    "elements": _elements,
    "shared": _shared,
}
