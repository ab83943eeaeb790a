"""From a typed tree to fetches: the default of every type, in the order of the types."""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Dispatched, Either, Special
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.lower.model import Lowered
from fetchc.lower.scalars import bit_field_of, incomplete, number, scalar, special
from fetchc.lower.store import plain
from fetchc.program.types import (
    ArrayType,
    CellType,
    ChannelType,
    ChoiceType,
    ComplexType,
    DeclaredType,
    DifferenceType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    PointerType,
    RangeType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    UnknownType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Member, Type
    from fetchc.syntax.tree import Format

__all__ = ["entries", "left_out", "lower", "named_members"]

_MOST_LEAVES = 64  # members of a whole structure that become arguments of their own


def lower(checker: Checker, node: Typed, format: Format | None, whole: bool) -> tuple[Lowered, ...]:
    """The fetches of ``node``: one, or with ``whole`` also companions and members.

    Raises CompileError where a value cannot be fetched, or (without ``whole``) where
    one fetch-arg cannot hold it.
    """
    if format is not None:
        from fetchc.lower.formats import formatted

        return (formatted(checker, node, format),)
    if isinstance(node, Special) and (given := special(checker, node)) is not None:
        return (given,)
    if isinstance(node, Computed | Either | Dispatched):
        from fetchc.lower.reckoned import made_of

        return made_of(checker, node, whole)
    made = checker.resolved(node.type)
    if isinstance(made, StructType) and made.is_library:
        from fetchc.check.cpp_library import reader_value

        node = reader_value(checker, node)
        if isinstance(node, Computed | Either | Dispatched):
            return lower(checker, node, None, whole)
        made = checker.resolved(node.type)
    if isinstance(made, StructType) and made.value is not None:
        from fetchc.check.rust_values import reader_value as worth

        node = worth(checker, node)
        made = checker.resolved(node.type)
    simple = plain(checker, node.type)
    pointing = isinstance(made, PointerType | MapType | ChannelType)
    if simple is not None and (not pointing or bit_field_of(node) is not None):
        return (scalar(checker, node, simple),)
    from fetchc.lower import texts

    if texts.is_text_pointer(checker, made):
        return (texts.pointed_text(checker, node),)
    if text := texts.units(checker, node):
        return texts.utf_16(checker, text[0], text[1], whole)
    if isinstance(made, StringType):
        return texts.string(checker, node, made, whole)
    if isinstance(made, MapType | ChannelType):
        return (entries(checker, node),)
    if simple is not None:
        return (scalar(checker, node, simple),)
    from fetchc.lower import wholes

    match made:
        case ArrayType():
            return wholes.array(checker, node, made, whole)
        case SliceType() | InterfaceType() if whole:
            return wholes.words_of(checker, node, made)
        case StructType() if whole:
            return _leaves(checker, node, made)
        case SequenceType(name=name, size=size, members=members) if whole and size is not None:
            return _leaves(checker, node, StructType(name, "class", size, members))
        case DifferenceType():
            return wholes.difference(checker, node, made, whole)
        case ChoiceType(tag=tag, cases=cases) if whole:
            parts = (tag, *[member for _, member in cases])
            return _leaves(checker, node, StructType(made.name, "class", made.size, parts))
        case ChoiceType():
            raise wholes.refuse_choice(checker, node, made)
        case RangeType():
            from fetchc.lower.ranges import ranged

            return ranged(checker, node, made, whole)
        case CellType():
            from fetchc.check.array_ranges import refused

            raise refused(node, made)
        case ComplexType() | IntType() if whole and (both := _halves(checker, made)):
            return _leaves(checker, node, both)
        case FunctionType():
            raise reject(
                "FC0310", "a function is not a value that can be fetched", node.span, "a function"
            )
        case DeclaredType() | VoidType() | UnknownType():
            raise incomplete(checker, node, made)
        case _:
            raise wholes.refuse_whole(checker, node, made)


def entries(checker: Checker, node: Typed) -> Lowered:
    """A map or channel is worth its number of entries."""
    from fetchc.check.builtins import length

    return number(checker, length(checker, node, node.span))


def _leaves(checker: Checker, node: Typed, made: StructType) -> tuple[Lowered, ...]:
    """The members of a structure, one level deep; anonymous ones are looked through."""
    from fetchc.check.members import through

    result: list[Lowered] = []
    left: list[str] = []
    for path, member in named_members(checker, made, ()):
        if len(result) >= _MOST_LEAVES:
            left.append(member.name)
            continue
        deeper = isinstance(checker.resolved(member.type), StructType)
        try:
            inner = through(checker, node, (*path, member), node.span)
            for leaf in lower(checker, inner, None, whole=not deeper):
                suffix = f"{member.name}_{leaf.suffix}" if leaf.suffix else member.name
                result.append(Lowered(suffix, leaf.fetch, leaf.decode, leaf.type, leaf.companion))
        except CompileError:
            left.append(member.name)
    if not result:
        from fetchc.lower.wholes import refuse_whole

        raise refuse_whole(checker, node, made)
    if left:
        checker.warnings.append(left_out(checker, node, left))
    return tuple(result)


def left_out(checker: Checker, node: Typed, members: list[str]) -> Diagnostic:
    """The warning that a structure is told without some of its members."""
    return Diagnostic(
        "FC0605",
        f"members left out: {', '.join(members)}",
        Label(node.span, f"a `{checker.spell(node.type)}`"),
        notes=("each is more than one fetch-arg can hold, or where no probe reads",),
        help="ask for what you want of them by name",
    )


def named_members(
    checker: Checker, made: StructType, path: tuple[Member, ...]
) -> list[tuple[tuple[Member, ...], Member]]:
    """The members of a structure, those of anonymous ones too, each with the way to it."""
    found: list[tuple[tuple[Member, ...], Member]] = []
    for member in made.members:
        inner = checker.resolved(member.type)
        if not member.name and isinstance(inner, StructType) and len(path) < 8:
            found += named_members(checker, inner, (*path, member))
        elif member.name:
            found.append((path, member))
    return found


def _halves(checker: Checker, made: Type) -> StructType | None:
    # Imported by the few definitions that fetch a number whole: on no compile's way.
    from fetchc.check.builtins import halves

    return halves(checker, made)
