"""Pointers of a kernel into the memory of the running program, which DWARF does not mark.

The kernel's source says ``__user``; compilers leave it out. ``targets/kernel/user.toml`` has the
well-known ones, as for BTF.
"""

from __future__ import annotations

from fetchc.program.entities import Variable
from fetchc.program.types import USER, Member, NamedType, PointerType, QualifiedType, StructType
from fetchc.quantities import ByteSize
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId

__all__ = ["marked_members", "marked_parameters"]

_DEEPEST = 64


def marked_parameters(
    program: Program, function: str, parameters: tuple[Variable, ...]
) -> tuple[Variable, ...]:
    """The parameters of ``function``, those that lead to the program's memory marked so."""
    users = table("kernel/user")["parameters"].get(function, ())
    return tuple(
        [
            Variable(
                one.name, _marked(program, one.type), one.kind, one.die, one.line, one.artificial
            )
            if one.name in users
            else one
            for one in parameters
        ]
    )


def marked_members(program: Program, made: StructType) -> StructType:
    """The structure with those of its pointers marked that lead to the program's memory."""
    users = table("kernel/user")["members"].get(made.name)
    if not users:
        return made
    members = tuple(
        [
            Member(
                one.name,
                _marked(program, one.type),
                one.offset,
                one.bits,
                one.embedded,
                one.also,
                one.alignment,
            )
            if one.name in users
            else one
            for one in made.members
        ]
    )
    return StructType(made.name, made.kind, made.size, members, made.alignment)


def _marked(program: Program, type_id: TypeId) -> TypeId:
    pointer = program.type(type_id)
    for _ in range(_DEEPEST):
        if not isinstance(pointer, NamedType | QualifiedType):
            break
        pointer = program.type(pointer.target)
    if not isinstance(pointer, PointerType):
        return type_id
    target = program.intern(QualifiedType(USER, pointer.target))
    return program.intern(PointerType("", ByteSize(program.word_bytes), target))
