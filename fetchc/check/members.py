"""``base.name`` and ``base->name``, through pointers and embedded members."""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Dispatched, Pointee, Subobject, Term
from fetchc.diag.diagnostic import Diagnostic, Label, reject
from fetchc.program.types import (
    BoolType,
    CharType,
    EnumType,
    IntType,
    Member,
    PointerType,
    StructType,
    UnknownType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "assume_member",
    "computed_members",
    "find",
    "follow_path",
    "follow_pointer",
    "named_member",
    "other_member",
    "own_member",
    "require_byte_order",
    "require_consistent_layout",
    "subobject",
    "unchecked_assumption",
]

_DEEPEST = 16  # levels of embedding looked through; only a cyclic, hostile type has more


def follow_pointer(checker: Checker, base: Typed, span: Span) -> Typed:
    """The object that ``base`` leads to where it is a pointer, else ``base`` itself.

    A language that follows pointers to pointers by itself gets to their end.
    """
    for _ in range(_DEEPEST if checker.site.language.dereferences else 1):
        resolved = checker.resolved(base.type)
        if not isinstance(resolved, PointerType):
            break
        base = Pointee(base, resolved.target, span)
    return base


def named_member(checker: Checker, base: Typed, name: str, name_span: Span) -> Typed:
    """The member ``name`` of a structure or of the structure a pointer leads to."""
    found = own_member(checker, base, name, name_span)
    return found or other_member(checker, base, name, name_span)


def own_member(checker: Checker, base: Typed, name: str, name_span: Span) -> Typed | None:
    """The member that the type of ``base``, or of what it points to, has itself, or embedded."""
    holder = follow_pointer(checker, base, base.span)
    resolved = checker.resolved(holder.type)
    if isinstance(resolved, StructType) and resolved.value is not None:
        wrapped_member = checker.rules_for(resolved).wrapped_member
        if wrapped_member is not None:
            wrapped = wrapped_member(checker, holder, name, name_span)
            if wrapped is not None:
                return wrapped
    path = find(checker, holder.type, name, name_span)
    return None if path is None else _at(checker, base, holder, path, name_span)


def other_member(checker: Checker, base: Typed, name: str, name_span: Span) -> Typed:
    """What a language has under the name of a member that the type does not have itself.

    Raises CompileError FC0301, FC0302, FC0311 where that is nothing.
    """
    if isinstance(base, Dispatched):
        cases = [(one, named_member(checker, value, name, name_span)) for one, value in base.cases]
        return Dispatched(tuple(cases), cases[0][1].type, base.span.to(name_span))
    holder = follow_pointer(checker, base, base.span)
    resolved = checker.resolved(holder.type)
    rules, accessor = checker.rules_for(resolved), checker.rules.accessor
    path = None
    if rules.structure is not None:
        holder = rules.structure(checker, holder, resolved) or holder
        path = find(checker, holder.type, name, name_span)
    if path is None and accessor is not None:
        path = accessor(checker, holder, name, name_span)
    if path is not None:
        return _at(checker, base, holder, path, name_span)
    if not checker.members_of(holder.type) and not computed_members(checker, holder.type):
        from fetchc.check.unknown_names import refuse_no_structure

        raise refuse_no_structure(checker, base, holder, name, name_span)
    if rules.target_member is not None:
        inner = rules.target_member(checker, base, holder, name, name_span)
        if inner is not None:
            return inner
    from fetchc.check.unknown_names import refuse_member

    raise refuse_member(checker, holder, name, name_span)


def _at(
    checker: Checker, base: Typed, holder: Typed, path: tuple[Member, ...], name_span: Span
) -> Typed:
    span = base.span.to(name_span)
    assume_member(checker, holder, path, span)
    return follow_path(checker, holder, path, span)


def assume_member(checker: Checker, holder: Typed, path: tuple[Member, ...], span: Span) -> None:
    """Note or warn what has to hold for the member to be there: a field of one variant of an enum,
    the value of a nullable, a property that derived classes have otherwise.
    """
    resolved = checker.resolved(holder.type)
    if isinstance(resolved, StructType) and (resolved.variants or checker.site.language.references):
        assume = checker.rules_for(resolved).assume_member
        if assume is not None:
            assume(checker, holder, resolved, path, span)


