"""Classes of C++ libraries as their users see them: what ``*``, ``->`` and ``[]`` give.

:mod:`fetchc.check.cpp_library` finds the members that a class consists of.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.typed_tree import Address, AssumedVariant, Constant, Convert, Pointee, Subobject
from fetchc.diag.diagnostic import CompileError
from fetchc.program.types import (
    ArrayType,
    BitField,
    CharType,
    ChoiceType,
    Member,
    PointerType,
    StructType,
    Variant,
)
from fetchc.quantities import BitOffset, BitSize, ByteOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "LibraryClass",
    "alternatives",
    "as_member",
    "assume_alternative",
    "block_length",
    "dereferenced",
    "element_storage",
    "fill_path",
    "library_class",
    "member_at",
    "numbered_part",
    "object_of",
    "plain_name",
    "required_member",
    "selected_member",
    "template_number",
]

# ------------------------------------------------------------------------------
# The way from a library's object to its parts, as targets/runtime/cpp writes it.

_MOST = 64  # parts of a tuple, alternatives of a variant; only a hostile type has more


def plain_name(name: str) -> str:
    """``std::__cxx11::basic_string<char, ...>`` without arguments and hidden namespaces."""
    first, *words = name.partition("<")[0].split("::")
    hidden = [word for word in words[:-1] if not word.startswith("__")]
    return "::".join([first, *hidden, *words[-1:]])


def member_at(
    checker: Checker, node: Typed, path: str, span: Span, of: Type | None = None
) -> Typed | None:
    """What ``path`` leads to from ``node``: ``a.b[-1]``, pointers followed on the way.

    A number is that of a base class, ``a:0:1`` a bit field of ``a`` by its first bit and width,
    ``(T)`` a cast, ``(T|U)`` one to the first of these that is a type, ``*`` what another library
    class leads to. ``{0}`` in a cast is the first argument of the class ``of`` (None: of ``node``).
    None where the class has no such member.
    """
    from fetchc.check import indexing

    start = checker.resolved(node.type) if of is None else of
    for word in path.split("."):
        name, *numbers = word.split("[") if word.endswith("]") else [word]
        found = _step(checker, node, name, start, span)
        if found is None:
            return None
        node = found
        for number in numbers:
            node = indexing.element_at(checker, node, int(number.removesuffix("]")), span, span)
    return node


def _step(checker: Checker, node: Typed, word: str, start: Type, span: Span) -> Typed | None:
    if word == "*":
        return dereferenced(checker, node, span)
    if word.startswith("("):
        assert isinstance(start, StructType)
        return _cast(checker, node, _filled(word[1:-1], start.name), span)
    name, _, bits = word.partition(":")
    holder = members.follow_pointer(checker, node, span)
    steps = _base(checker, holder, int(name)) if name.isdigit() else None
    steps = steps or members.find(checker, holder.type, name, span)
    if steps is None:
        return None
    node = members.follow_path(checker, holder, steps, span)
    if bits:
        first, _, width = bits.partition(":")
        field = BitField(BitOffset(int(first)), BitSize(int(width)))
        return Subobject(node, ByteOffset(0), field, node.type, span)
    return node


def _filled(text: str, name: str) -> str:
    # {} is the class's name, {0} its first argument.
    from fetchc.program.cpp_names import arguments

    for number, argument in enumerate(arguments(name.partition("<")[2].removesuffix(">"))):
        text = text.replace(f"{{{number}}}", argument)
    return text.replace("{}", name).replace(">>", "> >")


def _cast(checker: Checker, node: Typed, text: str, span: Span) -> Typed:
    # A pointer as one to objects of the type, or as the type where that is a pointer (libc++ has
    # its iterators' so); or the object itself read as one.
    first, *others = text.split("|")
    wanted = _type(checker, first, span, others)
    pointer = checker.pointer_to(wanted)
    if isinstance(checker.resolved(node.type), PointerType):
        is_pointer = isinstance(checker.resolved(wanted), PointerType)
        return Convert(node, wanted if is_pointer else pointer, span)
    address = Address(node, checker.pointer_to(node.type), span)
    return Pointee(Convert(address, pointer, span), wanted, span)


def _type(checker: Checker, text: str, span: Span, others: Sequence[str] = ()) -> TypeId:
    from fetchc.check.conversions import type_named
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
    resolved = checker.resolved(holder.type)
    if not isinstance(resolved, StructType):
        return None
    found = [one for one in resolved.members if one.embedded and one.name]
    return (found[number],) if number < len(found) else None


def numbered_part(
    checker: Checker, node: Typed, found: LibraryClass, number: int, span: Span
) -> Typed | None:
    """What ``std::get<number>`` gives of ``node``; None where there is no such part."""
    get = found.get
    if "array" in get:
        return member_at(checker, node, f"{get['array']}[{number}]", span)
    if "members" in get:
        names = get["members"]
        return member_at(checker, node, names[number], span) if number < len(names) else None
    if "again" in get:
        path = ".".join([get["start"], *[get["again"]] * number, get["end"]])
        part = member_at(checker, node, path, span)
        return None if part is None else _out_of(checker, part, get.get("room"), span)
    holder = member_at(checker, node, get["start"], span) if "start" in get else node
    return None if holder is None else _leaf(checker, holder, get, number, span)


def _out_of(checker: Checker, part: Typed, room: list[str] | None, span: Span) -> Typed | None:
    # What is in a room for an object, a class of its own.
    resolved = checker.resolved(part.type)
    if room and isinstance(resolved, StructType) and plain_name(resolved.name) == room[0]:
        return member_at(checker, part, room[1], span)
    return part


def _leaf(
    checker: Checker, holder: Typed, get: Mapping[str, Any], number: int, span: Span
) -> Typed | None:
    # Each part of a tuple is in a base class of its own, which has its number as first argument.
    from fetchc.check.cpp_classes import bases
    from fetchc.program.cpp_names import arguments, canonical

    for steps in bases(checker, holder.type):
        resolved = checker.resolved(steps[-1].type)
        assert isinstance(resolved, StructType)
        if plain_name(resolved.name) != get["base"]:
            continue
        first = arguments(resolved.name.partition("<")[2][:-1])[0]
        if canonical(first) == str(number):
            inner = members.follow_path(checker, holder, steps, span)
            return member_at(checker, inner, get["end"], span)
    return None


def alternatives(
    checker: Checker, node: Typed, found: LibraryClass, span: Span, most: int = _MOST
) -> list[Typed]:
    """What ``std::get`` can give of ``node``, in order."""
    parts: list[Typed] = []
    while len(parts) < most:
        try:
            part = numbered_part(checker, node, found, len(parts), span)
        except CompileError:
            break
        if part is None:
            break
        parts.append(part)
    return parts


# ------------------------------------------------------------------------------
# Which class of a C++ library a type is.
#
# The members of classes are data (targets/runtime/cpp). A class is one of them by its name and
# by having the members that the data names.

_TABLES = "runtime/cpp"
_DIGITS = 20  # of the longest number of 64 bits
_NONE: Mapping[str, Any] = {}


class LibraryClass(Record):
    """One class: paths of members, as targets/runtime/cpp has them; empty where it has none."""

    name: str
    value: str = ""
    reader_method: str = ""
    nothing: str = ""
    index: str = ""
    follow: str = ""
    object: str = ""
    fixed: str = ""
    flags: str = ""
    low_first: str = ""
    period: int = 0
    has: Sequence[str] = ()
    counted: Sequence[str] = ()
    units: Sequence[str] = ()
    ends: Sequence[str] = ()
    as_many: Sequence[Any] = ()
    block: Sequence[Any] = ()
    get: Mapping[str, Any] = _NONE
    choice: Mapping[str, Any] = _NONE
    methods: Mapping[str, str] = _NONE
    choices: Mapping[str, list[str]] = _NONE
    refused: Mapping[str, str] = _NONE
    constants: Mapping[str, int] = _NONE
    through: Mapping[str, str] = _NONE
    sums: Mapping[str, list[Any]] = _NONE
    nones: Mapping[str, list[Any]] = _NONE
    either: Mapping[str, Mapping[str, Any]] = _NONE
    maybe: Mapping[str, str] = _NONE
    blocks: Mapping[str, Any] = _NONE
    walk: Mapping[str, Any] = _NONE

    @property
    def method_names(self) -> list[str]:
        """The methods that fetchc supports, in order."""
        named = {*self.methods, *self.choices, *self.through, *self.constants}
        named |= {*self.sums, *self.nones, *self.either, *self.maybe}
        return sorted(named | ({"empty"} if "size" in named else set()))


def library_class(checker: Checker, type_id: TypeId, span: Span) -> LibraryClass | None:
    """The class's description, found by its name; None of others, and where members differ."""
    resolved = checker.resolved(type_id)
    if not isinstance(resolved, StructType) or not resolved.is_library:
        return None
    if "<" in resolved.name and not resolved.name.endswith(">"):
        return None  # a class inside of another one
    from fetchc.target.machines import tables_under

    name = plain_name(resolved.name)
    start = Constant(0, checker.pointer_to(type_id), span)
    sample = Pointee(start, type_id, span)
    for table in tables_under(_TABLES).values():
        for raw in table["class"]:
            if raw["name"] == name:
                found = LibraryClass(**raw)
                if _has_layout(checker, sample, found, span):
                    return found
    return None


