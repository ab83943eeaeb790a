"""Which class of a C++ library a type is, and the way to what it is made of.

What classes are made of is data (targets/runtime/cpp). A class is one of them by its name and by
having the members that the data names.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.typed import Address, Constant, Convert, Follow, Part
from fetchc.diag.errors import CompileError
from fetchc.program.types import ArrayType, BitField, PointerType, StructType
from fetchc.record import Record
from fetchc.units import BitOffset, BitSize, ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Member, Type
    from fetchc.source import Span
    from fetchc.units import TypeId

__all__ = [
    "LibraryClass",
    "alternatives",
    "at",
    "elements_of_block",
    "filled",
    "library_class",
    "number_of",
    "numbered",
    "plain_name",
]

_TABLES = "runtime/cpp"
_COMPUTED = ("through", "constants", "sums", "nones", "either", "maybe")
_MOST = 64  # parts of a tuple, alternatives of a variant; only a hostile type has more


class LibraryClass(Record):
    """One class: paths of members, as targets/runtime/cpp has them; empty where it has none."""

    name: str
    value: str
    index: str
    follow: str
    object: str
    counted: tuple[str, ...]
    ends: tuple[str, ...]
    get: Mapping[str, Any]
    choice: Mapping[str, Any]
    methods: Mapping[str, str]
    distances: Mapping[str, list[str]]
    lengths: Mapping[str, str]
    choices: Mapping[str, list[str]]
    refused: Mapping[str, str]
    low_first: str
    more: Mapping[str, Any]  # all that the entry has

    @property
    def known(self) -> list[str]:
        """The methods that can be had, in order."""
        named = {*self.methods, *self.distances, *self.lengths, *self.choices}
        for kind in _COMPUTED:
            named.update(self.more.get(kind, {}))
        return sorted(named | ({"empty"} if "size" in named else set()))


def library_class(checker: Checker, type_id: TypeId, span: Span) -> LibraryClass | None:
    """What is known of a class by its name; None of others, and of one that is made otherwise."""
    made = checker.resolved(type_id)
    if not isinstance(made, StructType) or not made.is_library:
        return None
    if "<" in made.name and not made.name.endswith(">"):
        return None  # a class inside of another one
    from fetchc.target.load import tables_under

    name = plain_name(made.name)
    start = Constant(0, checker.pointer_to(type_id), span)
    sample = Follow(start, type_id, span)
    for table in tables_under(_TABLES).values():
        for raw in table["class"]:
            if raw["name"] == name:
                found = _record(raw)
                if _is_made_so(checker, sample, found, span):
                    return found
    return None


def _is_made_so(checker: Checker, sample: Typed, found: LibraryClass, span: Span) -> bool:
    if not all(_has(checker, sample, path, span) for path in _paths(found)):
        return False
    if "as_many" in found.more:
        path, argument = found.more["as_many"]
        held = at(checker, sample, path, span)
        made = None if held is None else checker.resolved(held.type)
        if not isinstance(made, ArrayType) or made.count != number_of(
            checker, sample.type, argument
        ):
            return False
    if found.get and not alternatives(checker, sample, found, span, most=1):
        return False
    if not found.low_first:
        return True
    node = at(checker, sample, found.low_first, span)
    offset = 0
    while isinstance(node, Part):
        offset += node.offset
        node = node.base
    return offset == 0 and checker.program.little_endian


def _has(checker: Checker, sample: Typed, path: str, span: Span) -> bool:
    try:
        return at(checker, sample, path, span) is not None
    except CompileError:
        return False


def _record(raw: Mapping[str, Any]) -> LibraryClass:
    return LibraryClass(
        raw["name"],
        raw.get("value", ""),
        raw.get("index", ""),
        raw.get("follow", ""),
        raw.get("object", ""),
        tuple(raw.get("counted", ())),
        tuple(raw.get("ends", ())),
        raw.get("get", {}),
        raw.get("choice", {}),
        raw.get("methods", {}),
        raw.get("distances", {}),
        raw.get("lengths", {}),
        raw.get("choices", {}),
        raw.get("refused", {}),
        raw.get("low_first", ""),
        raw,
    )


def _paths(found: LibraryClass) -> list[str]:
    paths = [found.value, found.index, found.follow, found.object, *found.counted, *found.ends]
    paths += [found.choice.get("tag", ""), *found.choice.get("cases", ())]
    paths += [*found.methods.values(), *found.lengths.values()]
    for some in (*found.distances.values(), *found.choices.values()):
        paths += some
    more = found.more
    paths += [
        *more.get("has", ()),
        *more.get("units", ()),
        more.get("fixed", ""),
        more.get("flags", ""),
    ]
    paths += [path.rpartition(".")[0] for path in more.get("through", {}).values()]
    sums = [*more.get("sums", {}).values(), *more.get("nones", {}).values()]
    for terms in [*sums, *[one["number"] for one in more.get("either", {}).values()]]:
        paths += [path for number, less, _ in terms for path in (number, less)]
    return [path for path in paths if path]


def number_of(checker: Checker, type_id: TypeId, argument: int | None) -> int | None:
    """The number that a class's template has as that argument; None where it has none there."""
    from fetchc.program.cpp_names import arguments, canonical

    made = checker.resolved(type_id)
    if not isinstance(made, StructType) or argument is None:
        return None
    given = arguments(made.name.partition("<")[2].removesuffix(">"))
    text = canonical(given[argument]) if argument < len(given) else ""
    return int(text) if text.isdigit() else None


