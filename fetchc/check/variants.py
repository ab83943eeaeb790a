"""Variants of Rust's enums: their fields lie over each other, and one of them is there."""

from __future__ import annotations

from fetchc.diag.model import Diagnostic, Label
from fetchc.program.types import DifferenceType, StructType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Member
    from fetchc.source import Span

__all__ = ["tell_of_variant"]


def tell_of_variant(checker: Checker, holder: Typed, variant: Member, span: Span) -> None:
    """Warn that ``variant`` of the enum ``holder`` is read whichever is there."""
    made = checker.resolved(holder.type)
    reckoned = isinstance(checker.resolved(variant.type), DifferenceType)
    if reckoned or not isinstance(made, StructType) or not made.members:
        return
    told = made.members[0].name
    checker.warnings.append(
        Diagnostic(
            "FC0620",
            f"nothing compares the variant of the `{made.name}` with `{variant.name}`",
            Label(span, "read so whatever it is"),
            notes=("the fields of another variant are read as if they were of this one",),
            help=f"fetch which one it is beside it: `.{told}`",
        )
    )