def _has_layout(checker: Checker, sample: Typed, found: LibraryClass, span: Span) -> bool:
    if not all(_has(checker, sample, path, span) for path in _paths(found)):
        return False
    if found.as_many:
        path, argument = found.as_many
        array = member_at(checker, sample, path, span)
        resolved = None if array is None else checker.resolved(array.type)
        if not isinstance(resolved, ArrayType) or resolved.count != template_number(
            checker, sample.type, argument
        ):
            return False
    if found.get and not alternatives(checker, sample, found, span, most=1):
        return False
    if not found.low_first:
        return True
    node = member_at(checker, sample, found.low_first, span)
    offset = 0
    while isinstance(node, Subobject):
        offset += node.offset
        node = node.base
    return offset == 0 and checker.program.little_endian


def _has(checker: Checker, sample: Typed, path: str, span: Span) -> bool:
    try:
        return member_at(checker, sample, path, span) is not None
    except CompileError:
        return False


def _paths(found: LibraryClass) -> list[str]:
    paths = [found.value, found.index, found.follow, found.object, *found.counted, *found.ends]
    paths += [found.choice.get("tag", ""), *found.choice.get("cases", ())]
    paths += found.methods.values()
    for some in found.choices.values():
        paths += some
    paths += [*found.has, *found.units, found.fixed, found.flags]
    paths += [path.rpartition(".")[0] for path in found.through.values()]
    sums = [*found.sums.values(), *found.nones.values()]
    if found.blocks:
        sums.append(found.blocks["left"])
    for terms in [*sums, *[one["number"] for one in found.either.values()]]:
        paths += [path for number, less, _ in terms for path in (number, less)]
    return [path for path in paths if path]