def elements_of_block(checker: Checker, holder: Typed, found: LibraryClass, span: Span) -> int:
    """How many elements each block of a deque has: as many as fit, and one at least."""
    path, room = found.more["block"]
    start = at(checker, holder, path, span)
    made = None if start is None else checker.resolved(start.type)
    each = checker.size(made.target) if isinstance(made, PointerType) else None
    return max(1, room // each) if each else 1


def filled(checker: Checker, holder: Typed, found: LibraryClass, path: str, span: Span) -> str:
    """``path`` with the index of the last element of a block or array for ``{last}``."""
    if "{last}" not in path:
        return path
    if "block" in found.more:
        count = elements_of_block(checker, holder, found, span)
    else:
        count = number_of(checker, holder.type, found.more["constants"]["size"]) or 1
    return path.replace("{last}", str(count - 1))


def plain_name(name: str) -> str:
    """``std::__cxx11::basic_string<char, ...>`` without arguments and hidden namespaces."""
    first, *words = name.partition("<")[0].split("::")
    hidden = [word for word in words[:-1] if not word.startswith("__")]
    return "::".join([first, *hidden, *words[-1:]])


def at(checker: Checker, node: Typed, path: str, span: Span) -> Typed | None:
    """What ``path`` leads to from ``node``: ``a.b[-1]``, pointers followed on the way.

    A number is that of a base class, ``a:0:1`` a bit field of ``a`` by its first bit and width,
    ``(T)`` a cast, ``*`` what another library class leads to.
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
        from fetchc.check.library import followed

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
    wanted = _type(checker, text.removesuffix("*"), span)
    pointer = checker.pointer_to(wanted)
    if isinstance(checker.resolved(node.type), PointerType):
        return Convert(node, pointer, span)
    address = Address(node, checker.pointer_to(node.type), span)
    return Follow(Convert(address, pointer, span), wanted, span)


def _type(checker: Checker, text: str, span: Span) -> TypeId:
    from fetchc.check.typenames import type_named
    from fetchc.syntax.tree import NamedType

    text = text.strip().removeprefix("const ").removesuffix(" const")
    if text.endswith("*"):
        return checker.pointer_to(_type(checker, text[:-1], span))
    return type_named(checker, NamedType(None, text, (), "", span))


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
    from fetchc.check.class_members import bases
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
