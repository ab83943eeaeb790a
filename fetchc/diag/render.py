"""Diagnostics as text, in the manner of rustc.

The layout is for people and may change between releases; the code, severity, span
and message of ``--format json`` are what programs read. Everything that comes from
outside (the expression, names out of debug information) is shown so that no character
of it can move the cursor, change colours or hide others.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, shortened
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["printable", "render"]

# Display columns of the shown expression; a longer one is cut to a window around the labels.
_WINDOW = 88
_BEFORE = 24  # columns of a window that stand before what it is about, for context
_CUT = "..."

_BOLD = "\x1b[1m"
_RED = "\x1b[1;31m"
_YELLOW = "\x1b[1;33m"
_BLUE = "\x1b[1;34m"
_RESET = "\x1b[0m"


def render(diagnostic: Diagnostic, text: str, name: str = "<argument>", color: bool = False) -> str:
    """Lines without a final newline: header, the place in ``text``, notes, help, origin.

    ``text`` is what the spans count in, empty where there is nothing to show; ``name`` says
    where the user gave it. Spans that reach beyond ``text`` are cut to it.
    """
    diagnostic = shortened(diagnostic)
    paint = _painted if color else _plain
    tint = _YELLOW if diagnostic.severity == "warning" else _RED
    lines = [
        paint(f"{diagnostic.severity}[{diagnostic.code}]", tint)
        + paint(": " + printable(diagnostic.message), _BOLD)
    ]
    notes = list(diagnostic.notes)
    primary = () if diagnostic.primary is None else ((diagnostic.primary, "^", tint),)
    labels = [
        (_within(label.span, text), label.text, mark, tint)
        for label, mark, tint in (*primary, *((it, "-", _BLUE) for it in diagnostic.secondary))
    ]
    if labels and text:
        bar = paint("   |", _BLUE)
        lines.append(f"{paint('  -->', _BLUE)} {printable(name)}:1:{labels[0][0].start + 1}")
        lines.append(bar)
        window = _window(text, [span for span, *_ in labels])
        left, right = _marks(text, window)
        shown = "".join(_cells(text[window.start : window.end]))
        lines.append(f"{paint(' 1 |', _BLUE)} {left}{shown}{right}".rstrip())
        for span, about, mark, tint in labels:
            if _outside(span, window):
                notes.append(f"at 1:{span.start + 1}: {about}")
                continue
            indent, length = _underline(text, window, span)
            marks = paint((mark * length + " " + printable(about)).rstrip(), tint)
            lines.append(f"{bar} {' ' * (len(left) + indent)}{marks}")
    endings = [("note", note) for note in notes]
    endings += [("help", diagnostic.help)] if diagnostic.help is not None else []
    endings += [("from", diagnostic.origin)] if diagnostic.origin is not None else []
    for kind, ending in endings:
        lines.append(f"{paint('   =', _BLUE)} {paint(kind, _BOLD)}: {printable(ending)}")
    return "\n".join(lines)


def printable(text: str) -> str:
    """``text`` on one line, with escapes for all that does not print as itself.

    Those are control and format characters (also the ones that turn the direction of
    text), lone surrogates, and separators other than the blank.
    """
    return text if text.isprintable() else "".join(_cells(text))


def _cells(text: str) -> list[str]:
    # What stands on the screen for each character.
    if text.isprintable():
        return list(text)
    return [character if character.isprintable() else _escape(character) for character in text]


def _escape(character: str) -> str:
    if character == "\t":
        return "    "
    return character.encode("unicode_escape").decode("ascii")


def _columns(text: str) -> int:
    # Screen columns that ``text`` takes once it is printable.
    shown = printable(text)
    if shown.isascii():
        return len(shown)
    import unicodedata  # slow to import, and only needed here

    columns = 0
    for character in shown:
        if unicodedata.category(character) not in ("Mn", "Me"):
            columns += 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
    return columns


def _within(span: Span, text: str) -> Span:
    return Span(min(span.start, len(text)), min(span.end, len(text)))


def _window(text: str, spans: list[Span]) -> Span:
    # The characters to show: all, or what fits around all labels, or around the first one.
    if len(text) <= _WINDOW and _columns(text) <= _WINDOW:
        return Span(0, len(text))
    start = min(span.start for span in spans)
    end = max(span.end for span in spans)
    if end - start > _WINDOW - _BEFORE:
        start = spans[0].start
    start -= _fitting(reversed(text[max(0, start - _BEFORE) : start]), _BEFORE)
    return Span(start, start + _fitting(text[start : start + _WINDOW], _WINDOW))


def _fitting(characters: Iterable[str], room: int) -> int:
    # How many of the first characters take no more than ``room`` columns.
    count = 0
    for character in characters:
        room -= _columns(character)
        if room < 0:
            break
        count += 1
    return count


def _marks(text: str, window: Span) -> tuple[str, str]:
    return _CUT if window.start > 0 else "", _CUT if window.end < len(text) else ""


def _outside(span: Span, window: Span) -> bool:
    # An empty span is before its character, or at the end of the text.
    return span.start > window.end or max(span.end, span.start + 1) <= window.start


def _underline(text: str, window: Span, span: Span) -> tuple[int, int]:
    # Columns before the underline and its length, at least one.
    start = min(max(span.start, window.start), window.end)
    end = min(max(span.end, start), window.end)
    return _columns(text[window.start : start]), max(1, _columns(text[start:end]))


def _painted(text: str, code: str) -> str:
    return f"{code}{text}{_RESET}"


def _plain(text: str, _code: str) -> str:
    return text
