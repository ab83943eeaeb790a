"""``len``, ``cap``, ``sizeof``, ``offsetof`` and ``container_of``."""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.conversions import decayed
from fetchc.check.typed import Constant, Follow, Part, Shift
from fetchc.diag.diagnostic import Label, reject
from fetchc.program.types import (
    ArrayType,
    ChannelType,
    IntType,
    MapType,
    Member,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    Window,
)
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["capacity", "container_of", "length", "offset_of", "size_of"]


def length(checker: Checker, operand: Typed, span: Span) -> Typed:
    """``len(e)``: a constant of arrays, else the word that the run-time keeps."""
    return _count(checker, operand, span, "len")


def capacity(checker: Checker, operand: Typed, span: Span) -> Typed:
    """``cap(e)`` of slices, channels and arrays."""
    return _count(checker, operand, span, "cap")


def _count(checker: Checker, operand: Typed, span: Span, what: str) -> Typed:
    if checker.site.language.dereferences:
        from fetchc.check.rust.wrapped import within

        operand = within(checker, operand)
    made = checker.resolved(operand.type)
    if isinstance(made, StructType) and made.is_library and what == "len":
        from fetchc.check.cpp.library_methods import method

        counted = method(checker, operand, "size", span)
        if counted is not None:
            return counted
    if isinstance(made, PointerType) and isinstance(
        inner := checker.resolved(made.target), ArrayType
    ):
        made = inner
    if isinstance(made, PointerType) and isinstance(
        inner := checker.resolved(made.target), SequenceType
    ):
        operand, made = Follow(operand, made.target, operand.span), inner
    match made:
        case SequenceType(length=size) if what == "len":
            return members.part(operand, size, span)
        case ArrayType(count=int(count)):
            return Constant(count, checker.word(signed=True), span)
        case SliceType(members=(_, size, *_)) | StringType(members=(_, size, *_)) if what == "len":
            return members.part(operand, size, span)
        case SliceType(members=(_, _, capacity)) | StringType(members=(_, _, capacity)):
            return members.part(operand, capacity, span)
        case StructType(counts=True, value=Member() as number) if what == "len":
            return members.part(operand, number, span)
        case SequenceType(window=Window(capacity=Member() as capacity)):
            return members.part(operand, capacity, span)
        case MapType() if what == "len":
            return _header_word(checker, operand, 0, span)
        case ChannelType():
            return _header_word(checker, operand, 0 if what == "len" else 1, span)
        case _:
            raise reject(
                "FC0309",
                f"`{checker.spell(operand.type)}` has no `{what}`",
                span,
                f"`{what}` of it",
                secondary=(Label(operand.span, f"this is `{checker.spell(operand.type)}`"),),
                help="it is for slices, strings, arrays, maps and channels"
                if what == "len"
                else "it is for slices, channels and arrays",
            )


def _header_word(checker: Checker, operand: Typed, index: int, span: Span) -> Typed:
    # Source: Go 1.15 to 1.27, runtime/map.go hmap.count, internal/runtime/maps Map.used,
    # runtime/chan.go hchan.qcount and dataqsiz: the counts are the header's first words.
    word = checker.program.word_bytes
    count = checker.program.intern(IntType("int", ByteSize(word), True))
    header = Follow(operand, count, span)
    return Part(header, ByteOffset(index * word), None, count, span)


def size_of(checker: Checker, type_id: TypeId, span: Span) -> Constant:
    """``sizeof``, as a constant."""
    size = checker.size(type_id)
    if size is None:
        raise reject(
            "FC0311", f"`{checker.spell(type_id)}` has no size", span, "its size is asked for"
        )
    return Constant(size, checker.word(), span)


def offset_of(checker: Checker, holder: TypeId, path: tree.Path, span: Span) -> Constant:
    """``offsetof(type, path)``, as a constant of bytes."""
    start = Constant(0, checker.pointer_to(holder), path.span)
    node: Typed = Follow(start, holder, path.span)
    for step in path.steps:
        match step:
            case tree.FieldStep(name=name, span=name_span):
                node = members.member(checker, node, name, name_span)
            case tree.IndexStep(index=index, span=index_span):
                from fetchc.check.indices import element

                node = element(checker, node, index, path.span, index_span)
    return Constant(_offset(node, path), checker.word(), span)


def container_of(
    checker: Checker, operand: Typed, holder: TypeId, path: tree.Path, span: Span
) -> Typed:
    """``container_of(e, type, path)``: from a pointer to a member to the whole object."""
    offset = offset_of(checker, holder, path, span).value
    pointer = decayed(checker, operand)
    if not isinstance(checker.resolved(pointer.type), PointerType):
        raise reject(
            "FC0305",
            f"`{checker.spell(operand.type)}` is not a pointer to a member",
            operand.span,
            "a pointer is asked for",
        )
    return Shift(pointer, ByteOffset(-offset), checker.pointer_to(holder), span)


def _offset(node: Typed, path: tree.Path) -> int:
    total = 0
    while isinstance(node, Part):
        if node.bits is not None:
            raise reject("FC0306", "a bit field has no offset in bytes", path.span, "a bit field")
        total += node.offset
        node = node.base
    if isinstance(node, Follow) and isinstance(node.base, Constant):
        return total
    raise reject(
        "FC0306",
        "the path leaves the object through a pointer",
        path.span,
        "no constant offset",
        help="name a member inside the object itself",
    )
