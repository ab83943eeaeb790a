"""What fetchc has to say about an argument, as data."""

from __future__ import annotations

from fetchc.record import Record
from fetchc.source import Span

__all__ = ["Diagnostic", "Label", "cut", "shortened"]

LONGEST = 2000  # characters of a message, a note or a help: names of a file can have megabytes
_END = 200  # of them from the end, where a message says what is wrong


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


def cut(text: str) -> str:
    """``text`` without its middle where it is longer than anybody reads."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - _END]} … {text[-_END:]}"


def shortened(diagnostic: Diagnostic) -> Diagnostic:
    """The same diagnostic, of which each text has a bounded length."""
    labels = [each for each in (diagnostic.primary, *diagnostic.secondary) if each is not None]
    texts = (diagnostic.message, diagnostic.help or "", diagnostic.origin or "", *diagnostic.notes)
    if max(map(len, texts)) <= LONGEST and all(len(each.text) <= LONGEST for each in labels):
        return diagnostic
    primary, secondary = diagnostic.primary, diagnostic.secondary
    return Diagnostic(
        diagnostic.code,
        cut(diagnostic.message),
        None if primary is None else Label(primary.span, cut(primary.text)),
        tuple([Label(each.span, cut(each.text)) for each in secondary]),
        tuple([cut(each) for each in diagnostic.notes]),
        None if diagnostic.help is None else cut(diagnostic.help),
        None if diagnostic.origin is None else cut(diagnostic.origin),
    )
