"""The way from a library's object to what it is made of, as targets/runtime/cpp writes it."""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.typed import Address, Convert, Follow, Part
from fetchc.diag.diagnostic import CompileError
from fetchc.program.types import BitField, PointerType, StructType
from fetchc.quantities import BitOffset, BitSize, ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fetchc.check.cpp.library_data import LibraryClass
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Member, Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["alternatives", "at", "numbered", "plain_name"]

_MOST = 64  # parts of a tuple, alternatives of a variant; only a hostile type has more


def plain_name(name: str) -> str:
    """``std::__cxx11::basic_string<char, ...>`` without arguments and hidden namespaces."""
    first, *words = name.partition("<")[0].split("::")
    hidden = [word for word in words[:-1] if not word.startswith("__")]
    return "::".join([first, *hidden, *words[-1:]])


def at(checker: Checker, node: Typed, path: str, span: Span) -> Typed | None:
    """What ``path`` leads to from ``node``: ``a.b[-1]``, pointers followed on the way.

    A number is that of a base class, ``a:0:1`` a bit field of ``a`` by its first bit and width,
    ``(T)`` a cast, ``(T|U)`` one to the first of these that is a type, ``*`` what another library
    class leads to.
    None where the class has no such member.
    """
    from fetchc.check import indices

    start = checker.resolved(node.type)
    for word in path.split("."):
        name, *numbers = word.split("[") if word.endswith("]") else [word]
        found = _step(checker, node, name, start, span)
        if found is None:
            return None
        node = found
        for number in numbers:
            node = indices.element(checker, node, int(number.removesuffix("]")), span, span)
    return node


def _step(checker: Checker, node: Typed, word: str, start: Type, span: Span) -> Typed | None:
    if word == "*":
        from fetchc.check.cpp.library import followed

        return followed(checker, node, span)
    if word.startswith("("):
        assert isinstance(start, StructType)
        return _cast(checker, node, _filled(word[1:-1], start.name), span)
    name, _, bits = word.partition(":")
    holder = members.follow_pointer(checker, node, span)
    steps = _base(checker, holder, int(name)) if name.isdigit() else None
    steps = steps or members.find(checker, holder.type, name, span)
    if steps is None:
        return None
    node = members.through(checker, holder, steps, span)
    if bits:
        first, _, width = bits.partition(":")
        field = BitField(BitOffset(int(first)), BitSize(int(width)))
        return Part(node, ByteOffset(0), field, node.type, span)
    return node


def _filled(text: str, name: str) -> str:
    # {} is the class's name, {0} its first argument.
    from fetchc.program.cpp_names import arguments

    for number, argument in enumerate(arguments(name.partition("<")[2].removesuffix(">"))):
        text = text.replace(f"{{{number}}}", argument)
    return text.replace("{}", name).replace(">>", "> >")


def _cast(checker: Checker, node: Typed, text: str, span: Span) -> Typed:
    # A pointer to objects of the type, or the object itself read as one.
    first, *others = text.split("|")
    wanted = _type(checker, first.removesuffix("*"), span, others)
    pointer = checker.pointer_to(wanted)
    if isinstance(checker.resolved(node.type), PointerType):
        return Convert(node, pointer, span)
    address = Address(node, checker.pointer_to(node.type), span)
    return Follow(Convert(address, pointer, span), wanted, span)


def _type(checker: Checker, text: str, span: Span, others: Sequence[str] = ()) -> TypeId:
    from fetchc.check.typenames import type_named
    from fetchc.syntax.tree import NamedType

    text = text.strip().removeprefix("const ").removesuffix(" const")
    if text.endswith("*"):
        return checker.pointer_to(_type(checker, text[:-1], span))
    try:
        return type_named(checker, NamedType(None, text, (), "", span))
    except CompileError:
        if not others:
            raise
    return _type(checker, others[0], span, others[1:])


def _base(checker: Checker, holder: Typed, number: int) -> tuple[Member, ...] | None:
    made = checker.resolved(holder.type)
    if not isinstance(made, StructType):
        return None
    found = [one for one in made.members if one.embedded and one.name]
    return (found[number],) if number < len(found) else None


def numbered(
    checker: Checker, node: Typed, found: LibraryClass, number: int, span: Span
) -> Typed | None:
    """What ``std::get<number>`` gives of ``node``; None where there is no such part."""
    get = found.get
    if "array" in get:
        return at(checker, node, f"{get['array']}[{number}]", span)
    if "members" in get:
        names = get["members"]
        return at(checker, node, names[number], span) if number < len(names) else None
    if "again" in get:
        path = ".".join([get["start"], *[get["again"]] * number, get["end"]])
        part = at(checker, node, path, span)
        return None if part is None else _out_of(checker, part, get.get("room"), span)
    holder = at(checker, node, get["start"], span) if "start" in get else node
    return None if holder is None else _leaf(checker, holder, get, number, span)


def _out_of(checker: Checker, part: Typed, room: list[str] | None, span: Span) -> Typed | None:
    # What is in a room for an object, a class of its own.
    made = checker.resolved(part.type)
    if room and isinstance(made, StructType) and plain_name(made.name) == room[0]:
        return at(checker, part, room[1], span)
    return part


def _leaf(
    checker: Checker, holder: Typed, get: Mapping[str, Any], number: int, span: Span
) -> Typed | None:
    # Each part of a tuple is in a base class of its own, which has its number as first argument.
    from fetchc.check.cpp.members import bases
    from fetchc.program.cpp_names import arguments, canonical

    for steps in bases(checker, holder.type):
        made = checker.resolved(steps[-1].type)
        assert isinstance(made, StructType)
        if plain_name(made.name) != get["base"]:
            continue
        first = arguments(made.name.partition("<")[2][:-1])[0]
        if canonical(first) == str(number):
            inner = members.through(checker, holder, steps, span)
            return at(checker, inner, get["end"], span)
    return None


def alternatives(
    checker: Checker, node: Typed, found: LibraryClass, span: Span, most: int = _MOST
) -> list[Typed]:
    """What ``std::get`` can give of ``node``, in order."""
    parts: list[Typed] = []
    while len(parts) < most:
        try:
            part = numbered(checker, node, found, len(parts), span)
        except CompileError:
            break
        if part is None:
            break
        parts.append(part)
    return parts
