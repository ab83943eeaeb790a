"""Go's own types, by the attributes of its linker.

Strings, slices, interfaces, maps, channels and functions are structures, typedefs and
subroutine types whose DW_AT_go_kind gives them away. A named type is often there twice,
as the type and as a typedef of the same name: the typedef then means the type.

Source: cmd/internal/dwarf and cmd/link/internal/ld/dwarf.go of Go 1.15 to 1.27, and the
DWARF of programs built with those versions.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf import type_entries
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_byte_size,
    DW_AT_go_elem,
    DW_AT_go_key,
    DW_AT_go_kind,
    DW_AT_name,
    DW_TAG_pointer_type,
    DW_TAG_structure_type,
    DW_TAG_subroutine_type,
    DW_TAG_typedef,
)
from fetchc.debuginfo.dwarf.languages import malformed
from fetchc.program.types import (
    ChannelType,
    FunctionType,
    InterfaceType,
    MapType,
    NamedType,
    PointerType,
    SliceType,
    StringType,
)
from fetchc.quantities import ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.type_entries import TypeTable
    from fetchc.program.types import Member, Type

    Reader = Callable[["TypeTable", Die], Type]

__all__ = ["READERS"]

# reflect.Kind of the Go source, the low five bits of DW_AT_go_kind.
CHANNEL, FUNCTION, INTERFACE, MAP, SLICE, STRING = 18, 19, 20, 21, 23, 24


def _structure(types: TypeTable, die: Die) -> Type:
    kind = die.unsigned(DW_AT_go_kind)
    size = die.unsigned(DW_AT_byte_size)
    name = die.string(DW_AT_name) or ""
    if kind == STRING and size is not None:
        members = _words(types, die, 2)
        return StringType(name, ByteSize(size), members)
    if kind == SLICE and size is not None:
        members = _words(types, die, 3)
        element = types.target_die(die, DW_AT_go_elem)
        if element is None:  # the data pointer says it too
            element = types.target_die(types.resolved(types.die(members[0].type)))
        return SliceType(name, ByteSize(size), _id(types, die, element), members)
    return type_entries.structure(types, die)


def _typedef(types: TypeTable, die: Die) -> Type:
    name = die.string(DW_AT_name) or ""
    seen = {die.offset}
    current = die
    while True:
        special = KINDS.get(current.unsigned(DW_AT_go_kind) or 0)
        if special is not None:
            return special(types, current)
        target = types.target_die(current)
        if target is None or (target.string(DW_AT_name) or "") != name:
            return NamedType(name, types.target(current))
        if target.tag != DW_TAG_typedef:
            return types.type(TypeId(target.offset))
        if target.offset in seen:
            raise malformed(die, "a type refers to itself")
        seen.add(target.offset)
        current = target


def _interface(types: TypeTable, die: Die) -> Type:
    below = types.stripped(die)
    if below is None or below.tag != DW_TAG_structure_type:
        raise malformed(die, "an interface without its two words")
    size = ByteSize(below.unsigned(DW_AT_byte_size) or 2 * types.word_bytes)
    empty = (below.string(DW_AT_name) or "").endswith("eface")
    return InterfaceType(die.string(DW_AT_name) or "", size, empty, _words(types, below, 2))


def _map(types: TypeTable, die: Die) -> Type:
    key = types.target_die(die, DW_AT_go_key)
    element = types.target_die(die, DW_AT_go_elem)
    return MapType(
        die.string(DW_AT_name) or "",
        ByteSize(types.word_bytes),
        _id(types, die, key),
        _id(types, die, element),
        _header(types, die),
    )


def _channel(types: TypeTable, die: Die) -> Type:
    return ChannelType(
        die.string(DW_AT_name) or "",
        ByteSize(types.word_bytes),
        _id(types, die, types.target_die(die, DW_AT_go_elem)),
        _header(types, die),
    )


def _function(types: TypeTable, die: Die) -> Type:
    # A function value is one word that points to a closure, whose first word is the code.
    name = die.string(DW_AT_name) or ""
    size = ByteSize(die.unsigned(DW_AT_byte_size) or types.word_bytes)
    return PointerType(name, size, types.intern(FunctionType(name)))


def _header(types: TypeTable, die: Die) -> TypeId:
    # The run-time's structure, behind the one pointer that a map or a channel is.
    pointer = types.stripped(die)
    if pointer is None or pointer.tag != DW_TAG_pointer_type:
        raise malformed(die, "a map or channel that is no pointer")
    return types.target(pointer)


def _words(types: TypeTable, die: Die, count: int) -> tuple[Member, ...]:
    found = type_entries.members(types, die)
    if len(found) != count:
        raise malformed(die, f"{len(found)} words where Go has {count}")
    return found


def _id(types: TypeTable, die: Die, part: Die | None) -> TypeId:
    if part is None:
        raise malformed(die, "a Go type that lacks its key or element type")
    return TypeId(part.offset)


KINDS: dict[int, Reader] = {INTERFACE: _interface, MAP: _map, CHANNEL: _channel}
READERS: dict[int, Reader] = {
    DW_TAG_structure_type: _structure,
    DW_TAG_typedef: _typedef,
    DW_TAG_subroutine_type: _function,
}
