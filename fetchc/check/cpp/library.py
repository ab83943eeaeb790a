"""Classes of C++ libraries as their users see them: what ``*``, ``->`` and ``[]`` give.

:mod:`fetchc.check.cpp.library_data` finds what a class is made of.
"""

from __future__ import annotations

from fetchc.check.cpp.library_data import library_class
from fetchc.check.cpp.library_paths import alternatives, at
from fetchc.check.typed import Address, Convert, Follow, Part, Present
from fetchc.diag.diagnostic import reject
from fetchc.program.types import (
    ArrayType,
    BitField,
    CharType,
    ChoiceType,
    Member,
    PointerType,
    SliceType,
    StringType,
    StructType,
    Variant,
)
from fetchc.quantities import BitOffset, ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.check.cpp.library_data import LibraryClass
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.source import Span

__all__ = [
    "blocked",
    "chosen",
    "ends",
    "flagged",
    "followed",
    "grant",
    "indexed",
    "known_at",
    "member",
    "object_of",
    "reader_value",
    "text_length",
]


def known_at(checker: Checker, node: Typed, path: str, span: Span) -> Typed:
    """What ``path`` leads to, which the entry of a class names."""
    inner = at(checker, node, path, span)
    assert inner is not None, "a class has what its entry names"
    return inner


def reader_value(checker: Checker, node: Typed) -> Typed:
    """What a whole object is worth to a reader: a string its text, a smart pointer its pointer."""
    found = library_class(checker, node.type, node.span)
    if found is None:
        return node
    if found.nothing:
        raise reject(
            "FC0312",
            f"`{checker.spell(node.type)}` has no elements to fetch",
            node.span,
            found.nothing,
        )
    if found.worth:
        from fetchc.check.cpp.library_methods import method

        return method(checker, node, found.worth, node.span) or node
    if not _is_of_char(checker, node):
        from fetchc.check.cpp.library_made import fixed_array, wide_text

        other = wide_text(checker, node, found) or fixed_array(checker, node, found)
        if other is not None:
            return other
    if found.value:
        inner = known_at(checker, node, found.value, node.span)
        made = checker.resolved(inner.type)
        # A path of the file system is a string.
        library = isinstance(made, StructType) and made.is_library
        return reader_value(checker, inner) if library else inner
    if found.counted:
        return _counted(checker, node, found)
    if found.choice:
        return chosen(checker, node, found, found.choice.get("cases", ()))
    return _together(checker, node, found) if found.get else node


def text_length(checker: Checker, node: Typed) -> Typed | None:
    """The number of bytes of a ``std::string``, which is a text up to a NUL; None of others."""
    found = library_class(checker, node.type, node.span)
    if found is None or found.counted or not _is_of_char(checker, node):
        return None
    if not found.units and "size" not in found.choices:
        return None
    from fetchc.check.cpp.library_methods import method

    return method(checker, node, "size", node.span)


def _is_of_char(checker: Checker, node: Typed) -> bool:
    # The strings that nearly all are.
    made = checker.resolved(node.type)
    first = made.name.partition("<")[2][:5] if isinstance(made, StructType) else ""
    return first in ("char,", "char>")


def _counted(checker: Checker, node: Typed, found: LibraryClass) -> Typed:
    # As Go's strings and slices are: a pointer, and how many elements it leads to.
    size = checker.size(node.type)
    data, count = (
        member(known_at(checker, node, path, node.span), node, name)
        for path, name in zip(found.counted, ("data", "len"), strict=True)
    )
    made = checker.resolved(data.type)
    if size is None or not isinstance(made, PointerType):
        return node
    name = checker.spell(node.type)
    element = checker.size(made.target)
    if isinstance(checker.resolved(made.target), CharType) and element == 1:
        words = (data, count)
        return Convert(node, checker.program.intern(StringType(name, size, words)), node.span)
    slice_type = SliceType(name, size, made.target, (data, count))
    return Convert(node, checker.program.intern(slice_type), node.span)


def grant(
    checker: Checker, node: Typed, found: LibraryClass, number: int, told_by: str, span: Span
) -> None:
    """Note that of what the class can hold it is ``number``, for whoever can compare."""
    tag = known_at(checker, node, found.choice["tag"], span)
    if found.get:
        parts = list(enumerate(alternatives(checker, node, found, span)))
        spelled = [checker.spell(part.type) for _, part in parts]
        names = [
            f"{name} #{value}" if spelled.count(name) > 1 else name
            for value, name in enumerate(spelled)
        ]
    else:  # of an alternative that is nothing the number itself is as good as any member
        parts = [
            (value, known_at(checker, node, path, span) if path else tag)
            for value, path in enumerate(found.choice["cases"])
        ]
        names = [name or "nothing" for name in found.choice["names"]]
    variants = tuple([Variant(member(part, node, names[value]), value) for value, part in parts])
    wanted = names[number]
    checker.assertions.append(Present(tag, variants, wanted, node.type, told_by, span))


def _grant_object(checker: Checker, node: Typed, found: LibraryClass, span: Span) -> None:
    # Of an optional: that there is one.
    if found.choice and not found.get and found.object in found.choice.get("cases", ()):
        number = list(found.choice["cases"]).index(found.object)
        grant(checker, node, found, number, ".has_value()", span)


