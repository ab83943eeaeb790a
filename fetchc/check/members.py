"""``base.name`` and ``base->name``, through pointers and embedded members."""

from __future__ import annotations

from fetchc.check.typed import Follow, Part
from fetchc.diag.errors import reject
from fetchc.diag.model import Label
from fetchc.program.types import (
    BoolType,
    CharType,
    ComplexType,
    DeclaredType,
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.errors import CompileError
    from fetchc.source import Span
    from fetchc.units import TypeId

__all__ = ["find", "follow_pointer", "member", "part", "tell", "through"]

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
    holder = follow_pointer(checker, base, base.span)
    if not _members(checker, holder.type) and not _reckoned(checker, holder.type):
        raise _no_structure(checker, base, holder, name, name_span)
    made = checker.resolved(holder.type)
    if isinstance(made, StructType) and made.value is not None:
        from fetchc.check.rust.wrapped import member_of

        found = member_of(checker, holder, name, name_span)
        if found is not None:
            return found
    path = find(checker, holder.type, name, name_span)
    if path is not None:
        tell(checker, holder, path, span)
        return through(checker, holder, path, span)
    if isinstance(made, StructType) and made.is_library:
        from fetchc.check.cpp.library import followed

        inner = followed(checker, holder, base.span)
        if inner is not None:
            return member(checker, inner, name, name_span)
    raise _no_member(checker, holder, name, name_span)


def tell(checker: Checker, holder: Typed, path: tuple[Member, ...], span: Span) -> None:
    """Warn of a member that is there at times only: a field of one variant of an enum."""
    made = checker.resolved(holder.type)
    if isinstance(made, StructType) and made.variants:
        from fetchc.check.rust.variants import take_for_granted

        take_for_granted(checker, holder, made, path[0], span)


def through(checker: Checker, base: Typed, path: tuple[Member, ...], span: Span) -> Typed:
    """The object at the end of ``path``; embedded pointers on the way are followed."""
    for step in path:
        holder = follow_pointer(checker, base, span)
        _refuse_contradicted(checker, holder, step, span)
        base = part(holder, step, span)
    return base


def part(base: Typed, step: Member, span: Span) -> Part:
    """One member of the object ``base``."""
    return Part(base, step.offset, step.bits, step.type, span)


def _refuse_contradicted(checker: Checker, holder: Typed, step: Member, span: Span) -> None:
    # LLVM (seen in 14) describes a packed bit field that is as wide as its type, `short b : 16`,
    # as a member on a byte boundary, wherever it is. Source: DwarfUnit::constructMemberDIE
    # ("Size != FieldSize"). Then it overlaps the bit field before it or, where an unnamed one
    # lies between them, leaves a hole behind it that nothing accounts for.
    made = checker.resolved(holder.type)
    if step.bits is not None or not isinstance(made, StructType) or made.kind == "union":
        return
    scalar = isinstance(checker.resolved(step.type), IntType | CharType | BoolType | EnumType)
    size = checker.size(step.type) if scalar else None
    if not size or not any(other.bits for other in made.members):
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
    if function is not None and function.producer.startswith("GNU "):
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


def find(checker: Checker, holder: TypeId, name: str, span: Span) -> tuple[Member, ...] | None:
    """The members to go through from ``holder`` to ``name``: the shallowest match.

    Raises CompileError FC0208 where two stand equally deep. Source: Go specification,
    "Selectors"; C11 6.7.2.1p13 (members of an anonymous structure are members of the
    containing one).
    """
    level: list[tuple[TypeId, tuple[Member, ...]]] = [(holder, ())]
    seen: set[TypeId] = {holder}
    for _ in range(_DEEPEST):
        found = [
            (*path, step)
            for type_id, path in level
            for step in (*_members(checker, type_id), *_reckoned(checker, type_id))
            if name in (step.name, step.also)
        ]
        if len(found) > 1:
            raise _ambiguous(checker, holder, name, found, span)
        if found:
            return found[0]
        level = _embedded(checker, level, seen)
        if not level:
            return None
    return None


def _embedded(
    checker: Checker, level: list[tuple[TypeId, tuple[Member, ...]]], seen: set[TypeId]
) -> list[tuple[TypeId, tuple[Member, ...]]]:
    """What is embedded one level deeper; a type that is there twice is listed twice."""
    below: list[tuple[TypeId, tuple[Member, ...]]] = []
    times: dict[TypeId, int] = {}
    for type_id, path in level:
        for step in _members(checker, type_id):
            if not step.embedded:
                continue
            inner = _target(checker, step.type)
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


def _target(checker: Checker, type_id: TypeId) -> TypeId:
    # What an embedded member promotes from: its type, or the target of its pointer.
    bare = checker.bare(type_id)
    made = checker.program.type(bare)
    return checker.bare(made.target) if isinstance(made, PointerType) else bare


def _members(checker: Checker, type_id: TypeId) -> tuple[Member, ...]:
    match checker.resolved(type_id):
        case (
            StructType(members=members)
            | StringType(members=members)
            | SliceType(members=members)
            | SequenceType(members=members)
            | InterfaceType(members=members)
        ):
            return members
        case ComplexType() as made:
            from fetchc.check.halves import halves

            both = halves(checker, made)
            assert both is not None
            return both.members
        case _:
            return ()


def _reckoned(checker: Checker, type_id: TypeId) -> tuple[Member, ...]:
    made = checker.resolved(type_id)
    if not isinstance(made, StructType):
        return ()
    if made.variants:
        return tuple([variant.member for variant in made.variants])
    return made.reckoned


def _no_structure(
    checker: Checker, base: Typed, holder: Typed, name: str, span: Span
) -> CompileError:
    made = checker.resolved(holder.type)
    spelled = checker.spell(holder.type)
    label = Label(base.span, f"this is `{checker.spell(base.type)}`")
    if isinstance(made, DeclaredType):
        return reject(
            "FC0311",
            f"`{spelled}` is declared but defined nowhere in the file",
            base.span,
            "only declared",
            help=f"cast it to a type that is defined: `((struct ... *)…)->{name}`",
        )
    if isinstance(made, StructType):
        return reject("FC0302", f"`{spelled}` has no members", span, "unknown member")
    hint = None
    if isinstance(made, PointerType):
        hint = "dereference it once more first: `(*e)->" + name + "`"
    elif (
        isinstance(base, Follow) is False and checker.size(base.type) == checker.program.word_bytes
    ):
        hint = "cast it first, if it holds a pointer: `((struct s *)e)->" + name + "`"
    return reject(
        "FC0301",
        f"`{spelled}` is not a structure, it has no member `{name}`",
        span,
        "no members here",
        secondary=(label,),
        help=hint,
    )


def _no_member(checker: Checker, holder: Typed, name: str, span: Span) -> CompileError:
    from fetchc.check.suggest import nearest

    members = _members(checker, holder.type)
    spelled = checker.spell(holder.type)
    size = checker.size(holder.type)
    long = "" if size is None else f" of {size} bytes"  # a text of .NET is as long as it is
    shown = [f"{m.name or '(embedded)'} {checker.spell(m.type)} (+{m.offset})" for m in members]
    more = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
    close = nearest(name, _all_names(checker, holder.type))
    notes = [f"its members are {', '.join(shown[:12])}{more}"] if shown else []
    hint = f"a member with a similar name exists: `{close[0]}`" if close else None
    for base in _virtual_bases(checker, holder.type):
        notes.append(f"where its virtual base `{base.name}` is, is only known at run time")
        if base.slot is not None and _has(checker, base.name, name):
            hint = _in_virtual_base(base.name, base.slot, name)
    return reject(
        "FC0302",
        f"`{spelled}` has no member `{name}`",
        span,
        "unknown member",
        secondary=(Label(holder.span, f"this is `{spelled}`{long}"),),
        notes=tuple(notes),
        help=hint,
    )


def _has(checker: Checker, class_name: str, name: str) -> bool:
    known = checker.program.types_named(class_name, checker.site.function)
    return any(name in _all_names(checker, one) for one in known)


def _in_virtual_base(base: str, slot: int, name: str) -> str:
    # How to have such a member all the same, by two expressions.
    distance = f"(*(long **)p)[{slot}]"
    return (
        f"`{distance}` of the object's address `p` is how far it is: in a trace with "
        f"`--filter '{distance} == N'` write `(({base} *)((char *)p + N))->{name}`"
    )


def _virtual_bases(checker: Checker, holder: TypeId) -> list[UnknownType]:
    # A base that is not at the object's beginning has a table of its own, to count from there.
    found: dict[UnknownType, None] = {}
    level, seen = [(holder, True)], {holder}
    while level:
        type_id, first = level.pop(0)
        for step in _members(checker, type_id):
            inner = checker.resolved(step.type)
            if step.embedded and isinstance(inner, UnknownType):
                found[inner if first else UnknownType(inner.name, None, inner.reason)] = None
            elif step.embedded and (below := _target(checker, step.type)) not in seen:
                seen.add(below)
                level.append((below, first and step.offset == 0))
    return list(found)


def _all_names(checker: Checker, holder: TypeId) -> list[str]:
    names: list[str] = []
    level = [holder]
    seen: set[TypeId] = set()
    while level and len(names) < 5000:
        type_id = level.pop(0)
        for step in _members(checker, type_id):
            if step.name:
                names.append(step.name)
            if step.embedded and (inner := _target(checker, step.type)) not in seen:
                seen.add(inner)
                level.append(inner)
    return names
