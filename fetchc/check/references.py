"""Casts of .NET: a reference read as one to another class, the value in a box.

What an object is of cannot be compared in a probe: a warning says so where the source would have
the runtime check it.
"""

from __future__ import annotations

from fetchc.check.typed import Follow, Shift
from fetchc.diag.model import Diagnostic, Label
from fetchc.program.types import PointerType, SequenceType, StructType
from fetchc.units import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Type
    from fetchc.source import Span
    from fetchc.units import TypeId

__all__ = ["cast_reference"]

_DEEPEST = 64  # bases of a class; only a cyclic, hostile one has more


def cast_reference(
    checker: Checker, wanted: TypeId, base: Typed, source: PointerType, span: Span
) -> Typed | None:
    """``base``, a pointer, as a cast to ``wanted`` means it; None where no reference is meant."""
    held = checker.resolved(source.target)
    target = checker.resolved(wanted)
    if source.reference or not _is_class(held):
        return None
    if _is_class(target):
        if not _has_base(checker, source.target, wanted):
            checker.warnings.append(_uncompared(checker, wanted, span))
        return Shift(base, ByteOffset(0), checker.pointer_to(wanted), span)
    # Only what says nothing of its contents (object, an interface) can be a box.
    size = checker.size(source.target)
    boxed = isinstance(held, StructType) and not held.members and size is not None
    if not boxed or isinstance(target, PointerType) or checker.size(wanted) is None:
        return None
    assert size is not None
    checker.warnings.append(_uncompared(checker, wanted, span))
    inside = Shift(base, ByteOffset(size), checker.pointer_to(wanted), span)
    return Follow(inside, wanted, span)


def _is_class(made: Type) -> bool:
    if isinstance(made, SequenceType):
        return not made.value
    return isinstance(made, StructType) and made.kind == "class"


def _has_base(checker: Checker, type_id: TypeId, wanted: TypeId) -> bool:
    for _ in range(_DEEPEST):
        if type_id == wanted:
            return True
        made = checker.resolved(type_id)
        members = made.members if isinstance(made, StructType | SequenceType) else ()
        if not members or not members[0].embedded:
            break
        type_id = members[0].type
    return checker.spell(wanted) == "object"


def _uncompared(checker: Checker, wanted: TypeId, span: Span) -> Diagnostic:
    return Diagnostic(
        "FC0620",
        f"nothing compares the object's type with `{checker.spell(wanted)}`",
        Label(span, "read so whatever it is"),
        notes=("an object of another type is read as if it were of this one",),
        help="cast only where the program itself is sure of it",
    )
