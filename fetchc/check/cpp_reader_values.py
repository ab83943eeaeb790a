"""What objects of C++ libraries are to a reader: a string its text, a smart pointer its pointer."""

from __future__ import annotations

from fetchc.check.cpp_library import (
    alternatives,
    as_member,
    library_class,
    required_member,
    selected_member,
)
from fetchc.check.typed_tree import Convert
from fetchc.diag.diagnostic import reject
from fetchc.program.types import CharType, PointerType, SliceType, StringType, StructType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.cpp_library import LibraryClass
    from fetchc.check.typed_tree import Typed

__all__ = ["ends", "reader_value", "text_length", "ticks"]


def reader_value(checker: Checker, node: Typed) -> Typed:
    """What a reader shows for a whole object: a string's text, a smart pointer's pointer."""
    found = library_class(checker, node.type, node.span)
    if found is None:
        return node
    if found.nothing:
        raise reject(
            "FC0312",
            f"`{checker.spell(node.type)}` has no elements to fetch",
            node.span,
            found.nothing,
            reason="several fetch-args",
        )
    if found.reader_method:
        from fetchc.check.cpp_library_methods import method

        return method(checker, node, found.reader_method, node.span) or node
    if not _is_of_char(checker, node):
        from fetchc.check.cpp_library_methods import fixed_array, wide_text

        other = wide_text(checker, node, found) or fixed_array(checker, node, found)
        if other is not None:
            return other
    if found.value:
        inner = required_member(checker, node, found.value, node.span)
        resolved = checker.resolved(inner.type)
        # A path of the file system is a string.
        library = isinstance(resolved, StructType) and resolved.is_library
        return reader_value(checker, inner) if library else inner
    if found.counted:
        return _counted(checker, node, found)
    if found.choice:
        return selected_member(checker, node, found, found.choice.get("cases", ()))
    return _together(checker, node, found) if found.get else node


def text_length(checker: Checker, node: Typed) -> Typed | None:
    """The number of bytes of a ``std::string``, which is a string up to a NUL; None of others."""
    found = library_class(checker, node.type, node.span)
    if found is None or found.counted or not _is_of_char(checker, node):
        return None
    if not found.units and "size" not in found.choices:
        return None
    from fetchc.check.cpp_library_methods import method

    return method(checker, node, "size", node.span)


def _is_of_char(checker: Checker, node: Typed) -> bool:
    # The strings that nearly all are.
    resolved = checker.resolved(node.type)
    first = resolved.name.partition("<")[2][:5] if isinstance(resolved, StructType) else ""
    return first in ("char,", "char>")


def _counted(checker: Checker, node: Typed, found: LibraryClass) -> Typed:
    # As Go's strings and slices are: a pointer, and how many elements it leads to.
    size = checker.size(node.type)
    data, count = (
        as_member(required_member(checker, node, path, node.span), node, name)
        for path, name in zip(found.counted, ("data", "len"), strict=True)
    )
    resolved = checker.resolved(data.type)
    if size is None or not isinstance(resolved, PointerType):
        return node
    name = checker.spell(node.type)
    element = checker.size(resolved.target)
    if isinstance(checker.resolved(resolved.target), CharType) and element == 1:
        words = (data, count)
        return Convert(node, checker.program.intern(StringType(name, size, words)), node.span)
    slice_type = SliceType(name, size, resolved.target, (data, count))
    return Convert(node, checker.program.intern(slice_type), node.span)


def _together(checker: Checker, node: Typed, found: LibraryClass) -> Typed:
    # A tuple as a structure of its parts, in their order.
    size = checker.size(node.type)
    parts = alternatives(checker, node, found, node.span)
    if size is None or not parts:
        return node
    names = found.get.get("members") or [str(number) for number in range(len(parts))]
    inner = tuple([as_member(part, node, name) for name, part in zip(names, parts, strict=True)])
    structure = StructType(checker.spell(node.type), "class", size, inner)
    return Convert(node, checker.program.intern(structure), node.span)


def ends(checker: Checker, node: Typed) -> tuple[Typed, Typed] | None:
    """The pointers to a vector's first element and behind its last one; None of other classes."""
    found = library_class(checker, node.type, node.span)
    if found is None or not found.ends:
        return None
    start, end = (required_member(checker, node, path, node.span) for path in found.ends)
    resolved = checker.resolved(start.type)
    counted = isinstance(resolved, PointerType) and bool(checker.size(resolved.target))
    return (start, end) if counted else None


def ticks(checker: Checker, node: Typed) -> tuple[Typed, str] | None:
    """The number of a ``std::chrono`` duration, or of a point in time, and its unit: ``ms``.

    None of other classes.
    """
    while (found := library_class(checker, node.type, node.span)) is not None and found.value:
        inner = required_member(checker, node, found.value, node.span)
        if found.period:
            resolved = checker.resolved(node.type)
            assert isinstance(resolved, StructType)
            return inner, _unit(resolved.name, found.period)
        node = inner
    return None


# As gdb's printers write them. Source: libstdc++-v3/python/libstdcxx/v6/printers.py
# (StdChronoDurationPrinter).
_UNITS = {
    ("1", "1"): "s", ("1", "1000"): "ms", ("1", "1000000"): "us", ("1", "1000000000"): "ns",
    ("60", "1"): "min", ("3600", "1"): "h", ("86400", "1"): "d",
}  # fmt: skip


def _unit(name: str, argument: int) -> str:
    # Of a `std::chrono::duration<long, std::ratio<1, 1000> >`.
    from fetchc.program.cpp_names import arguments, canonical

    ratio = arguments(name.partition("<")[2].removesuffix(">"))[argument:]
    numbers = arguments(ratio[0].partition("<")[2].strip().removesuffix(">")) if ratio else []
    texts = [canonical(one) for one in numbers]
    if not texts:
        return ""
    numerator, denominator = texts if len(texts) == 2 else (texts[0], "1")
    parts = numerator if denominator == "1" else f"{numerator}/{denominator}"
    return _UNITS.get((numerator, denominator), f"[{parts}]s")
