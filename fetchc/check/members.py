"""``base.name`` and ``base->name``, through pointers and embedded members."""

from __future__ import annotations

from fetchc.check.typed import Dispatched, Follow, Part
from fetchc.diag.diagnostic import reject
from fetchc.program.types import (
    ChannelType,
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
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "by_getter",
    "find",
    "follow_pointer",
    "member",
    "members_of",
    "part",
    "promoted_from",
    "tell",
    "through",
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


def member(checker: Checker, base: Typed, name: str, name_span: Span) -> Typed:
    """The member ``name`` of a structure or of the structure a pointer leads to."""
    span = base.span.to(name_span)
    if isinstance(base, Dispatched):
        cases = [(one, member(checker, value, name, name_span)) for one, value in base.cases]
        return Dispatched(tuple(cases), cases[0][1].type, span)
    holder = follow_pointer(checker, base, base.span)
    made = checker.resolved(holder.type)
    if isinstance(made, ChannelType):
        from fetchc.check.go.channels import header

        holder = header(checker, holder, made)
    if not members_of(checker, holder.type) and not _reckoned(checker, holder.type):
        if (path := by_getter(checker, holder, name, name_span)) is not None:
            return through(checker, holder, path, span)
        from fetchc.check.unknown_members import no_structure

        raise no_structure(checker, base, holder, name, name_span)
    made = checker.resolved(holder.type)
    if isinstance(made, StructType) and made.value is not None:
        from fetchc.check.rust.wrapped import member_of

        found = member_of(checker, holder, name, name_span)
        if found is not None:
            return found
    path = find(checker, holder.type, name, name_span)
    if path is None and isinstance(made, InterfaceType):
        from fetchc.check.assertions import member_of_value

        inside = member_of_value(checker, holder, made, name, name_span)
        if inside is not None:
            return inside
    if path is None and checker.program.in_kernel and isinstance(made, StructType):
        from fetchc.check.kernel_macros import by_macro

        path = by_macro(checker, holder.type, made, name, name_span)
    if path is None:
        path = by_getter(checker, holder, name, name_span)
    if path is not None:
        tell(checker, holder, path, span)
        return through(checker, holder, path, span)
    if isinstance(made, StructType) and made.is_library:
        from fetchc.check.cpp.library import followed

        inner = followed(checker, holder, base.span)
        if inner is not None:
            return member(checker, inner, name, name_span)
    from fetchc.check.unknown_members import no_member

    raise no_member(checker, holder, name, name_span)


def by_getter(checker: Checker, holder: Typed, name: str, span: Span) -> tuple[Member, ...] | None:
    """The members that lead to a property of .NET; None where there is none of that name."""
    if checker.site.language.name != ".NET":
        return None
    from fetchc.check.dotnet import properties

    return properties.by_getter(checker, holder, name, span)


def tell(checker: Checker, holder: Typed, path: tuple[Member, ...], span: Span) -> None:
    """Warn of a member that is there at times only: a field of one variant of an enum, the value
    of a nullable; and of a property that derived classes have otherwise.
    """
    made = checker.resolved(holder.type)
    if isinstance(made, StructType) and made.notation == "nullable":
        from fetchc.check.dotnet.nullables import take_for_granted as take_value_for_granted

        take_value_for_granted(checker, holder, made, path[0], span)
    if checker.site.language.references and isinstance(made, StructType) and made.kind == "class":
        from fetchc.check.dotnet.properties import take_for_granted as take_getter_for_granted

        take_getter_for_granted(checker, holder, path[-1].name, span)
    if isinstance(made, StructType) and made.variants:
        from fetchc.check.rust.variants import take_for_granted

        take_for_granted(checker, holder, made, path[0], span)


def through(checker: Checker, base: Typed, path: tuple[Member, ...], span: Span) -> Typed:
    """The object at the end of ``path``; embedded pointers on the way are followed."""
    for step in path:
        holder = follow_pointer(checker, base, span)
        made = checker.resolved(holder.type)
        if isinstance(made, StructType) and step.bits is None and _has_bit_fields(made):
            from fetchc.check.contradicted import must_not_be_contradicted

            must_not_be_contradicted(checker, made, step, span)
        if isinstance(made, StructType) and isinstance(checker.innermost(step.type), EnumType):
            from fetchc.check.byte_order import must_have_own_order

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
            if program.functions_named(method) or program.is_only_inlined(method):
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
            from fetchc.check.halves import halves

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
