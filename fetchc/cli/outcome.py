"""What became of one expression of a command line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api import Argument
    from fetchc.diag.model import Diagnostic

__all__ = ["Outcome"]


class Outcome:
    """One expression: its argument, or why it was refused."""

    __slots__ = ("argument", "refused", "text", "whole")

    def __init__(self, text: str, whole: bool) -> None:
        self.text = text
        self.whole = whole
        self.argument: Argument | None = None
        self.refused: tuple[Diagnostic, ...] = ()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything to say about the expression."""
        if self.argument is None:
            return self.refused
        return self.argument.whole.warnings if self.whole else self.argument.warnings
