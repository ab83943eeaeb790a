"""How one value is fetched and what the reader makes of it, by its type."""

from __future__ import annotations

from fetchc.ir.fetch import Decode, Scalar
from fetchc.program.types import (
    BoolType,
    ChannelType,
    CharType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    MapType,
    PointerType,
    SequenceType,
    StructType,
)
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = ["Plain", "is_character", "plain"]

_SIZES = (1, 2, 4, 8)


class Plain(Record):
    """A scalar's store, what it means, and its size in bytes."""

    store: Scalar
    decode: Decode
    size: int


def is_character(made: Type) -> bool:
    """Whether a type is the plain character of texts: ``signed char`` and the like are numbers."""
    return isinstance(made, CharType) and made.size == 1 and made.name in ("char", "char8_t")


def _is_raw(checker: Checker, made: Type) -> bool:
    # A pointer of .NET that is no reference to an object.
    if not isinstance(made, PointerType) or made.reference:
        return True
    target = checker.resolved(made.target)
    if isinstance(target, SequenceType):
        return target.value
    return not (isinstance(target, StructType) and target.kind == "class")


def plain(checker: Checker, type_id: TypeId) -> Plain | None:
    """How a scalar of a type is fetched; None where the type is no scalar the kernel has.

    Source: the table "What the value becomes" of docs/language.md.
    """
    made = checker.resolved(type_id)
    match made:
        case PointerType() | MapType() | ChannelType():
            size = checker.program.word_bytes
            kind = "pointer"
            if isinstance(made, PointerType) and isinstance(
                checker.resolved(made.target), FunctionType
            ):
                kind = "symbol"
            elif checker.site.language.references and not _is_raw(checker, made):
                kind = "reference"
            return Plain(Scalar("x", 8 * size), Decode(kind, 8 * size), size)
        case IntType(size=size, signed=signed) | CharType(size=size, signed=signed):
            if size not in _SIZES:
                return None
            unit = isinstance(made, CharType) and made.name == "char"  # of .NET: 2 bytes
            kind = "char" if unit or is_character(made) else "integer"
            store = Scalar("s" if signed else "u", 8 * size)
            return Plain(store, Decode(kind, 8 * size, signed), size)
        case BoolType(size=size):
            return Plain(Scalar("u", 8 * size), Decode("bool", 8 * size), size)
        case EnumType(size=size, signed=signed, enumerators=names, flags=flags) as enum:
            if size not in _SIZES:
                return None
            store = Scalar("s" if signed else "u", 8 * size)
            decode = Decode("enum", 8 * size, signed, None, names, None, flags, enum.otherwise)
            return Plain(store, decode, size)
        case FloatType(size=4 | 8 as size):
            return Plain(Scalar("x", 8 * size), Decode("float", 8 * size), size)
        case _:
            return None
