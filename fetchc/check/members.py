"""``base.name`` and ``base->name``, through pointers and embedded members."""

from __future__ import annotations

from fetchc.check.typed_tree import Dispatched, Follow, Part
from fetchc.diag.diagnostic import Diagnostic, Label, reject
from fetchc.program.types import (
    BoolType,
    ChannelType,
    CharType,
    ComplexType,
    EnumType,
    InterfaceType,
    IntType,
    Member,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    UnknownType,
)
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "by_getter",
    "by_macro",
    "find",
    "follow_pointer",
    "members_of",
    "must_have_own_order",
    "must_not_be_contradicted",
    "named_member",
    "part",
    "promoted_from",
    "tell",
    "through",
    "uncompared",
]

_DEEPEST = 16  # levels of embedding looked through; only a cyclic, hostile type has more


def follow_pointer(checker: Checker, base: Typed, span: Span) -> Typed:
    """The object that ``base`` leads to where it is a pointer, else ``base`` itself.

    A language that follows pointers to pointers by itself gets to their end.
    """
    for _ in range(_DEEPEST if checker.site.language.dereferences else 1):
        made = checker.resolved(base.type)
        if not isinstance(made, PointerType):
            break
        base = Follow(base, made.target, span)
    return base


def named_member(checker: Checker, base: Typed, name: str, name_span: Span) -> Typed:
    """The member ``name`` of a structure or of the structure a pointer leads to."""
    span = base.span.to(name_span)
    if isinstance(base, Dispatched):
        cases = [(one, named_member(checker, value, name, name_span)) for one, value in base.cases]
        return Dispatched(tuple(cases), cases[0][1].type, span)
    holder = follow_pointer(checker, base, base.span)
    made = checker.resolved(holder.type)
    if isinstance(made, ChannelType):
        from fetchc.check.go_values import header

        holder = header(checker, holder, made)
    if not members_of(checker, holder.type) and not _reckoned(checker, holder.type):
        if (path := by_getter(checker, holder, name, name_span)) is not None:
            return through(checker, holder, path, span)
        from fetchc.check.unknown_names import no_structure

        raise no_structure(checker, base, holder, name, name_span)
    made = checker.resolved(holder.type)
    if isinstance(made, StructType) and made.value is not None:
        from fetchc.check.rust_values import member_of

        found = member_of(checker, holder, name, name_span)
        if found is not None:
            return found
    path = find(checker, holder.type, name, name_span)
    if path is None and isinstance(made, InterfaceType):
        from fetchc.check.go_values import member_of_value

        inside = member_of_value(checker, holder, made, name, name_span)
        if inside is not None:
            return inside
    if path is None and checker.program.in_kernel and isinstance(made, StructType):
        path = by_macro(checker, holder.type, made, name, name_span)
    if path is None:
        path = by_getter(checker, holder, name, name_span)
    if path is not None:
        tell(checker, holder, path, span)
        return through(checker, holder, path, span)
    if isinstance(made, StructType) and made.is_library:
        from fetchc.check.cpp_library import followed

        inner = followed(checker, holder, base.span)
        if inner is not None:
            return named_member(checker, inner, name, name_span)
    from fetchc.check.unknown_names import no_member

    raise no_member(checker, holder, name, name_span)


def by_getter(checker: Checker, holder: Typed, name: str, span: Span) -> tuple[Member, ...] | None:
    """The members that lead to a property of .NET; None where there is none of that name."""
    if checker.site.language.name != ".NET":
        return None
    from fetchc.check import dotnet_references

    return dotnet_references.by_getter(checker, holder, name, span)


def tell(checker: Checker, holder: Typed, path: tuple[Member, ...], span: Span) -> None:
    """Warn of a member that is there at times only: a field of one variant of an enum, the value
    of a nullable; and of a property that derived classes have otherwise.
    """
    made = checker.resolved(holder.type)
    if isinstance(made, StructType) and made.notation == "nullable":
        from fetchc.check.dotnet_references import assume_has_value as take_value_for_granted

        take_value_for_granted(checker, holder, made, path[0], span)
    if checker.site.language.references and isinstance(made, StructType) and made.kind == "class":
        from fetchc.check.dotnet_references import assume_plain_getter as take_getter_for_granted

        take_getter_for_granted(checker, holder, path[-1].name, span)
    if isinstance(made, StructType) and made.variants:
        from fetchc.check.rust_values import take_for_granted

        take_for_granted(checker, holder, made, path[0], span)


