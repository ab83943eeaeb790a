"""Variants of Rust's enums: their fields lie over each other, and one of them is there."""

from __future__ import annotations

from fetchc.diag.model import Diagnostic, Label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.program.types import Member, StructType
    from fetchc.source import Span

__all__ = ["tell_of_variant"]


def tell_of_variant(checker: Checker, made: StructType, variant: Member, span: Span) -> None:
    """Warn that ``variant`` of the enum ``made`` is read whichever is there."""
    if variant not in [one.member for one in made.variants] or not made.members:
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
