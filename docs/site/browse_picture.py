"""The picture of ``fetchc browse``: a screen of textual's, from keys that are typed into it.

``python -m docs.site.browse_picture`` writes docs/pictures/browse.svg.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import fetchc
from fetchc.browse.browser import Browser
from fetchc.browse.questions import Questions

__all__ = ["BINARY", "KEYS", "PICTURE", "picture"]

PICTURE = Path(__file__).parents[1] / "pictures" / "browse.svg"
BINARY = "corpus/c/layouts/bin/gcc-O2-dwarf5"
KEYS = [*"visit", "enter", "enter", "right", *["down"] * 7]


def picture() -> str:
    """The screen after the keys, as SVG that loads nothing."""
    answers = Questions(lambda: fetchc.open(BINARY), str).answers()

    def ask(name: str, *arguments: object) -> Any:
        return answers[name](*arguments)

    async def drawn() -> str:
        app = Browser(ask, ask("functions"), ["-x", BINARY])
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press(*KEYS)
            await pilot.pause()
            return app.export_screenshot(title="fetchc browse")

    # Fonts of another site: what the reader has must do.
    svg = re.sub(r"@font-face \{.*?\}", "", asyncio.run(drawn()), flags=re.DOTALL)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono")
    return "\n".join([line.rstrip() for line in svg.splitlines() if line.strip()]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture())
