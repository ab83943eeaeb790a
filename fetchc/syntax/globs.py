"""Globs of names: ``*`` is any text and ``?`` any character, all others are themselves.

Brackets and parentheses are part of Go's names (``main.(*server).handle*``,
``main.Sum[go.shape.int]``).
"""

from __future__ import annotations

import re

__all__ = ["glob_pattern", "longest_text"]


def glob_pattern(glob: str) -> re.Pattern[str]:
    """The pattern that fits a whole text, in time that grows with the text and no faster."""
    parts = [re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", glob)]
    if len(parts) == 1:
        return re.compile(parts[0], re.DOTALL)
    # The first place of a part in the middle is as good as any: atomic groups never look for
    # a second one, of which there would be as many as ways to place all parts.
    middle = "".join([f"(?>.*?{part})" for part in parts[1:-1]])
    return re.compile(f"{parts[0]}{middle}.*{parts[-1]}", re.DOTALL)


def longest_text(glob: str) -> str:
    """The longest part without a wildcard, which is in each text that the glob fits."""
    return max(re.split(r"[*?]+", glob), key=len)
