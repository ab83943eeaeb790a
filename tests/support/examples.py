"""The commands that a page of the documents shows, with what they print."""

from __future__ import annotations

import re

__all__ = ["examples"]


def examples(page: str, kind: str = "console") -> list[tuple[str, str]]:
    """Commands and outputs of the page's blocks of that kind, such as ``console lab``, in order."""
    found = []
    for block in re.finditer(rf"^```{kind}\n(.*?)^```$", page, re.M | re.S):
        for example in re.split(r"^(?=\$ )", block[1], flags=re.M):
            command, _, output = example.partition("\n")
            if command.startswith("$ "):
                found.append((command.removeprefix("$ "), output))
    return found