def through(checker: Checker, base: Typed, path: tuple[Member, ...], span: Span) -> Typed:
    """The object at the end of ``path``; embedded pointers on the way are followed."""
    for step in path:
        holder = follow_pointer(checker, base, span)
        made = checker.resolved(holder.type)
        if isinstance(made, StructType) and step.bits is None and _has_bit_fields(made):
            must_not_be_contradicted(checker, made, step, span)
        if isinstance(made, StructType) and isinstance(checker.innermost(step.type), EnumType):
            must_have_own_order(checker, made, step, span)
        base = part(holder, step, span)
    return base


def _has_bit_fields(made: StructType) -> bool:
    return made.kind != "union" and any(member.bits for member in made.members)


def part(base: Typed, step: Member, span: Span) -> Part:
    """One member of the object ``base``."""
    return Part(base, step.offset, step.bits, step.type, span)


def find(checker: Checker, holder: TypeId, name: str, span: Span) -> tuple[Member, ...] | None:
    """The members to go through from ``holder`` to ``name``: the shallowest match.

    Raises CompileError FC0208 where two stand equally deep, and where a method that is no deeper
    hides what is promoted. Source: Go specification, "Selectors"; C11 6.7.2.1p13 (members of an
    anonymous structure are members of the containing one).
    """
    above: list[TypeId] = []
    level: list[tuple[TypeId, tuple[Member, ...]]] = [(holder, ())]
    seen: set[TypeId] = {holder}
    for _ in range(_DEEPEST):
        found = [
            (*path, step)
            for type_id, path in level
            for step in (*members_of(checker, type_id), *_reckoned(checker, type_id))
            if name in (step.name, step.also)
        ]
        if len(found) > 1:
            raise _ambiguous(checker, holder, name, found, span)
        if found:
            if above:
                _must_not_be_hidden(checker, holder, above, found[0], span)
            return found[0]
        above += [type_id for type_id, _ in level]
        level = _embedded(checker, level, seen)
        if not level:
            return None
    return None


def _must_not_be_hidden(
    checker: Checker, holder: TypeId, above: list[TypeId], path: tuple[Member, ...], span: Span
) -> None:
    # `above` are the types on the way down to the promoted member, and those beside them.
    methods_named = checker.site.language.methods_named
    if methods_named is None:
        return
    program, name = checker.program, path[-1].name
    for type_id in above:
        made = program.type(type_id)
        if not isinstance(made, StructType):
            continue
        for method in methods_named(program, made.name, name):
            if program.functions_named(method) or program.evidence.is_only_inlined(method):
                way = ".".join(step.name for step in path)
                raise reject(
                    "FC0208",
                    f"`{name}` of `{checker.spell(holder)}` is a method, not the member that is "
                    f"embedded further down",
                    span,
                    "a method",
                    notes=(f"the method is `{method}`",),
                    help=f"name the way to the member: `.{way}`",
                )


def _embedded(
    checker: Checker, level: list[tuple[TypeId, tuple[Member, ...]]], seen: set[TypeId]
) -> list[tuple[TypeId, tuple[Member, ...]]]:
    """What is embedded one level deeper; a type that is there twice is listed twice."""
    below: list[tuple[TypeId, tuple[Member, ...]]] = []
    times: dict[TypeId, int] = {}
    for type_id, path in level:
        for step in members_of(checker, type_id):
            if not step.embedded:
                continue
            inner = promoted_from(checker, step.type)
            times[inner] = times.get(inner, 0) + 1
            if inner not in seen and times[inner] <= 2:  # two are enough to be ambiguous
                below.append((inner, (*path, step)))
    seen.update(times)
    return below


def _ambiguous(
    checker: Checker, holder: TypeId, name: str, found: list[tuple[Member, ...]], span: Span
) -> CompileError:
    ways = [".".join(step.name or "(anonymous)" for step in path) for path in found]
    return reject(
        "FC0208",
        f"`{checker.spell(holder)}` has `{name}` in {len(found)} embedded members",
        span,
        "which one is meant",
        notes=(f"they are {', '.join(f'`{way}`' for way in ways)}",),
        help=f"name the way: `.{ways[0]}`",
    )


def promoted_from(checker: Checker, type_id: TypeId) -> TypeId:
    """What an embedded member of that type promotes from: its type, or its pointer's target."""
    bare = checker.bare(type_id)
    made = checker.program.type(bare)
    return checker.bare(made.target) if isinstance(made, PointerType) else bare


def members_of(checker: Checker, type_id: TypeId) -> tuple[Member, ...]:
    """The members that a type itself has; none of what is no structure."""
    match checker.resolved(type_id):
        case (
            StructType(members=members)
            | StringType(members=members)
            | SliceType(members=members)
            | SequenceType(members=members)
            | InterfaceType(members=members)
        ):
            return members
        case ComplexType() | IntType() as made:
            from fetchc.check.builtins import halves

            both = halves(checker, made)
            return () if both is None else both.members
        case _:
            return ()


