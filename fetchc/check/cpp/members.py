"""Members of C++ classes that are not simply in the object: static ones, those of a named base."""

from __future__ import annotations

from fetchc.check import members, scope
from fetchc.check.typed import Part
from fetchc.diag.diagnostic import reject
from fetchc.program.types import PointerType, StructType, UnknownType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.entities import Variable
    from fetchc.program.types import Member
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["bases", "captured", "of_class", "of_class_named"]

_DEEPEST = 16  # classes below each other; only a cyclic, hostile type has more


def of_class(checker: Checker, base: Typed, name: str, span: Span, name_span: Span) -> Typed | None:
    """``p->Base::member``, and ``p->shared`` of a static member; None of other members."""
    holder = members.follow_pointer(checker, base, base.span)
    made = checker.resolved(holder.type)
    if not isinstance(made, StructType):
        return None
    wanted, _, plain = name.rpartition("::")
    if wanted:
        found = _of_base(checker, holder, name, span, name_span)
    elif not made.name or members.find(checker, holder.type, name, name_span) is not None:
        return None
    else:
        found = _shared(checker, holder.type, name, span)
    if found is None and any(_is_virtual(checker, path) for path in bases(checker, holder.type)):
        from fetchc.check.cpp.virtual_bases import of_virtual_base

        found = of_virtual_base(checker, holder, plain, span, wanted)
    return found


def of_class_named(checker: Checker, name: str, span: Span) -> Typed | None:
    """``Derived::shared``, a static member that the class may have of a base; None of others."""
    wanted, _, plain = name.rpartition("::")
    if not wanted:
        return None
    for type_id in checker.program.types_named(wanted, checker.site.scope):
        found = _shared(checker, type_id, plain, span)
        if found is not None:
            return found
    return None


def _shared(checker: Checker, type_id: TypeId, name: str, span: Span) -> Typed | None:
    # What objects of the class share, a variable or an enumerator: its own or the nearest base's.
    found: list[tuple[int, Variable]] = []
    for depth, one, class_id in _classes(checker, type_id):
        # To find out that there is no such variable takes a search through the whole file.
        if not checker.program.has_static_member(class_id, name):
            continue
        variable = scope.find_global(checker, f"{one}::{name}", None, span)
        if variable is None and not found:
            number = scope.enumerator(checker, f"{one}::{name}", span)
            if number is not None:
                return number
        if variable is not None and (not found or depth == found[0][0]):
            found.append((depth, variable))
    if len({variable.die for _, variable in found}) > 1:
        raise reject(
            "FC0208",
            f"several bases of `{checker.spell(type_id)}` have a static `{name}`",
            span,
            "which one is meant",
            notes=(f"they are {', '.join(f'`{variable.name}`' for _, variable in found)}",),
            help=f"name one whole: `{found[0][1].name}`",
        )
    return scope.held(checker, found[0][1], span) if found else None


def captured(checker: Checker, closure: Typed, mark: str, name: str, span: Span) -> Typed | None:
    """A variable that a lambda captured, or a member of the object that it was made in.

    ``mark`` is what its compiler puts before the names of captured variables: gcc ``__``, clang
    nothing. Both capture ``this`` under that name.
    """
    made = checker.resolved(closure.type)
    if not isinstance(made, StructType) or (made.name and not made.name.startswith("<lambda")):
        return None
    path = members.find(checker, closure.type, f"{mark}{name}", span)
    if path is not None:
        return members.through(checker, closure, path, span)
    path = members.find(checker, closure.type, f"{mark}this", span)
    if path is None:
        return None
    this = members.through(checker, closure, path, span)
    holder = members.follow_pointer(checker, this, span)
    path = members.find(checker, holder.type, name, span)
    return None if path is None else members.through(checker, holder, path, span)


def _of_base(
    checker: Checker, holder: Typed, name: str, span: Span, name_span: Span
) -> Typed | None:
    # A member of the class or of one of its bases, by the name of that class: ``Base::member``.
    wanted, _, plain = name.rpartition("::")
    classes: list[tuple[int, Typed]] = []
    for path in ((), *bases(checker, holder.type)):
        inner, offset = holder, 0
        for step in path:
            inner = Part(inner, step.offset, None, step.type, holder.span)
            offset += step.offset
        if _answers(checker, inner.type, wanted):
            classes.append((offset, inner))
    for _, inner in classes:
        way = members.find(checker, inner.type, plain, name_span)
        if way is None:
            shared = _shared(checker, inner.type, plain, span)
            if shared is not None:
                return shared
            continue
        if len({at for at, _ in classes}) > 1:
            ways = [f"`{checker.spell(one.type)}` (+{at})" for at, one in classes]
            raise reject(
                "FC0208",
                f"`{checker.spell(holder.type)}` has the base `{wanted}` {len(classes)} times",
                name_span,
                "which one is meant",
                notes=(f"they are {', '.join(ways)}",),
                help="go through the base in between: `Middle::member` of the object",
            )
        return members.through(checker, inner, way, span)
    return None


def _is_virtual(checker: Checker, path: tuple[Member, ...]) -> bool:
    return isinstance(checker.resolved(path[-1].type), UnknownType)


def _answers(checker: Checker, type_id: TypeId, wanted: str) -> bool:
    made = checker.resolved(type_id)
    if not isinstance(made, StructType):
        return False
    return made.name == wanted or made.name.endswith(f"::{wanted}")


def _classes(checker: Checker, type_id: TypeId) -> list[tuple[int, str, TypeId]]:
    """The class and its bases that have names, each with how far up it is."""
    found = [(0, type_id), *[(len(path), path[-1].type) for path in bases(checker, type_id)]]
    made = [(depth, checker.resolved(one), checker.bare(one)) for depth, one in found]
    return [
        (depth, one.name, class_id)
        for depth, one, class_id in made
        if isinstance(one, StructType) and one.name
    ]


def bases(checker: Checker, type_id: TypeId) -> list[tuple[Member, ...]]:
    """The ways to the base classes, the nearest first."""
    found: list[tuple[Member, ...]] = []
    level: list[tuple[TypeId, tuple[Member, ...]]] = [(type_id, ())]
    for _ in range(_DEEPEST):
        below = []
        for one, path in level:
            made = checker.resolved(one)
            for step in made.members if isinstance(made, StructType) else ():
                # A base class is embedded and has a name, other than anonymous members.
                inner = checker.resolved(step.type)
                if step.embedded and step.name and not isinstance(inner, PointerType):
                    below.append((step.type, (*path, step)))
        found += [path for _, path in below]
        level = below
    return found