def template_number(checker: Checker, type_id: TypeId, argument: int | None) -> int | None:
    """The number that a class's template has as that argument; None where it has none there."""
    from fetchc.program.cpp_names import arguments, canonical

    resolved = checker.resolved(type_id)
    if not isinstance(resolved, StructType) or argument is None:
        return None
    given = arguments(resolved.name.partition("<")[2].removesuffix(">"))
    text = canonical(given[argument]) if argument < len(given) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def block_length(checker: Checker, holder: Typed, found: LibraryClass, span: Span) -> int:
    """How many elements each block of a deque has: as many as fit, and one at least."""
    path, room = found.block
    start = member_at(checker, holder, path, span)
    resolved = None if start is None else checker.resolved(start.type)
    each = checker.size(resolved.target) if isinstance(resolved, PointerType) else None
    return max(1, room // each) if each else 1


def fill_path(
    checker: Checker, holder: Typed, found: LibraryClass, path: str, span: Span
) -> str | None:
    """``path`` with the index of the last element of a block or array for ``{last}``.

    None where there are no elements, or the name of the class does not tell how many.
    """
    if "{last}" not in path:
        return path
    if found.block:
        count = block_length(checker, holder, found, span)
    else:
        count = template_number(checker, holder.type, found.constants.get("size")) or 0
    return path.replace("{last}", str(count - 1)) if count else None


def required_member(checker: Checker, node: Typed, path: str, span: Span) -> Typed:
    """What ``path`` leads to, which the entry of a class names."""
    inner = member_at(checker, node, path, span)
    assert inner is not None, "a class has what its entry names"
    return inner


def assume_alternative(
    checker: Checker, node: Typed, found: LibraryClass, number: int, tag_expression: str, span: Span
) -> None:
    """Note that of what the class can hold it is ``number``, for readers to compare."""
    tag = required_member(checker, node, found.choice["tag"], span)
    if found.get:
        parts = list(enumerate(alternatives(checker, node, found, span)))
        spelled = [checker.spell(part.type) for _, part in parts]
        names = [
            f"{name} #{value}" if spelled.count(name) > 1 else name
            for value, name in enumerate(spelled)
        ]
    else:  # of an alternative that is nothing the number itself is as good as any member
        parts = [
            (value, required_member(checker, node, path, span) if path else tag)
            for value, path in enumerate(found.choice["cases"])
        ]
        names = [name or "nothing" for name in found.choice["names"]]
    variants = tuple([Variant(as_member(part, node, names[value]), value) for value, part in parts])
    wanted = names[number]
    checker.assumptions.append(
        AssumedVariant(tag, variants, wanted, node.type, tag_expression, span)
    )


def _grant_object(checker: Checker, node: Typed, found: LibraryClass, span: Span) -> None:
    # Of an optional: that there is one.
    if found.choice and not found.get and found.object in found.choice.get("cases", ()):
        number = list(found.choice["cases"]).index(found.object)
        assume_alternative(checker, node, found, number, ".has_value()", span)


def object_of(checker: Checker, node: Typed, found: LibraryClass, span: Span) -> Typed:
    """The object that the class holds, which an optional need not."""
    _grant_object(checker, node, found, span)
    return required_member(checker, node, found.object, span)


def selected_member(
    checker: Checker, node: Typed, found: LibraryClass, paths: Iterable[str]
) -> Typed:
    """One of several members; a number in the object says which."""
    # One of several members: which one, a number in the object says.
    span, size = node.span, checker.size(node.type)
    assert size is not None
    tag = as_member(
        required_member(checker, node, found.choice["tag"], span), node, found.choice["name"]
    )
    if found.get:
        parts = list(enumerate(alternatives(checker, node, found, span)))
    else:
        listed = enumerate(paths)
        parts = [
            (value, required_member(checker, node, path, span)) for value, path in listed if path
        ]
    names = found.choice.get("names", ())
    cases = []
    for value, part in parts:
        name = names[value] if value < len(names) else str(value)
        cases.append((value, _ended(checker, as_member(part, node, name))))
    spelled = checker.spell(node.type)
    choice_type = ChoiceType(spelled, size, tag, tuple(cases))
    return Convert(node, checker.program.intern(choice_type), span)


def _ended(checker: Checker, member: Member) -> Member:
    # A string in the object has a NUL at its end, full or not.
    resolved = checker.resolved(member.type)
    if isinstance(resolved, ArrayType) and isinstance(checker.resolved(resolved.element), CharType):
        open_end = checker.program.intern(ArrayType("", resolved.element, None, None))
        return Member(member.name, open_end, member.offset)
    return member


def as_member(inner: Typed, node: Typed, name: str) -> Member:
    """What lies within the object ``node``, as a member of it."""
    # What lies within the object ``node``, as a member of it.
    type_id, bits, offset = inner.type, None, 0
    while inner is not node:
        if isinstance(inner, Pointee) and isinstance(inner.base, Convert):
            address = inner.base.base
            assert isinstance(address, Address)
            inner = address.base  # the same bytes, read as another type
            continue
        assert isinstance(inner, Subobject), "the parts of a class lie in its object"
        if inner.bits is not None:
            bits = inner.bits
        else:
            offset += inner.offset
        inner = inner.base
    if bits is not None:
        bits = BitField(BitOffset(8 * offset + bits.offset), bits.width)
        offset = bits.offset // 8
    return Member(name, type_id, ByteOffset(offset), bits)


def element_storage(checker: Checker, node: Typed, span: Span) -> Typed | None:
    """The pointer or array that ``node[0]`` is an element of; None where it is no such class."""
    found = library_class(checker, node.type, span)
    if found is None:
        return None
    path = found.index or (found.counted[0] if found.counted else "")
    return required_member(checker, node, path, span) if path else None


def dereferenced(checker: Checker, node: Typed, span: Span) -> Typed | None:
    """What ``*`` and ``->`` of a smart pointer or an optional lead to; None of other classes."""
    found = library_class(checker, node.type, span)
    if found is not None and found.object:
        return object_of(checker, node, found, span)
    if found is None or not found.follow:
        return None
    inner = required_member(checker, node, found.follow, span)
    resolved = checker.resolved(inner.type)
    return Pointee(inner, resolved.target, span) if isinstance(resolved, PointerType) else None
