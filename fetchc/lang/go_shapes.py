"""The shapes of Go's types: what instances of a generic function share their code by.

``Stack[Item].Push`` is the code of ``Stack[go.shape.struct { SKU string }].Push``. Source: Go's
proposal 43651, "Generics implementation - GC Shape Stenciling", and the linker's names.
"""

from __future__ import annotations

from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    ComplexType,
    FloatType,
    IntType,
    MapType,
    NamedType,
    PointerType,
    SliceType,
    StringType,
    StructType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.program.protocol import Program
    from fetchc.program.types import Member
    from fetchc.units import TypeId

    Spell = Callable[[Program, TypeId], str]

__all__ = ["POINTER", "shapes"]

POINTER = "*uint8"
"""The shape of all pointers."""

_PREFIX = "go.shape."
_WORD = 8  # bytes: of what int and uint have on the machines that Go has them wide


def shapes(argument: str, package: str, program: Program, spell: Spell) -> tuple[str, ...]:
    """Names that a type argument's shape can have; those of the language have their own."""
    if argument.startswith("*"):
        return (_PREFIX + POINTER,)
    found = [argument]
    if argument.replace(".", "").replace("/", "").isidentifier():
        named = argument if "." in argument else f"{package}.{argument}"
        for type_id in program.types_named(named, None):
            found += _underlying(program, type_id, spell)
    return tuple([_PREFIX + one for one in found])


def _underlying(program: Program, type_id: TypeId, spell: Spell) -> tuple[str, ...]:
    match program.type(type_id):
        case NamedType(target=target):
            return _underlying(program, target, spell)
        case IntType(size=size, signed=signed):
            plain = "int" if signed else "uint"
            words = (plain,) if signed else (plain, "uintptr")
            return (f"{plain}{8 * size}", *(words if size in (_WORD, program.word_bytes) else ()))
        case FloatType(size=size):
            return (f"float{8 * size}",)
        case ComplexType(size=size):
            return (f"complex{8 * size}",)
        case BoolType():
            return ("bool",)
        case StringType():
            return ("string",)
        case PointerType():
            return (POINTER,)
        case SliceType(element=element):
            return ("[]" + spell(program, element),)
        case ArrayType(element=element, count=count):
            return (f"[{count}]{spell(program, element)}",)
        case MapType(key=key, element=element):
            return (f"map[{spell(program, key)}]{spell(program, element)}",)
        case ChannelType(element=element):
            return (f"chan {spell(program, element)}",)
        case StructType(members=members):
            fields = "; ".join([_field(program, member, spell) for member in members])
            return (f"struct {{ {fields} }}" if fields else "struct {}",)
        case _:
            return ()


def _field(program: Program, member: Member, spell: Spell) -> str:
    spelled = spell(program, member.type)
    return spelled if member.embedded else f"{member.name} {spelled}"
