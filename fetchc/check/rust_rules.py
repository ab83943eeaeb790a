"""Structures that wrap one value (a cell, a counted pointer of Rust), and references.

A member, an index or the length of one is that of its value. The language follows
references by itself; a raw pointer is one into an array, as in C.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.members import unchecked_assumption
from fetchc.check.type_rules import TypeRules
from fetchc.check.typed_tree import Address, AssumedVariant, Pointee, Subobject
from fetchc.program.types import PointerType, StructType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.check.walks import Walked
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.types import Member
    from fetchc.source import Span

__all__ = ["RUST", "unchecked_variant"]

_DEEPEST = 16  # wrappers in each other; only a hostile type has more
_RAW = "*"  # what the names of raw pointers begin with


def _reader_value(checker: Checker, node: Typed) -> Typed:
    """What a reader shows for a whole object: the contents of a cell, else the address."""
    for _ in range(_DEEPEST):
        resolved = checker.resolved(node.type)
        if not isinstance(resolved, StructType) or resolved.value is None:
            break
        if resolved.shared:
            inner = _shared(checker, node, resolved)
            return Address(inner, checker.pointer_to(inner.type), node.span)
        node = members.subobject(node, resolved.value, node.span)
    return node


def _dereferenced(checker: Checker, node: Typed, span: Span) -> Typed | None:
    """What ``*`` gives of a counted pointer, or of what holds a pointer; None of others."""
    for _ in range(_DEEPEST):
        resolved = checker.resolved(node.type)
        if isinstance(resolved, PointerType):
            return Pointee(node, resolved.target, node.span)
        if not isinstance(resolved, StructType) or resolved.value is None:
            return None
        if resolved.shared:
            return _shared(checker, node, resolved)
        node = members.subobject(node, resolved.value, node.span)
    return None


def _within(checker: Checker, node: Typed) -> Typed:
    """What is counted and indexed where ``node`` is: behind its references and wrappers."""
    for _ in range(_DEEPEST):
        resolved = checker.resolved(node.type)
        if (
            isinstance(resolved, PointerType)
            and resolved.name
            and not resolved.name.startswith(_RAW)
        ):
            node = Pointee(node, resolved.target, node.span)
        elif (
            isinstance(resolved, StructType) and resolved.value is not None and not resolved.counts
        ):
            node = _value(checker, node, resolved)
        else:
            break
    return node


def _wrapped_member(checker: Checker, holder: Typed, name: str, span: Span) -> Typed | None:
    """The member of a wrapper or of the value in it; None where neither has it."""
    resolved = checker.resolved(holder.type)
    wraps = isinstance(resolved, StructType) and resolved.value is not None
    return _member_of(checker, holder, name, span, 0) if wraps else None


def _member_of(checker: Checker, holder: Typed, name: str, span: Span, depth: int) -> Typed | None:
    holder = members.follow_pointer(checker, holder, holder.span)
    resolved = checker.resolved(holder.type)
    if not isinstance(resolved, StructType) or resolved.value is None or depth > _DEEPEST:
        return _own(checker, holder, name, span)
    value = _value(checker, holder, resolved)
    inner = _member_of(checker, value, name, span, depth + 1) if resolved.owned else None
    found = inner or _own(checker, holder, name, span)
    if found is None and not resolved.owned:
        found = _member_of(checker, value, name, span, depth + 1)
    if found is None and resolved.shared:  # its counters
        found = _own(checker, _counters(checker, holder, resolved), name, span)
    return found


def _own(checker: Checker, holder: Typed, name: str, span: Span) -> Typed | None:
    path = members.find(checker, holder.type, name, span)
    if path is None:
        return None
    members.assume_member(checker, holder, path, holder.span.to(span))
    return members.follow_path(checker, holder, path, holder.span.to(span))


def _value(checker: Checker, node: Typed, resolved: StructType) -> Typed:
    assert resolved.value is not None
    return (
        _shared(checker, node, resolved)
        if resolved.shared
        else members.subobject(node, resolved.value, node.span)
    )


def _counters(checker: Checker, node: Typed, resolved: StructType) -> Typed:
    assert resolved.value is not None
    pointer = members.subobject(node, resolved.value, node.span)
    return members.follow_pointer(checker, pointer, node.span)


def _shared(checker: Checker, node: Typed, resolved: StructType) -> Subobject:
    box = _counters(checker, node, resolved)
    inner = checker.resolved(box.type)
    assert isinstance(inner, StructType)
    value = next(one for one in inner.members if one.name == resolved.shared)
    return members.subobject(box, value, node.span)


# ------------------------------------------------------------------------------
# Variants of Rust's enums: their fields lie over each other, and one of them is there.


def _assume_variant(
    checker: Checker, holder: Typed, resolved: StructType, path: tuple[Member, ...], span: Span
) -> None:
    """Note that the first of ``path``, a variant, has to be there, for readers to compare."""
    variant = path[0]
    if resolved.members and variant in [one.member for one in resolved.variants]:
        tag = members.subobject(holder, resolved.members[0], span)
        tag_expression = ".discriminant"
        one = AssumedVariant(
            tag, resolved.variants, variant.name, holder.type, tag_expression, span
        )
        checker.assumptions.append(one)


def unchecked_variant(checker: Checker, one: AssumedVariant) -> Diagnostic:
    """The warning that a variant is read whichever is there."""
    return unchecked_assumption(
        f"the variant of the `{checker.spell(one.holder)}`",
        one.wanted,
        "what another variant holds is read as if it had this type",
        f"also fetch the discriminant: `{one.tag_expression}`; `fetchc trace` checks it",
        one.span,
    )


# ------------------------------------------------------------------------------
# Maps and sets.


def _container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    from fetchc.check.rust_collections import container

    return container(checker, base, span)


def _has_keys(checker: Checker, base: Typed) -> bool:
    resolved = checker.resolved(base.type)
    name = resolved.name.partition("<")[0] if isinstance(resolved, StructType) else ""
    return name.endswith(("Map", "Set"))


RUST = TypeRules(
    wrapped_member=_wrapped_member,
    assume_member=_assume_variant,
    referent=_within,
    dereference=_dereferenced,
    container=_container,
    has_keys=_has_keys,
    reader_value=_reader_value,
)
