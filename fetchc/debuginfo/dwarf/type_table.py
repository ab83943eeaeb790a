"""The types of one program, read from their entries when somebody asks for them.

Types refer to each other by id: the DieOffset of an entry, a negative number for a type that no
entry describes.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import (
    DW_AT_abstract_origin,
    DW_AT_byte_size,
    DW_AT_name,
    DW_AT_signature,
    DW_AT_type,
    DW_TAG_structure_type,
)
from fetchc.debuginfo.dwarf.languages import is_cpp, is_go, is_rust, malformed
from fetchc.debuginfo.dwarf.qualified_names import qualified_name
from fetchc.debuginfo.dwarf.type_entries import READERS, TRANSPARENT, VOID
from fetchc.program.types import UnknownType, VoidType
from fetchc.quantities import ByteSize, DieOffset, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.program.compiler import Compiler
    from fetchc.program.types import Type

__all__ = ["TypeTable"]


class TypeTable:
    """The types of one program. It grows by what is asked for and by nothing else."""

    __slots__ = ("_compilers", "_ids", "_made", "_types", "go_names", "info", "word_bytes")

    def __init__(self, info: DebugInfo, word_bytes: int) -> None:
        self.info = info
        self.word_bytes = word_bytes
        self.go_names: dict[tuple[str, str], tuple[TypeId, ...]] = {}
        """Go types by what was asked for and the package it was asked from."""
        self._compilers: frozenset[Compiler] | None = None
        self._types: dict[int, Type] = {}
        self._made: list[Type] = [VoidType()]
        self._ids: dict[Type, TypeId] = {self._made[0]: VOID}

    def cpp_compilers(self, unit: Unit) -> frozenset[Compiler]:
        """Which compilers may have made a unit of C++: type units and partial ones do not say."""
        if unit.compiler.producer:
            return frozenset({unit.compiler})
        if self._compilers is None:
            units = self.info.units()
            found = {one.compiler for one in units if one.compiler.producer and is_cpp(one)}
            self._compilers = frozenset(found or {unit.compiler})
        return self._compilers

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
        from fetchc.debuginfo.dwarf.array_types import size_of

        return size_of(self, self.resolved(die))

    def name(self, die: Die) -> str:
        """The name with its namespaces and classes, empty where it has none."""
        return qualified_name(self.info, die)

    def _read(self, die: Die) -> Type:
        if is_go(die.unit):
            from fetchc.debuginfo.dwarf import go_types

            go_reader = go_types.READERS.get(die.tag)
            if go_reader is not None:
                return go_reader(self, die)
        elif die.tag == DW_TAG_structure_type and is_rust(die.unit):
            from fetchc.debuginfo.dwarf.rust_types import structure as rust_structure

            return rust_structure(self, die)
        reader = READERS.get(die.tag)
        if reader is None:
            size = die.unsigned(DW_AT_byte_size)
            reason = f"its entry is of the unread kind DW_TAG {die.tag:#x}"
            return UnknownType(
                die.string(DW_AT_name) or "", None if size is None else ByteSize(size), reason
            )
        return reader(self, die)
