"""Members of C++ classes that are not simply in the object: static ones, those of a named base."""

from __future__ import annotations

from fetchc.check import members, scope
from fetchc.check.typed import Part
from fetchc.program.types import PointerType, StructType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Member
    from fetchc.source import Span
    from fetchc.units import TypeId

__all__ = ["bases", "captured", "of_class"]

_DEEPEST = 16  # classes below each other; only a cyclic, hostile type has more


def of_class(checker: Checker, base: Typed, name: str, span: Span, name_span: Span) -> Typed | None:
    """``p->Base::member``, and ``p->shared`` of a static member; None of other members."""
    holder = members.follow_pointer(checker, base, base.span)
    made = checker.resolved(holder.type)
    if not isinstance(made, StructType):
        return None
    if "::" in name:
        return _of_base(checker, holder, name, name_span)
    if not made.name or members.find(checker, holder.type, name, name_span) is not None:
        return None
    for one, class_id in _classes(checker, holder.type):
        # To find out that there is no such variable takes a search through the whole file.
        if not checker.program.has_static_member(class_id, name):
            continue
        variable = scope.find_global(checker, f"{one}::{name}", None, name_span)
        if variable is not None:
            return scope.held(checker, variable, span)
    return None


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


def _of_base(checker: Checker, holder: Typed, name: str, name_span: Span) -> Typed | None:
    wanted, _, plain = name.rpartition("::")
    if _answers(checker, holder.type, wanted):
        return members.member(checker, holder, plain, name_span)
    for path in bases(checker, holder.type):
        if _answers(checker, path[-1].type, wanted):
            inner = holder
            for step in path:
                inner = Part(inner, step.offset, None, step.type, holder.span)
            return members.member(checker, inner, plain, name_span)
    return None


def _answers(checker: Checker, type_id: TypeId, wanted: str) -> bool:
    made = checker.resolved(type_id)
    if not isinstance(made, StructType):
        return False
    return made.name == wanted or made.name.endswith(f"::{wanted}")


def _classes(checker: Checker, type_id: TypeId) -> list[tuple[str, TypeId]]:
    """The class and its bases that have names."""
    found = [type_id, *[path[-1].type for path in bases(checker, type_id)]]
    made = [(checker.resolved(one), checker.bare(one)) for one in found]
    return [
        (one.name, class_id) for one, class_id in made if isinstance(one, StructType) and one.name
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