def follow_path(checker: Checker, base: Typed, path: tuple[Member, ...], span: Span) -> Typed:
    """The object at the end of ``path``; embedded pointers on the way are followed."""
    for step in path:
        holder = follow_pointer(checker, base, span)
        resolved = checker.resolved(holder.type)
        if isinstance(resolved, StructType) and step.bits is None and _has_bit_fields(resolved):
            require_consistent_layout(checker, resolved, step, span)
        if isinstance(resolved, StructType) and isinstance(checker.innermost(step.type), EnumType):
            require_byte_order(checker, resolved, step, span)
        base = subobject(holder, step, span)
        if step.difference is not None:
            minuend, subtrahend = [subobject(holder, one, span) for one in step.difference]
            names = step.difference[0].name, step.difference[1].name
            base = Computed((Term(minuend, subtrahend, 1, 1, names),), 0, False, step.type, span)
    return base


def _has_bit_fields(resolved: StructType) -> bool:
    return resolved.kind != "union" and any(member.bits for member in resolved.members)


def subobject(base: Typed, step: Member, span: Span) -> Subobject:
    """One member of the object ``base``."""
    return Subobject(base, step.offset, step.bits, step.type, span)


def find(checker: Checker, holder: TypeId, name: str, span: Span) -> tuple[Member, ...] | None:
    """The members to go through from ``holder`` to ``name``: the shallowest match.

    Raises CompileError FC0208 where two are equally deep, and where a method that is no deeper
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
            for step in (*checker.members_of(type_id), *computed_members(checker, type_id))
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
    # `above` are the types on the way down to the promoted member, and those beside them. What
    # those on the way promote themselves is not deeper than the member, so their method sets count.
    methods_named = checker.site.language.methods_named
    if methods_named is None:
        return
    program, name = checker.program, path[-1].name
    way = {holder, *[checker.promoted_from(step.type) for step in path[:-1]]}
    for type_id in above:
        resolved = program.type(type_id)
        if not isinstance(resolved, StructType):
            continue
        methods = [
            method
            for method in methods_named(program, resolved.name, name)
            if program.functions_named(method) or program.evidence.is_only_inlined(method)
        ]
        if type_id in way and not methods and name in _unreachable_methods(checker, type_id):
            methods = [f"{resolved.name}.{name}"]
        if methods:
            names = ".".join(step.name for step in path)
            raise reject(
                "FC0208",
                f"`{name}` of `{checker.spell(holder)}` is a method, which hides the "
                "embedded member",
                span,
                "a method",
                notes=(f"the method is `{methods[0]}`",),
                help=f"write the path to the member: `.{names}`",
            )


def _unreachable_methods(checker: Checker, type_id: TypeId) -> frozenset[str]:
    # Methods of the type, promoted ones too, by its descriptor. The linker leaves out the code of
    # those that the program cannot reach. Source: Go, src/cmd/link/internal/ld/deadcode.go.
    go = checker.program.go
    runtime_types = None if go is None else go.runtime_types()
    described = None if runtime_types is None else runtime_types.of(type_id)
    return (
        frozenset()
        if runtime_types is None or described is None
        else runtime_types.methods(described.offset)
    )


def _embedded(
    checker: Checker, level: list[tuple[TypeId, tuple[Member, ...]]], seen: set[TypeId]
) -> list[tuple[TypeId, tuple[Member, ...]]]:
    """What is embedded one level deeper; a type that is there twice is listed twice."""
    below: list[tuple[TypeId, tuple[Member, ...]]] = []
    times: dict[TypeId, int] = {}
    for type_id, path in level:
        for step in checker.members_of(type_id):
            if not step.embedded:
                continue
            inner = checker.promoted_from(step.type)
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
        help=f"write the path: `.{ways[0]}`",
    )


def computed_members(checker: Checker, type_id: TypeId) -> tuple[Member, ...]:
    """The members of a structure that take no room of their own in it: variants, differences."""
    resolved = checker.resolved(type_id)
    if not isinstance(resolved, StructType):
        return ()
    if resolved.variants:
        return tuple([variant.member for variant in resolved.variants])
    return resolved.computed_members


# ------------------------------------------------------------------------------
# The warning that an object is read as what it may not be (FC0620).


def unchecked_assumption(what: str, wanted: object, note: str, help: str, span: Span) -> Diagnostic:
    """Nothing compares ``what`` (the object's type, the variant) with ``wanted``."""
    return Diagnostic(
        "FC0620",
        f"{what} is not compared with `{wanted}`",
        Label(span, "read as this type, whatever it is"),
        notes=(note,),
        help=help,
    )


# ------------------------------------------------------------------------------
# Members that the debug information has where they cannot be: bit fields that look like none.
#
# LLVM (seen in 14) describes a packed bit field that is as wide as its type, ``short b : 16``, as
# a member on a byte boundary, wherever it is. Then it overlaps the bit field before it or, where
# an unnamed one lies between them, leaves a hole after it that nothing accounts for.
#
# Source: DwarfUnit::constructMemberDIE of LLVM ("Size != FieldSize").


def require_consistent_layout(
    checker: Checker, resolved: StructType, step: Member, span: Span
) -> None:
    """Raises CompileError FC0904 for ``step``, a plain member beside bit fields that may be one."""
    scalar = isinstance(checker.resolved(step.type), IntType | CharType | BoolType | EnumType)
    size = checker.size(step.type) if scalar else None
    if not size:
        return
    start, end = 8 * step.offset, 8 * (step.offset + size)
    following, follower = 8 * (resolved.size or 0), "end"
    for other in resolved.members:
        if other.bits is None:
            begins = 8 * other.offset
        else:
            begins = other.bits.offset
            if begins < end and start < begins + other.bits.width:
                what = f"overlap the bit field `{other.name}`"
                raise _contradicted(step.name, what, resolved.size, span)
        if end <= begins < following:
            following, follower = begins, "member" if other.bits is None else "bit field"
    function = checker.site.function
    if function is not None and not function.compiler.misplaces_packed_bit_fields:
        return
    packed = step.offset % size or (resolved.size or 0) % size
    rounded = -(-(step.offset + size) // (resolved.alignment or 1)) * (resolved.alignment or 1)
    if follower == "end" and 8 * rounded == following:
        return  # the padding that its declared alignment asks for
    if packed and (end < following <= end + 8 or (follower == "bit field" and end < following)):
        raise _contradicted(step.name, "end before what follows it", resolved.size, span)


def _contradicted(name: str, what: str, size: int | None, span: Span) -> CompileError:
    return reject(
        "FC0904",
        f"the debug information has `{name}` {what}",
        span,
        "its location is uncertain",
        notes=("clang writes this of a packed bit field that is as wide as its type",),
        help=f"fetch the bytes of the structure, with the format `:x8[{size}]`",
    )


# ------------------------------------------------------------------------------
# Enumerations in structures whose numbers have the other byte order.
#
# gcc (seen in 12) marks the base types of such members with DW_AT_endianity; enumerations have no
# mark, nor has a structure of these alone: it is read as if it had the machine's order.


def require_byte_order(checker: Checker, resolved: StructType, step: Member, span: Span) -> None:
    """Raises CompileError FC0311 for an enumeration beside numbers of the other byte order.

    Arrays of either count as their elements.
    """
    kind = checker.innermost(step.type)
    if not isinstance(kind, EnumType) or (kind.size == 1 and step.bits is None):
        return
    for other in resolved.members:
        beside = checker.innermost(other.type)
        if isinstance(beside, UnknownType | IntType | CharType | BoolType) and beside.foreign_order:
            raise reject(
                "FC0311",
                f"`{step.name}` cannot be fetched: its byte order is not the machine's",
                span,
                "not read",
                notes=(
                    f"`{other.name}` shows this: a structure has one byte order for all numbers",
                ),
                help=f"fetch the bytes of the structure, with the format `:x8[{resolved.size}]`",
            )
