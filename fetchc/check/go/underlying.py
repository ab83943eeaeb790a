"""Conversions of Go that leave the bytes as they are: ``Celsius(t)``, ``B(a)``, ``string(bytes)``.

A value converts to any type of the same underlying type, tags of fields aside. A string has the
first two words of the slice of bytes that it is made of; a slice of a string would need a third.
Source: Go specification, "Conversions", "Type identity".
"""

from __future__ import annotations

from fetchc.program.types import (
    ArrayType,
    ComplexType,
    FloatType,
    InterfaceType,
    IntType,
    SliceType,
    StringType,
    StructType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.units import TypeId

__all__ = ["convertible"]


def convertible(checker: Checker, wanted: TypeId, held: TypeId) -> bool:
    """Whether a value of the type ``held`` is one of ``wanted``, byte for byte."""
    target, source = checker.resolved(wanted), checker.resolved(held)
    match target, source:
        case StringType(), SliceType(element=element):
            byte = checker.resolved(element)
            return isinstance(byte, IntType) and byte.size == 1 and not byte.signed
        case StringType(), StringType():
            return True
        case (FloatType(size=one), FloatType(size=other)) | (
            ComplexType(size=one),
            ComplexType(size=other),
        ):
            return one == other
        case SliceType(element=inner), SliceType(element=element):
            return _identical(checker, inner, element)
        case ArrayType(element=inner, count=first), ArrayType(element=element, count=second):
            return first == second and _identical(checker, inner, element)
        case InterfaceType(empty=True), InterfaceType(empty=True):
            return True
        case StructType(members=parts, size=one), StructType(members=others, size=other):
            return (
                one == other
                and len(parts) == len(others)
                and all(
                    (part.name, part.offset, part.embedded)
                    == (same.name, same.offset, same.embedded)
                    and _identical(checker, part.type, same.type)
                    for part, same in zip(parts, others, strict=True)
                )
            )
        case _:
            return False


def _identical(checker: Checker, one: TypeId, other: TypeId) -> bool:
    # Types that have no name of their own are made of the same parts, wherever they are described.
    if checker.bare(one) == checker.bare(other):
        return True
    name = checker.spell(one)
    return name == checker.spell(other) and "{...}" not in name
