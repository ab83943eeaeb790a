"""Debugging information entries become types of the vocabulary, one at a time.

A type is read when asked for and refers to others by the offset of their entry, so a
cycle costs nothing. What no entry describes (``void``, the inner dimensions of an array,
a cast's pointer) gets a negative id.

A further kind of entry is one small function in :data:`READERS`. Reference: DWARF 5,
chapter 5, section 7.5.4.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import is_cpp, is_go, is_rust, malformed
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_abstract_origin,
    DW_AT_address_class,
    DW_AT_alignment,
    DW_AT_byte_size,
    DW_AT_name,
    DW_AT_signature,
    DW_AT_type,
    DW_TAG_array_type,
    DW_TAG_atomic_type,
    DW_TAG_base_type,
    DW_TAG_class_type,
    DW_TAG_const_type,
    DW_TAG_enumeration_type,
    DW_TAG_pointer_type,
    DW_TAG_ptr_to_member_type,
    DW_TAG_reference_type,
    DW_TAG_restrict_type,
    DW_TAG_rvalue_reference_type,
    DW_TAG_structure_type,
    DW_TAG_subroutine_type,
    DW_TAG_template_alias,
    DW_TAG_typedef,
    DW_TAG_union_type,
    DW_TAG_unspecified_type,
    DW_TAG_volatile_type,
)
from fetchc.debuginfo.dwarf.entries.scopes import qualified_name
from fetchc.program.types import (
    FunctionType,
    NamedType,
    PointerType,
    QualifiedType,
    UnknownType,
    VoidType,
)
from fetchc.quantities import ByteSize, DieOffset, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.program.types import Type

    Reader = Callable[["TypeTable", Die], Type]

__all__ = ["VOID", "TypeTable"]

VOID = TypeId(-1)  # the target of a pointer without DW_AT_type: C's and Go's void

NULLPTR = "decltype(nullptr)"  # the name that gcc and clang give it
QUALIFIERS = {
    DW_TAG_const_type: "const",
    DW_TAG_volatile_type: "volatile",
    DW_TAG_restrict_type: "restrict",
    DW_TAG_atomic_type: "atomic",
}
TRANSPARENT = frozenset({DW_TAG_typedef, DW_TAG_template_alias, *QUALIFIERS})


class TypeTable:
    """The types of one program. It grows by what is asked for and by nothing else."""

    __slots__ = ("_ids", "_made", "_producers", "_types", "go_names", "info", "word_bytes")

    def __init__(self, info: DebugInfo, word_bytes: int) -> None:
        self.info = info
        self.word_bytes = word_bytes
        self.go_names: dict[tuple[str, str], tuple[TypeId, ...]] = {}
        """Go types by what was asked for and the package it was asked from."""
        self._producers: frozenset[str] | None = None
        self._types: dict[int, Type] = {}
        self._made: list[Type] = [VoidType()]
        self._ids: dict[Type, TypeId] = {self._made[0]: VOID}

    def cpp_producers(self, unit: Unit) -> frozenset[str]:
        """Which compilers may have made a unit of C++: type units and partial ones do not say."""
        if unit.producer:
            return frozenset({unit.producer})
        if self._producers is None:
            made = {one.producer for one in self.info.units() if one.producer and is_cpp(one)}
            self._producers = frozenset(made or {""})
        return self._producers

    def type(self, type_id: TypeId) -> Type:
        """The type itself; DebugInfoError FC0904 where its entry makes no sense."""
        if type_id < 0:
            return self._made[-1 - type_id]
        found = self._types.get(type_id)
        if found is None:
            found = self._types[type_id] = self._read(self.die(type_id))
        return found

    def intern(self, made: Type) -> TypeId:
        """The id of a type that no entry describes; equal types share one."""
        known = self._ids.get(made)
        if known is None:
            self._made.append(made)
            known = self._ids[made] = TypeId(-len(self._made))
        return known

    def die(self, type_id: TypeId) -> Die:
        """The entry that describes a type, its signature and origin followed."""
        return self.resolved(self.info.die(DieOffset(type_id)))

    def target(self, die: Die, attribute: int = DW_AT_type) -> TypeId:
        """The type that ``attribute`` refers to, :data:`VOID` where it is not there."""
        found = self.target_die(die, attribute)
        return VOID if found is None else TypeId(found.offset)

    def target_die(self, die: Die, attribute: int = DW_AT_type) -> Die | None:
        """The entry that ``attribute`` refers to; None where it is not there."""
        return self.info.follow(die, attribute)

    def resolved(self, die: Die) -> Die:
        """``die``, or what stands for it: a type unit's type, the origin of a copy."""
        for step in self._steps(die, (DW_AT_signature, DW_AT_abstract_origin)):
            die = step
        return die

    def stripped(self, die: Die) -> Die | None:
        """Behind typedefs and qualifiers; None for void."""
        last = die
        for step in self._steps(die, (DW_AT_type,)):
            if last.tag not in TRANSPARENT:
                break
            last = step
        return None if last.tag in TRANSPARENT else last

    def _steps(self, die: Die, attributes: tuple[int, ...]) -> Iterator[Die]:
        # The chain of entries along the first of the attributes that each has; a circle is refused.
        seen = {die.offset}
        while True:
            following = None
            for attribute in attributes:
                if die.has(attribute):
                    following = self.info.follow(die, attribute)
                    break
            if following is None:
                return
            if following.offset in seen:
                raise malformed(die, "a type that stands for itself")
            seen.add(following.offset)
            yield following
            die = following

    def children(self, die: Die, tag: int) -> Iterator[Die]:
        """The entries of that kind right below ``die``."""
        return (child for child in self.info.children(die) if child.tag == tag)

    def size(self, die: Die | None) -> int | None:
        """Bytes of a value of this type, None where the debug information gives none."""
        if die is None:
            return None
        from fetchc.debuginfo.dwarf.types.arrays import size_of

        return size_of(self, self.resolved(die))

    def name(self, die: Die) -> str:
        """The name with its namespaces and classes, empty where it has none."""
        return qualified_name(self.info, die)

    def _read(self, die: Die) -> Type:
        if is_go(die.unit):
            from fetchc.debuginfo.dwarf.types import go_types

            go_reader = go_types.READERS.get(die.tag)
            if go_reader is not None:
                return go_reader(self, die)
        elif die.tag == DW_TAG_structure_type and is_rust(die.unit):
            from fetchc.debuginfo.dwarf.types.rust_types import structure as rust_structure

            return rust_structure(self, die)
        reader = READERS.get(die.tag)
        if reader is None:
            size = die.unsigned(DW_AT_byte_size)
            reason = f"its entry is of the unread kind DW_TAG {die.tag:#x}"
            return UnknownType(
                die.text(DW_AT_name) or "", None if size is None else ByteSize(size), reason
            )
        return reader(self, die)