def object_of(checker: Checker, node: Typed, found: LibraryClass, span: Span) -> Typed:
    """The object that the class holds, which an optional need not."""
    _grant_object(checker, node, found, span)
    return known_at(checker, node, found.object, span)


def chosen(checker: Checker, node: Typed, found: LibraryClass, paths: Iterable[str]) -> Typed:
    """One of several members, by the number in the object that tells which."""
    # One of several members: which one, a number in the object says.
    span, size = node.span, checker.size(node.type)
    assert size is not None
    tag = member(known_at(checker, node, found.choice["tag"], span), node, found.choice["name"])
    if found.get:
        parts = list(enumerate(alternatives(checker, node, found, span)))
    else:
        listed = enumerate(paths)
        parts = [(value, known_at(checker, node, path, span)) for value, path in listed if path]
    names = found.choice.get("names", ())
    cases = []
    for value, part in parts:
        name = names[value] if value < len(names) else str(value)
        cases.append((value, _ended(checker, member(part, node, name))))
    spelled = checker.spell(node.type)
    made = ChoiceType(spelled, size, tag, tuple(cases))
    return Convert(node, checker.program.intern(made), span)


def _ended(checker: Checker, member: Member) -> Member:
    # A text in the object has a NUL at its end, full or not.
    made = checker.resolved(member.type)
    if isinstance(made, ArrayType) and isinstance(checker.resolved(made.element), CharType):
        open_end = checker.program.intern(ArrayType("", made.element, None, None))
        return Member(member.name, open_end, member.offset)
    return member


def _together(checker: Checker, node: Typed, found: LibraryClass) -> Typed:
    # A tuple as a structure of its parts, in their order.
    size = checker.size(node.type)
    parts = alternatives(checker, node, found, node.span)
    if size is None or not parts:
        return node
    names = found.get.get("members") or [str(number) for number in range(len(parts))]
    inner = tuple([member(part, node, name) for name, part in zip(names, parts, strict=True)])
    made = StructType(checker.spell(node.type), "class", size, inner)
    return Convert(node, checker.program.intern(made), node.span)


def member(inner: Typed, node: Typed, name: str) -> Member:
    """What lies within the object ``node``, as a member of it."""
    # What lies within the object ``node``, as a member of it.
    type_id, bits, offset = inner.type, None, 0
    while inner is not node:
        if isinstance(inner, Follow) and isinstance(inner.base, Convert):
            address = inner.base.base
            assert isinstance(address, Address)
            inner = address.base  # the same bytes, read as another type
            continue
        assert isinstance(inner, Part), "the parts of a class lie in its object"
        if inner.bits is not None:
            bits = inner.bits
        else:
            offset += inner.offset
        inner = inner.base
    if bits is not None:
        bits = BitField(BitOffset(8 * offset + bits.offset), bits.width)
        offset = bits.offset // 8
    return Member(name, type_id, ByteOffset(offset), bits)


def ends(checker: Checker, node: Typed) -> tuple[Typed, Typed] | None:
    """The pointers to a vector's first element and behind its last one; None of other classes."""
    found = library_class(checker, node.type, node.span)
    if found is None or not found.ends:
        return None
    start, end = (known_at(checker, node, path, node.span) for path in found.ends)
    made = checker.resolved(start.type)
    counted = isinstance(made, PointerType) and bool(checker.size(made.target))
    return (start, end) if counted else None


def indexed(checker: Checker, node: Typed, span: Span) -> Typed | None:
    """The pointer or array that ``node[0]`` is an element of; None where it is no such class."""
    found = library_class(checker, node.type, span)
    if found is None:
        return None
    path = found.index or (found.counted[0] if found.counted else "")
    return known_at(checker, node, path, span) if path else None


def blocked(
    checker: Checker, node: Typed, index: int, span: Span, index_span: Span
) -> Typed | None:
    """The element ``node[index]`` of a class that has its elements in blocks; None of others."""
    made = checker.resolved(node.type)
    if not isinstance(made, StructType) or not made.is_library:
        return None
    found = library_class(checker, node.type, span)
    if found is None or not (found.blocks or "[]" in found.refused):
        return None
    from fetchc.check.cpp.library_made import element_of_block

    return element_of_block(checker, node, found, index, span, index_span)


def flagged(
    checker: Checker, node: Typed, index: int, span: Span, index_span: Span
) -> Typed | None:
    """The truth value ``node[index]`` of a class that packs such; None of other classes."""
    found = library_class(checker, node.type, span)
    if found is None or not found.flags:
        return None
    from fetchc.check.cpp.library_made import flag

    return flag(checker, node, found, index, span, index_span)


def followed(checker: Checker, node: Typed, span: Span) -> Typed | None:
    """What ``*`` and ``->`` of a smart pointer or an optional lead to; None of other classes."""
    found = library_class(checker, node.type, span)
    if found is not None and found.object:
        return object_of(checker, node, found, span)
    if found is None or not found.follow:
        return None
    inner = known_at(checker, node, found.follow, span)
    made = checker.resolved(inner.type)
    return Follow(inner, made.target, span) if isinstance(made, PointerType) else None
