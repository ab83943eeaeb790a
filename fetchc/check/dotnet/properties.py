"""Properties that are no fields: read where the getter is known to return some, else refused."""

from __future__ import annotations

from fetchc.check.members import members_of
from fetchc.check.uncompared import uncompared
from fetchc.check.unknown_members import no_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Member
    from fetchc.source import Span

__all__ = ["by_getter", "take_for_granted"]

_SHOWN = 3  # classes that a note lists


def by_getter(checker: Checker, holder: Typed, name: str, span: Span) -> tuple[Member, ...] | None:
    """The members that lead from ``holder`` to its property of that name; None if it has none.

    Raises CompileError FC0302 where the value depends on more than fields.
    """
    found = checker.program.property_of(checker.bare(holder.type), name)
    if found is None:
        return None
    if not found.why:
        return found.path
    hint = ""
    if not members_of(checker, holder.type):
        hint = f"cast it to the class that the object is of: `((Class)e).{name}`"
    elif found.path:
        fields = ".".join([step.name for step in found.path])
        hint = f"what `{found.getter}` returns: `{fields}`"
    raise no_member(checker, holder, name, span, f"`{name}` is a property: {found.why}", hint)


def take_for_granted(checker: Checker, holder: Typed, name: str, span: Span) -> None:
    """Warn where the field of an automatic property is read, and a derived class has another
    getter: of its objects the field is not what the program has under that name.
    """
    found = checker.program.property_of(checker.bare(holder.type), name)
    if found is None or not found.others:
        return
    more = " and others" if len(found.others) > _SHOWN else ""
    listed = ", ".join([f"`{one}`" for one in found.others[:_SHOWN]])
    has, its = ("has", "its") if len(found.others) == 1 else ("have", "their")
    note = f"{listed}{more} {has} a `{name}` of {its} own, which is read elsewhere"
    help = f"cast it to the class that it is of: `(({found.others[0]})e).{name}`"
    wanted = checker.spell(holder.type)
    checker.warnings.append(uncompared("the object's type", wanted, note, help, span))
