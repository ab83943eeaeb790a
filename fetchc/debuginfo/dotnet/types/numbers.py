"""The types of .NET that signatures have codes for, by their keywords in C#."""

from __future__ import annotations

from fetchc.program.types import BoolType, CharType, FloatType, IntType, UnknownType, VoidType
from fetchc.quantities import ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.types import Type

__all__ = ["NUMBERS", "SIGNED", "number_type"]

NUMBERS = {
    "bool": 1, "sbyte": 1, "byte": 1, "char": 2, "short": 2, "ushort": 2, "int": 4, "uint": 4,
    "long": 8, "ulong": 8, "float": 4, "double": 8, "nint": 8, "nuint": 8,
}  # fmt: skip
SIGNED = ("sbyte", "short", "int", "long", "nint")


def number_type(name: str) -> Type:
    """The type of a keyword, ``void`` and ``typedref`` among them."""
    if name == "void":
        return VoidType()
    if name == "typedref":
        return UnknownType(name, ByteSize(16), "what it refers to is known to the runtime only")
    size = ByteSize(NUMBERS[name])
    if name == "bool":
        return BoolType(name, size)
    if name == "char":
        return CharType(name, size, False)
    if name in ("float", "double"):
        return FloatType(name, size)
    return IntType(name, size, name in SIGNED)
