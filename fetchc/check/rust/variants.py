"""Variants of Rust's enums: their fields lie over each other, and one of them is there."""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.typed import Present
from fetchc.check.uncompared import uncompared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.types import Member, StructType
    from fetchc.source import Span

__all__ = ["take_for_granted", "uncompared_variant"]


def take_for_granted(
    checker: Checker, holder: Typed, made: StructType, variant: Member, span: Span
) -> None:
    """Note that ``variant`` of the enum ``holder`` has to be there, for whoever can compare."""
    if made.members and variant in [one.member for one in made.variants]:
        tag = members.part(holder, made.members[0], span)
        told_by = ".discriminant"
        one = Present(tag, made.variants, variant.name, holder.type, told_by, span)
        checker.assertions.append(one)


def uncompared_variant(checker: Checker, one: Present) -> Diagnostic:
    """The warning that a variant is read whichever is there."""
    return uncompared(
        f"the variant of the `{checker.spell(one.holder)}`",
        one.wanted,
        "what another variant holds is read as if it were of this one",
        f"fetch which one it is beside it: `{one.told_by}`; `fetchc trace` compares",
        one.span,
    )
