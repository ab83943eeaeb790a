"""Standard input, for operands that are ``-``."""

from __future__ import annotations

import sys

from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

__all__ = ["NAMED", "given_bytes", "given_lines", "unreadable"]

NAMED = "-"


def given_bytes() -> BinaryIO:
    """Standard input as bytes; raises DebugInfoError FC0901 where it is closed."""
    if sys.stdin is None:
        raise DebugInfoError("FC0901", NAMED, "cannot be read: standard input is closed")
    return sys.stdin.buffer


def given_lines() -> Iterator[str]:
    """Each line without what ends it, and without those that say nothing.

    Bytes that are no UTF-8 are lone surrogates. Raises DebugInfoError FC0901 where it cannot be
    read: it is closed, or a folder.
    """
    file = given_bytes()
    try:
        for raw in file:
            line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
            if line.strip():
                yield line
    except OSError as refused:
        raise unreadable(NAMED, refused) from None


def unreadable(path: str, refused: OSError) -> DebugInfoError:
    """FC0901 of a file that lines were to be read from."""
    return DebugInfoError("FC0901", path, f"cannot be read: {refused.strerror}")
