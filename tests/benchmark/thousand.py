"""Compile 1,000 expressions on one program: ``thousand.py FILE FUNCTION EXPRESSION``.

Each has another index, so that none is answered by the last one.
"""

from __future__ import annotations

import sys

import fetchc


def main(path: str, function: str, expression: str) -> None:
    """Print how many were compiled."""
    probe = fetchc.open(path).probe(function, kernel="6.1")
    print(len({probe.compile(f"({expression})[{n}]").fetcharg for n in range(1000)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
