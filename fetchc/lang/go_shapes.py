"""The shapes of Go's types: what instances of a generic function share their code by.

``Stack[Item].Push`` is the code of ``Stack[go.shape.struct { SKU string }].Push``. Source: Go's
proposal 43651, "Generics implementation - GC Shape Stenciling", and the linker's names.
"""

from __future__ import annotations

import re

from fetchc.lang.go import package_of
from fetchc.program.go_symbol_names import ALIASES, without_tags
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    ComplexType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    NamedType,
    PointerType,
    SliceType,
    StringType,
    StructType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.program.protocol import Program
    from fetchc.program.types import Member, Type
    from fetchc.quantities import TypeId

    Spell = Callable[[Program, TypeId], str]

__all__ = ["POINTER", "shapes"]

POINTER = "*uint8"
"""The shape of all pointers."""

_PREFIX = "go.shape."
_ALIAS = re.compile(r"(?<![\w./])(?:byte|rune|any|interface\{\})(?![\w./])")
_OWN = re.compile("bool|string|u?int(8|16|32|64)?|uintptr|float(32|64)|complex(64|128)")
_WORD = 8  # bytes: of what int and uint have on the machines that Go has them wide


def shapes(argument: str, package: str, program: Program, spell: Spell) -> tuple[str, ...]:
    """Names that a type argument's shape can have, without the tags of structures' fields.

    One that ends in an open bracket stands for all that begin so: no debug information says which
    methods an interface has, and what a named type of functions takes is not read.
    """
    argument = _ALIAS.sub(lambda found: ALIASES[found[0]], argument).replace(", ", ",")
    if argument.startswith("*"):
        return (_PREFIX + POINTER,)
    found = [argument]
    if not _OWN.fullmatch(argument):
        plain = "." not in argument.partition("[")[0]
        named = [f"{package}.{argument}", f"main.{argument}"] if plain else []
        for name in (*named, argument):
            types = program.types_named(name, None)
            for type_id in types:
                found += _underlying(program, type_id, spell)
            if types:
                break
    return tuple(dict.fromkeys([_PREFIX + without_tags(one) for one in found]))


def _underlying(program: Program, type_id: TypeId, spell: Spell) -> tuple[str, ...]:
    match program.type(type_id):
        case NamedType(target=target):
            return _underlying(program, target, spell)
        case IntType(kind=kind) if kind:
            return (kind,)
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
        case PointerType(target=target):
            return (_pointer(program.type(target)),)
        case SliceType(element=element):
            return ("[]" + spell(program, element),)
        case ArrayType(element=element, count=count):
            return (f"[{count}]{spell(program, element)}",)
        case MapType(key=key, element=element):
            return (f"map[{spell(program, key)}]{spell(program, element)}",)
        case ChannelType(element=element):
            return (f"chan {spell(program, element)}",)
        case InterfaceType(name=name, empty=empty):
            if name == "error":
                return ("interface { Error() string }",)
            return ("interface {}" if empty else "interface { ",)
        case StructType(name=name, members=members):
            if name.startswith("struct {"):
                return (name,)
            package = package_of(name)
            fields = "; ".join([_field(program, member, spell, package) for member in members])
            return (f"struct {{ {fields} }}" if fields else "struct {}",)
        case _:
            return ()


def _pointer(target: Type) -> str:
    if isinstance(target, FunctionType):
        return target.name if target.name.startswith("func(") else "func("
    return "unsafe.Pointer" if isinstance(target, VoidType) else POINTER


def _field(program: Program, member: Member, spell: Spell, package: str) -> str:
    # Names that begin with no capital letter are their package's own.
    spelled = spell(program, member.type)
    if member.embedded:
        return spelled
    own = "" if member.name[:1].isupper() else f"{package}."
    return f"{own}{member.name} {spelled}"
