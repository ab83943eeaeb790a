"""Which programs the conformance tests draw: ``FETCHC_SEEDS=1000-1040``, or by the profile."""

from __future__ import annotations

import os

__all__ = ["seeds"]

_LONG = 100  # rounds of a night


def seeds() -> list[int]:
    """The seeds of this run: one, unless ``FETCHC_SEEDS`` or the profile ``long`` asks for more."""
    default = f"1-{_LONG}" if os.environ.get("FETCHC_HYPOTHESIS") == "long" else "1"
    first, _, last = os.environ.get("FETCHC_SEEDS", default).partition("-")
    return list(range(int(first), int(last or first) + 1))
