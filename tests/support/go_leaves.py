"""The numbers and words that a Go value consists of, with the expressions that name them."""

from __future__ import annotations

from dataclasses import dataclass

from fetchc.program.protocol import Program
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ComplexType,
    FloatType,
    IntType,
    NamedType,
    QualifiedType,
    StructType,
)
from fetchc.quantities import TypeId

__all__ = ["Leaf", "leaves"]


@dataclass
class Leaf:
    """A part of a value: where it starts, its size, and how it is written; empty if it is not."""

    offset: int
    size: int
    path: str = ""
    signed: bool = False
    floating: bool = False


def leaves(program: Program, type_id: TypeId, offset: int = 0, path: str = "") -> list[Leaf]:
    """What holds a value, in order; blank fields hold none."""
    found = program.type(type_id)
    match found:
        case NamedType(target=target) | QualifiedType(target=target):
            return leaves(program, target, offset, path)
        case StructType(members=members):
            return [
                leaf
                for member in members
                if member.name != "_"
                for leaf in leaves(
                    program, member.type, offset + member.offset, f"{path}.{member.name}"
                )
            ]
        case ArrayType(element=element, count=int(count), size=size):
            each = (size or 0) // count if count else 0
            return [
                leaf
                for at in range(count)
                for leaf in leaves(program, element, offset + at * each, f"{path}[{at}]")
            ]
        case ComplexType(size=size):
            return [Leaf(offset + at, size // 2, floating=True) for at in (0, size // 2)]
        case FloatType(size=size):
            return [Leaf(offset, size, path, floating=True)]
        case IntType(size=size, signed=signed):
            return [Leaf(offset, size, path, signed)]
        case BoolType(size=size):
            return [Leaf(offset, size, path)]
        case other:
            # Pointers, strings, interfaces: words.
            word = program.word_bytes
            whole: int = getattr(other, "size", None) or word
            return [Leaf(offset + at, word) for at in range(0, whole, word)]
