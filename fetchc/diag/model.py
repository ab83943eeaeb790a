"""What fetchc has to say about an argument, as data."""

from __future__ import annotations

from fetchc.record import Record
from fetchc.source import Span

__all__ = ["Diagnostic", "Label"]


class Label(Record):
    """A place in the argument's text and at most eight words about it."""

    span: Span
    text: str


class Diagnostic(Record):
    """One cause, said once.

    ``message`` stands alone: lower case, no full stop, names in back-ticks. ``notes``
    are facts that help to decide, ``help`` is one action that will work, ``origin``
    says where the fact was read (file, section and offset).
    """

    code: str
    message: str
    primary: Label | None = None
    secondary: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    origin: str | None = None

    @property
    def span(self) -> Span | None:
        """The characters of the argument that it is about, None where it is about none."""
        return None if self.primary is None else self.primary.span

    @property
    def severity(self) -> str:
        """``warning`` for the FC06 family (right, but it can surprise), else ``error``."""
        return "warning" if self.code.startswith("FC06") else "error"
