"""The warning that an object is read as what it may not be (FC0620)."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, Label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.source import Span

__all__ = ["uncompared"]


def uncompared(what: str, wanted: object, note: str, help: str, span: Span) -> Diagnostic:
    """Nothing compares ``what`` (the object's type, the variant) with ``wanted``."""
    return Diagnostic(
        "FC0620",
        f"nothing compares {what} with `{wanted}`",
        Label(span, "read so whatever it is"),
        notes=(note,),
        help=help,
    )
