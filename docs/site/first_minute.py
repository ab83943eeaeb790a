"""The first minute at the terminal as a moving picture, from the sessions of a tutorial.

Its commands and outputs are those of the page, which tests run. The picture is one SVG; a line is
hidden until its time has come. Where nothing moves (paper, a reader who wants no motion) all lines
are there.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from fetchc.cli.svg import BOXES, COLUMN, LINE, PAGE, document, escaped
from tests.support.examples import examples

__all__ = ["COMMANDS", "frames", "picture"]

TUTORIAL = Path(__file__).parents[1] / "tutorials" / "go.md"
COMMANDS = ("functions", "variables", "compile", "trace")  # the first of each in the tutorial
_COLUMNS = 64
_TYPING, _READING = 1.6, 1.2  # seconds from a command to its output, and from there to the next
_MARGIN = 16

_STYLE = """
@keyframes wait { from { opacity: 0 } to { opacity: 0 } }
.prompt { font-weight: bold }
@media (prefers-reduced-motion: reduce) { text { animation: none !important } }
@media print { text { animation: none !important } }"""


def frames(page: str) -> list[tuple[float, bool, str]]:
    """Lines of the terminal with the second at which each appears, and whether it is a command."""
    sessions = examples(page) + examples(page, "console walk")
    shown: list[tuple[float, bool, str]] = []
    now = 0.0
    for name in COMMANDS:
        command, output = next(each for each in sessions if each[0].split()[1] == name)
        typed = textwrap.wrap(f"$ {command}", _COLUMNS, subsequent_indent="    ")
        shown += [(now, True, line) for line in typed]
        now += _TYPING
        for line in output.rstrip("\n").split("\n"):
            shown += [(now, False, part) for part in _rows(line)]
            now += 0.4 if name == "trace" else 0.0
        now += _READING
    return shown


def _rows(line: str) -> list[str]:
    # As a terminal breaks a line that is too long for it.
    return [line[at : at + _COLUMNS] for at in range(0, max(len(line), 1), _COLUMNS)]


def picture() -> str:
    """The SVG, from the tutorial as it is now."""
    lines = frames(TUTORIAL.read_text())
    size = (_COLUMNS * COLUMN + 2 * _MARGIN, len(lines) * LINE + 2 * _MARGIN)
    frame = (
        f'<rect class="box" x=".5" y=".5" rx="6" width="{size[0] - 1:g}" height="{size[1] - 1}"/>'
    )
    parts = [PAGE, frame]
    for row, (second, is_command, line) in enumerate(lines, 1):
        style = "prompt" if is_command else "dim"
        parts.append(
            f'<text class="{style}" x="{_MARGIN}" y="{_MARGIN + row * LINE}" xml:space="preserve" '
            f'style="animation: wait {second:.1f}s">{escaped(line)}</text>'
        )
    said = "; ".join(line for _, is_command, line in lines if is_command)
    return document("The first minute with fetchc", said, size, parts, BOXES + _STYLE)
