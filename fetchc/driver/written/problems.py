"""What is wrong with a hand-written definition, in its place in the text."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, Label
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.target.kernel_versions import Kernel

__all__ = ["Depends", "placed", "problem_at"]


def problem_at(code: str, what: str, span: Span, label: str, note: str = "") -> Diagnostic:
    """A diagnostic with a place and at most one note."""
    return Diagnostic(code, what, Label(span, label), notes=(note,) if note else ())


def placed(found: Diagnostic, span: Span, label: str) -> Diagnostic:
    """What is ``found`` of a fetch or a name, neither of which knows of text, with its place."""
    return Diagnostic(
        found.code, found.message, Label(span, label), (), found.notes, found.help, found.origin
    )


class Depends(Record):
    """Something that a kernel without ``feature`` refuses; with it, ``instead`` is wrong."""

    feature: str
    what: str
    span: Span
    note: str = ""
    instead: Diagnostic | None = None

    def problem_for(self, kernel: Kernel) -> Diagnostic | None:
        """What is wrong for this kernel."""
        if kernel.has(self.feature):
            return self.instead
        last = kernel.last(self.feature)
        until = "" if last is None else f", {last} the last"
        note = f"Linux {kernel.first(self.feature)} was the first{until}{self.note}"
        what = f"Linux {kernel.name} does not know {self.what}"
        return problem_at("FC0506", what, self.span, "not known", note)
