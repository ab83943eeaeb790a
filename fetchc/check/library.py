"""Classes of C++ libraries as their users see them: what ``*``, ``->``, ``[]`` and methods give.

What they are made of is data (targets/runtime/cpp). A class is one of them by its name and by
having the members that the data names.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.typed import Convert, Follow
from fetchc.diag.errors import CompileError, reject
from fetchc.program.types import CharType, Member, PointerType, SliceType, StringType, StructType
from fetchc.record import Record
from fetchc.units import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.source import Span
    from fetchc.units import TypeId

__all__ = ["LibraryClass", "ends", "followed", "indexed", "library_class", "method", "reader_value"]

_TABLES = "runtime/cpp"


class LibraryClass(Record):
    """One class: paths of members, as targets/runtime/cpp has them; empty where it has none."""

    name: str
    value: str
    index: str
    follow: str
    counted: tuple[str, ...]
    ends: tuple[str, ...]
    methods: Mapping[str, str]
    refused: Mapping[str, str]


def library_class(checker: Checker, type_id: TypeId, span: Span) -> LibraryClass | None:
    """What is known of a class by its name; None of others, and of one that is made otherwise."""
    made = checker.resolved(type_id)
    if not isinstance(made, StructType) or not made.name.startswith("std::"):
        return None
    from fetchc.target.load import tables_under

    name = _plain(made.name)
    for table in tables_under(_TABLES).values():
        for raw in table["class"]:
            if raw["name"] == name:
                found = _record(raw)
                if all(_steps(checker, type_id, path, span) for path in _paths(found)):
                    return found
    return None


def _record(raw: Mapping[str, Any]) -> LibraryClass:
    return LibraryClass(
        raw["name"],
        raw.get("value", ""),
        raw.get("index", ""),
        raw.get("follow", ""),
        tuple(raw.get("counted", ())),
        tuple(raw.get("ends", ())),
        raw.get("methods", {}),
        raw.get("refused", {}),
    )


def _paths(found: LibraryClass) -> tuple[str, ...]:
    one = (found.value, found.index, found.follow, *found.counted, *found.ends)
    return tuple([path for path in (*one, *found.methods.values()) if path])


def _plain(name: str) -> str:
    # std::__cxx11::basic_string<char, ...>: without arguments, and what is hidden from users.
    words = name.partition("<")[0].split("::")
    return "::".join(word for word in words if not word.startswith("__"))


def _steps(checker: Checker, type_id: TypeId, path: str, span: Span) -> list[tuple[Member, ...]]:
    # The members to go through, for each word of the path; empty where the class has another one.
    steps = []
    for word in path.split("."):
        made = checker.resolved(type_id)
        if isinstance(made, PointerType):
            type_id = made.target
        try:
            found = members.find(checker, type_id, word, span)
        except CompileError:
            return []
        if found is None:
            return []
        steps.append(found)
        type_id = found[-1].type
    return steps


def _at(checker: Checker, node: Typed, path: str, span: Span) -> Typed:
    for step in _steps(checker, node.type, path, span):
        node = members.through(checker, members.follow_pointer(checker, node, span), step, span)
    return node


def reader_value(checker: Checker, node: Typed) -> Typed:
    """What a whole object is worth to a reader: a string its text, a smart pointer its pointer."""
    found = library_class(checker, node.type, node.span)
    if found is None:
        return node
    if found.value:
        return _at(checker, node, found.value, node.span)
    return _counted(checker, node, found) if found.counted else node


def _counted(checker: Checker, node: Typed, found: LibraryClass) -> Typed:
    # As Go's strings and slices are: a pointer, and how many elements it leads to.
    size = checker.size(node.type)
    data, count = (
        _member(checker, node, path, name)
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


def _member(checker: Checker, node: Typed, path: str, name: str) -> Member:
    # One member with the place of a whole path.
    steps = [step for taken in _steps(checker, node.type, path, node.span) for step in taken]
    offset = sum(step.offset for step in steps)
    return Member(name, steps[-1].type, ByteOffset(offset))


def ends(checker: Checker, node: Typed) -> tuple[Typed, Typed] | None:
    """The pointers to a vector's first element and behind its last one; None of other classes."""
    found = library_class(checker, node.type, node.span)
    if found is None or not found.ends:
        return None
    start, end = (_at(checker, node, path, node.span) for path in found.ends)
    made = checker.resolved(start.type)
    counted = isinstance(made, PointerType) and bool(checker.size(made.target))
    return (start, end) if counted else None


def indexed(checker: Checker, node: Typed, span: Span) -> Typed | None:
    """The pointer or array that ``node[0]`` is an element of; None where it is no such class."""
    found = library_class(checker, node.type, span)
    if found is None:
        return None
    if found.index:
        return _at(checker, node, found.index, span)
    return _at(checker, node, found.counted[0], span) if found.counted else None


def followed(checker: Checker, node: Typed, span: Span) -> Typed | None:
    """What ``*`` and ``->`` of a smart pointer or an optional lead to; None of other classes."""
    found = library_class(checker, node.type, span)
    if found is None or not found.follow:
        return None
    inner = _at(checker, node, found.follow, span)
    made = checker.resolved(inner.type)
    return Follow(inner, made.target, span) if isinstance(made, PointerType) else inner


def method(checker: Checker, node: Typed, name: str, name_span: Span) -> Typed | None:
    """The member that ``node.name()`` gives; raises CompileError FC0308 where it is computed."""
    span = node.span.to(name_span)
    holder = members.follow_pointer(checker, node, span)
    found = library_class(checker, holder.type, span)
    if found is None:
        return None
    if name in found.refused:
        raise reject(
            "FC0308",
            f"`{found.name}::{name}()` cannot be fetched: {found.refused[name]}",
            name_span,
            "computed by the program",
            help="fetch what it is computed from, by those names",
        )
    if name in found.methods:
        return _at(checker, holder, found.methods[name], span)
    known = ", ".join(f"`.{one}()`" for one in sorted(found.methods))
    raise reject(
        "FC0302",
        f"`{found.name}::{name}()` is code that no fetch-arg can run",
        name_span,
        "not a member",
        notes=(f"what can be had: {known}",) if known else (),
    )