def _reckoned(checker: Checker, type_id: TypeId) -> tuple[Member, ...]:
    made = checker.resolved(type_id)
    if not isinstance(made, StructType):
        return ()
    if made.variants:
        return tuple([variant.member for variant in made.variants])
    return made.reckoned


# ------------------------------------------------------------------------------
# Members that the source of the kernel has by macros: ``sk->sk_dport``.


def by_macro(
    checker: Checker, holder: TypeId, made: StructType, name: str, span: Span
) -> tuple[Member, ...] | None:
    """The members to go through from ``holder``, which is ``made``, to what ``name`` stands for.

    None where it is no such macro of that structure.
    """
    macro = table("kernel/macros")["structures"].get(made.name)
    if macro is None or not name.startswith(macro[0]):
        return None
    beginning, through, own = macro
    path: tuple[Member, ...] = ()
    for step in (*through, own + name.removeprefix(beginning)):
        found = find(checker, holder, step, span)
        if found is None:
            return None
        path += found
        holder = found[-1].type
    return path


# ------------------------------------------------------------------------------
# The warning that an object is read as what it may not be (FC0620).


def uncompared(what: str, wanted: object, note: str, help: str, span: Span) -> Diagnostic:
    """Nothing compares ``what`` (the object's type, the variant) with ``wanted``."""
    return Diagnostic(
        "FC0620",
        f"nothing compares {what} with `{wanted}`",
        Label(span, "read so whatever it is"),
        notes=(note,),
        help=help,
    )


# ------------------------------------------------------------------------------
# Members that the debug information has where they cannot be: bit fields that look like none.
#
# LLVM (seen in 14) describes a packed bit field that is as wide as its type, ``short b : 16``, as
# a member on a byte boundary, wherever it is. Then it overlaps the bit field before it or, where
# an unnamed one lies between them, leaves a hole behind it that nothing accounts for.
#
# Source: DwarfUnit::constructMemberDIE of LLVM ("Size != FieldSize").


def must_not_be_contradicted(checker: Checker, made: StructType, step: Member, span: Span) -> None:
    """Raises CompileError FC0904 for ``step``, a plain member beside bit fields that may be one."""
    scalar = isinstance(checker.resolved(step.type), IntType | CharType | BoolType | EnumType)
    size = checker.size(step.type) if scalar else None
    if not size:
        return
    start, end = 8 * step.offset, 8 * (step.offset + size)
    following, follower = 8 * (made.size or 0), "end"
    for other in made.members:
        if other.bits is None:
            begins = 8 * other.offset
        else:
            begins = other.bits.offset
            if begins < end and start < begins + other.bits.width:
                what = f"overlap the bit field `{other.name}`"
                raise _contradicted(step.name, what, made.size, span)
        if end <= begins < following:
            following, follower = begins, "member" if other.bits is None else "bit field"
    function = checker.site.function
    if function is not None and not function.compiler.misplaces_packed_bit_fields:
        return
    packed = step.offset % size or (made.size or 0) % size
    rounded = -(-(step.offset + size) // (made.alignment or 1)) * (made.alignment or 1)
    if follower == "end" and 8 * rounded == following:
        return  # the padding that its declared alignment asks for
    if packed and (end < following <= end + 8 or (follower == "bit field" and end < following)):
        raise _contradicted(step.name, "stop short of what follows it", made.size, span)


def _contradicted(name: str, what: str, size: int | None, span: Span) -> CompileError:
    return reject(
        "FC0904",
        f"the debug information has `{name}` {what}",
        span,
        "its place is not certain",
        notes=("clang writes this of a packed bit field that is as wide as its type",),
        help=f"fetch the bytes of the structure, with the format `:x8[{size}]`",
    )


# ------------------------------------------------------------------------------
# Enumerations in structures whose numbers have the other byte order.
#
# gcc (seen in 12) marks the base types of such members with DW_AT_endianity; enumerations have no
# mark, nor has a structure of these alone: it is read as if it had the machine's order.


def must_have_own_order(checker: Checker, made: StructType, step: Member, span: Span) -> None:
    """Raises CompileError FC0311 for an enumeration beside numbers of the other byte order.

    Arrays of either count as what they are made of.
    """
    kind = checker.innermost(step.type)
    if not isinstance(kind, EnumType) or (kind.size == 1 and step.bits is None):
        return
    for other in made.members:
        beside = checker.innermost(other.type)
        if isinstance(beside, UnknownType | IntType | CharType | BoolType) and beside.foreign_order:
            raise reject(
                "FC0311",
                f"`{step.name}` cannot be fetched: its byte order is not the machine's",
                span,
                "not read",
                notes=(f"so it is of `{other.name}`, and a structure has one for all its numbers",),
                help=f"fetch the bytes of the structure, with the format `:x8[{made.size}]`",
            )
