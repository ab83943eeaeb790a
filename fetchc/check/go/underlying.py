"""Conversions of Go that leave the bytes as they are: ``Celsius(t)``, ``B(a)``, ``string(bytes)``.

A value converts to any type of the same underlying type, tags of fields aside. A string has the
first two words of the slice of bytes that it is made of. The bytes of a string are a slice without
a capacity: that of the copy that Go makes is not in the string.
Source: Go specification, "Conversions", "Type identity".
"""

from __future__ import annotations

from fetchc.check.typed import Convert
from fetchc.diag.diagnostic import reject
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
from fetchc.quantities import ByteSize
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["convertible", "never_runes", "of_text"]


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


def of_text(checker: Checker, wanted: TypeId, base: Typed, span: Span) -> Typed | None:
    """``[]byte(text)``; None of other conversions."""
    row, source = checker.resolved(wanted), checker.resolved(base.type)
    if not isinstance(row, SliceType) or not isinstance(source, StringType):
        return None
    element = checker.resolved(row.element)
    if not isinstance(element, IntType) or element.size != 1 or element.signed:
        return None
    size = ByteSize(2 * checker.program.word_bytes)
    made = SliceType(row.name, size, row.element, source.members[:2])
    return Convert(base, checker.program.intern(made), span)


def never_runes(checker: Checker, wanted: tree.SliceOf, base: Typed, span: Span) -> None:
    """Raise CompileError FC0308 for ``[]rune(text)``, a type that the file may not even have."""
    element = wanted.element
    if not isinstance(element, tree.NamedType) or element.name not in ("rune", "int32"):
        return
    if isinstance(checker.resolved(base.type), StringType):
        raise reject(
            "FC0308",
            "Go decodes the text for that, and no fetch-arg can run code",
            span,
            "decoded when the program runs",
            help="fetch the text itself, or its bytes: `[]byte(s)`",
        )


def _identical(checker: Checker, one: TypeId, other: TypeId) -> bool:
    # Types that have no name of their own are made of the same parts, wherever they are described.
    if checker.bare(one) == checker.bare(other):
        return True
    name = checker.spell(one)
    return name == checker.spell(other) and "{...}" not in name