def _typedef(types: TypeTable, die: Die) -> Type:
    alignment = die.unsigned(DW_AT_alignment)
    return NamedType(
        types.name(die), types.target(die), None if alignment is None else ByteSize(alignment)
    )


def _qualified(types: TypeTable, die: Die) -> Type:
    return QualifiedType(QUALIFIERS[die.tag], types.target(die))


def _pointer(types: TypeTable, die: Die) -> Type:
    size = die.unsigned(DW_AT_byte_size)
    name = die.text(DW_AT_name) or ""
    pointer_bytes = ByteSize(die.unit.address_size if size is None else size)
    if die.unsigned(DW_AT_address_class):
        return UnknownType(name, pointer_bytes, "it points into another address space")
    return PointerType(name, pointer_bytes, types.target(die), die.tag != DW_TAG_pointer_type)


def _member_pointer(types: TypeTable, die: Die) -> Type:
    from fetchc.debuginfo.dwarf.types.member_pointers import member_pointer

    return member_pointer(types, die)


def _function(types: TypeTable, die: Die) -> Type:
    return FunctionType(types.name(die))


def _unspecified(types: TypeTable, die: Die) -> Type:
    name = types.name(die)
    if name == "void":
        return VoidType()
    if name == NULLPTR:  # as wide as a pointer, and passed as one: C++, basic.fundamental
        return PointerType(name, ByteSize(die.unit.address_size), types.target(die))
    size = die.unsigned(DW_AT_byte_size)
    reason = "the compiler says no more than its name"
    return UnknownType(name, None if size is None else ByteSize(size), reason)


# The larger readers are imported when the first entry of their kind is met.


def _base(types: TypeTable, die: Die) -> Type:
    from fetchc.debuginfo.dwarf.types.scalars import base

    return base(types, die)


def _enumeration(types: TypeTable, die: Die) -> Type:
    from fetchc.debuginfo.dwarf.types.scalars import enumeration

    return enumeration(types, die)


def _structure(types: TypeTable, die: Die) -> Type:
    from fetchc.debuginfo.dwarf.types.aggregates import structure

    return structure(types, die)


def _array(types: TypeTable, die: Die) -> Type:
    from fetchc.debuginfo.dwarf.types.arrays import array

    return array(types, die)


READERS: dict[int, Reader] = {
    DW_TAG_base_type: _base,
    DW_TAG_enumeration_type: _enumeration,
    DW_TAG_structure_type: _structure,
    DW_TAG_union_type: _structure,
    DW_TAG_class_type: _structure,
    DW_TAG_array_type: _array,
    DW_TAG_pointer_type: _pointer,
    DW_TAG_reference_type: _pointer,
    DW_TAG_rvalue_reference_type: _pointer,
    DW_TAG_ptr_to_member_type: _member_pointer,
    DW_TAG_subroutine_type: _function,
    DW_TAG_unspecified_type: _unspecified,
    DW_TAG_typedef: _typedef,
    DW_TAG_template_alias: _typedef,
    DW_TAG_const_type: _qualified,
    DW_TAG_volatile_type: _qualified,
    DW_TAG_restrict_type: _qualified,
    DW_TAG_atomic_type: _qualified,
}
