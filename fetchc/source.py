"""Where something stands in the text a user wrote."""

from __future__ import annotations

from fetchc.record import Record

__all__ = ["Span"]


class Span(Record):
    """A half-open range of characters of one argument's text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The range from the start of this one to the end of ``other``."""
        return Span(self.start, other.end)
