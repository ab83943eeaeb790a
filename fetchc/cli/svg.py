"""Pictures as SVG: the document, and boxes with lines of text and arrows between them.

A picture is one file without references to others: no font, script or image is loaded. It has a
title and a description for screen readers. Text is monospaced, so the width of a line is
known without measuring. Colors follow the reader's light or dark theme.
"""

from __future__ import annotations

from fetchc.diag.render import printable
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BOXES",
    "COLUMN",
    "LINE",
    "PAGE",
    "Box",
    "arrow",
    "columns",
    "document",
    "escaped",
    "label",
]

COLUMN = 7.8  # px: a column of 13 px text in the widest of the fonts below
LINE = 18  # px: from one line of text to the next
_PAD = 10

BOXES = """\
:root { color-scheme: light dark }
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1f2328 }
.dim { fill: #57606a }
.page { fill: #fff }
.box { fill: #f6f8fa; stroke: #8c959f }
.end { fill: #ddf4ff; stroke: #0969da }
.arrow { stroke: #57606a; fill: none }
.head { fill: #57606a }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .dim { fill: #9198a1 }
  .page { fill: #0d1117 }
  .box { fill: #161b22; stroke: #6e7681 }
  .end { fill: #0c2d4d; stroke: #4493f8 }
  .arrow { stroke: #9198a1 }
  .head { fill: #9198a1 }
}"""  # the style of what this module draws

# Below all else, for pages of another color than the reader's theme.
PAGE = '<rect class="page" width="100%" height="100%" rx="6"/>'


def columns(text: str) -> float:
    """The width of ``text``, in px; characters that terminals show in two columns count twice."""
    import unicodedata

    text = printable(text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return (len(text) + wide) * COLUMN


class Box(Record):
    """A box with lines of text, its first line in full strength and the others dimmed.

    ``x`` and ``y`` are its upper left corner, in px. ``kind`` is ``box`` or ``end``.
    """

    x: float
    y: float
    lines: tuple[str, ...]
    kind: str = "box"

    @property
    def width(self) -> float:
        """In px, with the space around the text."""
        return max(columns(line) for line in self.lines) + 2 * _PAD

    @property
    def height(self) -> float:
        """In px, with the space around the text."""
        return len(self.lines) * LINE + _PAD

    def drawn(self) -> str:
        """The box and its text."""
        shape = (
            f'<rect class="{self.kind}" x="{self.x:g}" y="{self.y:g}" rx="4" '
            f'width="{self.width:g}" height="{self.height:g}"/>'
        )
        texts = [
            label(self.x + _PAD, self.y + (row + 1) * LINE, line, "dim" if row else "")
            for row, line in enumerate(self.lines)
        ]
        return "\n".join([shape, *texts])


def label(x: float, y: float, text: str, kind: str = "") -> str:
    """A line of text that begins at ``x`` on the base line ``y``."""
    attribute = f' class="{kind}"' if kind else ""
    return f'<text{attribute} x="{x:g}" y="{y:g}" xml:space="preserve">{escaped(text)}</text>'


def arrow(x: float, y: float, end: float) -> str:
    """An arrow down from ``(x, y)`` to the height ``end``."""
    return (
        f'<path class="arrow" d="M{x:g} {y:g}V{end - 6:g}"/>'
        f'<path class="head" d="M{x - 4:g} {end - 7:g}h8l-4 7z"/>'
    )


def document(
    title: str,
    description: str,
    size: tuple[float, float],
    parts: Sequence[str],
    style: str = BOXES,
) -> str:
    """A whole SVG file: what screen readers say, the size in px, what is drawn, its style sheet."""
    width, height = size
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escaped(title)}</title>',
        f'<desc id="desc">{escaped(description)}</desc>',
        f"<style>{style}</style>",
        *parts,
        "</svg>",
    ]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """``text`` for an element or an attribute; what cannot be printed is shown by its code."""
    text = printable(text)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, entity)
    return text
