"""Refusals of names that mean nothing: of variables at the probe site, of members of a type.

Each says what names there are, and which one may be meant. Off the hot path.
"""

from __future__ import annotations

from fetchc.check.scope import receiver, visible
from fetchc.check.suggestions import name_meant, nearest
from fetchc.check.typed_tree import Pointee
from fetchc.diag.diagnostic import CompileError, Label, reject
from fetchc.program.demangle import readable
from fetchc.program.types import (
    CellType,
    DeclaredType,
    MapType,
    PointerType,
    RangeType,
    StructType,
    UnknownType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Member
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["all_members", "refuse_member", "refuse_name", "refuse_no_structure"]

# ------------------------------------------------------------------------------
# Refusals of names of members that a type does not have, with what may have been meant.


def refuse_no_structure(
    checker: Checker, base: Typed, holder: Typed, name: str, span: Span
) -> CompileError:
    """The refusal of a member of what is not a structure; ``holder`` is what ``base`` leads to."""
    resolved = checker.resolved(holder.type)
    spelled = checker.spell(holder.type)
    label = Label(base.span, f"this is `{checker.spell(base.type)}`")
    if isinstance(resolved, DeclaredType):
        several = checker.program.types_named(f"{resolved.kind} {resolved.name}", None)
        if len(several) > 1:
            return reject(
                "FC0311",
                f"`{spelled}` is only declared here, and defined in {len(several)} ways elsewhere",
                base.span,
                "several definitions",
                help="probe a function of the file whose definition you mean",
            )
        return reject(
            "FC0311",
            f"`{spelled}` is declared but not defined in the file",
            base.span,
            "only declared",
            help=f"cast it to a type that is defined: `((struct ... *)…)->{name}`",
        )
    if isinstance(resolved, CellType):
        from fetchc.check.array_dimensions import refuse_cell_member

        return refuse_cell_member(resolved, name, span)
    if isinstance(resolved, StructType):
        no_members_help = checker.rules.no_members_help
        hint = None if no_members_help is None else no_members_help(name)
        return reject("FC0302", f"`{spelled}` has no members", span, "unknown member", help=hint)
    hint = None
    if isinstance(resolved, PointerType):
        hint = "dereference it once more first: `(*e)->" + name + "`"
    elif not isinstance(base, Pointee) and checker.size(base.type) == checker.program.word_bytes:
        language = checker.site.language
        pointer = language.pointer_cast.format(type="T", value="e")
        example = language.pointer_member.format(pointer=pointer, name=name)
        hint = f"cast it first, if it holds a pointer: `{example}`"
    if isinstance(resolved, MapType):
        hint = "fetch its number of entries: `len(e)`"
    hint = _of_elements(checker, holder, name) or hint
    return reject(
        "FC0301",
        f"`{spelled}` is not a structure, it has no member `{name}`",
        span,
        "no members here",
        secondary=(label,),
        help=hint,
    )


def _of_elements(checker: Checker, holder: Typed, name: str) -> str | None:
    # How to have the member of the elements, where ``holder`` has elements with such a member.
    from fetchc.check.indexing import element_at

    held = checker.resolved(holder.type)
    if isinstance(held, MapType):
        element, hint = held.element, f"`fetchc trace` has it of the values: `e[:].{name}`"
    elif isinstance(held, RangeType):
        element, hint = held.element, f"`fetchc trace` has it of all elements: `list(e).{name}`"
    else:
        hint = f"name it in one element: `e[0].{name}`; `fetchc trace` has all: `list(e).{name}`"
        try:
            element = element_at(checker, holder, 0, holder.span, holder.span).type
        except CompileError:
            return None
    resolved = checker.resolved(element)
    if isinstance(resolved, PointerType):
        element = resolved.target
    return hint if name in _all_names(checker, element) else None


def refuse_member(
    checker: Checker, holder: Typed, name: str, span: Span, why: str = "", instead: str = ""
) -> CompileError:
    """The refusal of a name that no member of ``holder`` has, with those that it has.

    ``why`` says what else has the name, ``instead`` what to do then.
    """
    members = checker.members_of(holder.type)
    spelled = checker.spell(holder.type)
    size = checker.size(holder.type)
    long = "" if size is None else f" of {size} bytes"  # a string of .NET is as long as it is
    shown = [f"{m.name or '(embedded)'} {checker.spell(m.type)} (+{m.offset})" for m in members]
    more = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
    close = nearest(name, _all_names(checker, holder.type))
    notes = [f"its members are {', '.join(shown[:12])}{more}"] if shown else []
    hint = _of_elements(checker, holder, name)
    if close:
        hint = f"a member with a similar name exists: `{close[0]}`"
    if why:
        notes.insert(0, why)
        hint = instead or hint or "read the fields that it is made of"
    for base in _virtual_bases(checker, holder.type):
        notes.append(f"the offset of its virtual base `{base.name}` is only known at run time")
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
    types = checker.program.types_named(class_name, checker.site.scope)
    return any(name in _all_names(checker, one) for one in types)


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
        for step in checker.members_of(type_id):
            inner = checker.resolved(step.type)
            if step.embedded and isinstance(inner, UnknownType):
                found[inner if first else UnknownType(inner.name, None, inner.reason)] = None
            elif step.embedded and (below := checker.promoted_from(step.type)) not in seen:
                seen.add(below)
                level.append((below, first and step.offset == 0))
    return list(found)


def all_members(checker: Checker, holder: TypeId) -> list[Member]:
    """The members that a type has, then those that embedded members promote, the deeper the later.

    Of a hostile type some thousands at most.
    """
    found: list[Member] = []
    level = [holder]
    seen: set[TypeId] = set()
    while level and len(found) < 5000:
        type_id = level.pop(0)
        for step in checker.members_of(type_id):
            if step.name:
                found.append(step)
            if step.embedded and (inner := checker.promoted_from(step.type)) not in seen:
                seen.add(inner)
                level.append(inner)
    return found


def _all_names(checker: Checker, holder: TypeId) -> list[str]:
    return [member.name for member in all_members(checker, holder)]


# ------------------------------------------------------------------------------
# The refusal of names that mean nothing at the probe site, with what there is.


def refuse_name(checker: Checker, name: str, span: Span) -> CompileError:
    """The refusal of a name that means nothing here, with what there is."""
    site = checker.site
    if site.static is not None and (site.function is None or site.function.die is None):
        return reject(
            "FC0201",
            f"`{name}` has no meaning at `{site.static.whole_name}`: the file "
            "describes only the arguments of that probe",
            span,
            "no debug information",
            help="use `$arg1`, `$arg2`, …: `fetchc variables` lists them",
            reason="unknown name",
        )
    if site.function is None and site.program.has_debug_info:
        return reject(
            "FC0201",
            f"`{name}` has no meaning at a bare address",
            span,
            "no function is known here",
            help="name the function with --function, or use registers: `%di`, `$arg1`",
            reason="unknown name",
        )
    if site.function is None or site.function.die is None:
        function = site.function  # without an entry, its name is the symbol's
        where = f"{site.address:#x}" if function is None else f"`{readable(function.name)}`"
        notes, help = site.program.debug_info_advice()
        return reject(
            "FC0903",
            f"{where} has no debug information, so no name is known there",
            span,
            "unknown name",
            notes=notes,
            help=f"{help}; or use `$arg1`, `%di` with a cast",
            reason="unknown name",
        )
    # Go's results without a name (~r0) are asked for by $ret0, its compiler's own (.dict) never.
    named = [v.name.lstrip("&") for v in visible(site, site.function)]
    # From Go 1.27 on it describes the slots of a string's parts, too (`s.ptr`).
    names = [one for one in named if not one.startswith("~") and "." not in one]
    own = _members_of_receiver(checker)
    close = nearest(name, [*names, *own])
    listed = ", ".join(filter(None, dict.fromkeys(names)))
    if name == "current" and site.program.in_kernel:
        close = ("$current",)  # the name that kernel code has for it
    elsewhere = name_meant(name, [one.name for one in site.program.parameters(site.function)])
    result = None if listed else site.program.result(site.function)
    resolved = None if result is None else site.program.type(result)
    why = f" that are known: {resolved.reason}" if isinstance(resolved, UnknownType) else ""
    hint = "build it with -g; or use `$arg1`, `%di` with a cast" if why else None
    imported = site.program.elf.imported(name)
    if not named and checker.rules.no_variables is not None:
        why, hint = checker.rules.no_variables(checker) or (why, hint)
    similar = f"a variable with a similar name is visible: `{close[0]}`" if close else None
    return reject(
        "FC0201",
        f"no variable `{name}` is visible at `{site.function.name}`",
        span,
        "unknown name",
        notes=(
            f"visible here: {listed}" if listed else f"the function has no variables{why}",
            *([f"members of the object, too: {', '.join(own[:_SHOWN])}"] if own else []),
        ),
        help="; ".join(
            filter(None, (imported and _of_library(*imported), elsewhere, similar, hint))
        )
        or None,
        reason="unknown name",
    )


_SHOWN = 12  # members that a note lists


def _members_of_receiver(checker: Checker) -> list[str]:
    # What a method may name without `this`.
    this = receiver(checker)
    resolved = None if this is None else checker.resolved(this.type)
    if not isinstance(resolved, PointerType):
        return []
    members = checker.members_of(resolved.target)
    return [one.name for one in members if one.name.isidentifier() and not one.embedded]


def _of_library(needed: tuple[str, ...], path: str) -> str:
    # It has a symbol here, and the debug information neither a type nor a declaration.
    where = f"`{path}`" if path else f"one of {', '.join(f'`{one}`' for one in needed)}"
    return (
        "another file defines it, and this one does not describe it: probe a function of "
        f"{where}, which has it"
    )
