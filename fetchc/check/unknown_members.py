"""Refusals of names of members that a type does not have, with what may have been meant."""

from __future__ import annotations

from fetchc.check.members import members_of, promoted_from
from fetchc.check.suggest import nearest
from fetchc.check.typed import Follow
from fetchc.diag.diagnostic import Label, reject
from fetchc.program.types import (
    ArrayType,
    DeclaredType,
    MapType,
    PointerType,
    StructType,
    UnknownType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["no_member", "no_structure"]


def no_structure(
    checker: Checker, base: Typed, holder: Typed, name: str, span: Span
) -> CompileError:
    """The refusal of a member of what is no structure; ``holder`` is what ``base`` leads to."""
    made = checker.resolved(holder.type)
    spelled = checker.spell(holder.type)
    label = Label(base.span, f"this is `{checker.spell(base.type)}`")
    if isinstance(made, DeclaredType):
        several = checker.program.types_named(f"{made.kind} {made.name}", None)
        if len(several) > 1:
            return reject(
                "FC0311",
                f"`{spelled}` is only declared here, and defined in {len(several)} ways elsewhere",
                base.span,
                "which definition it has is not said",
                help="probe a function of the file whose definition you mean",
            )
        return reject(
            "FC0311",
            f"`{spelled}` is declared but defined nowhere in the file",
            base.span,
            "only declared",
            help=f"cast it to a type that is defined: `((struct ... *)…)->{name}`",
        )
    if isinstance(made, StructType):
        hint = None
        if checker.site.language.name == ".NET":  # an interface, or `object`
            hint = f"cast it to the class that the object is of: `((Class)e).{name}`"
        return reject("FC0302", f"`{spelled}` has no members", span, "unknown member", help=hint)
    hint = None
    if isinstance(made, PointerType):
        hint = "dereference it once more first: `(*e)->" + name + "`"
    elif not isinstance(base, Follow) and checker.size(base.type) == checker.program.word_bytes:
        language = checker.site.language
        pointer = language.pointer_cast.format(type="T", value="e")
        example = language.pointer_member.format(pointer=pointer, name=name)
        hint = f"cast it first, if it holds a pointer: `{example}`"
    if isinstance(made, ArrayType) and isinstance(checker.resolved(made.element), StructType):
        hint = f"name it of one element: `e[0].{name}`; `fetchc trace` shows elements whole"
    if isinstance(made, MapType):
        hint = "its number of entries can be had: `len(e)`"
    return reject(
        "FC0301",
        f"`{spelled}` is not a structure, it has no member `{name}`",
        span,
        "no members here",
        secondary=(label,),
        help=hint,
    )


def no_member(
    checker: Checker, holder: Typed, name: str, span: Span, why: str = "", instead: str = ""
) -> CompileError:
    """The refusal of a name that no member of ``holder`` has, with those that it has.

    ``why`` tells what else has the name, ``instead`` what to do then.
    """
    members = members_of(checker, holder.type)
    spelled = checker.spell(holder.type)
    size = checker.size(holder.type)
    long = "" if size is None else f" of {size} bytes"  # a text of .NET is as long as it is
    shown = [f"{m.name or '(embedded)'} {checker.spell(m.type)} (+{m.offset})" for m in members]
    more = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
    close = nearest(name, _all_names(checker, holder.type))
    notes = [f"its members are {', '.join(shown[:12])}{more}"] if shown else []
    hint = f"a member with a similar name exists: `{close[0]}`" if close else None
    if why:
        notes.insert(0, why)
        hint = instead or hint or "read the fields that it is made of"
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
    known = checker.program.types_named(class_name, checker.site.scope)
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
        for step in members_of(checker, type_id):
            inner = checker.resolved(step.type)
            if step.embedded and isinstance(inner, UnknownType):
                found[inner if first else UnknownType(inner.name, None, inner.reason)] = None
            elif step.embedded and (below := promoted_from(checker, step.type)) not in seen:
                seen.add(below)
                level.append((below, first and step.offset == 0))
    return list(found)


def _all_names(checker: Checker, holder: TypeId) -> list[str]:
    names: list[str] = []
    level = [holder]
    seen: set[TypeId] = set()
    while level and len(names) < 5000:
        type_id = level.pop(0)
        for step in members_of(checker, type_id):
            if step.name:
                names.append(step.name)
            if step.embedded and (inner := promoted_from(checker, step.type)) not in seen:
                seen.add(inner)
                level.append(inner)
    return names
